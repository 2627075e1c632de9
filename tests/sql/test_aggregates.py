"""Aggregates: results, states of the declared type, undo and merge."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest

from moldau.sql import codegen, functions
from moldau.sql.errors import SqlError
from moldau.sql.formats.json import reader, writer
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.parser import parse_expression
from moldau.sql.tree import Call
from moldau.sql.types import text
from moldau.sql.typing import type_of

NULL = "CAST(null AS INT)"
# call, with $ for the column; its values; the result; whether values can be taken back
CASES: list[tuple[str, list[str], Any, bool]] = [
    ("COUNT($)", ["1", NULL, "3"], 2, True),
    ("SUM($)", ["2147483647", "1", NULL], -2147483648, True),
    ("SUM($)", ["1.5", "2.5"], 4.0, True),
    ("SUM_LIST($)", ["ARRAY[1, 2]", "ARRAY[3, null]"], 6, True),
    ("AVG($)", ["1", "2", NULL], 1.5, True),
    ("AVG($)", ["1.5e0", "2.5e0"], 2.0, True),
    ("MAX($)", ["'a'", "'c'", "'b'"], "c", False),
    ("MIN($)", ["3", NULL, "1"], 1, False),
    ("COLLECT_LIST($)", ["1", "2", "1"], [1, 2, 1], True),
    ("COLLECT_SET($)", ["1", "2", "1"], [1, 2], False),
    ("HISTOGRAM($)", ["'a'", "'b'", "'a'"], {"a": 2, "b": 1}, True),
    ("TOPK($, 2)", ["1", "5", "5", "3"], [5, 5], False),
    ("TOPKDISTINCT($, 2)", ["1", "5", "5", "3"], [5, 3], False),
    ("TOPK($, 'x', 1)", ["1", "5"], [(5, "x")], False),
    ("EARLIEST_BY_OFFSET($)", [NULL, "1", "2"], 1, False),
    ("EARLIEST_BY_OFFSET($, false)", [NULL, "1"], None, False),
    ("EARLIEST_BY_OFFSET($, 2)", ["1", NULL, "2", "3"], [1, 2], False),
    ("LATEST_BY_OFFSET($)", ["1", "2", NULL], 2, False),
    ("LATEST_BY_OFFSET($, 2, false)", ["1", "2", NULL], [2, None], False),
    ("STDDEV_SAMP($)", ["10E0", "12E0", "13E0"], 7 / 3, True),
    ("STDDEV_SAMPLE($)", ["10E0", "12E0", "13E0"], math.sqrt(7 / 3), True),
    ("CORRELATION($, $)", ["1", "2", "3"], 1.0, True),
    ("ATTR($)", ["1", "1"], 1, True),
    ("ATTR($)", ["1", "2"], None, True),
    ("COUNT_DISTINCT($)", ["1", "2", "1", "3"], 3, False),
]


def prepared(call: str, values: list[str]) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return the aggregate of a call and the rows of its arguments."""
    rows = []
    made: Any = None
    for value in values:
        node = parse_expression(call.replace("$", value))
        assert isinstance(node, Call)
        made = functions.aggregate(node.name, [type_of(each, {}) for each in node.args], node.args)
        rows.append(tuple(codegen.constant(each, type_of(each, {})) for each in node.args[: made.inputs]))
    return made, rows


def folded(made: Any, rows: list[tuple[Any, ...]]) -> Any:
    state = made.init()
    for row in rows:
        state = made.add(state, *row)
    return state


@pytest.mark.parametrize(("call", "values", "expected", "undoes"), CASES, ids=[f"{c[0]}-{c[1][0]}" for c in CASES])
def test_an_aggregate(call: str, values: list[str], expected: Any, undoes: bool) -> None:
    made, rows = prepared(call, values)
    state = folded(made, rows)
    found = made.result(state)
    assert found == pytest.approx(expected) if isinstance(expected, float) else found == expected
    stored = reader(made.state_type)(json.loads(writer(made.state_type)(state), parse_float=Decimal))
    assert made.result(stored) == found, "a store must be able to keep the state"
    assert (made.undo is not None) == undoes
    merged = made.merge(folded(made, rows[:1]), folded(made, rows[1:]))
    assert made.result(merged) == pytest.approx(found) if isinstance(found, float) else made.result(merged) == found


@pytest.mark.parametrize(("call", "values", "expected", "undoes"), [case for case in CASES if case[3]])
def test_a_value_can_be_taken_back(call: str, values: list[str], expected: Any, undoes: bool) -> None:
    made, rows = prepared(call, values)
    once = made.result(folded(made, rows[:1]))
    state = folded(made, rows)
    for row in rows[1:]:
        state = made.undo(state, *row)
    assert (
        made.result(state) == pytest.approx(once, nan_ok=True)
        if isinstance(once, float)
        else made.result(state) == once
    )


def test_each_aggregate_has_a_case() -> None:
    tried = {call.partition("(")[0] for call, *_ in CASES}
    assert {name for name in REGISTRY.rows if functions.kind(name) == "aggregate"} - tried == set()


def test_the_types_of_states_are_those_of_recorded_plans() -> None:
    shown = {
        "AVG(1)": "STRUCT<`SUM` INTEGER, `COUNT` BIGINT>",
        "LATEST_BY_OFFSET('a')": "STRUCT<`SEQ` BIGINT, `VAL` STRING>",
        "EARLIEST_BY_OFFSET(1, 2)": "ARRAY<STRUCT<`SEQ` BIGINT, `VAL` INTEGER>>",
        "ATTR(1)": "ARRAY<STRUCT<`VALUE` INTEGER, `COUNT` INTEGER>>",
        "TOPK(1, 'a', 3)": "ARRAY<STRUCT<`sort_col` INTEGER, `col0` STRING>>",
    }
    for call, expected in shown.items():
        assert text(prepared(call, [""])[0].state_type) == expected


def test_a_limit_of_the_settings_is_kept() -> None:
    made = functions.aggregate(
        "COLLECT_LIST", [type_of(parse_expression("1"), {})], [], {"ksql.functions.collect_list.limit": 1}
    )
    assert made.add(made.add(made.init(), 1), 2) == [1]


def test_a_constant_must_be_a_literal() -> None:
    node = parse_expression("EARLIEST_BY_OFFSET(1, 1 + 1)")
    assert isinstance(node, Call)
    with pytest.raises(SqlError, match="Parameter 2 passed to function EARLIEST_BY_OFFSET must be a literal constant"):
        functions.aggregate(node.name, [type_of(each, {}) for each in node.args], node.args)


def test_counting_distinct_values_is_right_within_a_few_percent() -> None:
    made = functions.aggregate("COUNT_DISTINCT", [type_of(parse_expression("1"), {})], [])
    assert made.result(folded(made, [(each,) for each in range(3000)])) == pytest.approx(3000, rel=0.05)


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        ("EXPLODE(ARRAY[1, null])", [1, None]),
        ("EXPLODE(CAST(null AS ARRAY<INT>))", []),
        ("CUBE_EXPLODE(ARRAY[1, 2])", [[None, None], [None, 2], [1, None], [1, 2]]),
        ("CUBE_EXPLODE(ARRAY[1, null])", [[None, None], [1, None]]),
    ],
)
def test_a_table_function_makes_rows(call: str, rows: list[Any]) -> None:
    node = parse_expression(call)
    assert isinstance(node, Call)
    types = [type_of(each, {}) for each in node.args]
    function, _type = functions.table(node.name, types)
    assert function(*(codegen.constant(each, type) for each, type in zip(node.args, types, strict=True))) == rows
