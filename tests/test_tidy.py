"""The house rules as tests: who may import whom, which packages are pure, how long things may be, how they are named.

A rule yields one line a breach. What is exempt stands in a table here with its reason, and an exemption that is no
longer needed is a breach too.
"""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from tests import needs

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "moldau"

# A package may import itself and those listed. One that is not listed may not exist: add its row with the design.
MAY_IMPORT: dict[str, set[str]] = {
    "extras": set(),
    "java": set(),
    "logs": set(),
    "settings": set(),
    "sasl": {"settings", "extras"},
    "tls": {"settings"},
    "tokens": {"settings", "sasl"},
    "wire": set(),
    "log": {"wire"},
    "machines": {"sasl", "wire"},
    "cluster": {"wire", "log", "machines"},
    "broker": {"logs", "settings", "sasl", "tls", "tokens", "wire", "log", "machines", "cluster"},
    "client": {"settings", "sasl", "tls", "tokens", "wire"},
    "serdes": {"settings", "wire"},
    "http": {"logs", "settings", "sasl", "tls", "tokens"},
    "topicstore": {"client", "admin"},
    "registry": {"settings", "serdes", "client", "http", "topicstore", "admin"},
    "rest": {"settings", "serdes", "client", "http", "admin"},
    "admin": {"settings", "sasl", "tls", "http", "wire", "client"},
    "balance": {"topicstore", "admin", "client"},
    "records": {"settings", "serdes", "wire", "client", "admin", "operators", "views", "http"},
    "console": {
        "settings",
        "serdes",
        "wire",
        "client",
        "http",
        "spark",
        "admin",
        "records",
        "extras",
        "balance",
        "flows",
        "sql",
    },
    "spark": {"settings", "serdes", "wire", "client", "topicstore", "extras", "admin"},
    "operators": {"serdes", "wire"},
    "views": {"client", "serdes", "operators", "http", "topicstore", "extras", "admin"},
    "plan": {"operators", "spark", "serdes", "wire"},
    "streams": {"plan", "operators", "serdes", "views", "extras", "wire"},
    "sql": {
        "plan",
        "operators",
        "serdes",
        "streams",
        "views",
        "settings",
        "wire",
        "java",
        "client",
        "http",
        "topicstore",
        "admin",
        "flows",
        "extras",
    },
    "connect": {
        *("settings", "tls", "wire", "serdes", "client", "http", "topicstore", "admin", "flows", "operators", "java"),
        *("spark", "extras"),
    },
    "mirror": {"spark", "serdes", "client"},
    "testing": {"broker", "connect", "http", "sql"},
    "flows": {"topicstore", "client", "admin", "spark", "plan", "streams", "operators", "extras", "http"},
    "demo": {"client", "serdes", "streams", "plan", "spark", "admin", "flows"},
}
ROOTS = {"__init__", "__main__", "cli", "platform"}  # composition: may import all
PURE = ("wire", "sasl", "machines", "cluster", "operators")
IMPURE = {"os", "io", "time", "random", "secrets", "uuid", "datetime"}
IMPURE |= {"socket", "asyncio", "uvloop", "threading", "multiprocessing", "subprocess"}
STRICT = ("wire", "log", "machines", "cluster", "plan")

