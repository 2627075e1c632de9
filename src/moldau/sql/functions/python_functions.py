"""Functions in Python: `@scalar`, `@aggregate` and `@table_function` of `moldau.sql`.

A function says its types in a signature, `@scalar("TAX(DOUBLE amount, DOUBLE rate) -> DOUBLE")`, or in annotations:
bool, int (BIGINT), float (DOUBLE), str, bytes, date, time, datetime, list[..], dict[.., ..],
`Annotated[int, "INTEGER"]` for any other SQL type, and a TypeVar for any type. `X | None` means that nulls are passed
in; without it a null argument makes the result null. `*values: X` may repeat. Functions of one name are overloads.

They come from files of one folder (`ksql.extension.dir`), which whoever runs the process has put there. Nothing that
comes in a request becomes code.
"""

from __future__ import annotations

import datetime
import inspect
import types as python_types
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from ..errors import SqlError
from ..tree import Type
from .aggregates import Aggregate, Given
from .python_values import inward, outward
from .registry import REGISTRY, AggregateFunction, Registry, Row, Scalar, TableFunction
from .signatures import Signature, instantiate, read

F = TypeVar("F", bound=Callable[..., Any])
ANNOTATIONS: dict[Any, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bytes: "BYTES",
    datetime.date: "DATE",
    datetime.time: "TIME",
    datetime.datetime: "TIMESTAMP",
}
_collected: list[list[Row]] = []


@contextmanager
def collecting() -> Iterator[list[Row]]:
    """Collect the functions that are declared meanwhile."""
    _collected.append([])
    try:
        yield _collected[-1]
    finally:
        _collected.pop()


def _declare(row: Row) -> None:
    if _collected:
        _collected[-1].append(row)


