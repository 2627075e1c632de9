"""Fields encrypted by rules: what confluent-kafka's serializers write with its local KMS we read, and the reverse."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import (
    EncryptionExecutor,
    FieldEncryptionExecutor,
)
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass

from moldau.serdes.arrow.converters import columns
from moldau.serdes.avro import Avro
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.encryption.ciphers import ALGORITHMS
from moldau.serdes.formats import serde
from moldau.serdes.protobuf import file_of, named
from moldau.serdes.registry import Registry
from tests.registry.running import Running, unique

SECRET = "the secret of these tests"
PARAM = "rule.executors._default_.param.secret"
AVRO = {
    "type": "record",
    "name": "Person",
    "namespace": "shop",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "card", "type": ["null", "string"], "confluent:tags": ["PII"]},
        {"name": "seal", "type": "bytes", "confluent:tags": ["PII"]},
        {"name": "phones", "type": {"type": "array", "items": "string"}},
    ],
}
JSON_SCHEMA = {
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "card": {"oneOf": [{"type": "null"}, {"type": "string"}], "confluent:tags": ["PII"]},
        "home": {"$ref": "#/definitions/home"},
        "phones": {"type": "array", "items": {"type": "string"}},
    },
    "definitions": {
        "home": {"type": "object", "properties": {"street": {"type": "string", "confluent:tags": ["PII"]}}}
    },
}
PROTO = """syntax = "proto3";
package shop;
import "confluent/meta.proto";
message Person {
  string name = 1;
  string card = 2 [(confluent.field_meta).tags = "PII"];
  bytes seal = 3 [(confluent.field_meta).tags = "PII"];
  repeated Home homes = 4;
  map<string, string> notes = 5;
  repeated string phones = 6;
  message Home { string street = 1 [(confluent.field_meta).tags = "PII"]; }
}
"""
SCHEMAS = {
    "avro": ("AVRO", json.dumps(AVRO)),
    "json-schema": ("JSON", json.dumps(JSON_SCHEMA)),
    "protobuf": ("PROTOBUF", PROTO),
}
VALUES: dict[str, dict[str, Any]] = {
    "avro": {"name": "Ada", "card": "4711", "seal": b"\0\xff", "phones": ["1", "2"]},
    "json-schema": {"name": "Ada", "card": "4711", "home": {"street": "Kampa"}, "phones": ["1", "2"]},
    "protobuf": {"name": "Ada", "card": "4711", "seal": "AP8=", "homes": [{"street": "Kampa"}], "notes": {"a": "b"}},
}
OPEN = {"name", "phones"}  # fields that nobody tagged


LocalKmsDriver.register()


@pytest.fixture
def confluent(registry: Running) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def ours(registry: Running) -> Iterator[Registry]:
    opened = Registry.connect({"schema.registry.url": registry.url})
    yield opened
    opened.close()


def rule(kek: str, **more: Any) -> dict[str, Any]:
    params = {"encrypt.kek.name": kek, "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "mine"}
    given = {"name": "hide", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT", "tags": ["PII"]}
    return {**given, "params": {**params, **more.pop("params", {})}, "onFailure": "ERROR,ERROR", **more}


def register(registry: Running, format: str, topic: str, rules: dict[str, Any], **more: Any) -> None:
    kind, text = SCHEMAS[format]
    given = {"schema": text, "schemaType": kind, "ruleSet": rules, **more}
    answer = registry.post(f"/subjects/{topic}-value/versions", given)
    assert isinstance(answer, dict), answer


KINDS: dict[str, tuple[Any, Any]] = {
    "avro": (AvroSerializer, AvroDeserializer),
    "json-schema": (JSONSerializer, JSONDeserializer),
    "protobuf": (ProtobufSerializer, ProtobufDeserializer),
}


class Theirs:
    """confluent-kafka's serializer and deserializer of a format, each with executors of its own."""

    def __init__(self, client: SchemaRegistryClient, format: str, topic: str, message: Any) -> None:
        self.context = SerializationContext(topic, MessageField.VALUE)
        conf = {"auto.register.schemas": False, "use.latest.version": True}
        kinds: Any = {"rule_conf": {"secret": SECRET}, "rule_registry": rules()}
        plain = {"use.latest.version": True}
        writer, reader = KINDS[format]
        match format:
            case "avro":
                self.write, self.read = writer(client, conf=conf, **kinds), reader(client, **kinds)
            case "json-schema":
                self.write = writer(None, client, conf=conf, **kinds)
                self.read = reader(None, schema_registry_client=client, conf=plain, **kinds)
            case _:
                own = {**conf, "use.deprecated.format": False}
                self.write = writer(message, client, own, **kinds)
                self.read = reader(message, {"use.deprecated.format": False}, client, **kinds)


def rules() -> RuleRegistry:
    made = RuleRegistry()
    made.register_executor(FieldEncryptionExecutor())
    made.register_executor(EncryptionExecutor())
    return made


def as_given(format: str, value: Any, message: Any) -> Any:
    return json_format.ParseDict(value, message()) if format == "protobuf" else copy.deepcopy(value)


