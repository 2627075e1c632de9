"""The topic: Confluent's format, a restart, records of others, a broker that is away, and a topic that cannot serve."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.testing import Broker, broker, eventually
from tests.registry.running import BROKER, Running, body, record, running, unique

A = record("x:int")
REFERENCE = {"name": "Inner", "subject": "inner", "version": 1}
OBJECT = '{"type":"object"}'
B = record("x:int", "y:string", y="")


def records(servers: str, topic: str) -> list[tuple[dict[str, Any], Any]]:
    """All records of a topic, as JSON."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "x", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(10)) is not None and message.error() is None:
        value = message.value()
        found.append((json.loads(message.key()), json.loads(value) if value else None))
    consumer.close()
    return found


def key(subject: str) -> dict[str, Any]:
    """The key of a subject's first version."""
    return {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}


def own(name: str) -> tuple[str, str]:
    return (f"kafkastore.topic={name}", f"schema.registry.group.id={name}")


def fill(registry: Running) -> None:
    """Something of every kind."""
    registry.register("inner", record("x:int", name="Inner"))
    registry.register("outer", record("p:Inner"), references=[REFERENCE], metadata={"properties": {"a": "b"}})
    registry.put("/config", {"compatibility": "NONE"})
    registry.put("/config/inner", {"compatibility": "FULL", "normalize": True})
    registry.put("/mode/inner", {"mode": "READWRITE"})
    registry.register(":.c:inner", A)
    registry.register("json", {"type": "object"}, schemaType="JSON")
    registry.delete("/subjects/outer/versions/1")
    registry.delete("/subjects/inner")
    assert registry.delete("/subjects/inner?permanent=true") == (422, 42206)
    registry.delete("/subjects/outer?permanent=true")
    registry.delete("/mode/inner")


def test_records_are_those_of_confluent(registry_broker: Broker) -> None:
    topic = unique("_schemas")
    with running(registry_broker.bootstrap_servers, *own(topic)) as registry:
        fill(registry)
    text = '{"type":"record","name":"Inner","fields":[{"name":"x","type":"int"}]}'
    inner = {"subject": "inner", "version": 1, "id": 1, "schema": text, "deleted": False}
    outer = {
        "subject": "outer",
        "version": 1,
        "id": 2,
        "references": [REFERENCE],
        "metadata": {"properties": {"a": "b"}},
        "schema": '{"type":"record","name":"Order","fields":[{"name":"p","type":"Inner"}]}',
        "deleted": False,
    }
    order = json.dumps(A, separators=(",", ":"))
    assert records(registry_broker.bootstrap_servers, topic) == [
        ({"keytype": "NOOP", "magic": 0}, None),
        (key("inner"), inner),
        (key("outer"), outer),
        ({"keytype": "CONFIG", "magic": 0}, {"compatibilityLevel": "NONE"}),
        (
            {"keytype": "CONFIG", "subject": "inner", "magic": 0},
            {"subject": "inner", "compatibilityLevel": "FULL", "normalize": True},
        ),
        ({"keytype": "MODE", "subject": "inner", "magic": 0}, {"subject": "inner", "mode": "READWRITE"}),
        (
            {"keytype": "CONTEXT", "tenant": "default", "context": ".c", "magic": 0},
            {"tenant": "default", "context": ".c"},
        ),
        (
            key(":.c:inner"),
            {"subject": ":.c:inner", "version": 1, "id": 1, "schema": order, "deleted": False},
        ),
        (
            key("json"),
            {
                "subject": "json",
                "version": 1,
                "id": 3,
                "schemaType": "JSON",
                "schema": OBJECT,
                "deleted": False,
            },
        ),
        (key("outer"), {**outer, "deleted": True}),
        ({"keytype": "DELETE_SUBJECT", "subject": "inner", "magic": 0}, {"subject": "inner", "version": 1}),
        (key("outer"), None),
        ({"keytype": "MODE", "subject": "inner", "magic": 0}, None),
    ]


def everything(registry: Running) -> dict[str, Any]:
    paths = ("/schemas?deleted=true&subjectPrefix=:*:", "/contexts", "/config", "/mode", "/config/a", "/mode/a")
    return {path: registry.get(path) for path in paths}