def scalar(signature: str | Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Declare a function of one row."""
    return _decorated(signature, name, _scalar)


def table_function(signature: str | Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Declare a function that makes several rows of one: it returns or yields them."""
    return _decorated(signature, name, _table_function)


def _decorated(given: Any, name: str | None, declare: Callable[[Any, Signature, bool], None]) -> Any:
    def decorate(function: F) -> F:
        line = given if isinstance(given, str) else _line(function, name)
        declare(function, _signature(line, function), _takes_nulls(function))
        return function

    return decorate(given) if callable(given) else decorate


def _scalar(function: Callable[..., Any], signature: Signature, takes_nulls: bool) -> None:
    def make(given: Sequence[Any]) -> Callable[..., Any]:
        into, out = [inward(each) for each in given], outward(_result(signature, given))
        return lambda *values: out(function(*(one(value) for one, value in zip(into, values, strict=True))))

    def result(given: Sequence[Any]) -> Type:
        return _result(signature, given)

    _declare(Scalar(signature, function, inspect.getdoc(function) or "", takes_nulls, result, make))


def _result(signature: Signature, given: Sequence[Any]) -> Type:
    bindings = signature.bind(given, True)
    found = None if bindings is None else instantiate(signature.result, bindings)
    if found is None:
        raise SqlError(f"The type of the result of {signature.name} is not known: cast its arguments")
    return found


def _table_function(function: Callable[..., Any], signature: Signature, takes_nulls: bool) -> None:
    def make(given: Sequence[Any]) -> Callable[..., list[Any]]:
        into, out = [inward(each) for each in given], outward(_result(signature, given))

        def call(*values: Any) -> list[Any]:
            if not takes_nulls and None in values:
                return []
            found = function(*(one(value) for one, value in zip(into, values, strict=True)))
            return [out(each) for each in found or ()]

        return call

    _declare(TableFunction(signature, function, inspect.getdoc(function) or "", make))


def aggregate(signature: str, *, state: str) -> Callable[[type[Any]], type[Any]]:
    """Declare an aggregate: a class with init, add and merge, and where they make sense undo and result.

    `state` is the SQL type of its state. The parameters of the constructor are the last of the signature: a call must
    have literals there.
    """

    def decorate(kind: type[Any]) -> type[Any]:
        missing = [each for each in ("init", "add", "merge") if not callable(getattr(kind, each, None))]
        if missing:
            raise SqlError(f"The aggregate {kind.__name__} lacks {', '.join(missing)}")
        parsed = _signature(signature, kind)
        constants = [] if kind.__init__ is object.__init__ else list(inspect.signature(kind).parameters)
        state_type = instantiate(_signature(f"state() -> {state}", kind).result, {})
        if state_type is None:
            raise SqlError(f"The state of the aggregate {kind.__name__} needs a type, not {state}")

        def make(given: Given) -> Aggregate:
            return _aggregate(kind(*given.constants), parsed, state_type, given)

        _declare(AggregateFunction(parsed, make, inspect.getdoc(kind) or "", len(constants)))
        return kind

    return decorate


def _aggregate(made: Any, signature: Signature, state: Type, given: Given) -> Aggregate:
    into = [inward(each) for each in given.types]
    read_state, write_state = inward(state), outward(state)
    bindings = {}
    for parameter, each in zip(signature.parameters, given.types, strict=False):
        bindings.update(Signature("", (parameter,), ("",), parameter).bind([each], True) or {})
    result_type = instantiate(signature.result, bindings)
    if result_type is None:
        raise SqlError(f"The type of the result of {signature.name} is not known")

    def stepping(step: Callable[..., Any]) -> Callable[..., Any]:
        return lambda old, *values: write_state(
            step(read_state(old), *(one(value) for one, value in zip(into, values, strict=True)))
        )

    out, undo = outward(result_type), getattr(made, "undo", None)
    result = getattr(made, "result", None) or (lambda found: found)
    return Aggregate(
        result_type,
        state,
        lambda: write_state(made.init()),
        stepping(made.add),
        lambda one, two: write_state(made.merge(read_state(one), read_state(two))),
        lambda found: out(result(read_state(found))),
        stepping(undo) if undo else None,
    )


def _signature(line: str, function: Any) -> Signature:
    try:
        return read(line)
    except (AssertionError, ValueError) as error:
        raise SqlError(f"The signature of {function.__name__} cannot be read: {error}") from None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise SqlError(f"The annotations of {function.__name__} cannot be read: {error}") from None


def _line(function: Callable[..., Any], name: str | None) -> str:
    """Write the signature that annotations say."""
    hints = _hints(function)
    shown = []
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD) or each.name not in hints:
            raise SqlError(
                f"The parameter {each.name} of {function.__name__} needs an annotation, or a signature as text"
            )
        dots = "..." if each.kind == each.VAR_POSITIONAL else ""
        shown.append(f"{_sql(hints[each.name], function)}{dots} {each.name}")
    if "return" not in hints:
        raise SqlError(f"{function.__name__} needs an annotation of what it returns, or a signature")
    returned = _sql(_rows_of(hints["return"]), function)
    return f"{name or function.__name__}({', '.join(shown)}) -> {returned}"


def _rows_of(hint: Any) -> Any:
    """Return what an iterator yields: the rows of a table function."""
    origin = typing.get_origin(hint)
    return typing.get_args(hint)[0] if isinstance(origin, type) and issubclass(origin, Iterator) else hint


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, python_types.UnionType):
        others = [each for each in typing.get_args(hint) if each is not type(None)]
        return others[0] if len(others) == 1 else hint
    return hint


def _sql(hint: Any, function: Callable[..., Any]) -> str:
    hint = _without_none(hint)
    if typing.get_origin(hint) is typing.Annotated:
        return str(typing.get_args(hint)[1])
    if hint in ANNOTATIONS:
        return ANNOTATIONS[hint]
    if isinstance(hint, TypeVar):
        return hint.__name__
    inner = [_sql(each, function) for each in typing.get_args(hint)]
    if typing.get_origin(hint) is list:
        return f"ARRAY<{inner[0]}>"
    if typing.get_origin(hint) is dict:
        return f"MAP<{inner[0]}, {inner[1]}>"
    wish = "; give a decimal its size: Annotated[Decimal, 'DECIMAL(10, 2)']" if hint is Decimal else ""
    raise SqlError(f"{function.__name__}: the annotation {hint!r} has no SQL type{wish}")


