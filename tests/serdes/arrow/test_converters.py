"""Batches by format, through the registry: several writers, headers, unknown ids, rows that are wrong."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import socket
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import SerializationContext
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from moldau.serdes.arrow.batch import Slices
from moldau.serdes.arrow.converters import columns
from moldau.serdes.arrow.json import json_type, read_rows
from moldau.serdes.avro import Avro
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.primitive import PLAIN
from moldau.serdes.protobuf import Protobuf
from moldau.serdes.registry import Registry, RegistryError, Schema
from tests.serdes.protos import Inner, Person

HERE = Context("t")
THERE = SerializationContext("t", "value")
FIRST = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
SECOND = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"], "default": None}],
    }
)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("string", ["a", None, "ř"]),
        ("bytes", [b"\xff", None]),
        ("short", [-1, None, 300]),
        ("integer", [2**31 - 1, None]),
        ("long", [-(2**63), None]),
        ("float", [0.5, None]),
        ("double", [1e300, None]),
        ("uuid", ["00000000-0000-0000-0000-000000000007", None]),
        ("json", ['{"a":1}', None]),
    ],
)
def test_plain_values_are_those_of_their_serdes(name: str, values: list[Any]) -> None:
    made = columns(name)
    data = made.from_arrow(pa.array(values, made.type(HERE)), HERE).values
    if name != "json":
        assert data.to_pylist() == [PLAIN[name].to_bytes(value, HERE) for value in values]
    read = made.to_arrow(data, HERE)
    assert read.values.to_pylist() == values and not read.errors
    assert made.to_arrow(data[1:], HERE).values.to_pylist() == values[1:]


@pytest.mark.parametrize(
    ("name", "data"), [("string", b"\xff"), ("long", b"1234567"), ("uuid", b"no"), ("json", b"{"), ("short", b"")]
)
def test_plain_values_that_are_wrong_are_null(name: str, data: bytes) -> None:
    read = columns(name).to_arrow(pa.array([data, None], pa.binary()), HERE)
    assert read.values.null_count == 2 and list(read.errors) == [0]


def test_a_topic_of_two_writers_is_read_through_the_latest(registry: Registry, client: Any) -> None:
    rows = [AvroSerializer(client, FIRST)({"a": i}, THERE) for i in range(3)]
    rows += [AvroSerializer(client, SECOND)({"a": i, "b": "x"}, THERE) for i in range(3)]
    mixed = [rows[0], rows[3], None, b"junk", rows[1], b"\0\0\0\0\x63xx", rows[4]]
    read = columns("avro", registry).to_arrow(pa.array(mixed, pa.binary()), HERE)
    good = [{"a": 0, "b": None}, {"a": 0, "b": "x"}, None, None, {"a": 1, "b": None}, None, {"a": 1, "b": "x"}]
    assert read.values.to_pylist() == good
    assert sorted(read.errors) == read.error_rows.tolist() == [3, 5]
    assert "schema registry" in read.errors[3] and "Not Found" in read.errors[5]
    assert read.batch().column("a").to_pylist() == [0, 0, None, None, 1, None, 1]


def test_headers_name_schemas_too(registry: Registry) -> None:
    serde = Avro.of(registry, FIRST, {"schema.id.in": "header"})
    context = Context("t")
    data = [serde.to_bytes({"a": 1}, context), Avro.of(registry, FIRST).to_bytes({"a": 2}, HERE), b"\x06", None]
    carried = context.headers[0][1]
    headers = pa.array([carried, None, b"nonsense", None], pa.binary())
    read = columns("avro", registry).to_arrow(pa.array(data, pa.binary()), HERE, headers)
    assert read.values.to_pylist() == [{"a": 1}, {"a": 2}, None, None]
    assert list(read.errors) == [2]
    assert read.values.type == columns("avro", registry).type(HERE)


def test_what_is_written_is_registered_and_framed(registry: Registry) -> None:
    made = columns("avro", registry, SECOND)
    batch = pa.RecordBatch.from_pylist([{"a": 1, "b": None}, {"a": 2, "b": "x"}])
    written = made.from_arrow(batch, HERE)
    assert [Avro.of(registry).from_bytes(data, HERE) for data in written.values.to_pylist()] == batch.to_pylist()
    in_header = columns("avro", registry, SECOND, {"schema.id.in": "header"})
    context = Context("t")
    payloads = in_header.from_arrow(batch, context).values.to_pylist()
    assert payloads == [data[5:] for data in written.values.to_pylist()] and len(context.headers) == 1


def test_a_registry_that_is_away_is_not_the_fault_of_a_row() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = Registry.connect({"url": f"http://127.0.0.1:{unused.getsockname()[1]}", "max.retries": 0})
        with pytest.raises(RegistryError, match="cannot be reached"):
            columns("avro", away, FIRST).to_arrow(pa.array([b"\0\0\0\0\x01\x02"], pa.binary()), HERE)


@pytest.mark.parametrize(("format", "why"), [("xml", "use one of string"), ("avro", "needs a schema registry")])
def test_a_wrong_choice_is_told(format: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        columns(format)


PERSON = {
    "type": "object",
    "title": "Person",
    "properties": {
        "name": {"type": "string"},
        "age": {"oneOf": [{"type": "null"}, {"type": "integer"}]},
        "size": {"type": ["number", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "home": {"$ref": "#/definitions/place"},
    },
    "definitions": {"place": {"type": "object", "properties": {"town": {"type": "string"}}}},
}
RICH = {
    "type": "object",
    "properties": {
        "any": {},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    },
}
JAN = {"name": "Jan\n☃", "age": 7, "size": 1.5, "tags": ["a"], "home": {"town": "Praha"}}


def test_json_goes_both_ways_with_confluents_serializer(registry: Registry, client: Any) -> None:
    people = [JAN, {"name": "Eva"}]
    rows = [JSONSerializer(json.dumps(PERSON), client)(person, THERE) for person in people]
    made = columns("json-schema", registry)
    read = made.to_arrow(pa.array(rows, pa.binary()), HERE)
    empty = {"age": None, "size": None, "tags": None, "home": None}
    assert read.values.to_pylist() == [JAN, {"name": "Eva", **empty}] and not read.errors
    assert read.values.type == made.type(HERE)
    back = columns("json-schema", registry, json.dumps(PERSON)).from_arrow(read.values, HERE).values.to_pylist()
    assert [JSONDeserializer(json.dumps(PERSON), schema_registry_client=client)(row, THERE) for row in back] == people


def test_json_without_one_type_is_its_text(registry: Registry) -> None:
    made = columns("json-schema", registry, json.dumps(RICH))
    value = {"any": {"x": [1]}, "counts": {"k": 2}, "either": 3}
    rows = pa.array([b"\0\0\0\0\x01" + json.dumps(value).encode()], pa.binary())
    made.from_arrow(pa.array([{}], made.type(HERE)), HERE)
    read = made.to_arrow(rows, HERE)
    assert read.values.to_pylist() == [{"any": '{"x":[1]}', "counts": [("k", 2)], "either": "3"}]
    assert json.loads(made.from_arrow(read.values, HERE).values[0].as_py()[5:]) == value


@pytest.mark.parametrize(
    "bad",
    [b"{", b"", b"[]", b"null x", b'{"name": 3}', b'{"age": "x"}', b'{"age": 99999999999999999999}', b'{"tags": [1]}'],
)
def test_json_that_is_wrong_is_null_and_its_neighbours_are_not(bad: bytes) -> None:
    rows = pa.array([b'{"name":"a"}', bad, b'{"name":"b"}'], pa.binary())
    read = read_rows(Slices.of(rows), json_type(Schema("JSON", json.dumps(PERSON))))
    assert list(read.errors) == [1]
    assert [None if row is None else row["name"] for row in read.values.to_pylist()] == ["a", None, "b"]


def test_objects_that_stand_together_are_no_rows() -> None:
    rows = pa.array([b'{"name":"a"}{"name":"b"}', b'{"name":"c"}', b""], pa.binary())
    read = read_rows(Slices.of(rows), json_type(Schema("JSON", json.dumps(PERSON))))
    assert list(read.errors) == [0, 2] and read.values[1].as_py()["name"] == "c"


@given(st.lists(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda i: st.dictionaries(st.sampled_from(["name", "age", "tags", "home"]), i | st.lists(i, max_size=2), max_size=3), max_leaves=5), max_size=5))  # fmt: skip  # noqa: E501
def test_any_json_gives_rows_or_errors(values: list[Any]) -> None:
    rows = pa.array([json.dumps(value).encode() for value in values], pa.binary())
    read = read_rows(Slices.of(rows), json_type(Schema("JSON", json.dumps(PERSON))))
    assert len(read.values) == len(values)
    read.values.validate(full=True)


def test_a_json_schema_that_contains_itself_is_refused() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    with pytest.raises(SerdeError, match="contains itself"):
        json_type(Schema("JSON", json.dumps(schema)))


WHO: Any = json_format.ParseDict(
    {
        "name": "Jan",
        "age": 7,
        "home": {"town": "Praha", "height": 0.5},
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "colour": "GREEN",
        "at": "2026-01-02T03:04:05.678Z",
        "big": 2**64 - 1,
        "raw": "AAE=",
        "inners": [{"x": -1}, {}],
        "yes": True,
    },
    Person(),
)


def test_protobuf_goes_both_ways_with_confluents_serializer(registry: Registry, client: Any) -> None:
    serializer = ProtobufSerializer(Person, client)
    rows = [serializer(WHO, THERE), None, serializer(Person(), THERE)]
    made = columns("protobuf", registry, message="Person")
    read = made.to_arrow(pa.array(rows, pa.binary()), HERE)
    assert not read.errors and read.values.type == made.type(HERE)
    read.values.validate(full=True)
    first, nothing, empty = read.values.to_pylist()
    assert first == {
        "name": "Jan",
        "age": 7,
        "home": {"town": "Praha", "height": 0.5},
        "tags": ["a", "b"],
        "counts": [("x", 1)],
        "colour": "GREEN",
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.UTC),
        "big": decimal.Decimal(2**64 - 1),
        "raw": b"\0\1",
        "inners": [{"x": -1}, {"x": 0}],
        "yes": True,
    }
    assert (
        nothing is None
        and empty["age"] is None
        and empty["home"] is None
        and empty["name"] == ""
        and empty["tags"] == []
    )
    writer = columns("protobuf", registry, message="Person", settings={"use.latest.version": True})
    back = writer.from_arrow(read.values, HERE)
    assert not back.errors
    assert [Protobuf.of(registry, Person).from_bytes(row, HERE) for row in back.values.to_pylist()] == [
        WHO,
        None,
        Person(),
    ]


def test_another_message_of_the_file_is_wrong_in_its_rows(registry: Registry, client: Any) -> None:
    rows = [ProtobufSerializer(Inner, client)(Inner(x=1), THERE), ProtobufSerializer(Person, client)(WHO, THERE)]
    read = columns("protobuf", registry, message="org.Person.Inner").to_arrow(pa.array(rows, pa.binary()), HERE)
    assert read.values.to_pylist() == [{"x": 1}, None]
    assert read.errors == {1: "the message is a org.Person, not a org.Person.Inner"}


def test_protobuf_of_any_bytes_is_rows_or_errors(registry: Registry, client: Any) -> None:
    ProtobufSerializer(Person, client)(WHO, THERE)
    made = columns("protobuf", registry, message="Person")

    @given(st.lists(st.none() | st.binary(max_size=20).map(lambda b: b"\0\0\0\0\x02" + b), max_size=5))
    def any_bytes(rows: list[bytes | None]) -> None:
        with contextlib.suppress(SerdeError):
            read = made.to_arrow(pa.array(rows, pa.binary()), HERE)
            read.values.validate(full=True)
            assert len(read.values) == len(rows)

    any_bytes()