FUNCTION_LINES = 60
FILE_LINES = 600
FILE_BYTES = 300_000
# "path" or "path::function" -> why it may be longer.
LONGER: dict[str, str] = {
    "src/moldau/serdes/arrow/avro_reader.py::read_rows": "one loop over instructions; a call for each costs ten times",
    "src/moldau/serdes/arrow/avro_writer.py::write_rows": "as read_rows",
}
UNTYPED_ARROW = "pyarrow and numpy have no complete types"
# Files of strict packages that pyright checks as it does the others, and why.
BASIC: dict[str, str] = {
    "src/moldau/plan/blobs.py": UNTYPED_ARROW,
    "src/moldau/plan/columns.py": UNTYPED_ARROW,
    "src/moldau/plan/conveyor/level.py": "pandas frames and Spark's stateful processors have no complete types",
    "src/moldau/plan/conveyor/rows.py": UNTYPED_ARROW,
    "src/moldau/plan/conveyor/sink.py": UNTYPED_ARROW,
    "src/moldau/plan/conveyor/source.py": UNTYPED_ARROW,
    "src/moldau/plan/lane/cargo.py": "Spark's cloudpickle has no types",
    "src/moldau/plan/lane/driver.py": "Spark's frames have no complete types",
    "src/moldau/plan/lane/rows.py": UNTYPED_ARROW,
    "src/moldau/plan/lane/sink.py": UNTYPED_ARROW,
    "src/moldau/plan/lane/source.py": UNTYPED_ARROW,
    "src/moldau/plan/lane/steps.py": "pandas frames and Spark's stateful processors have no complete types",
    "src/moldau/plan/routing.py": UNTYPED_ARROW,
}
BAD_NAME = re.compile(r"(Manager|Helpers?|Utils?|Impl|Base)$|^Base")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    where: str  # relative to the project
    text: str
    tree: ast.Module
    nodes: dict[type, list[Any]]  # of the tree, by their types

    @property
    def package(self) -> str:
        """The first name below moldau: `wire` for src/moldau/wire/codec.py, `settings` for src/moldau/settings.py."""
        return Path(self.where).relative_to("src/moldau").with_suffix("").parts[0]

    def functions(self) -> Iterator[Function]:
        return self.of(ast.FunctionDef, ast.AsyncFunctionDef)

    def classes(self) -> Iterator[ast.ClassDef]:
        return self.of(ast.ClassDef)

    def of(self, *types: type) -> Iterator[Any]:
        """Every node of some types."""
        return (node for each in types for node in self.nodes.get(each, ()))


@cache
def modules(folder: str) -> tuple[Module, ...]:
    gc.disable()  # nothing of two million nodes is garbage, and to look through them takes three times as long
    try:
        return tuple(parsed(path) for path in sorted((ROOT / folder).rglob("*.py")))
    finally:
        gc.enable()


def parsed(path: Path) -> Module:
    text, nodes = path.read_text(), defaultdict[type, list[Any]](list)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        nodes[type(node)].append(node)
    return Module(path.relative_to(ROOT).as_posix(), text, tree, dict(nodes))


@pytest.fixture(scope="module", autouse=True)
def forget() -> Iterator[None]:
    """Other tests of this process need not carry the trees along."""
    yield
    modules.cache_clear()


def everywhere() -> tuple[Module, ...]:
    return modules("src/moldau") + modules("tests") + modules("benchmarks")


def imports(module: Module, nodes: Iterable[ast.AST] | None = None) -> Iterator[tuple[int, str]]:
    """Every imported name in full, relative imports resolved; also those for types alone, unless `nodes` are given."""
    package = Path(module.where).relative_to("src").parent.parts
    for node in module.of(ast.Import, ast.ImportFrom) if nodes is None else nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*prefix, *([node.module] if node.module else [])))
            yield from ((node.lineno, f"{stem}.{alias.name}") for alias in node.names)


def clean(breaches: Iterator[str]) -> None:
    found = list(breaches)
    assert not found, "\n" + "\n".join(found)


def test_packages_import_only_what_the_design_allows() -> None:
    def breaches() -> Iterator[str]:
        for module in modules("src/moldau"):
            mine = module.package
            if mine in ROOTS:
                continue
            if mine not in MAY_IMPORT:
                yield f"{module.where}: package {mine} has no row in MAY_IMPORT"
                continue
            for line, name in imports(module):
                top, _, rest = name.partition(".")
                other = rest.split(".")[0]
                if top == "moldau" and other not in {mine, "__version__"} | MAY_IMPORT[mine]:
                    yield f"{module.where}:{line}: {mine} must not import {other or 'moldau'}"

    clean(breaches())


