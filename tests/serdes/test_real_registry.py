"""Serdes with Moldau's registry, over HTTP; and docs/serdes.md says what is true: its examples run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import SerializationContext

from moldau.serdes.avro import Avro
from moldau.serdes.context import Context
from moldau.serdes.json_schema import JsonSchema
from moldau.serdes.protobuf import Protobuf
from moldau.serdes.registry import Registry, RegistryError, Schema
from moldau.serdes.schemas import Reference
from moldau.testing import broker
from tests.registry.running import BROKER, running, unique
from tests.serdes.protos import Inner, Person, Place

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serdes.md"
ITEM = '{"type":"record","name":"Item","namespace":"n","fields":[{"name":"x","type":"int"}]}'
ORDER = '{"type":"record","name":"Order","namespace":"n","fields":[{"name":"i","type":"Item"}]}'
POINT = '{"type":"object","title":"Point","properties":{"x":{"type":"integer"}}}'


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with broker(BROKER) as started, running(started.bootstrap_servers) as registry:
        yield registry.url


@pytest.fixture
def registry(url: str) -> Registry:
    return Registry.connect({"schema.registry.url": url})


@pytest.fixture
def client(url: str) -> Any:
    return SchemaRegistryClient({"url": url})


def theirs(context: Context) -> Any:
    return SerializationContext(context.topic, context.field, context.headers)


@pytest.mark.parametrize("place", ["prefix", "header"])
def test_avro_with_references_goes_both_ways(registry: Registry, client: Any, place: str) -> None:
    subject, here = unique(), Context(unique())
    registry.register(subject, Schema("AVRO", ITEM), False)
    schema = Schema("AVRO", ORDER, (Reference("n.Item", subject, 1),), (("n.Item", ITEM),))
    data = Avro.of(registry, schema, {"schema.id.in": place, "normalize.schemas": True}).to_bytes({"i": {"x": 5}}, here)
    assert AvroDeserializer(client)(data if place == "prefix" else data + b"      ", theirs(here)) == {"i": {"x": 5}}
    there = Context(here.topic)
    again = AvroSerializer(client, None, conf={"auto.register.schemas": False, "use.latest.version": True})
    assert Avro.of(registry).from_bytes(again({"i": {"x": 6}}, theirs(there)), there) == {"i": {"x": 6}}


def test_json_schema_goes_both_ways(registry: Registry, client: Any) -> None:
    here = Context(unique())
    data = JsonSchema.of(registry, POINT).to_bytes({"x": 1}, here)
    assert JSONDeserializer(None, schema_registry_client=client)(data, theirs(here)) == {"x": 1}
    assert JsonSchema.of(registry).from_bytes(JSONSerializer(POINT, client)({"x": 2}, theirs(here)), here) == {"x": 2}


@pytest.mark.parametrize(
    ("kind", "value"), [(Person, Person(name="Jan", home=Place(town="Praha"))), (Inner, Inner(x=5))]
)
def test_protobuf_with_imports_goes_both_ways(registry: Registry, client: Any, kind: Any, value: Any) -> None:
    here = Context(unique())
    data = Protobuf.of(registry, kind).to_bytes(value, here)
    assert ProtobufDeserializer(kind, schema_registry_client=client)(data, theirs(here)) == value
    again = ProtobufSerializer(kind, client)(value, theirs(here))
    assert again == data
    assert Protobuf.of(registry).from_bytes(again, here).SerializeToString() == value.SerializeToString()


def test_a_refusal_has_confluents_code(registry: Registry) -> None:
    with pytest.raises(RegistryError) as caught:
        registry.latest(unique())
    assert (caught.value.status, caught.value.code, caught.value.retriable) == (404, 40401, False)


def test_the_examples_of_the_page_run(url: str) -> None:
    scope = {"schema_registry_url": url}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
