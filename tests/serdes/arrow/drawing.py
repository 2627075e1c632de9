"""Random Avro schemas with values: what fastavro writes, and what pyarrow makes of the same value for the column."""

from __future__ import annotations

import decimal
import itertools
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)


@dataclass(slots=True)
class Drawn:
    schema: Any
    values: st.SearchStrategy[tuple[Any, Any]]  # for fastavro, for pyarrow
    tag: str  # how a union of fastavro's names it


def same(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return strategy.map(lambda value: (value, value))


LEAVES = [
    Drawn("boolean", same(st.booleans()), "boolean"),
    Drawn("int", same(INTS), "int"),
    Drawn("long", same(LONGS), "long"),
    Drawn("float", same(st.floats(width=32, allow_nan=False)), "float"),
    Drawn("double", same(st.floats(allow_nan=False)), "double"),
    Drawn("string", same(st.text(max_size=12)), "string"),
    Drawn("bytes", same(st.binary(max_size=12)), "bytes"),
    Drawn({"type": "int", "logicalType": "date"}, same(st.integers(-700_000, 2_000_000)), "int"),
    Drawn({"type": "int", "logicalType": "time-millis"}, same(st.integers(0, 86_399_999)), "int"),
    Drawn({"type": "long", "logicalType": "time-micros"}, same(st.integers(0, 86_399_999_999)), "long"),
    *(
        Drawn({"type": "long", "logicalType": f"{local}timestamp-{unit}"}, same(LONGS), "long")
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    ),
    Drawn({"type": "string", "logicalType": "uuid"}, same(st.uuids().map(str)), "string"),
]


def decimals(precision: int, scale: int) -> st.SearchStrategy[tuple[Any, Any]]:
    unscaled = st.integers(-(10**precision) + 1, 10**precision - 1)
    context = decimal.Context(prec=100)
    return unscaled.map(lambda n: (to_bytes(n), decimal.Decimal(n).scaleb(-scale, context)))


def to_bytes(number: int, size: int | None = None) -> bytes:
    """In the fewest bytes, as Java has it: -128 is one."""
    fewest = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size or fewest, "big", signed=True)


@st.composite
def named_leaves(draw: Any, name: str) -> Drawn:
    match draw(st.sampled_from(["enum", "fixed", "uuid", "duration", "decimal", "fixed decimal"])):
        case "enum":
            symbols = [f"S{i}" for i in range(draw(st.integers(1, 5)))]
            return Drawn({"type": "enum", "name": name, "symbols": symbols}, same(st.sampled_from(symbols)), name)
        case "fixed":
            size = draw(st.integers(1, 9))
            return Drawn(
                {"type": "fixed", "name": name, "size": size}, same(st.binary(min_size=size, max_size=size)), name
            )
        case "uuid":
            values = st.uuids().map(lambda value: (value.bytes, str(value)))
            return Drawn({"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"}, values, name)
        case "duration":
            parts = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
            values = parts.map(lambda t: (b"".join(n.to_bytes(4, "little") for n in t), (t[0], t[1], t[2] * 10**6)))
            return Drawn({"type": "fixed", "name": name, "size": 12, "logicalType": "duration"}, values, name)
        case "decimal":
            precision = draw(st.integers(1, 76))
            scale = draw(st.integers(0, precision))
            schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            return Drawn(schema, decimals(precision, scale), "bytes")
    precision = draw(st.integers(1, 30))
    schema = {"type": "fixed", "name": name, "size": 16, "logicalType": "decimal", "precision": precision, "scale": 0}
    values = st.integers(-(10**precision) + 1, 10**precision - 1)
    return Drawn(schema, values.map(lambda n: (to_bytes(n, 16), decimal.Decimal(n))), name)


@st.composite
def drawn(draw: Any, names: Any, depth: int = 3) -> Drawn:
    kinds = ["leaf", "leaf", "named"] + (["array", "map", "record", "optional", "union"] if depth else [])
    match draw(st.sampled_from(kinds)):
        case "leaf":
            return draw(st.sampled_from(LEAVES))
        case "named":
            return draw(named_leaves(f"N{next(names)}"))
        case "array":
            item = draw(drawn(names, depth - 1))
            values = st.lists(item.values, max_size=3).map(lambda pairs: tuple([p[i] for p in pairs] for i in (0, 1)))
            return Drawn({"type": "array", "items": item.schema}, values, "array")
        case "map":
            item = draw(drawn(names, depth - 1))
            values = st.dictionaries(st.text(max_size=4), item.values, max_size=3).map(
                lambda d: ({k: v[0] for k, v in d.items()}, [(k, v[1]) for k, v in d.items()])
            )
            return Drawn({"type": "map", "values": item.schema}, values, "map")
        case "record":
            return draw(records(names, depth - 1))
        case "optional":
            return optional(draw(drawn(names, depth - 1).filter(lambda d: not isinstance(d.schema, list))))
    return draw(unions(names, depth - 1))


@st.composite
def records(draw: Any, names: Any, depth: int = 3) -> Drawn:
    name = f"R{next(names)}"
    fields = [draw(drawn(names, depth)) for _ in range(draw(st.integers(1, 4)))]
    schema = {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{i}", "type": f.schema} for i, f in enumerate(fields)],
    }
    values = st.tuples(*(f.values for f in fields)).map(
        lambda pairs: tuple({f"f{i}": pair[j] for i, pair in enumerate(pairs)} for j in (0, 1))
    )
    return Drawn(schema, values, name)


def optional(inner: Drawn) -> Drawn:
    some = inner.values.map(lambda pair: ((inner.tag, pair[0]), pair[1]))
    return Drawn(["null", inner.schema], st.just((None, None)) | some, "")


@st.composite
def unions(draw: Any, names: Any, depth: int) -> Drawn:
    """Two to four branches of different kinds, with null or without."""
    candidates = [draw(drawn(names, depth)) for _ in range(draw(st.integers(2, 4)))]
    branches = list({d.tag: d for d in candidates if not isinstance(d.schema, list)}.values())
    if len(branches) < 2:
        branches = [LEAVES[1], LEAVES[5]]
    null = draw(st.booleans())

    def branch(inner: Drawn) -> st.SearchStrategy[tuple[Any, Any]]:
        return inner.values.map(lambda pair: ((inner.tag, pair[0]), {inner.tag: pair[1]}))

    values = st.one_of(*map(branch, branches), *([st.just((None, None))] if null else []))
    return Drawn((["null"] if null else []) + [b.schema for b in branches], values, "")


def batches() -> st.SearchStrategy[tuple[Any, list[tuple[Any, Any]]]]:
    return st.deferred(lambda: records(itertools.count())).flatmap(
        lambda d: st.tuples(st.just(d.schema), st.lists(d.values, max_size=8))
    )
