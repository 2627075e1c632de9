"""Formats with a schema: what is written is what Confluent's clients read, and the other way round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.testing import Broker
from tests.certificates import Certificates
from tests.registry.running import Running as Registry
from tests.registry.running import running as running_registry
from tests.rest.running import Running, running, unique, v2

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string", "int"], "default": None},
            {"name": "raw", "type": "bytes", "default": ""},
            {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
            {"name": "next", "type": ["null", "Order"], "default": None},
        ],
    }
)
ORDER = {"id": 7, "note": {"string": "é"}, "raw": "\u00ff\u0000", "when": 5, "next": {"shop.Order": {"id": 8}}}
WHOLE = {**ORDER, "next": {"shop.Order": {"id": 8, "note": None, "raw": "", "when": 0, "next": None}}}
JSON_SCHEMA = json.dumps({"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}}})
PROTO = 'syntax = "proto3"; package store; message Order { int64 id = 1; string note = 2; repeated int32 parts = 3; }'
FORMATS = {
    "avro": (AVRO, ORDER, WHOLE, {"id": "seven"}, "shop.Order"),
    "jsonschema": (JSON_SCHEMA, {"id": 7, "x": [1]}, {"id": 7, "x": [1]}, {"id": "seven"}, "Order"),
    "protobuf": (PROTO, {"id": 7, "parts": [1]}, {"id": "7", "note": "", "parts": [1]}, {"id": {}}, "store.Order"),
}
KINDS = {"avro": "AVRO", "jsonschema": "JSON", "protobuf": "PROTOBUF"}
Case = tuple[str, str, Any, Any, Any, str]
CASES = [pytest.param((name, *row), id=name) for name, row in FORMATS.items()]


def consume(rest: Running, topic: str, format: str, least: int) -> list[dict[str, Any]]:
    instance = rest.instance(format=format)
    rest.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    found = rest.read(instance, least, headers={"accept": v2(format)})
    rest.ask("DELETE", instance)
    return found


@pytest.mark.parametrize("case", CASES)
def test_version_2_writes_and_reads(typed: Running, rest_registry: Registry, case: Case) -> None:
    format, schema, data, read, _, _ = case
    topic = typed.topic()
    body = {"value_schema": schema, "records": [{"value": data}, {"value": None}]}
    written = typed.ask("POST", f"/topics/{topic}", body, type=v2(format))
    assert [row["error_code"] for row in written["offsets"]] == [None, None]
    assert written["key_schema_id"] is None
    by_id = {"value_schema_id": str(written["value_schema_id"]), "key_schema_id": written["value_schema_id"]}
    rest_registry.register(f"{topic}-key", schema, schemaType=KINDS[format])
    again = typed.ask("POST", f"/topics/{topic}", {**by_id, "records": [{"key": data, "value": data}]}, type=v2(format))
    assert again["key_schema_id"] == again["value_schema_id"] == written["value_schema_id"]
    rows = consume(typed, topic, format, 3)
    assert [row["value"] for row in rows] == [read, None, read]
    assert rows[2]["key"] == read


@pytest.mark.parametrize("case", CASES)
def test_version_2_refuses_what_does_not_fit(typed: Running, case: Case) -> None:
    format, schema, data, _, wrong, _ = case
    topic = typed.topic()

    def post(**body: Any) -> Any:
        return typed.ask("POST", f"/topics/{topic}", body, type=v2(format))

    assert post(records=[{"value": data}]) == (422, 42202)
    assert post(value_schema=schema, records=[{"key": data, "value": data}]) == (422, 42201)
    assert post(value_schema=schema, records=[{"value": wrong}]) == (400, 400)
    assert post(value_schema="{", records=[{"value": data}]) == (422, 42205)
    assert post(value_schema_id=999_999, records=[{"value": data}]) == (422, 42207)


@pytest.mark.parametrize("case", CASES)
def test_version_3_names_schemas_in_many_ways(typed: Running, case: Case) -> None:
    format, schema, data, read, _, record = case
    topic, type = typed.topic(), format.upper()

    def send(**spec: Any) -> dict[str, Any]:
        [report] = typed.stream(topic, {"value": spec})
        return report

    first = send(type=type, schema=schema, data=data)["value"]
    assert (first["type"], first["subject"], first["schema_version"]) == (type, f"{topic}-value", 1)
    assert send(data=data)["value"] == first
    assert send(schema_id=first["schema_id"], data=data)["value"] == first
    assert send(schema_version=1, data=data)["value"] == first
    by_record = send(type=type, schema=schema, subject_name_strategy="RECORD_NAME", data=data)["value"]
    assert (by_record["subject"], by_record["schema_id"]) == (record, first["schema_id"])
    by_record_id = send(schema_id=first["schema_id"], subject_name_strategy="RECORD_NAME", data=data)["value"]
    assert by_record_id == by_record
    both = send(type=type, schema=schema, subject_name_strategy="TOPIC_RECORD_NAME", data=data)["value"]
    assert both["subject"] == f"{topic}-{record}"
    named = send(subject=f"{topic}-value", data=data)["value"]
    assert named == first
    assert [row["value"] for row in consume(typed, topic, format, 8)] == [read] * 8


@pytest.mark.parametrize("case", CASES)
def test_the_id_of_a_schema_of_another_subject_is_refused(typed: Running, rest_registry: Registry, case: Case) -> None:
    format, schema, data, _, _, _ = case
    topic = typed.topic()
    id = rest_registry.register(f"{topic}-key", schema, schemaType=KINDS[format])
    body = {"value_schema_id": id, "records": [{"value": data}]}
    assert typed.ask("POST", f"/topics/{topic}", body, type=v2(format)) == (422, 42207)
    [report] = typed.stream(topic, {"value": {"schema_id": id, "data": data}})
    assert report["error_code"] == 422 and "42207" in report["message"]
    [report] = typed.stream(topic, {"value": {"schema_id": id, "subject": f"{topic}-key", "data": data}})
    assert (report["error_code"], report["value"]["schema_version"]) == (200, 1)


def test_protobuf_fields_have_their_json_names_and_may_be_sent_under_either(typed: Running) -> None:
    topic, schema = typed.topic(), 'syntax = "proto3"; message Order { string buyer_name = 1; int64 id = 2; }'
    records = [{"value": {"buyerName": "ann"}}, {"value": {"buyer_name": "bob", "id": 7}}]
    written = typed.ask("POST", f"/topics/{topic}", {"value_schema": schema, "records": records}, type=v2("protobuf"))
    assert [row["offset"] for row in written["offsets"]] == [0, 1]
    rows = [row["value"] for row in consume(typed, topic, "protobuf", 2)]
    assert rows == [{"buyerName": "ann", "id": "0"}, {"buyerName": "bob", "id": "7"}]
    unknown = {"value_schema": schema, "records": [{"value": {"buyer": "cy"}}]}
    assert typed.ask("POST", f"/topics/{topic}", unknown, type=v2("protobuf")) == (400, 400)


def test_version_3_refuses_what_does_not_fit(typed: Running) -> None:
    topic = typed.topic()

    def code(**spec: Any) -> tuple[int, str]:
        [report] = typed.stream(topic, {"value": spec})
        return report["error_code"], report["message"]

    for spec, status, inside in (
        ({"type": "AVRO", "data": 1}, 400, "goes with a schema"),
        ({"schema": AVRO, "data": ORDER}, 400, "type"),
        ({"type": "AVRO", "schema": "{", "data": 1}, 422, "42205"),
        ({"type": "AVRO", "schema": AVRO, "data": {"id": 1.5}}, 400, "Bad Request"),
        ({"type": "AVRO", "schema_id": 1, "data": ORDER}, 400, "goes with a schema"),
        ({"type": "STRING", "schema_id": 1, "data": "x"}, 400, "has no schema"),
        ({"type": "AVRO", "schema": AVRO, "schema_id": 1, "data": ORDER}, 400, "only one"),
        ({"subject": "a", "subject_name_strategy": "TOPIC_NAME", "data": 1}, 400, "only one"),
        ({"schema_version": 77, "data": 1}, 422, "42207"),
    ):
        found = code(**spec)
        assert found[0] == status, (spec, found)
        assert inside in found[1]


def test_confluents_clients_and_the_proxy_understand_each_other(
    typed: Running, rest_broker: Broker, rest_registry: Registry
) -> None:
    topic = typed.topic()
    typed.stream(topic, {"value": {"type": "AVRO", "schema": AVRO, "data": ORDER}})
    registry = SchemaRegistryClient({"url": rest_registry.url})
    context = SerializationContext(topic, MessageField.VALUE)
    consumer = Consumer(
        {"bootstrap.servers": rest_broker.bootstrap_servers, "group.id": unique("g"), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = next(found for found in (consumer.poll(1.0) for _ in range(20)) if found is not None)
    consumer.close()
    value = AvroDeserializer(registry)(message.value(), context)
    assert isinstance(value, dict)
    assert (value["id"], value["note"], value["raw"]) == (7, "é", b"\xff\x00")
    producer = Producer({"bootstrap.servers": rest_broker.bootstrap_servers})
    producer.produce(topic, AvroSerializer(registry, AVRO)({"id": 9, "note": 3, "raw": b""}, context))
    producer.flush(10)
    assert consume(typed, topic, "avro", 2)[1]["value"]["note"] == {"int": 3}


def test_bytes_that_no_registry_knows_are_told_of(typed: Running) -> None:
    topic = typed.topic()
    typed.stream(
        topic, {"value": {"type": "STRING", "data": "plain"}}, {"value": {"type": "BINARY", "data": "AAAAAf8="}}
    )
    for format in FORMATS:
        instance = typed.instance(format=format)
        typed.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
        assert typed.ask("GET", f"{instance}/records?timeout=5000") == (408, 40801)
        typed.ask("DELETE", instance)


@pytest.mark.parametrize("case", CASES)
def test_bytes_that_end_early_are_told_of_and_what_follows_is_read(
    typed: Running, rest_broker: Broker, rest_registry: Registry, case: Case
) -> None:
    format, schema, data, read, _, _ = case
    topic = typed.topic()
    id = rest_registry.register(f"{topic}-value", schema, schemaType=KINDS[format])
    whole = {"value": {"schema_id": id, "data": data}}
    producer = Producer({"bootstrap.servers": rest_broker.bootstrap_servers})
    producer.produce(topic, b"\0" + id.to_bytes(4, "big") + {"protobuf": b"\0\x12\x7fx"}.get(format, b'\x02"'))
    producer.flush(10)
    typed.stream(topic, whole)
    instance = typed.instance(format=format)
    typed.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    assert typed.ask("GET", f"{instance}/records?timeout=5000") == (408, 40801)
    assert [row["value"] for row in typed.read(instance, 1)] == [read]
    typed.ask("DELETE", instance)


def test_proxy_and_registry_talk_https(rest_broker: Broker, tmp_path: Path) -> None:
    """Each shows a certificate: whoever asks the proxy, and the proxy when it asks the registry."""
    known = Certificates.within(tmp_path)
    client = {"verify": known.trusting(known.client)}
    trust = [f"schema.registry.ssl.ca.location={known.authority}"]
    trust += [f"schema.registry.ssl.{part}.location={known.client}" for part in ("certificate", "key")]
    own = unique("_https")
    with (
        running_registry(
            rest_broker.bootstrap_servers,
            *known.settings,
            f"kafkastore.topic={own}",
            f"schema.registry.group.id={own}",
            **client,
        ) as registry,
        running(rest_broker.bootstrap_servers, *known.settings, *trust, registry=registry.url, **client) as proxy,
    ):
        assert proxy.url.startswith("https://")
        topic = proxy.topic()
        [report] = proxy.stream(topic, {"value": {"type": "AVRO", "schema": AVRO, "data": ORDER}})
        assert report["error_code"] == 200, report
        assert consume(proxy, topic, "avro", 1)[0]["value"] == WHOLE
        assert registry.get("/subjects") == [f"{topic}-value"]
        with pytest.raises(httpx.TransportError):
            httpx.get(proxy.url, verify=known.trusting())


def test_without_a_registry_the_formats_are_refused(rest: Running) -> None:
    topic = rest.topic()
    body = {"value_schema": AVRO, "records": [{"value": ORDER}]}
    assert rest.ask("POST", f"/topics/{topic}", body, type=v2("avro")) == (422, 42205)
    [report] = rest.stream(topic, {"value": {"type": "AVRO", "schema": AVRO, "data": ORDER}})
    assert report["error_code"] == 422
    [report] = rest.stream(topic, {"value": {"data": "x"}})
    assert report["error_code"] == 422


def test_a_registry_that_is_away_is_told(rest_broker: Broker) -> None:
    with running(rest_broker.bootstrap_servers, registry="http://127.0.0.1:1") as lonely:
        topic = lonely.topic()
        body = {"value_schema": AVRO, "records": [{"value": ORDER}]}
        assert lonely.ask("POST", f"/topics/{topic}", body, type=v2("avro")) == (408, 40801)
        assert lonely.ask("POST", f"/topics/{topic}", {"records": [{"value": 1}]}, type=v2("json"))["offsets"]
