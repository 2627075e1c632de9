"""Functions: each has an example that is executed, and those of ksqlDB that matter have their edges here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.java import resolution, times
from moldau.sql import codegen, functions
from moldau.sql.errors import SqlError
from moldau.sql.formats.json import writer
from moldau.sql.functions import kind, strings
from moldau.sql.functions.categories import SCALARS, category
from moldau.sql.functions.page import GroupExample, examples, group_examples, page
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.parser import parse_expression
from moldau.sql.tools.sql_tests import Run
from moldau.sql.typing import type_of
from tests.needs import ROOT

UNPREDICTABLE = {"RANDOM", "UUID", "UNIX_DATE", "UNIX_TIMESTAMP"}


def value_of(text: str, log: list[str] | None = None) -> Any:
    def report(message: str, cause: BaseException, _row: Any) -> None:
        if log is not None:
            log.append(f"{message}: {cause}")

    found = codegen.compile_row([parse_expression(text)], [], None, report)(())
    assert found is not None
    return found[0]


@pytest.mark.parametrize(("expression", "expected"), examples(), ids=[each for each, _ in examples()])
def test_an_example_has_its_value(expression: str, expected: str) -> None:
    type = type_of(parse_expression(expression), {})
    assert type is not None
    log: list[str] = []
    assert writer(type)(value_of(expression, log)) == expected
    assert not log


def test_each_function_has_a_description_and_an_example() -> None:
    calls = [expression for expression, _ in examples()] + [one.call for one in group_examples()]
    assert REGISTRY.rows.keys() - {call.partition("(")[0] for call in calls} - UNPREDICTABLE == set()
    assert [name for name, rows in REGISTRY.rows.items() if not any(row.doc for row in rows)] == []


@pytest.mark.parametrize("example", group_examples(), ids=lambda one: one.call)
def test_example_of_a_function_of_rows(example: GroupExample) -> None:
    is_table = functions.kind(example.call.partition("(")[0]) == "table"
    grouped = f"{example.call} AS r FROM s" if is_table else f"k, {example.call} AS r FROM s GROUP BY k"
    names = ", ".join(column.split()[0] for column in example.columns.split(", "))
    run = Run(Path())
    run.execute(f"CREATE STREAM s (k INT KEY, {example.columns}) WITH (kafka_topic='s', value_format='JSON');")
    run.execute(f"CREATE {'STREAM' if is_table else 'TABLE'} t AS SELECT {'k, ' if is_table else ''}{grouped};")
    for row in example.rows.split("; "):
        run.execute(f"INSERT INTO s (k, {names}) VALUES (0, {row});")
    run.settle()
    values = [json.loads(record.value or b"")["R"] for record in run.topics.read("T", {})]
    assert (values if is_table else values[-1]) == json.loads(example.value)


def test_the_page_of_functions_is_up_to_date() -> None:
    assert (ROOT / "docs" / "sql-functions.md").read_text().rstrip() == "\n".join(page()).rstrip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CBRT(27)", 3.0),
        ("CBRT(-0.001)", -0.1),
        ("2147483647 + 1", -2147483648),
        ("-2147483648 / -1", -2147483648),
        ("9223372036854775807 + 1", -9223372036854775808),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("CAST(1E20 AS INT)", 2147483647),
        ("CAST(4294967297 AS INT)", 1),
        ("CAST('  Y ' AS BOOLEAN)", True),
        ("CAST('yesterday' AS BOOLEAN)", False),
        ("CAST(1E7 AS STRING)", "1.0E7"),
        ("CAST(123456.7E0 AS STRING)", "123456.7"),
        ("CAST('2020-05' AS DATE)", 18383),
        ("CAST('2020-05-01T10:00:00+0200' AS TIMESTAMP)", 1588320000000),
        ("CAST(STRUCT(A := 1, B := 'x') AS STRING)", "Struct{A=1,B=x}"),
        ("CAST(ARRAY[1, null] AS STRING)", "[1, null]"),
        ("1 = CAST(null AS INT)", False),
        ("CAST(null AS INT) IS DISTINCT FROM 1", True),
        ("ARRAY[1, 2][0]", None),
        ("ARRAY[1, 2][-1]", 2),
        ("MAP('a' := 1)['b']", None),
        ("CASE WHEN 1 > 2 THEN 'a' END", None),
        ("'a_b' LIKE 'a!_b' ESCAPE '!'", True),
        ("'axb' LIKE 'a!_b' ESCAPE '!'", False),
        ("5 BETWEEN 1 AND 4", False),
        ("LEN('😀')", 2),
        ("SUBSTRING('😀a', 3)", "a"),
        ("SUBSTRING('a😀b', 2, 2)", "😀"),
        ("INSTR('😀a', 'a')", 3),
        ("LPAD('😀', 4, 'ab')", "ab😀"),
        ("RPAD('a', 5, '😀')", "a😀😀"),
        ("MASK('😀A')", "--X"),
    ],
)
def test_an_expression_is_computed_as_java_does(text: str, expected: Any) -> None:
    assert value_of(text) == expected


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("1 / 0", "/ by zero"),
        ("CAST('x' AS INT)", "For input string"),
        ("CAST(123.4 AS DECIMAL(3, 1))", "Numeric field overflow"),
        ("STRINGTODATE('foo', 'yyyyMMdd')", "could not be parsed"),
        ("UNIX_DATE('no date')", "Failed to parse date"),
        ("PARSE_TIMESTAMP('2019-366', 'yyyy-DDD')", "not a leap year"),
        ("REGEXP_REPLACE('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '(a[', 'x')", "Unclosed character class"),
    ],
)
def test_what_fails_is_null_and_reported(text: str, cause: str) -> None:
    log: list[str] = []
    assert value_of(text, log) is None
    assert len(log) == 1 and cause in log[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NO_SUCH(1)", "Can't find any functions with the name 'NO_SUCH'"),
        ("GREATEST()", "Function 'greatest' does not accept parameters ()."),
        ("GREATEST(1, 3000000000)", "Function 'greatest' cannot be resolved due to ambiguous method parameters"),
        ("LEAST('a', 1)", "Function 'least' does not accept parameters (STRING, INTEGER)."),
        ("true + 1.5", "Error processing expression: (true + 1.5). Unsupported arithmetic types. BOOLEAN DECIMAL"),
        ("ARRAY[1] < ARRAY[2]", "Cannot compare ARRAY[1] (ARRAY<INTEGER>) to ARRAY[2] (ARRAY<INTEGER>) with LESS_THAN"),
        ("CAST(true AS INT)", "Cast of BOOLEAN to INTEGER is not supported"),
        ("MAP('a' := 1, 'b' := 'hello')", 'invalid input syntax for type INTEGER: "hello".'),
        ("NULL <> NULL", "Comparison with NULL not supported: NULL <> NULL"),
        ("ARRAY[]", "Array constructor cannot be empty"),
        ("1 IN (2, true)", "Invalid Predicate: operator does not exist: INTEGER = BOOLEAN (true)"),
    ],
)
def test_what_cannot_be_typed_is_refused_in_ksqldbs_words(text: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        type_of(parse_expression(text), {})
    assert message in str(refused.value)


def test_decimals_have_ksqldbs_precision() -> None:
    columns = {"A": parse_type("DECIMAL(5, 2)"), "B": parse_type("DECIMAL(4, 3)")}
    shown = {op: type_of(parse_expression(f"A {op} B"), columns) for op in "+-*/%"}
    sizes = {op: (found.precision, found.scale) for op, found in shown.items()}  # type: ignore[union-attr]
    assert sizes == {"+": (7, 3), "-": (7, 3), "*": (10, 5), "/": (13, 7), "%": (4, 3)}


def parse_type(text: str) -> Any:
    cast = parse_expression(f"CAST(NULL AS {text})")
    return cast.type  # type: ignore[attr-defined]


def test_one_bad_column_leaves_the_others_alone() -> None:
    log: list[str] = []
    expressions = [
        parse_expression(each) for each in ("1 + 1", "STRUCT(A := 'x', B := STRINGTODATE('y', 'yyyy'))", "1 / 0")
    ]
    compute = codegen.compile_row(expressions, [], None, lambda message, cause, _row: log.append(message))
    assert compute(()) == (2, ("x", None), None)
    assert len(log) == 2


def test_an_expression_as_deep_as_the_parser_allows_is_computed() -> None:
    """Python's own parser allows 200 brackets, and an operation takes several."""
    assert value_of("(" * 95 + "1" + " + 1)" * 95) == 96
    assert value_of("ABS(" * 95 + "-1" + ")" * 95) == 1


