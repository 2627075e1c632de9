"""confluent-kafka's registry client and serializers, and kcat, against this registry."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.timestamp_pb2 import Timestamp

from moldau.testing import Broker
from tests import needs
from tests.registry.running import Running, record, unique


@pytest.fixture
def client(registry: Running) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_the_client_registers_finds_compares_and_deletes(client: SchemaRegistryClient, subject: str) -> None:
    schema = Schema(json.dumps(record("x:int")), "AVRO")
    id = client.register_schema(subject, schema)
    assert client.get_schema(id).schema_str == json.dumps(record("x:int"), separators=(",", ":"))
    assert client.lookup_schema(subject, schema).version == 1
    assert subject in client.get_subjects()
    assert client.get_versions(subject) == [1]
    assert client.get_version(subject, 1).schema_id == client.get_latest_version(subject).schema_id == id
    assert client.test_compatibility(subject, schema)
    assert not client.test_compatibility(subject, Schema(json.dumps(record("x:string")), "AVRO"))
    client.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config(subject).compatibility_level is ConfigCompatibilityLevel.FULL
    client.set_compatibility(subject, "NONE")
    assert client.get_compatibility(subject) == "NONE"
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject, permanent=True) == [1]
    with pytest.raises(SchemaRegistryError) as refused:
        client.get_versions(subject)
    assert (refused.value.http_status_code, refused.value.error_code) == (404, 40401)


def test_metadata_and_rules_come_back_as_they_went(client: SchemaRegistryClient, subject: str) -> None:
    params = RuleParams({"a": "b"})
    rule = Rule(
        "check",
        "doc",
        RuleKind.CONDITION,
        RuleMode.WRITE,
        "CEL",
        ["PII"],
        params,
        "true",
        "NONE",
        "ERROR",
        False,
    )
    metadata = Metadata(None, MetadataProperties({"owner": "anna"}), ["owner"])  # 2.16.0 cannot hash tags
    given = Schema(json.dumps(record("x:int")), "AVRO", [], metadata, RuleSet(None, [rule]))
    client.register_schema(subject, given)
    found = client.get_latest_version(subject).schema
    assert found.metadata == metadata
    assert found.rule_set is not None and found.rule_set.domain_rules == [rule]
    assert client.get_latest_with_metadata(subject, {"owner": "anna"}).version == 1


def rule(
    name: str, kind: RuleKind, mode: RuleMode, engine: str, expression: str, tags: list[str] | None = None
) -> Rule:
    return Rule(name, None, kind, mode, engine, tags, None, expression, None, "ERROR", False)


RULES = [
    rule("positive", RuleKind.CONDITION, RuleMode.WRITE, "CEL", "message.x > 0"),
    rule("shout", RuleKind.TRANSFORM, RuleMode.WRITE, "CEL_FIELD", "value + '!'", ["PII"]),
    rule("whisper", RuleKind.TRANSFORM, RuleMode.READ, "CEL_FIELD", "name == 'y'; value + '?'"),
]
RENAME = "$merge([$sift($, function($v, $k) {$k != 'x'}), {'z': $.'x'}])"


@pytest.fixture
def engines() -> RuleRegistry:
    """The rules that are executed in the client: the registry keeps them."""
    made = RuleRegistry()
    for executor in (CelExecutor(), CelFieldExecutor(), JsonataExecutor()):
        made.register_executor(executor)
    return made


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_rules_of_the_registry_are_executed_by_the_clients(
    registry: Running, client: SchemaRegistryClient, engines: RuleRegistry, kind: str
) -> None:
    topic = unique("topic")
    text, writer, reader = ruled(kind, client, engines)
    other = SchemaRegistryClient({"url": registry.url})  # one that registers remembers the text that it has sent
    other.register_schema(f"{topic}-value", Schema(text, kind, [], None, RuleSet(None, RULES)))
    [write, read, make, show] = writer, reader, *(MESSAGE if kind == "PROTOBUF" else (dict, dict))
    data = write(make(x=1, y="a"), context(topic))
    assert show(read(data, context(topic))) == {"x": 1, "y": "a!?"}
    with pytest.raises(SerializationError):
        write(make(x=-1, y="a"), context(topic))


def test_a_rule_of_migration_renames_a_field(client: SchemaRegistryClient, engines: RuleRegistry) -> None:
    """A reader of a newer version in another compatibility group gets what was written with the older one."""
    topic = unique("topic")
    subject, latest = f"{topic}-value", {"use.latest.with.metadata": {"major": "2"}}
    client.set_config(subject, ServerConfig(compatibility_group="major"))
    old, new = (Metadata(None, MetadataProperties({"major": major}), None) for major in "12")
    client.register_schema(subject, Schema(json.dumps(record("x:int")), "AVRO", [], old))
    upgrade = rule("up", RuleKind.TRANSFORM, RuleMode.UPGRADE, "JSONATA", RENAME)
    client.register_schema(subject, Schema(json.dumps(record("z:int")), "AVRO", [], new, RuleSet([upgrade], None)))
    given = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    data = AvroSerializer(client, None, conf=given)({"x": 5}, context(topic))
    assert AvroDeserializer(client, None, conf=latest, rule_registry=engines)(data, context(topic)) == {"z": 5}


def ruled(kind: str, client: SchemaRegistryClient, engines: RuleRegistry) -> tuple[str, Any, Any]:
    """A schema whose field y is tagged, and the serializer and deserializer of its kind."""
    given = {"auto.register.schemas": False, "use.latest.version": True}
    more: dict[str, Any] = {"rule_registry": engines}
    if kind == "AVRO":
        schema = record("x:int", "y:string")
        schema["fields"][1]["confluent:tags"] = ["PII"]
        return (
            json.dumps(schema),
            AvroSerializer(client, None, conf=given, **more),
            AvroDeserializer(client, None, **more),
        )
    if kind == "JSON":
        properties = {"x": {"type": "integer"}, "y": {"type": "string", "confluent:tags": ["PII"]}}
        text = json.dumps({"type": "object", "title": "T", "properties": properties})
        reader = JSONDeserializer(None, schema_registry_client=client, **more)
        return text, JSONSerializer(None, client, conf=given, **more), reader
    reader = ProtobufDeserializer(Tagged, schema_registry_client=client, **more)
    return TAGGED, ProtobufSerializer(Tagged, client, conf=given, **more), reader


def test_avro_with_references_goes_there_and_back(client: SchemaRegistryClient) -> None:
    topic, inner = unique("topic"), unique("inner")
    client.register_schema(inner, Schema(json.dumps(record("x:int", name="Inner")), "AVRO"))
    outer = Schema(json.dumps(record("part:Inner", name="Outer")), "AVRO", [SchemaReference("Inner", inner, 1)])
    data = AvroSerializer(client, outer)({"part": {"x": 5}}, context(topic))
    assert AvroDeserializer(client)(data, context(topic)) == {"part": {"x": 5}}


def test_json_schema_goes_there_and_back(client: SchemaRegistryClient) -> None:
    topic = unique("topic")
    schema = json.dumps({"title": "T", "type": "object", "properties": {"x": {"type": "integer"}}})
    data = JSONSerializer(schema, client)({"x": 5}, context(topic))
    assert JSONDeserializer(schema, schema_registry_client=client)(data, context(topic)) == {"x": 5}


def messages() -> Any:
    """The class of a message in a file that imports one of ours and one of Google's."""
    pool = descriptor_pool.Default()
    inner = FileDescriptorProto(name="moldau_inner.proto", package="shop", syntax="proto3")
    inner.message_type.add(name="Inner").field.add(name="x", number=1, type=5, label=1)
    outer = FileDescriptorProto(name="moldau_outer.proto", package="shop", syntax="proto3")
    outer.dependency.extend(["moldau_inner.proto", "google/protobuf/timestamp.proto"])
    fields = outer.message_type.add(name="Outer").field
    fields.add(name="part", number=1, type=11, label=1, type_name=".shop.Inner")
    fields.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    for file in (inner, outer):
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Outer"))


