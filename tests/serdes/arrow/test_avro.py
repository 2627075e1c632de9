"""Avro to Arrow and back: as fastavro has it, row by row; evolution; and bytes that are anything."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import uuid
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.serdes.arrow.avro import arrow_type, read_avro, write_avro
from moldau.serdes.arrow.batch import Slices
from moldau.serdes.context import SerdeError
from moldau.serdes.registry import Schema
from tests.serdes.arrow.drawing import batches

EXAMPLES = 20 if sys.modules.get("numba", True) is None else 200
UUID_FIXED = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
Batch = tuple[Any, list[tuple[Any, Any]]]


def plain(schema: Any) -> Any:
    """The schema without its logical types: what is in the bytes."""
    if isinstance(schema, dict):
        return {key: plain(value) for key, value in schema.items() if key != "logicalType"}
    return [plain(one) for one in schema] if isinstance(schema, list) else schema


def encode(schema: Any, values: list[Any]) -> pa.Array:
    parsed = fastavro.parse_schema(plain(schema))
    out = []
    for value in values:
        buffer = io.BytesIO()
        if value is not None:
            fastavro.schemaless_writer(buffer, parsed, value)
        out.append(None if value is None else buffer.getvalue())
    return pa.array(out, pa.binary())


def avro(schema: Any) -> Schema:
    return Schema("AVRO", json.dumps(schema))


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def f(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


@settings(max_examples=EXAMPLES, deadline=None)
@given(batches())
def test_columns_are_what_fastavro_wrote_and_become_the_same_bytes(drawn: Batch) -> None:
    schema, pairs = drawn
    data = encode(schema, [pair[0] for pair in pairs])
    read = read_avro(Slices.of(data), avro(schema))
    assert not read.errors
    read.values.validate(full=True)
    expected = pa.array([pair[1] for pair in pairs], read.values.type)
    assert read.values.equals(expected), (read.values, expected)
    written = write_avro(read.values, avro(schema))
    assert not written.errors and written.values.equals(data)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(batches(), st.data())
def test_rows_may_be_sliced_null_or_damaged(drawn: Batch, data: st.DataObject) -> None:
    schema, pairs = drawn
    good = encode(schema, [pair[0] for pair in pairs]).to_pylist()
    rows: list[bytes | None] = [None, *good]
    for at in range(len(rows)):
        if rows[at] is not None and data.draw(st.booleans()):
            rows[at] = data.draw(st.binary(max_size=30))
    whole = pa.array([b"before", *rows, b"behind"], pa.binary())
    read = read_avro(Slices.of(whole[1:-1]), avro(schema))
    read.values.validate(full=True)
    assert len(read.values) == len(rows)
    for at, row in enumerate(rows):
        assert read.values[at].is_valid == (row is not None and at not in read.errors)
        if row is not None and at and row == good[at - 1]:
            assert read.values[at].as_py is not None and at not in read.errors


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(batches(), st.data())
def test_a_reader_that_wants_less_and_more_gets_it(drawn: Batch, data: st.DataObject) -> None:
    schema, pairs = drawn
    kept = data.draw(st.permutations([f for f in schema["fields"] if data.draw(st.booleans())]))
    added = f("added", ["null", {"type": "array", "items": "string"}], default=None)
    reader = {**schema, "fields": [*kept, added, f("number", "double", default=1.5)]}
    payloads = Slices.of(encode(schema, [pair[0] for pair in pairs]))
    read = read_avro(payloads, avro(schema), avro(reader))
    assert not read.errors
    names = [field["name"] for field in kept]
    expected = [{**{name: pair[1][name] for name in names}, "added": None, "number": 1.5} for pair in pairs]
    assert read.values.equals(pa.array(expected, read.values.type))


EVOLUTIONS = {
    "promotions": (
        record(f("a", "int"), f("b", "long"), f("c", "float"), f("d", "string"), f("e", "bytes"), f("g", "int")),
        record(f("a", "long"), f("b", "float"), f("c", "double"), f("d", "bytes"), f("e", "string"), f("g", "double")),
        {"a": -1, "b": 2**33, "c": 0.5, "d": "ř", "e": b"x", "g": 7},
        {"a": -1, "b": 2.0**33, "c": 0.5, "d": "ř".encode(), "e": "x", "g": 7.0},
    ),
    "aliases": (
        record(f("a", record(f("x", "int"), name="Old")), name="Was"),
        record(f("b", record(f("x", "int"), name="New", aliases=["Old"]), aliases=["a"]), aliases=["Was"]),
        {"a": {"x": 1}},
        {"b": {"x": 1}},
    ),
    "an enum's default": (
        record(f("a", {"type": "enum", "name": "E", "symbols": ["X", "Y"]})),
        record(f("a", {"type": "enum", "name": "E", "symbols": ["Z", "X"], "default": "Z"})),
        {"a": "Y"},
        {"a": "Z"},
    ),
    "into a union": (
        record(f("a", "int"), f("b", "string")),
        record(f("a", ["null", "string", "long"]), f("b", ["null", "string"])),
        {"a": 5, "b": "x"},
        {"a": {"string": None, "long": 5}, "b": "x"},
    ),
    "out of a union": (record(f("a", ["null", "int", "string"])), record(f("a", "long")), {"a": 5}, {"a": 5}),
    "from union to union": (
        record(f("a", ["int", "string"])),
        record(f("a", ["string", "null", "double"])),
        {"a": 5},
        {"a": {"string": None, "double": 5.0}},
    ),
    "defaults of all kinds": (
        record(f("z", "int")),
        record(
            f("s", "string", default="ž"),
            f("b", "bytes", default="\u00ff"),
            f("l", {"type": "array", "items": "int"}, default=[1, 2]),
            f("m", {"type": "map", "values": "long"}, default={"k": 9}),
            f("r", record(f("x", "int", default=3), f("y", "boolean", default=True), name="I"), default={"x": 4}),
            f("e", {"type": "enum", "name": "E", "symbols": ["X", "Y"]}, default="Y"),
            f("u", ["null", "int"], default=None),
            f("v", ["int", "null"], default=8),
            f("d", "double", default=2),
        ),
        {"z": 1},
        {
            "s": "ž",
            "b": b"\xff",
            "l": [1, 2],
            "m": [("k", 9)],
            "r": {"x": 4, "y": True},
            "e": "Y",
            "u": None,
            "v": 8,
            "d": 2.0,
        },
    ),
    "what is skipped": (
        record(
            f("a", {"type": "map", "values": {"type": "array", "items": ["null", "string", "double"]}}),
            f("b", record(f("x", {"type": "fixed", "name": "F", "size": 3}), f("y", "boolean"), name="I")),
            f("c", "float"),
            f("k", "int"),
        ),
        record(f("k", "int")),
        {"a": {"p": [None, "q", 1.5], "r": []}, "b": {"x": b"abc", "y": True}, "c": 1.0, "k": 11},
        {"k": 11},
    ),
}


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_values_are_read_through_the_readers_schema(name: str) -> None:
    writer, reader, value, expected = EVOLUTIONS[name]
    read = read_avro(Slices.of(encode(writer, [value] * 3)), avro(writer), avro(reader))
    assert not read.errors
    assert read.values.equals(pa.array([expected] * 3, read.values.type))


def test_a_branch_that_the_reader_has_not_is_wrong_where_it_occurs() -> None:
    writer, reader = record(f("a", ["int", "string"])), record(f("a", "int"))
    read = read_avro(Slices.of(encode(writer, [{"a": 1}, {"a": "x"}])), avro(writer), avro(reader))
    assert read.values.to_pylist() == [{"a": 1}, None]
    assert "cannot be read as the reader's" in read.errors[1]


def test_a_writer_that_cannot_be_read_at_all_is_wrong_in_every_row() -> None:
    writer, reader = record(f("a", "string")), record(f("a", "string"), f("b", "int"))
    read = read_avro(Slices.of(encode(writer, [{"a": "x"}, None])), avro(writer), avro(reader))
    assert read.errors == {0: "the writer has no field b of R, and it has no default"}
    assert read.values.null_count == 2


LOGICAL = [
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 2)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 50}, pa.decimal256(50, 0)),
    ({"type": "int", "logicalType": "date"}, pa.date32()),
    ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
    ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
    ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
    ({"type": "long", "logicalType": "timestamp-nanos"}, pa.timestamp("ns", "UTC")),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
    ({"type": "string", "logicalType": "uuid"}, pa.string()),
    ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, pa.month_day_nano_interval()),
    ({"type": "long", "logicalType": "nobody-knows"}, pa.int64()),
]


@pytest.mark.parametrize(("schema", "type"), LOGICAL)
def test_logical_types_are_arrow_types(schema: Any, type: pa.DataType) -> None:
    assert arrow_type(avro(record(f("a", schema)))) == pa.struct([pa.field("a", type, False)])


def test_an_enum_may_stay_a_dictionary() -> None:
    schema = record(f("a", {"type": "enum", "name": "E", "symbols": ["X", "Y"]}))
    read = read_avro(Slices.of(encode(schema, [{"a": "Y"}])), avro(schema), None, True)
    assert read.values.type.field("a").type == pa.dictionary(pa.int32(), pa.string())
    assert read.values.to_pylist() == [{"a": "Y"}]


def test_a_schema_that_contains_itself_is_refused() -> None:
    with pytest.raises(SerdeError, match="R contains itself"):
        arrow_type(avro(record(f("next", ["null", "R"]))))


def test_a_schema_that_doubles_at_every_level_is_refused() -> None:
    schema: Any = "int"
    for level in range(30):
        schema = record(f("a", schema), f("b", f"R{level - 1}" if level else "int"), name=f"R{level}")
    with pytest.raises(SerdeError, match="more than"):
        arrow_type(avro(schema))


@pytest.mark.parametrize(
    ("schema", "payload", "why"),
    [
        ("int", b"\xff\xff\xff\xff\xff\x01", "too long for its type"),
        ("long", b"\xff" * 10, "too long"),
        ("long", b"\xff", "end within"),
        ("string", b"\x10ab", "larger than what follows"),
        ("string", b"\x01ab", "negative"),
        ("string", b"\x04\xc3\x28", "UTF-8"),
        ("boolean", b"\x02", "does not fit its type"),
        ("double", b"1234567", "end within"),
        ({"type": "int", "logicalType": "time-millis"}, b"\x01", "not within a day"),
        (["null", "int"], b"\x04\x02", "no such branch"),
        ({"type": "enum", "name": "E", "symbols": ["X"]}, b"\x02", "no such symbol"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x64", "more digits"),
        ({"type": "array", "items": "int"}, b"\xfe" + b"\xff" * 8 + b"\x01", "larger than what follows"),
        (
            {"type": "array", "items": "int"},
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",
            "larger than what follows",
        ),
    ],
)
def test_bad_bytes_are_told_apart(schema: Any, payload: bytes, why: str) -> None:
    wrapped = avro(record(f("a", schema)))
    read = read_avro(Slices.of(pa.array([payload], pa.binary())), wrapped)
    assert why in read.errors[0] and read.values.to_pylist() == [None]


def test_blocks_that_tell_their_size_are_read_and_skipped() -> None:
    schema = record(f("a", {"type": "array", "items": "int"}), f("b", "int"))
    payload = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00" + b"\x08"  # -2 items in 2 bytes, 1 item, end; b = 4
    data = pa.array([payload], pa.binary())
    assert read_avro(Slices.of(data), avro(schema)).values.to_pylist() == [{"a": [1, 2, 3], "b": 4}]
    assert read_avro(Slices.of(data), avro(schema), avro(record(f("b", "int")))).values.to_pylist() == [{"b": 4}]


def test_nan_and_the_infinities_keep_their_bits() -> None:
    schema = record(f("a", "double"))
    data = encode(schema, [{"a": x} for x in (float("nan"), float("inf"), float("-inf"), -0.0)])
    assert write_avro(read_avro(Slices.of(data), avro(schema)).values, avro(schema)).values.equals(data)


def test_large_columns_grow() -> None:
    schema = record(f("a", {"type": "array", "items": "string"}), f("b", "string", default="x" * 1000))
    writer = record(f("a", {"type": "array", "items": "string"}))
    rows = [{"a": ["y" * 100] * (i % 50)} for i in range(2000)]
    read = read_avro(Slices.of(encode(writer, rows)), avro(writer), avro(schema))
    assert not read.errors and read.values.field("b").to_pylist() == ["x" * 1000] * 2000
    assert read.values.field("a").to_pylist() == [row["a"] for row in rows]


def test_what_is_written_is_cast_and_columns_may_be_left_out() -> None:
    schema = record(f("a", "long"), f("b", ["null", "string"], default=None), f("c", "string", default="?"))
    batch = pa.StructArray.from_arrays([pa.array([1, 2], pa.int8())], names=["a"])
    written = write_avro(batch, avro(schema))
    assert read_avro(Slices.of(written.values), avro(schema)).values.to_pylist() == [
        {"a": 1, "b": None, "c": "?"},
        {"a": 2, "b": None, "c": "?"},
    ]


@pytest.mark.parametrize(
    ("column", "schema", "why"),
    [
        (pa.array(["x"]), record(f("a", "long")), "column a does not fit int64"),
        (pa.array([1]), record(f("a", "long"), f("b", "int")), "no column for b"),
        (pa.array([1]), record(f("b", "long", default=1)), "column set has a"),
        (pa.array([1]), record(f("a", {"type": "array", "items": "int"})), "does not fit list"),
        (pa.array([1]), record(f("a", record(f("x", "int"), name="I"))), "does not fit struct"),
    ],
)
def test_columns_that_do_not_fit_are_refused(column: pa.Array, schema: Any, why: str) -> None:
    with pytest.raises(SerdeError, match=why):
        write_avro(pa.StructArray.from_arrays([column], names=["a"]), avro(schema))


@pytest.mark.parametrize(
    ("column", "type", "why"),
    [
        (pa.array([1, None]), "long", "a null where"),
        (pa.array(["X", "Q"]), {"type": "enum", "name": "E", "symbols": ["X"]}, "no such symbol"),
        (pa.array([[1], [None]]), {"type": "array", "items": "long"}, "a null where"),
        (pa.array([str(uuid.UUID(int=1)), "x"]), UUID_FIXED, "does not fit its type"),
    ],
)
def test_values_that_do_not_fit_are_wrong_in_their_rows(column: pa.Array, type: Any, why: str) -> None:
    written = write_avro(pa.StructArray.from_arrays([column], names=["a"]), avro(record(f("a", type))))
    assert written.values.is_valid().to_pylist() == [True, False]
    assert list(written.errors) == [1] and why in written.errors[1]


def test_slices_and_nulls_are_written_as_they_are_seen() -> None:
    schema = record(f("a", ["null", record(f("x", {"type": "array", "items": "string"}), name="I")]))
    rows = [{"a": {"x": ["q"] * i}} if i % 3 else ({"a": None} if i % 2 else None) for i in range(20)]
    values = pa.array(rows, arrow_type(avro(schema)))
    written = write_avro(values[3:17], avro(schema))
    assert read_avro(Slices.of(written.values), avro(schema)).values.to_pylist() == rows[3:17]


def test_a_batch_without_rows_has_its_columns() -> None:
    schema = avro(record(f("a", "string")))
    read = read_avro(Slices.of(pa.array([], pa.binary())), schema)
    assert len(read.values) == 0 and read.values.type == arrow_type(schema)
    assert len(write_avro(read.values, schema).values) == 0


def test_without_numba_the_result_is_the_same() -> None:
    program = """
import sys; sys.modules["numba"] = None
import pytest
wanted = "read_through or told_apart or blocks or bits or slices or wrong_in_their_rows or same_bytes or damaged"
sys.exit(pytest.main(["-q", "-n0", "-p", "no:cacheprovider", sys.argv[1], "-k", wanted]))
"""
    done = subprocess.run([sys.executable, "-c", program, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_random_bytes_take_bounded_memory() -> None:
    schema = record(f("a", {"type": "map", "values": {"type": "array", "items": "string"}}), f("b", ["null", "bytes"]))
    random = np.random.default_rng(1)
    rows = [random.bytes(int(n)) for n in random.integers(0, 200, 5000)]
    read = read_avro(Slices.of(pa.array(rows, pa.binary())), avro(schema))
    read.values.validate(full=True)
    assert len(read.errors) > 2500
    assert read.values.nbytes < 5_000_000
