"""kafka-avro-console-producer and -consumer, with a real registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker
from tests.cli.kafka.running import Done, Kafka
from tests.registry.running import Running, running, unique

SCHEMA = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"item","type":["null","string"]}]}'
)


@pytest.fixture(scope="module")
def registry(cluster: Broker) -> Iterator[Running]:
    name = unique("_schemas")
    with running(cluster.bootstrap_servers, f"kafkastore.topic={name}", f"schema.registry.group.id={name}") as started:
        yield started


def write(kafka_tools: Kafka, registry: Running, topic: str, text: str, *words: str) -> Done:
    given = ("--reader-property", f"schema.registry.url={registry.url}", "--reader-property", f"value.schema={SCHEMA}")
    return kafka_tools("kafka-avro-console-producer", "--topic", topic, *given, *words, stdin=text)


def read(kafka_tools: Kafka, registry: Running, topic: str, *words: str) -> Done:
    place = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--timeout-ms", "20000")
    given = ("--formatter-property", f"schema.registry.url={registry.url}")
    return kafka_tools("kafka-avro-console-consumer", *place, *given, *words)


def test_json_becomes_avro_and_json_again(kafka_tools: Kafka, registry: Running, name: str) -> None:
    kafka_tools.topic(name)
    lines = '{"id":1,"item":{"string":"book"}}\n{"id":2,"item":null}\n'
    assert write(kafka_tools, registry, name, lines).code == 0
    done = read(kafka_tools, registry, name, "--max-messages", "2")
    assert done.code == 0 and done.out == lines
    raw = kafka_tools(
        "kafka-console-consumer", "--topic", name, "--partition", "0", "--offset", "0", "--max-messages", "1"
    )
    assert raw.out.startswith("\0\0\0\0")
    ids = read(kafka_tools, registry, name, "--max-messages", "1", "--formatter-property", "print.schema.ids=true")
    assert ids.out.split("\t")[1].strip().isdigit()


def test_keys_may_have_a_schema_too(kafka_tools: Kafka, registry: Running, name: str) -> None:
    kafka_tools.topic(name)
    keyed = ("--reader-property", "parse.key=true", "--reader-property", 'key.schema="long"')
    assert write(kafka_tools, registry, name, '7\t{"id":7,"item":null}\n', *keyed).code == 0
    done = read(kafka_tools, registry, name, "--max-messages", "1", "--formatter-property", "print.key=true")
    assert done.out == '7\t{"id":7,"item":null}\n'


def test_what_does_not_fit_is_told(kafka_tools: Kafka, registry: Running, name: str) -> None:
    kafka_tools.topic(name)
    done = write(kafka_tools, registry, name, '{"id":"seven","item":null}\n')
    assert done.code == 1 and done.err.startswith("org.apache.kafka.common.errors.SerializationException: ")
    kafka_tools.ok("kafka-console-producer", "--topic", name, stdin="plain\n")
    unread = read(kafka_tools, registry, name, "--max-messages", "1")
    assert unread.code == 1 and "does not begin with a schema id" in unread.err
    lost = kafka_tools("kafka-avro-console-producer", "--topic", name, stdin="{}\n")
    assert lost.code == 1 and "Must provide the Avro schema of the value" in lost.err
