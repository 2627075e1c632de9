"""Functions in Python: declared in files of a folder, chosen and converted as built-in ones are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.settings import HTTP, SQL, ServiceSettings, SettingError
from moldau.sql import codegen, functions
from moldau.sql.errors import SqlError
from moldau.sql.functions.python_functions import load_file, load_folder
from moldau.sql.functions.python_values import outward
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.parser import parse_expression
from moldau.sql.server.process import PREFIXES, load_functions
from moldau.sql.tree import Call, Cast
from moldau.sql.types import text
from moldau.sql.typing import type_of
from tests.needs import ROOT

FILE = '''
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, TypeVar

from moldau.sql import aggregate, scalar, table_function

T = TypeVar("T")

@scalar
def double_it(value: int) -> int:
    """Doubles a number."""
    return value * 2

@scalar(name="double_it")
def double_text(value: str) -> str:
    return value + value

@scalar
def next_day(day: date) -> date:
    return day + timedelta(days=1)

@scalar
def or_else(value: str | None, other: str) -> str:
    return other if value is None else value

@scalar
def last_of(*values: T) -> T:
    return values[-1]

@scalar
def tax(amount: Annotated[Decimal, "DECIMAL(6, 2)"]) -> Annotated[Decimal, "DECIMAL(7, 3)"]:
    return amount / 10

@scalar("SWAP(STRUCT<A INTEGER, B STRING> pair) -> STRUCT<B STRING, A INTEGER>")
def swap(pair):
    return {"B": pair["B"], "A": pair["A"]}

@scalar
def wrong_result(value: int) -> int:
    return "no number"

@table_function
def words(sentence: str) -> Iterator[str]:
    yield from sentence.split()

@aggregate("LONGEST(STRING value, INTEGER least) -> STRING", state="STRUCT<VALUE STRING>")
class Longest:
    """Keeps the longest text of at least some letters."""
    def __init__(self, least):
        self.least = least
    def init(self):
        return {"VALUE": None}
    def add(self, state, value):
        if value is None or len(value) < self.least:
            return state
        return {"VALUE": max([state["VALUE"] or "", value], key=len)}
    def merge(self, one, two):
        return {"VALUE": max([one["VALUE"] or "", two["VALUE"] or ""], key=len)}
    def result(self, state):
        return state["VALUE"]
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of functions, which are forgotten after the test."""
    before = dict(REGISTRY.rows)
    (tmp_path / "mine.py").write_text(FILE)
    yield tmp_path
    REGISTRY.rows.clear()
    REGISTRY.rows.update(before)


def computed(expression: str, log: list[str] | None = None) -> Any:
    def report(message: str, cause: BaseException, _row: Any) -> None:
        assert log is not None, f"{message}: {cause}"
        log.append(str(cause))

    row = codegen.compile_row([parse_expression(expression)], [], None, report)(())
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("DOUBLE_IT(21)", 42),
        ("double_it('ab')", "abab"),
        ("DOUBLE_IT(CAST(null AS INT))", None),
        ("CAST(NEXT_DAY(DATE '2020-02-28') AS STRING)", "2020-02-29"),
        ("OR_ELSE(CAST(null AS STRING), 'x')", "x"),
        ("LAST_OF(1, 2, 3)", 3),
        ("CAST(TAX(12.50) AS STRING)", "1.250"),
        ("SWAP(STRUCT(A := 1, B := 'x'))", ("x", 1)),
    ],
)
def test_a_function_is_called_with_pythons_values(folder: Path, expression: str, expected: Any) -> None:
    load_folder(folder)
    assert computed(expression) == expected


def test_all_functions_of_a_folder_are_there(folder: Path) -> None:
    names = load_folder(folder)
    assert names == ["DOUBLE_IT", "LAST_OF", "LONGEST", "NEXT_DAY", "OR_ELSE", "SWAP", "TAX", "WORDS", "WRONG_RESULT"]
    assert [functions.kind(each) for each in ("TAX", "LONGEST", "WORDS")] == ["scalar", "aggregate", "table"]


def test_a_result_that_is_no_value_of_its_type_is_null_and_reported(folder: Path) -> None:
    load_folder(folder)
    log: list[str] = []
    assert computed("WRONG_RESULT(1)", log) is None
    assert log == ["the function returned 'no number', which is no BIGINT"]


