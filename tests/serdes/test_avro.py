"""Avro value by value: both ways with confluent-kafka's own serializers, schemas of the registry, and bad input."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import pickle
import socket
from typing import Any

import pytest
from confluent_kafka.schema_registry import Metadata, MetadataProperties, SchemaReference, header_schema_id_serializer
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import SerializationContext
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.serdes.avro import Avro
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.registry import Registry, RegistryError, Schema
from moldau.serdes.schemas import Reference, SchemaError

FIELDS = [
    {"name": "name", "type": "string"},
    {"name": "age", "type": ["null", "int"], "default": None},
    {"name": "paid", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "map", "values": "long"}},
]
PERSON = json.dumps({"type": "record", "name": "Person", "namespace": "org.moldau", "fields": FIELDS})
JAN = {
    "name": "Jan ☃",
    "age": 7,
    "paid": decimal.Decimal("-12.34"),
    "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC),
    "tags": {"a": 1},
}
LINKS = '{"type":"record","name":"Link","fields":[{"name":"next","type":["null","Link"]}]}'


def theirs(context: Context) -> Any:
    return SerializationContext(context.topic, context.field, context.headers)


@pytest.mark.parametrize("place", ["prefix", "header"])
def test_confluents_deserializer_reads_what_moldau_wrote(registry: Registry, client: Any, place: str) -> None:
    here = Context("people")
    data = Avro.of(registry, PERSON, {"schema.id.in": place}).to_bytes(JAN, here)
    assert AvroDeserializer(client)(data, theirs(here)) == JAN
    assert bool(here.headers) == (place == "header")


@pytest.mark.parametrize("config", [{}, {"schema.id.serializer": header_schema_id_serializer}])
def test_moldau_reads_what_confluents_serializer_wrote(registry: Registry, client: Any, config: Any) -> None:
    here = Context("people")
    data = AvroSerializer(client, PERSON, conf=config)(JAN, theirs(here))
    assert Avro.of(registry).from_bytes(data, here) == JAN


@pytest.mark.parametrize(
    ("schema", "value"),
    [('"string"', "ř"), ('"bytes"', b"\x00\x01"), ('"long"', 2**40), ('{"type":"array","items":"int"}', [1, 2])],
)
def test_schemas_that_are_no_records_go_both_ways(registry: Registry, client: Any, schema: str, value: Any) -> None:
    here = Context("plain", "key")
    data = Avro.of(registry, schema).to_bytes(value, here)
    their = AvroSerializer(client, schema)(value, theirs(here))
    assert data is not None and their is not None and data[5:] == their[5:]
    assert Avro.of(registry).from_bytes(their, here) == value


def test_a_schema_is_registered_once_under_its_subject(registry: Registry, client: Any) -> None:
    serde = Avro.of(registry, PERSON, {"subject.name.strategy": "TOPIC_RECORD"})
    for _ in range(3):
        serde.to_bytes(JAN, Context("people"))
    assert client.get_subjects() == ["people-org.moldau.Person"]


def test_without_auto_register_a_schema_must_be_known(registry: Registry) -> None:
    serde = Avro.of(registry, PERSON, {"auto.register.schemas": False})
    with pytest.raises(RegistryError, match="Not Found") as caught:
        serde.to_bytes(JAN, Context("people"))
    assert caught.value.status == 404 and not caught.value.retriable
    Avro.of(registry, PERSON).to_bytes(JAN, Context("people"))
    assert serde.to_bytes(JAN, Context("people"))


def test_the_latest_version_is_used_to_write_and_to_read(registry: Registry, client: Any) -> None:
    first = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
    second = (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":"string","default":"?"}]}'
    )
    old = Avro.of(registry, first).to_bytes({"a": 1}, Context("t"))
    latest = client.register_schema("t-value", TheirSchema(second, "AVRO"))
    serde = Avro.of(registry, settings={"use.latest.version": True})
    data = serde.to_bytes({"a": 2, "b": "x"}, Context("t"))
    assert data is not None and data[:5] == b"\0" + latest.to_bytes(4, "big")
    assert serde.from_bytes(old, Context("t")) == {"a": 1, "b": "?"}
    assert Avro.of(registry, settings={"use.schema.id": 1}).to_bytes({"a": 3}, Context("t")) == b"\0\0\0\0\x01\x06"


def test_the_latest_with_metadata_is_used(registry: Registry, client: Any) -> None:
    for application, name in (("one", "a"), ("two", "b")):
        text = json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": "int", "default": 0}]})
        metadata = Metadata(None, MetadataProperties({"application": application}), None)
        client.register_schema("t-value", TheirSchema(text, "AVRO", [], metadata))
    serde = Avro.of(registry, settings={"use.latest.with.metadata": {"application": "one"}})
    assert serde.to_bytes({"a": 5}, Context("t")) == b"\0\0\0\0\x01\x0a"


def test_references_are_followed(registry: Registry, client: Any) -> None:
    inner = '{"type":"record","name":"Inner","namespace":"n","fields":[{"name":"x","type":"int"}]}'
    middle = '{"type":"record","name":"Middle","namespace":"n","fields":[{"name":"i","type":"n.Inner"}]}'
    fields = [{"name": "m", "type": "n.Middle"}, {"name": "i", "type": "Inner"}]
    outer = json.dumps({"type": "record", "name": "Outer", "namespace": "n", "fields": fields})
    client.register_schema("inner", TheirSchema(inner, "AVRO"))
    client.register_schema("middle", TheirSchema(middle, "AVRO", [SchemaReference("n.Inner", "inner", 1)]))
    references = [SchemaReference("n.Middle", "middle", 1), SchemaReference("n.Inner", "inner", 1)]
    value = {"m": {"i": {"x": 1}}, "i": {"x": 2}}
    data = AvroSerializer(client, TheirSchema(outer, "AVRO", references))(value, theirs(Context("t")))
    assert Avro.of(registry).from_bytes(data, Context("t")) == value
    own = Schema(
        "AVRO",
        outer,
        (Reference("n.Middle", "middle", 1), Reference("n.Inner", "inner", 1)),
        (("n.Inner", inner), ("n.Middle", middle)),
    )
    assert Avro.of(registry, own).to_bytes(value, Context("t")) == data


def test_a_reader_schema_brings_defaults_promotions_and_aliases(registry: Registry) -> None:
    writer = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"gone","type":"string"}]}'
    renamed = {"name": "b", "type": "double", "aliases": ["a"]}
    added = {"name": "c", "type": "int", "default": 9}
    reader = json.dumps({"type": "record", "name": "R", "fields": [renamed, added]})
    data = Avro.of(registry, writer).to_bytes({"a": 1, "gone": "x"}, Context("t"))
    assert Avro.of(registry, reader).from_bytes(data, Context("t")) == {"b": 1.0, "c": 9}


@pytest.mark.parametrize("value", [{"name": 3}, {}, [], "x", {"name": "x", "age": "y"}])
def test_a_value_that_does_not_fit_is_refused(registry: Registry, value: Any) -> None:
    with pytest.raises(SerdeError, match=r"does not fit the schema org\.moldau\.Person"):
        Avro.of(registry, PERSON).to_bytes(value, Context("t"))


def test_damaged_bytes_give_a_value_or_one_kind_of_error(registry: Registry) -> None:
    whole = Avro.of(registry, PERSON).to_bytes(JAN, Context("t"))
    assert whole is not None
    reader = Avro.of(registry)

    @settings(max_examples=300, deadline=None)
    @given(st.integers(0, len(whole)), st.binary(max_size=20))
    def damage(cut: int, more: bytes) -> None:
        with contextlib.suppress(SerdeError):
            reader.from_bytes(whole[:cut] + more, Context("t"))

    damage()


def test_values_that_nest_without_end_do_not_end_the_process(registry: Registry) -> None:
    serde = Avro.of(registry, LINKS)
    assert serde.from_bytes(serde.to_bytes({"next": {"next": None}}, Context("t")), Context("t")) == {
        "next": {"next": None}
    }
    with pytest.raises(SerdeError, match="recursion"):
        serde.from_bytes(b"\0\0\0\0\x01" + b"\x02" * 200_000 + b"\0", Context("t"))
    deep: Any = None
    for _ in range(50_000):
        deep = {"next": deep}
    with pytest.raises(SerdeError, match="nests deeper"):
        serde.to_bytes(deep, Context("t"))


def test_an_array_of_nothing_is_not_read(registry: Registry) -> None:
    """Five bytes could claim 2**60 items of no size."""
    serde = Avro.of(registry, '{"type":"array","items":"null"}')
    with pytest.raises(SerdeError, match="take no bytes"):
        serde.from_bytes(serde.to_bytes([None], Context("t")), Context("t"))


def test_a_schema_that_doubles_at_every_level_is_read_at_once(registry: Registry) -> None:
    schema: Any = "null"
    for level in range(60):
        inner = f"R{level - 1}" if level else "null"
        schema = {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": schema}]}
        schema["fields"].append({"name": "b", "type": inner})
    assert Avro.of(registry, json.dumps(schema))


def test_a_schema_that_is_none_is_told_at_once(registry: Registry) -> None:
    with pytest.raises(SchemaError):
        Avro.of(registry, '{"type":"recrod"}')


def test_a_registry_that_is_away_is_told_as_such() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        registry = Registry.connect(
            {"schema.registry.url": f"http://127.0.0.1:{unused.getsockname()[1]}", "max.retries": 0}
        )
        with pytest.raises(RegistryError, match="cannot be reached") as caught:
            Avro.of(registry).from_bytes(b"\0\0\0\0\x01\x02", Context("t"))
    assert caught.value.retriable


def test_without_a_schema_there_is_nothing_to_write_with(registry: Registry) -> None:
    with pytest.raises(SerdeError, match="no schema to write with"):
        Avro.of(registry).to_bytes({}, Context("t"))


def test_a_serde_goes_to_another_process_as_its_settings() -> None:
    registry = Registry.connect({"schema.registry.url": "http://127.0.0.1:1"})
    made = Avro.of(registry, '"string"')
    first, second = (pickle.loads(pickle.dumps(made)) for _ in range(2))
    assert first.subjects.own == made.subjects.own
    assert first.subjects.registry is second.subjects.registry
    assert first.subjects.registry.client.config() == registry.client.config()