def test_a_registry_that_starts_again_is_the_one_that_was(registry_broker: Broker) -> None:
    topic = unique("_schemas")
    with running(registry_broker.bootstrap_servers, *own(topic)) as registry:
        registry.register("a", A)
        registry.register("a", B)
        registry.register(":.c:a", B)
        registry.delete("/subjects/a/versions/1")
        registry.put("/config/a", {"compatibility": "NONE"})
        registry.put("/mode/a", {"mode": "READONLY"})
        before = everything(registry)
    with running(registry_broker.bootstrap_servers, *own(topic)) as registry:
        assert everything(registry) == before
        assert registry.register("b", record("z:int")) == 3


def test_records_of_others_are_read_and_nonsense_is_left_out(registry_broker: Broker) -> None:
    """As Confluent's registry writes them: with fields and kinds that only it knows, and the subject null."""
    topic = unique("_schemas")
    registry_broker.create_topic(topic, config={"cleanup.policy": "compact"})
    value = {"subject": "theirs", "version": 1, "id": 7, "md5": "yFzvP9/FuCOK5UQM5DzJ0w==", "schema": '"string"'}
    written: list[tuple[Any, Any]] = [
        (key("theirs"), {**value, "deleted": False, "new": 1}),
        ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"subject": None, "compatibilityLevel": "FULL"}),
        ({"keytype": "ASSOC", "guid": "x"}, {"y": 1}),
        (key("broken"), {"subject": "broken"}),
        ([], {}),
        ({"keytype": "CLEAR_SUBJECT", "subject": "none", "magic": 0}, {"subject": "none"}),
    ]
    producer = Producer({"bootstrap.servers": registry_broker.bootstrap_servers})
    for one, other in written:
        producer.produce(topic, json.dumps(other), json.dumps(one))
    producer.produce(topic, b"\xff", b"not json")
    producer.flush()
    with running(registry_broker.bootstrap_servers, *own(topic)) as registry:
        assert registry.get("/subjects?deleted=true") == ["theirs"]
        assert registry.get("/schemas/ids/7")["guid"] == "c85cef3f-dfc5-b823-8ae5-440ce43cc9d3"
        assert registry.get("/config") == {"compatibilityLevel": "FULL"}
        assert registry.register("ours", A) == 8


def test_a_broker_that_is_away_is_told_in_time_and_service_goes_on_when_it_is_back() -> None:
    with broker(BROKER) as kafka, running(kafka.bootstrap_servers, "kafkastore.timeout.ms=1500") as registry:
        id = registry.register("a", A)
        kafka.stop()
        assert registry.get(f"/schemas/ids/{id}")["schema"]
        refused = {
            registry.post("/subjects/a/versions", body(B)),
            registry.put("/config/a", {"compatibility": "NONE"}),
            registry.delete("/subjects/a"),
            registry.put("/mode/a", {"mode": "READONLY"}),
        }
        assert refused <= {(500, 50001), (500, 50002), (500, 50004)} and refused
        kafka.start()
        eventually(lambda: isinstance(registry.post("/subjects/b/versions", body(A)), dict), 60.0)
        assert registry.register("b", B) > id
        assert registry.get("/subjects/b/versions") == [1, 2]


@pytest.mark.parametrize(
    ("partitions", "policy", "words"), [(1, "delete", "cleanup.policy=delete"), (2, "compact", "2 partitions")]
)
def test_a_topic_that_cannot_serve_is_told(registry_broker: Broker, partitions: int, policy: str, words: str) -> None:
    topic = registry_broker.create_topic(None, partitions, config={"cleanup.policy": policy})
    ended = started(registry_broker.bootstrap_servers, f"kafkastore.topic={topic}")
    assert ended.returncode == 1 and words in ended.stderr


def test_a_broker_that_is_not_there_is_told() -> None:
    ended = started("127.0.0.1:1", "kafkastore.init.timeout.ms=1000")
    assert ended.returncode == 1 and "Is there a broker at 127.0.0.1:1?" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("setting", ["kafkastore.topik=x", "kafkastore.timeout.ms=soon", "leader.eligibility", "x=y"])
def test_a_setting_that_cannot_be_is_told(setting: str) -> None:
    ended = started("127.0.0.1:1", setting)
    assert ended.returncode == 2 and ended.stderr.startswith("moldau registry: ")


def started(servers: str, setting: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moldau", "registry", "--bootstrap-servers", servers, "--listen", "127.0.0.1:0"]
    return subprocess.run([*command, "--set", setting], capture_output=True, text=True, timeout=60, check=False)
