"""Frames say what was put into them, and a frame that could not be written leaves no trace."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.connect import data as d
from moldau.connect.errors import DataError
from moldau.connect.jvm.codec import Packer, Unpacker
from tests.connect.judge.inputs import random_struct

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.integers(-128, 127).map(d.Int8)
    | st.integers(-(2**15), 2**15 - 1).map(d.Int16)
    | st.integers(-(2**31), 2**31 - 1).map(d.Int32)
    | st.floats(width=32, allow_nan=False).map(d.Float32)
    | st.integers(-(2**62), 2**62).map(d.Instant)
    | st.integers().map(d.BigInt)
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)
SCHEMA = d.struct(
    {"n": d.INT32, "inner": d.struct({"f": d.FLOAT32}, optional=True), "many": d.array(d.INT8), "price": d.decimal(2)},
    name="x",
    version=3,
)
STRUCT = d.Struct.of(SCHEMA, n=1, many=[1, 2], price=Decimal("1.20"))


def through(*values: Any) -> list[Any]:
    packer, unpacker = Packer(), Unpacker()
    return [unpacker.frame(packer.frame("R", value)[4:])[1] for value in values]


@settings(max_examples=30)
@given(VALUES)
def test_a_value_comes_back_with_its_class(value: Any) -> None:
    assert d.same(through(value)[0], value)


def test_structs_come_back_whichever_fields_they_have() -> None:
    packer, unpacker = Packer(), Unpacker()
    for seed in range(300):
        schema, value = random_struct(seed)
        assert unpacker.frame(packer.frame("R", [value, value])[4:])[1] == [value, value], schema


def test_a_value_that_does_not_fit_its_field_is_refused() -> None:
    schema = d.struct({"a": d.INT8, "b": d.STRING})
    for values in ((300, "x"), (1, 2), ("x", "x")):
        with pytest.raises(DataError, match="does not fit"):
            Packer().frame("R", d.Struct(schema, values))


def test_more_shapes_than_are_kept_are_read() -> None:
    schema = d.struct({f"f{number}": d.OPTIONAL[d.Type.INT32] for number in range(12)})
    packer, unpacker = Packer(), Unpacker()
    for mask in range(0, 1 << 12, 7):
        value = d.Struct(schema, tuple(at if mask >> at & 1 else None for at in range(12)))
        assert unpacker.frame(packer.frame("R", value)[4:])[1] == value


def test_a_schema_is_sent_once() -> None:
    packer = Packer()
    first, second = packer.frame("R", STRUCT), packer.frame("R", STRUCT)
    assert b"inner" in first
    assert b"inner" not in second
    unpacker = Unpacker()
    assert unpacker.frame(first[4:])[1] == unpacker.frame(second[4:])[1] == STRUCT


def test_records_of_sources_and_sinks_come_back() -> None:
    headers = (d.Header("h", d.INT16, 5), d.Header("none", None, d.Int8(1)))
    source = d.Record("t", 1, d.STRING, "k", SCHEMA, STRUCT, 7, headers, {"p": 1}, {"o": 2})
    sink = d.Record("t", 1, None, {"a": d.Int32(1)}, None, None, None, (), None, None, 9, d.TimestampType.CREATE_TIME)
    other = source.but(partition=2, value_schema=None, value=None)
    assert through([source, source, other, sink, source])[0] == [source, source, other, sink, source]


def test_what_cannot_be_sent_is_refused_and_the_next_frame_is_whole() -> None:
    packer, unpacker = Packer(), Unpacker()
    unpacker.frame(packer.frame("R", SCHEMA)[4:])
    other = d.struct({"other": d.STRING})
    with pytest.raises(DataError, match="object"):
        packer.frame("R", [other, object()])
    assert unpacker.frame(packer.frame("R", [other, SCHEMA])[4:]) == ("R", [other, SCHEMA])
