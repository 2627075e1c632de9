"""Aggregates: an initial state, a step for each row, a merge for sessions, a result; an undo where tables may use it.

A state is a value of `state_type`, so that a store's serde can write it. A step takes the state and the arguments of
one row and returns the new state; states are never changed in place.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import xxhash

from moldau.java.numbers import wrap

from ..casts import EXACT, caster, null_safe
from ..errors import SqlError
from ..tree import (
    BIGINT,
    DOUBLE,
    INTEGER,
    ArrayType,
    DecimalType,
    Expression,
    Field,
    Literal,
    MapType,
    StructType,
    Type,
)
from ..types import text
from .collections import frozen
from .registry import REGISTRY, AggregateFunction, Registry
from .signatures import instantiate, read

State = Any
HISTOGRAM_LIMIT = 1000
COLLECT_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate that is ready to run. `inputs` of its arguments belong to the row; the others are constants."""

    type: Type
    state_type: Type
    init: Callable[[], State]
    add: Callable[..., State]
    merge: Callable[[State, State], State]
    result: Callable[[State], Any] = lambda state: state
    undo: Callable[..., State] | None = None
    inputs: int = 1


@dataclass(frozen=True, slots=True)
class Given:
    """What an aggregate is made of: the types of its columns, its constants, the settings."""

    types: Sequence[Any]
    constants: Sequence[Any] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def aggregate(
    *lines: str, doc: str = "", constants: int = 0, registry: Registry = REGISTRY
) -> Callable[[Callable[[Given], Aggregate]], Callable[[Given], Aggregate]]:
    """Register an aggregate; the last `constants` parameters of each signature must be literals."""

    def register(make: Callable[[Given], Aggregate]) -> Callable[[Given], Aggregate]:
        for line in lines:
            registry.add(AggregateFunction(read(line), make, doc, constants))
        return make

    return register


def resolve(
    name: str, types: Sequence[Any], arguments: Sequence[Expression], settings: Mapping[str, Any], registry: Registry
) -> Aggregate:
    """Choose an aggregate by the types of its arguments and read its constants."""
    row, bindings = registry.choose(name, types)
    assert isinstance(row, AggregateFunction)
    parameters = row.signature.stretched(len(types))
    assert parameters is not None
    wanted = [instantiate(each, bindings) or given for each, given in zip(parameters, types, strict=True)]
    count = row.constants
    if (
        row.signature.variadic is not None
        and row.constants
        and row.signature.variadic >= (len(row.signature.parameters) - row.constants)
    ):
        count += len(types) - len(row.signature.parameters)
    inputs = len(types) - count
    constants = []
    for number, each in enumerate(arguments[inputs:], inputs + 1):
        if not isinstance(each, Literal):
            from ..printer import expression_text

            raise SqlError(
                f"Parameter {number} passed to function {name.upper()} must be a literal constant, but was expression: "
                f"'{expression_text(each)}'"
            )
        constants.append(each.value)
    made: Aggregate = row.make(Given(wanted[:inputs], constants, settings))
    add, undo = _taking(types[:inputs], wanted[:inputs], made.add), made.undo
    if undo is not None:
        undo = _taking(types[:inputs], wanted[:inputs], undo)
    return replace(made, add=add, undo=undo, inputs=inputs)


def _taking(given: Sequence[Any], wanted: Sequence[Any], step: Callable[..., State]) -> Callable[..., State]:
    """Convert the arguments of a step where its signature asks for other types."""
    if list(given) == list(wanted):
        return step
    convert = [null_safe(caster(one, two)) for one, two in zip(given, wanted, strict=True)]
    return lambda state, *values: step(state, *(one(value) for one, value in zip(convert, values, strict=True)))


def _count() -> Aggregate:
    return Aggregate(
        BIGINT,
        BIGINT,
        lambda: 0,
        lambda state, value=1: state if value is None else state + 1,
        lambda one, two: one + two,
        undo=lambda state, value=1: state if value is None else state - 1,
    )