def test_a_regular_expression_that_explodes_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strings, "SECONDS", 0.05)
    log: list[str] = []
    assert value_of("REGEXP_EXTRACT('(a|aa)+[bc]', '" + "a" * 60 + "')", log) is None
    assert len(log) == 1 and "timed out" in log[0]


def test_no_text_of_a_user_reaches_the_generated_source(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []

    def kept(source: Any, *rest: Any) -> Any:
        sources.append(source)
        return compile(source, *rest)

    monkeypatch.setattr(codegen, "compile", kept, raising=False)
    columns = [("Robert'); DROP", parse_type("STRING"))]
    nodes = [parse_expression("CONCAT(`Robert'); DROP`, '__import__(\"os\")', 'secret')")]
    assert codegen.compile_row(nodes, columns)(("x",)) == ('x__import__("os")secret',)
    assert sources and not any(word in sources[0] for word in ("Robert", "import", "secret", "CONCAT"))


@pytest.mark.parametrize(
    ("pattern", "text", "days"),
    [
        ("yyyyMMdd", "20200229", 18321),
        ("d/M/yy", "1/3/20", 18322),
        ("yyyy-DDD", "2020-366", 18627),
        ("dd-MMM-yyyy", "29-FEB-2020", 18321),
    ],
)
def test_a_date_is_parsed_by_javas_pattern(pattern: str, text: str, days: int) -> None:
    assert resolution.day_of(times.Formatter.of(pattern).parse(text), text) == days


@pytest.mark.parametrize("pattern", ["yyyy-ww", "zzzz", "b", "'open", "yyyy]"])
def test_a_pattern_that_is_not_supported_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(times.PatternError):
        times.compile_pattern(pattern)


def test_every_function_of_the_table_of_categories_exists() -> None:
    named = [name for names in SCALARS.values() for name in names.split()]
    assert sorted(set(named)) == sorted(named) and all(kind(name) == "scalar" for name in named)
    assert [category(name) for name in ("COUNT", "EXPLODE", "ABS", "FORMAT_DATE")] == [
        "AGGREGATE",
        "TABLE",
        "MATHEMATICAL",
        "DATE / TIME",
    ]


def test_only_two_functions_of_ksqldb_have_no_category_of_their_own() -> None:
    ours = {name for name, rows in REGISTRY.rows.items() if name not in REGISTRY.loaded}
    assert {name for name in ours if category(name) == "OTHER"} == {"AS_VALUE", "GEO_DISTANCE"}