def test_an_aggregate_has_its_constants_and_its_state(folder: Path) -> None:
    load_folder(folder)
    call = parse_expression("LONGEST('x', 2)")
    assert isinstance(call, Call)
    made = functions.aggregate("LONGEST", [type_of(each, {}) for each in call.args], call.args)
    state = made.init()
    for value in ("a", "abc", None, "ab"):
        state = made.add(state, value)
    assert (state, made.result(state), made.inputs, made.undo) == (("abc",), "abc", 1, None)
    assert made.merge(("abc",), ("abcd",)) == ("abcd",)
    assert text(made.state_type) == "STRUCT<`VALUE` STRING>"


def test_a_table_function_yields_rows(folder: Path) -> None:
    load_folder(folder)
    call, type = functions.table("WORDS", [type_of(parse_expression("'x'"), {})])
    assert call("a b") == ["a", "b"] and call(None) == [] and text(type) == "STRING"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("@scalar\ndef f(a) -> int: return 1", "The parameter a of f needs an annotation"),
        ("@scalar\ndef f(a: int): return 1", "f needs an annotation of what it returns"),
        ("@scalar\ndef f(a: object) -> int: return 1", "has no SQL type"),
        ("@scalar('f(FOO a) -> INTEGER')\ndef f(a): return 1", "The signature of f cannot be read"),
        ("@scalar\ndef ucase(a: str) -> str: return a", "There is a function UCASE already"),
        ("@scalar\ndef f(a: int) -> int: return a\nscalar(f)", "F is declared twice with the same parameters"),
        ("@aggregate('f(INTEGER a) -> INTEGER', state='INTEGER')\nclass F: pass", "lacks init, add, merge"),
        ("import no_such_module", "mine.py cannot be loaded: ModuleNotFoundError"),
        ("def f(:", "mine.py cannot be loaded: SyntaxError"),
        ("raise SystemExit(3)", "mine.py cannot be loaded: SystemExit"),
    ],
)
def test_a_file_that_is_wrong_is_refused_and_adds_nothing(folder: Path, code: str, sentence: str) -> None:
    (folder / "mine.py").write_text(f"from moldau.sql import *\n{code}\n")
    (folder / "fine.py").write_text("from moldau.sql import scalar\n@scalar\ndef fine(a: int) -> int: return a\n")
    before = set(REGISTRY.rows)
    with pytest.raises(SqlError, match=sentence):
        load_folder(folder)
    assert set(REGISTRY.rows) == before


def test_functions_can_be_switched_off(folder: Path) -> None:
    with pytest.raises(SqlError, match=r"ksql\.udfs\.enabled=false"):
        load_folder(folder, enabled=False)
    with pytest.raises(SqlError, match="does not exist"):
        load_folder(folder / "no")


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("INT", 1 << 31),
        ("INT", True),
        ("BIGINT", 1.0),
        ("DOUBLE", "1"),
        ("STRING", 1),
        ("DATE", 1),
        ("ARRAY<INT>", "ab"),
    ],
)
def test_a_value_of_another_type_is_refused(type: str, value: Any) -> None:
    cast = parse_expression(f"CAST(null AS {type})")
    assert isinstance(cast, Cast)
    with pytest.raises(TypeError, match="the function returned"):
        outward(cast.type)(value)


def test_a_declaration_outside_a_folder_changes_nothing(folder: Path) -> None:
    before = set(REGISTRY.rows)
    assert len(load_file(folder / "mine.py")) == 10
    assert set(REGISTRY.rows) == before


def test_the_example_of_the_docs_can_be_loaded(folder: Path) -> None:
    page = (ROOT / "docs" / "sql-python-functions.md").read_text()
    (folder / "mine.py").write_text(page.split("```python\n")[1].split("```")[0])
    assert load_folder(folder) == ["LONGEST", "NEXT_DAY", "TAX", "WORDS"]


def test_server_loads_its_folder_or_says_why_not(folder: Path, tmp_path: Path) -> None:
    def load(*given: str) -> None:
        load_functions(ServiceSettings([HTTP, SQL], given, PREFIXES))

    load()
    assert "DOUBLE_IT" not in REGISTRY.rows
    with pytest.raises(SettingError, match=r"switched off \(ksql\.udfs\.enabled=false\)"):
        load(f"ksql.extension.dir={folder}", "ksql.udfs.enabled=false")
    with pytest.raises(SettingError, match="does not exist"):
        load(f"ksql.extension.dir={tmp_path / 'nowhere'}")
    load(f"ksql.extension.dir={folder}")
    assert computed("DOUBLE_IT(21)") == 42