@aggregate("COUNT(T value) -> BIGINT", "COUNT() -> BIGINT", doc="Counts rows, or values that are not null.")
def count(_given: Given) -> Aggregate:
    return _count()


def _adder(type: Type) -> tuple[Any, Callable[[Any, Any], Any]]:
    """Return zero and the addition of a numeric type."""
    if isinstance(type, DecimalType):
        return Decimal(0).scaleb(-type.scale), lambda one, two: _bounded(EXACT.add(one, two), type)
    bits = 32 if type == INTEGER else 64 if type == BIGINT else None
    if bits is None:
        return 0.0, lambda one, two: one + two
    return 0, lambda one, two: wrap(one + two, bits)


def _bounded(value: Decimal, type: DecimalType) -> Decimal:
    if len(value.as_tuple().digits) > type.precision and value:
        raise ArithmeticError(f"Numeric field overflow: A field with {text(type)} cannot hold {value}")
    return value


def _negated(value: Any) -> Any:
    return -value


@aggregate(
    *(f"SUM({kind} value) -> {kind}" for kind in ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")), doc="Adds values up."
)
def sum_of(given: Given) -> Aggregate:
    zero, plus = _adder(given.types[0])
    return Aggregate(
        given.types[0],
        given.types[0],
        lambda: zero,
        lambda state, value: state if value is None else plus(state, value),
        plus,
        undo=lambda state, value: state if value is None else plus(state, _negated(value)),
    )


@aggregate(
    *(f"SUM_LIST(ARRAY<{kind}> values) -> {kind}" for kind in ("INTEGER", "BIGINT", "DOUBLE")), doc="Adds lists up."
)
def sum_list(given: Given) -> Aggregate:
    kind = given.types[0].item
    zero, plus = _adder(kind)

    def add(state: Any, values: list[Any] | None) -> Any:
        for each in values or ():
            state = state if each is None else plus(state, each)
        return state

    def undo(state: Any, values: list[Any] | None) -> Any:
        return add(state, [None if each is None else -each for each in values or ()])

    return Aggregate(kind, kind, lambda: zero, add, plus, undo=undo)


def _struct(**fields: Type) -> StructType:
    return StructType(tuple(Field(name, type) for name, type in fields.items()))


@aggregate(*(f"AVG({kind} value) -> DOUBLE" for kind in ("INTEGER", "BIGINT", "DOUBLE")), doc="Returns the average.")
def average(given: Given) -> Aggregate:
    zero, plus = _adder(given.types[0])

    def add(state: State, value: Any) -> State:
        return state if value is None else (plus(state[0], value), state[1] + 1)

    def undo(state: State, value: Any) -> State:
        return state if value is None else (plus(state[0], -value), state[1] - 1)

    return Aggregate(
        DOUBLE,
        _struct(SUM=given.types[0], COUNT=BIGINT),
        lambda: (zero, 0),
        add,
        lambda one, two: (plus(one[0], two[0]), one[1] + two[1]),
        lambda state: state[0] / state[1] if state[1] else 0.0,
        undo,
    )


ORDERED = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")


def _extreme(choose: Callable[[Any, Any], Any]) -> Callable[[Given], Aggregate]:
    def better(one: Any, two: Any) -> Any:
        return two if one is None else one if two is None else choose(one, two)

    return lambda given: Aggregate(given.types[0], given.types[0], lambda: None, better, better)


aggregate(*(f"MAX({kind} value) -> {kind}" for kind in ORDERED), doc="Returns the greatest value.")(_extreme(max))
aggregate(*(f"MIN({kind} value) -> {kind}" for kind in ORDERED), doc="Returns the least value.")(_extreme(min))


def _limit(given: Given, name: str) -> int:
    found = int(given.settings.get(f"ksql.functions.{name}.limit", COLLECT_LIMIT))
    return COLLECT_LIMIT if found < 0 else found


@aggregate("COLLECT_LIST(T value) -> ARRAY<T>", doc="Collects values into a list.")
def collect_list(given: Given) -> Aggregate:
    most = _limit(given, "collect_list")

    def undo(state: list[Any], value: Any) -> list[Any]:
        last = next((at for at in range(len(state) - 1, -1, -1) if state[at] == value), None)
        return state if last is None else [*state[:last], *state[last + 1 :]]

    kind = ArrayType(given.types[0])
    return Aggregate(
        kind,
        kind,
        list,
        lambda state, value: [*state, value] if len(state) < most else state,
        lambda one, two: [*one, *two][:most],
        undo=undo,
    )


@aggregate("COLLECT_SET(T value) -> ARRAY<T>", doc="Collects distinct values into a list.")
def collect_set(given: Given) -> Aggregate:
    most = _limit(given, "collect_set")

    def add(state: list[Any], value: Any) -> list[Any]:
        known = len(state) >= most or frozen(value) in set(map(frozen, state))
        return state if known else [*state, value]

    def merge(one: list[Any], two: list[Any]) -> list[Any]:
        for each in two:
            one = add(one, each)
        return one

    kind = ArrayType(given.types[0])
    return Aggregate(kind, kind, list, add, merge)


@aggregate("HISTOGRAM(STRING value) -> MAP<STRING, BIGINT>", doc="Counts each distinct text, at most a thousand.")
def histogram(_given: Given) -> Aggregate:
    def change(state: dict[str, int], value: str | None, by: int) -> dict[str, int]:
        if len(state) >= HISTOGRAM_LIMIT and value not in state:
            return state
        counted = state.get(value, 0) + by  # type: ignore[arg-type]
        made = {key: each for key, each in state.items() if key != value}
        return {**made, value: counted} if counted > 0 else made  # type: ignore[dict-item]

    def merge(one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
        for key, number in two.items():
            one = change(one, key, number)
        return one

    kind = MapType(read("x(STRING s) -> STRING").result, BIGINT)  # type: ignore[arg-type]
    return Aggregate(
        kind, kind, dict, lambda state, v: change(state, v, 1), merge, undo=lambda state, v: change(state, v, -1)
    )


@aggregate("TOPK(T value, INTEGER k) -> ARRAY<T>", doc="Keeps the k greatest values.", constants=1)
def top_k(given: Given) -> Aggregate:
    return _top(given, False)


@aggregate("TOPKDISTINCT(T value, INTEGER k) -> ARRAY<T>", doc="Keeps the k greatest distinct values.", constants=1)
def top_k_distinct(given: Given) -> Aggregate:
    return _top(given, True)


def _top(given: Given, distinct: bool) -> Aggregate:
    (k,) = given.constants

    def kept(values: list[Any]) -> list[Any]:
        known = [each for each in values if each is not None]
        return sorted(set(known) if distinct else known, reverse=True)[:k]

    kind = ArrayType(given.types[0])
    return Aggregate(kind, kind, list, lambda state, value: kept([*state, value]), lambda one, two: kept([*one, *two]))


@aggregate(
    "TOPK(T value, ANY first, ANY... others, INTEGER k) -> ARRAY<T>",
    doc="Keeps the rows with the k greatest values.",
    constants=1,
)
def top_k_rows(given: Given) -> Aggregate:
    (k,) = given.constants
    names = ["sort_col", *(f"col{number}" for number in range(len(given.types) - 1))]
    kind = ArrayType(StructType(tuple(Field(name, type) for name, type in zip(names, given.types, strict=True))))

    def kept(rows: list[Any]) -> list[Any]:
        return sorted((row for row in rows if row[0] is not None), key=lambda row: row[0], reverse=True)[:k]

    return Aggregate(kind, kind, list, lambda state, *row: kept([*state, row]), lambda one, two: kept([*one, *two]))


_sequence = itertools.count(time.time_ns())  # grows over restarts too


def _offsets(name: str, latest: bool, doc: str) -> None:
    lines = (
        (f"{name}(T value) -> T", 0),
        (f"{name}(T value, BOOLEAN ignore_nulls) -> T", 1),
        (f"{name}(T value, INTEGER n) -> ARRAY<T>", 1),
        (f"{name}(T value, INTEGER n, BOOLEAN ignore_nulls) -> ARRAY<T>", 2),
    )

    def make(given: Given) -> Aggregate:
        numbers = [each for each in given.constants if not isinstance(each, bool)]
        ignore = next((each for each in given.constants if isinstance(each, bool)), True)
        if numbers:
            if numbers[0] <= 0:
                raise SqlError(f"{name} must have N >= 1: N = {numbers[0]}")
            return _several(given.types[0], numbers[0], ignore, latest)
        return _single(given.types[0], ignore, latest)

    for line, constants in lines:
        aggregate(line, doc=doc, constants=constants)(make)


def _seen(type: Type) -> StructType:
    return _struct(SEQ=BIGINT, VAL=type)


def _single(type: Type, ignore_nulls: bool, latest: bool) -> Aggregate:
    def add(state: State, value: Any) -> State:
        if value is None and ignore_nulls:
            return state
        if state is not None and not latest:
            return state
        return (next(_sequence), value)

    def merge(one: State, two: State) -> State:
        if one is None or two is None:
            return two if one is None else one
        return (max if latest else min)(one, two, key=lambda seen: seen[0])

    return Aggregate(type, _seen(type), lambda: None, add, merge, lambda state: None if state is None else state[1])


def _several(type: Type, most: int, ignore_nulls: bool, latest: bool) -> Aggregate:
    def kept(seen: list[Any]) -> list[Any]:
        return seen[-most:] if latest else seen[:most]

    def add(state: list[Any], value: Any) -> list[Any]:
        return state if value is None and ignore_nulls else kept([*state, (next(_sequence), value)])

    def merge(one: list[Any], two: list[Any]) -> list[Any]:
        return kept(sorted([*one, *two], key=lambda seen: seen[0]))

    kind = ArrayType(_seen(type))
    return Aggregate(ArrayType(type), kind, list, add, merge, lambda state: [value for _, value in state])


_offsets("EARLIEST_BY_OFFSET", False, "Keeps the first value, or the first n.")
_offsets("LATEST_BY_OFFSET", True, "Keeps the last value, or the last n.")


def _deviation(root: bool) -> Callable[[Given], Aggregate]:
    """Sum up values, their number, and the sum of the squares of their distances from the average."""

    def make(given: Given) -> Aggregate:
        zero, plus = _adder(given.types[0])

        def add(state: State, value: Any) -> State:
            if value is None:
                return state
            total, count, squares = plus(state[0], value), state[1] + 1, state[2]
            if count > 1:
                difference = count * value - total
                squares = squares + difference * difference / (count * (count - 1.0))
            return (total, count, float(squares))

        def undo(state: State, value: Any) -> State:
            if value is None:
                return state
            total, count, squares = plus(state[0], -value), state[1] - 1, state[2]
            if count:
                difference = count * value - total
                squares = squares - difference * difference / (count * (count + 1.0))
            return (total, count, float(squares))

        def merge(one: State, two: State) -> State:
            if not one[1] or not two[1]:
                return two if not one[1] else one
            difference = one[0] / one[1] - two[0] / two[1]
            count = one[1] + two[1]
            return (plus(one[0], two[0]), count, one[2] + two[2] + difference**2 * one[1] * two[1] / count)

        def result(state: State) -> float:
            variance = state[2] / (state[1] - 1) if state[1] > 1 else 0.0
            return math.sqrt(variance) if root else variance

        kind = _struct(SUM=given.types[0], COUNT=BIGINT, M2=DOUBLE)
        return Aggregate(DOUBLE, kind, lambda: (zero, 0, 0.0), add, merge, result, undo)

    return make


_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE")
aggregate(*(f"STDDEV_SAMP({kind} value) -> DOUBLE" for kind in _NUMBERS), doc="Returns the sample variance.")(
    _deviation(False)
)
aggregate(
    *(f"STDDEV_SAMPLE({kind} value) -> DOUBLE" for kind in _NUMBERS), doc="Returns the sample standard deviation."
)(_deviation(True))


@aggregate(
    *(f"CORRELATION({kind} x, {kind} y) -> DOUBLE" for kind in _NUMBERS),
    doc="Returns Pearson's correlation of two columns.",
)
def correlation(_given: Given) -> Aggregate:
    def change(state: State, x: Any, y: Any, by: int) -> State:
        if x is None or y is None:
            return state
        x, y = float(x), float(y)
        parts = (x, y, x * x, y * y, x * y)
        return (*(old + by * new for old, new in zip(state, parts, strict=False)), state[5] + by)

    def result(state: State) -> float:
        x, y, xx, yy, xy, n = state
        if not n:
            return math.nan
        spread = (n * xx - x * x) * (n * yy - y * y)
        return (n * xy - x * y) / math.sqrt(spread) if spread > 0 else math.nan

    kind = _struct(X_SUM=DOUBLE, Y_SUM=DOUBLE, X_SQUARED_SUM=DOUBLE, Y_SQUARED_SUM=DOUBLE, XY_SUM=DOUBLE, COUNT=BIGINT)
    return Aggregate(
        DOUBLE,
        kind,
        lambda: (0.0, 0.0, 0.0, 0.0, 0.0, 0),
        lambda state, x, y: change(state, x, y, 1),
        lambda one, two: tuple(a + b for a, b in zip(one, two, strict=True)),
        result,
        lambda state, x, y: change(state, x, y, -1),
    )


@aggregate("ATTR(T value) -> T", doc="Returns the value that all rows have; null if they differ.")
def attr(given: Given) -> Aggregate:
    def change(state: list[Any], value: Any, by: int) -> list[Any]:
        made = [(each, number + by if each == value else number) for each, number in state]
        if by > 0 and all(each != value for each, _ in state):
            made.append((value, by))
        return [(each, number) for each, number in made if number > 0]

    def merge(one: list[Any], two: list[Any]) -> list[Any]:
        for each, number in two:
            one = change(one, each, number)
        return one

    return Aggregate(
        given.types[0],
        ArrayType(_struct(VALUE=given.types[0], COUNT=INTEGER)),
        list,
        lambda state, value: change(state, value, 1),
        merge,
        lambda state: state[0][0] if len(state) == 1 else None,
        lambda state, value: change(state, value, -1),
    )


_BITS = 12  # 4,096 registers: an error of 1.6 %


@aggregate("COUNT_DISTINCT(T value) -> BIGINT", doc="Estimates the number of distinct values (HyperLogLog).")
def count_distinct(_given: Given) -> Aggregate:
    def add(state: list[int], value: Any) -> list[int]:
        if value is None:
            return state
        digest = xxhash.xxh64_intdigest(repr(frozen(value)).encode())
        place, rest = digest >> (64 - _BITS), digest << _BITS & (1 << 64) - 1
        rank = 65 - rest.bit_length() if rest else 65 - _BITS
        if rank <= state[place]:
            return state
        made = list(state)
        made[place] = rank
        return made

    def result(state: list[int]) -> int:
        size = len(state)
        estimate = 0.7213 / (1 + 1.079 / size) * size * size / sum(2.0**-each for each in state)
        empty = state.count(0)
        if estimate <= 2.5 * size and empty:
            estimate = size * math.log(size / empty)
        return round(estimate)

    return Aggregate(
        BIGINT,
        ArrayType(INTEGER),
        lambda: [0] * (1 << _BITS),
        add,
        lambda one, two: [max(pair) for pair in zip(one, two, strict=True)],
        result,
    )