def at_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported: not functions, and not what is for type checkers alone."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from at_import(statement.orelse)
        elif not isinstance(statement, Function):
            yield from at_import(node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt))


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """A circle works only as long as everybody imports its modules in the right order."""
    known = {dotted(module): module for module in modules("src/moldau")}
    graph: dict[str, set[str]] = {}
    for name, module in known.items():
        imported = {other for _, other in imports(module, at_import(module.tree.body))}
        graph[name] = {other if other in known else other.rpartition(".")[0] for other in imported} & known.keys() - {
            name
        }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"import it for type checkers alone, or move what both need: {error.args[1]}") from None


def dotted(module: Module) -> str:
    return ".".join(Path(module.where).relative_to("src").with_suffix("").parts).removesuffix(".__init__")


def test_pure_packages_have_no_clock_no_dice_and_no_input_or_output() -> None:
    def breaches() -> Iterator[str]:
        for module in modules("src/moldau"):
            if module.package in PURE:
                for line, name in imports(module):
                    if name.split(".")[0] in IMPURE:
                        yield f"{module.where}:{line}: {module.package} is pure and must not import {name}"
                for node in module.of(ast.Call):
                    if isinstance(node.func, ast.Name) and node.func.id == "open":
                        yield f"{module.where}:{node.lineno}: {module.package} is pure and must not open files"

    clean(breaches())


def length(function: Function) -> int:
    """Lines of a function without its docstring: prose is free."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function):
        prose = function.body[0]
        lines -= (prose.end_lineno or 0) - prose.lineno + 1
    return lines


def too_long() -> dict[str, str]:
    found = {}
    for module in everywhere():
        if (lines := len(module.text.splitlines())) > FILE_LINES:
            found[module.where] = f"{lines} lines, at most {FILE_LINES}"
        for function in module.functions():
            if (lines := length(function)) > FUNCTION_LINES:
                found[f"{module.where}::{function.name}"] = f"{lines} lines, at most {FUNCTION_LINES}"
    return found


def test_functions_and_files_stay_short_or_give_a_reason() -> None:
    found = too_long()
    clean(f"{where}: {what}" for where, what in found.items() if where not in LONGER)
    clean(f"{where}: is short enough now, take it out of LONGER" for where in LONGER if where not in found)


def test_every_module_opens_with_a_docstring() -> None:
    clean(
        f"{module.where}: no docstring"
        for module in everywhere()
        if module.text.strip() and not ast.get_docstring(module.tree)
    )


def test_classes_are_nouns_of_the_field() -> None:
    clean(
        f"{module.where}:{node.lineno}: {node.name} says nothing; name it after what it is"
        for module in everywhere()
        for node in module.classes()
        if BAD_NAME.search(node.name)
    )


def test_dataclasses_are_slotted() -> None:
    def breaches() -> Iterator[str]:
        for module in modules("src/moldau"):
            for node in module.classes():
                for decorator in node.decorator_list:
                    text = ast.unparse(decorator)
                    if re.match(r"(dataclasses\.)?dataclass\b", text) and "slots=True" not in text:
                        yield f"{module.where}:{node.lineno}: dataclass {node.name} without slots=True"

    clean(breaches())


def test_signatures_are_annotated() -> None:
    def breaches() -> Iterator[str]:
        for module in modules("src/moldau"):
            for function in module.functions():
                given = function.args
                named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                bare = [a.arg for a in named if a and not a.annotation and a.arg not in ("self", "cls")]
                if bare or function.returns is None:
                    yield f"{module.where}:{function.lineno}: {function.name} lacks {', '.join(bare) or 'its result'}"

    clean(breaches())


def test_handlers_name_the_types_of_the_node_and_of_the_request() -> None:
    def breaches() -> Iterator[str]:
        for module in modules("src/moldau/broker"):
            for function in module.functions():
                handles = any(True for _ in keys_of(function))
                for a in function.args.args:
                    loose = a.arg in ("node", "connection") or (handles and a.arg == "request")
                    if loose and a.annotation and ast.unparse(a.annotation) == "Any":
                        yield f"{module.where}:{a.lineno}: {function.name} takes {a.arg}: Any"

    clean(breaches())


def test_no_handler_swallows_every_exception() -> None:
    def breaches() -> Iterator[str]:
        for module in modules("src/moldau"):
            for node in module.of(ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "everything"
                passed_on = any(isinstance(inner, ast.Raise | ast.Return) for inner in ast.walk(node))
                if caught in ("everything", "Exception", "BaseException") and not passed_on:
                    yield f"{module.where}:{node.lineno}: catches {caught} and goes on"

    clean(breaches())


def test_nothing_is_left_to_do_in_comments() -> None:
    mark = re.compile(r"#.*\b(TODO|FIXME|XXX)\b")
    clean(
        f"{module.where}:{number}: {line.strip()}"
        for module in modules("src/moldau")
        for number, line in enumerate(module.text.splitlines(), 1)
        if mark.search(line)
    )


def keys_of(function: Function) -> Iterator[int]:
    """The API keys that a function answers."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "api" and decorator.args:
            yield ast.literal_eval(decorator.args[0])


