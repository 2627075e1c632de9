"""The functions that files of test cases call: ksqlDB's own test functions. They are not installed unless asked for."""

from __future__ import annotations

import itertools
from typing import Any

from ..tree import BIGINT, INTEGER, ArrayType, Field, StructType
from .aggregates import Aggregate, Given, aggregate, sum_of
from .registry import REGISTRY, Registry, scalar, table_function

CASES = Registry()
_calls = itertools.count()


def install() -> None:
    """Add the functions to those that statements may call; they forget earlier calls."""
    global _calls
    _calls = itertools.count()
    for name, rows in CASES.rows.items():
        REGISTRY.rows.setdefault(name, list(rows))


def uninstall() -> None:
    """Take the functions away again."""
    for name in CASES.rows:
        REGISTRY.rows.pop(name, None)


def _words(line: str, word: str) -> None:
    scalar(line, takes_nulls=True, registry=CASES)(lambda *_values: word)


_words("test_udf(INTEGER a, STRING b) -> STRING", "doStuffIntString")
_words("test_udf(BIGINT a, STRING b) -> STRING", "doStuffLongString")
_words("test_udf(BIGINT a, BIGINT b, STRING c) -> STRING", "doStuffLongLongString")
_words("test_udf(BIGINT... values) -> STRING", "doStuffLongVarargs")


@scalar("test_udf(STRUCT<A STRING> value) -> STRING", registry=CASES)
def field_a(value: tuple[Any, ...]) -> Any:
    return value[0]


@scalar("test_udf() -> STRUCT<A STRING>", registry=CASES)
def struct_foo() -> tuple[str]:
    return ("foo",)


@scalar("bad_udf(INTEGER value) -> INTEGER", registry=CASES, takes_nulls=True)
def fails(_value: int | None) -> int:
    raise ValueError("boom!")


@scalar("bad_udf(BOOLEAN fail) -> INTEGER", registry=CASES)
def fails_if_true(fail: bool) -> int:
    if fail:
        raise ValueError("You asked me to throw...")
    return 0


@scalar("bad_udf(STRING value) -> STRING", registry=CASES, takes_nulls=True)
def null_at_every_other_call(value: str | None) -> str | None:
    return None if next(_calls) % 2 == 0 else value


def _checked(value: Any, run: bool) -> Any:
    if not run:
        raise ValueError("this must not be evaluated")
    return value


scalar("WHENCONDITION(BOOLEAN value, BOOLEAN run) -> BOOLEAN", registry=CASES)(_checked)
scalar("WHENRESULT(INTEGER value, BOOLEAN run) -> INTEGER", registry=CASES)(_checked)


@table_function("test_udtf(T value) -> T", "test_udtf(DECIMAL value) -> DECIMAL(30, 10)", registry=CASES)
def test_udtf(value: Any) -> list[Any]:
    return [] if value is None else [value]


aggregate("TEST_UDAF(BIGINT value) -> BIGINT", "TEST_UDAF(DOUBLE value) -> DOUBLE", registry=CASES)(sum_of)
aggregate("TEST_UDAF(INTEGER value) -> BIGINT", registry=CASES)(lambda _given: sum_of(Given([BIGINT])))


@aggregate("TEST_UDAF(STRING value) -> BIGINT", registry=CASES)
def lengths(_given: Given) -> Aggregate:
    return Aggregate(
        BIGINT,
        BIGINT,
        lambda: 0,
        lambda state, value: state + len(value or ""),
        lambda one, two: one + two,
        undo=lambda state, value: state - len(value or ""),
    )


@aggregate("TEST_UDAF(STRUCT<A INTEGER, B INTEGER> value) -> BIGINT", registry=CASES)
def fields(_given: Given) -> Aggregate:
    def plus(one: Any, two: Any) -> Any:
        return (one[0] + two[0], one[1] + two[1])

    kind = StructType((Field("A", INTEGER), Field("B", INTEGER)))
    return Aggregate(kind, kind, lambda: (0, 0), plus, plus, undo=lambda s, v: (s[0] - v[0], s[1] - v[1]))


def _weight(value: Any) -> int:
    return 0 if value is None else len(value) if isinstance(value, str) else value


def _total(given: Given) -> Aggregate:
    """Add up values and the lengths of texts, beginning with the constants."""
    start = sum(map(_weight, given.constants))
    return Aggregate(
        BIGINT,
        BIGINT,
        lambda: start,
        lambda state, *values: state + sum(map(_weight, values)),
        lambda one, two: one + two,
    )


_REST = "INTEGER init, STRING... inits) -> BIGINT"
aggregate(f"MULTI_ARG(BIGINT a, STRING b, {_REST}", constants=2, registry=CASES)(_total)
aggregate(f"FOUR_ARG(BIGINT a, STRING b, STRING c, STRING d, {_REST}", constants=2, registry=CASES)(_total)
aggregate(f"FIVE_ARG(BIGINT a, STRING b, STRING c, STRING d, INTEGER e, {_REST}", constants=2, registry=CASES)(_total)
aggregate("VAR_ARG(BIGINT a, STRING... b) -> BIGINT", registry=CASES)(_total)
aggregate("MID_VAR_ARG(BIGINT a, STRING... b, INTEGER c, INTEGER d) -> BIGINT", constants=2, registry=CASES)(_total)


@aggregate(
    "GENERIC_VAR_ARG(A a, B b, C... c) -> ARRAY<A>",
    "OBJ_COL_ARG(INTEGER a, ANY... b) -> ARRAY<INTEGER>",
    registry=CASES,
)
def complete_rows(given: Given) -> Aggregate:
    """Collect the first value of each row without nulls."""
    kind = ArrayType(given.types[0])

    def add(state: list[Any], *values: Any) -> list[Any]:
        return state if None in values else [*state, values[0]]

    return Aggregate(kind, kind, list, add, lambda one, two: [*one, *two])