def _takes_nulls(function: Callable[..., Any]) -> bool:
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        return False
    parameters = inspect.signature(function).parameters
    return any(_without_none(hints[name]) is not hints[name] for name in parameters if name in hints)


FILES: dict[str, tuple[str, str]] = {}  # of functions that were loaded from a folder: the file's name and text


def load_file(path: Path) -> list[Row]:
    """Execute a file and return the functions that it declares."""
    module = python_types.ModuleType(f"moldau_sql_extension_{path.stem}")
    module.__file__ = str(path)
    with collecting() as rows:
        try:
            # Not by an import: that takes a file of the same second and size for the one it has compiled before.
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
        except SqlError as error:
            raise SqlError(f"{path.name}: {error}") from None
        except (Exception, SystemExit) as error:
            raise SqlError(f"{path.name} cannot be loaded: {type(error).__name__}: {error}") from error
    return rows


def load_folder(folder: Path, enabled: bool = True, registry: Registry = REGISTRY) -> list[str]:
    """Add the functions of a folder's files (ksql.extension.dir) and return their names.

    A name of ksqlDB cannot be taken. If one file is wrong nothing is added.
    """
    if not enabled:
        raise SqlError("Functions in Python are switched off (ksql.udfs.enabled=false)")
    if not folder.is_dir():
        raise SqlError(f"The folder of functions {folder} does not exist (ksql.extension.dir)")
    by_file = {path: load_file(path) for path in sorted(folder.glob("*.py"))}
    install([row for rows in by_file.values() for row in rows], registry)
    found = {row.signature.name.upper(): path for path, rows in by_file.items() for row in rows}
    FILES.update((name, (path.name, path.read_text("utf-8"))) for name, path in found.items())
    return sorted(found)


def load_named(path: Path, name: str, registry: Registry = REGISTRY) -> Callable[[], None]:
    """Read the functions of one name that a file declares; what is returned adds them.

    They take the place of those of the same name that a file has brought before.
    """
    if not path.is_file():
        raise SqlError(f"There is no file {path.name} in the folder of functions.")
    rows = load_file(path)
    wanted = [row for row in rows if row.signature.name.upper() == name]
    if not wanted:
        names = ", ".join(sorted({row.signature.name.upper() for row in rows})) or "none"
        raise SqlError(f"{path.name} declares no function {name}. Those that it declares: {names}")
    replaced = name if name in registry.loaded else None
    check(wanted, registry, replaced)

    def add() -> None:
        install(wanted, registry, replaced)
        FILES[name] = (path.name, path.read_text("utf-8"))

    return add


def unload(name: str, registry: Registry = REGISTRY) -> bool:
    """Forget the functions of a name that a file has brought; tell whether there were any."""
    if name not in registry.loaded:
        return False
    registry.loaded.discard(name)
    registry.rows.pop(name, None)
    FILES.pop(name, None)
    return True


def install(rows: Sequence[Row], registry: Registry = REGISTRY, replaced: str | None = None) -> None:
    """Add functions to a registry: all of them, or none if one is refused."""
    by_name = check(rows, registry, replaced)
    registry.rows.update(by_name)
    registry.loaded.update(by_name)


def check(rows: Sequence[Row], registry: Registry, replaced: str | None) -> dict[str, list[Row]]:
    """Return functions by name, or refuse them."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.signature.name.upper(), []).append(row)
    for name, overloads in by_name.items():
        if name in registry.rows and name != replaced:
            raise SqlError(f"There is a function {name} already: give yours another name")
        if len({type(each) for each in overloads}) > 1:
            raise SqlError(f"{name} cannot be a function of one row, an aggregate and a table function at once")
        parameters = [(each.signature.parameters, each.signature.variadic) for each in overloads]
        if any(each in parameters[:number] for number, each in enumerate(parameters)):
            raise SqlError(f"{name} is declared twice with the same parameters")
    return by_name