def api_keys(module: Module) -> Iterator[int]:
    return (key for function in module.functions() for key in keys_of(function))


def test_an_api_file_names_its_key_and_how_it_deviates() -> None:
    def breaches() -> Iterator[str]:
        for module in modules("src/moldau/broker"):
            prose = ast.get_docstring(module.tree) or ""
            for key in api_keys(module):
                if not re.search(rf"key {key}\b", prose):
                    yield f"{module.where}: its docstring does not say (key {key})"
                if "Deviates" not in prose:
                    yield f"{module.where}: its docstring does not say how it deviates from Kafka"

    clean(breaches())


def test_no_big_file_is_kept_in_the_project() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    clean(
        f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes, at most {FILE_BYTES}"
        for path in paths
        if path.is_file() and path.stat().st_size > FILE_BYTES
    )


def test_pyright_is_strict_where_the_style_says() -> None:
    strict = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]["strict"]
    clean(
        f"pyproject.toml: src/moldau/{name} is not under pyright's strict"
        for name in STRICT
        if (SOURCE / name).exists() and f"src/moldau/{name}" not in strict
    )


def test_files_that_pyright_checks_less_strictly_give_a_reason() -> None:
    found = {module.where for module in modules("src/moldau") if re.search("^# pyright: basic$", module.text, re.M)}
    clean(f"{where}: give the reason in BASIC" for where in sorted(found - BASIC.keys()))
    clean(f"{where}: is checked strictly, take it out of BASIC" for where in sorted(BASIC.keys() - found))


def marks(module: Module) -> Iterator[str]:
    for node in module.of(ast.Call):
        is_named = isinstance(node.func, ast.Attribute) and node.func.attr == "needs"
        if is_named and ast.unparse(node.func).endswith("mark.needs"):
            yield from (ast.literal_eval(argument) for argument in node.args)
    for node in module.of(ast.arg):
        if node.arg in needs.IMPLIED and "/test_" in module.where:
            yield needs.IMPLIED[node.arg]


def test_needs_toml_says_which_tests_need_which_tool() -> None:
    used = {(tool, module.where) for module in modules("tests") for tool in marks(module)}
    named = {(tool.name, path) for tool in needs.table().values() for path in tool.tests}
    clean(f"tests/needs.toml: [{tool}] does not name {path}" for tool, path in sorted(used - named))
    clean(f"tests/needs.toml: [{tool}] names {path}, which does not need it" for tool, path in sorted(named - used))