TAGGED = """syntax = "proto3";
package shop;
import "confluent/meta.proto";
message Tagged { int32 x = 1; string y = 2 [(confluent.field_meta).tags = "PII"]; }
"""


def tagged() -> Any:
    """The class of the message of TAGGED."""
    file = FileDescriptorProto(name="moldau_tagged.proto", package="shop", syntax="proto3")
    file.dependency.append("confluent/meta.proto")
    fields = file.message_type.add(name="Tagged").field
    fields.add(name="x", number=1, type=5, label=1)
    fields.add(name="y", number=2, type=9, label=1).options.Extensions[meta_pb2.field_meta].tags.append("PII")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Tagged"))


Tagged = tagged()
MESSAGE = (Tagged, lambda message: {"x": message.x, "y": message.y})


def test_protobuf_goes_there_and_back_with_its_imports(registry: Running, client: SchemaRegistryClient) -> None:
    topic, outer = unique("topic"), messages()
    sent = outer(part={"x": 5}, at=Timestamp(seconds=7))
    data = ProtobufSerializer(outer, client)(sent, context(topic))
    for other in (client, SchemaRegistryClient({"url": registry.url})):
        assert ProtobufDeserializer(outer, schema_registry_client=other)(data, context(topic)) == sent
    shown = registry.get(f"/subjects/{topic}-value/versions/1")
    assert 'import "moldau_inner.proto";' in shown["schema"]
    assert shown["references"][0]["subject"] == "moldau_inner.proto"


@pytest.mark.needs("kcat-avro")
def test_kcat_reads_avro_by_the_registry(
    registry: Running, registry_broker: Broker, client: SchemaRegistryClient
) -> None:
    topic = registry_broker.create_topic()
    values = AvroSerializer(client, json.dumps(record("x:int", "y:string")))
    keys = AvroSerializer(client, '"long"')
    producer = Producer({"bootstrap.servers": registry_broker.bootstrap_servers})
    for number in range(3):
        key = keys(number, SerializationContext(topic, MessageField.KEY))
        producer.produce(topic, values({"x": number, "y": "ä"}, context(topic)), key)
    producer.flush()
    command = [
        str(needs.find("kcat-avro").path),
        "-b",
        registry_broker.bootstrap_servers,
        "-C",
        "-t",
        topic,
        "-e",
        "-q",
    ]
    command += ["-s", "avro", "-r", registry.url, "-f", "[%k,%s]\\n"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert found == [[number, {"x": number, "y": "ä"}] for number in range(3)], ended.stderr