@pytest.mark.parametrize("format", SCHEMAS)
@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "AES256_GCM, rotated"])
def test_each_reads_what_the_other_has_written(
    registry: Running, confluent: SchemaRegistryClient, ours: Registry, format: str, algorithm: str
) -> None:
    topic, (cipher, _, rotated) = unique(), algorithm.partition(", ")
    params = {"encrypt.dek.algorithm": cipher, **({"encrypt.dek.expiry.days": "7"} if rotated else {})}
    register(registry, format, topic, {"domainRules": [rule(topic.replace("-", "_"), params=params)]})
    here = Context(topic)
    mine = serde(format, ours, settings={"use.latest.version": True, PARAM: SECRET})
    message = None
    if format == "protobuf":
        message = GetMessageClass(named(file_of(ours.latest(f"{topic}-value", "serialized").schema), "Person"))
    theirs = Theirs(confluent, format, topic, message)
    value = as_given(format, VALUES[format], message)
    sent = as_given(format, VALUES[format], message)
    written, by_them = mine.to_bytes(value, here), theirs.write(sent, theirs.context)
    assert value == as_given(format, VALUES[format], message), "what a caller gives is left as it is"
    assert written is not None
    assert b"Ada" in written
    assert not any(secret in written for secret in (b"4711", b"Kampa"))
    assert theirs.read(written, theirs.context) == value
    assert mine.from_bytes(by_them, here) == value
    plain = serde(format, ours, settings={"use.latest.version": True, PARAM: "another secret"})
    with pytest.raises(SerdeError, match="rule 'hide' failed: local-kms cannot decrypt"):
        plain.from_bytes(written, here)


def test_a_whole_payload_is_encrypted(registry: Running, confluent: SchemaRegistryClient, ours: Registry) -> None:
    topic = unique()
    given = rule(topic.replace("-", "_"), type="ENCRYPT_PAYLOAD", tags=[])
    register(registry, "avro", topic, {"encodingRules": [given]})
    mine = Avro.of(ours, settings={"use.latest.version": True, PARAM: SECRET})
    theirs = Theirs(confluent, "avro", topic, None)
    written = mine.to_bytes(VALUES["avro"], Context(topic))
    assert written is not None
    assert b"Ada" not in written
    assert theirs.read(written, theirs.context) == VALUES["avro"]
    sent = theirs.write(dict(VALUES["avro"]), theirs.context)
    assert mine.from_bytes(sent, Context(topic)) == VALUES["avro"]


def test_tags_of_metadata_name_fields_by_their_paths(registry: Running, ours: Registry) -> None:
    topic = unique()
    metadata = {"tags": {"**.phones": ["PII"]}, "properties": {"encrypt.kms.type": "local-kms"}}
    register(registry, "avro", topic, {"domainRules": [rule(topic.replace("-", "_"))]}, metadata=metadata)
    written = Avro.of(ours, settings={"use.latest.version": True, PARAM: SECRET}).to_bytes(
        {**VALUES["avro"], "phones": ["call me"]}, Context(topic)
    )
    assert written is not None
    assert b"call me" not in written


def test_what_cannot_be_encrypted_is_not_written(registry: Running, ours: Registry) -> None:
    own = {"use.latest.version": True}
    cases = (
        (rule("nothing_here", params={"encrypt.kms.type": "nowhere"}), "the key management service 'nowhere'"),
        (rule(""), "encrypt.kek.name is missing"),
        (rule("any", params={"encrypt.dek.algorithm": "ROT13"}), "the algorithm 'ROT13' is not known"),
        (rule("any", params={"encrypt.dek.expiry.days": "soon"}), "must be a number of days"),
        (rule("any", type="CEL", tags=[]), "is of type CEL, which these serdes do not run"),
        (rule(unique().replace("-", "_")), "local-kms has no secret"),
    )
    for given, words in cases:
        topic = unique()
        register(registry, "avro", topic, {"domainRules": [given]})
        with pytest.raises(SerdeError, match=words):
            Avro.of(ours, settings=own).to_bytes(VALUES["avro"], Context(topic))


def test_a_rule_may_fail_if_it_says_so(registry: Running, ours: Registry) -> None:
    topic = unique()
    given = rule(topic.replace("-", "_"), onFailure="ERROR,NONE")
    register(registry, "avro", topic, {"domainRules": [given]})
    written = Avro.of(ours, settings={"use.latest.version": True, PARAM: SECRET}).to_bytes(
        VALUES["avro"], Context(topic)
    )
    read = Avro.of(ours, settings={PARAM: "another"}).from_bytes(written, Context(topic))
    assert (read["name"], len(read["card"])) == ("Ada", 44), "ciphertext, as the rule allows"


def test_columns_are_not_written_past_a_rule(registry: Running, ours: Registry) -> None:
    topic = unique()
    register(registry, "avro", topic, {"domainRules": [rule(topic.replace("-", "_"))]})
    settings = {"use.latest.version": True, PARAM: SECRET}
    made, here = columns("avro", ours, settings=settings), Context(topic)
    batch = pa.RecordBatch.from_pylist([VALUES["avro"]])
    with pytest.raises(SerdeError, match="rule 'hide' is run value by value"):
        made.from_arrow(batch, here)
    written = Avro.of(ours, settings=settings).to_bytes(VALUES["avro"], here)
    assert "rule 'hide' is run value by value" in made.to_arrow(pa.array([written], pa.binary()), here).errors[0]


def test_secrets_stand_in_no_text(ours: Registry) -> None:
    made = Avro.of(ours, settings={"use.latest.version": True, PARAM: SECRET})
    made.subjects.executor()
    assert SECRET not in repr(made)
    assert SECRET not in repr(made.subjects.options)
