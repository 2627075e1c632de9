"""Commands as tutorials of many Kafka versions print them, word for word but for the addresses.

The request to the REST Proxy has the first version of its media types.

The broker itself is started as they say, from a server.properties of the days of ZooKeeper.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

import pytest

from moldau.cli.kafka import avro_console
from tests.cli.kafka.running import Done, run
from tests.registry.running import Running as Registry
from tests.registry.running import running as run_registry
from tests.rest.running import running as run_proxy

OLD_PROPERTIES = """
broker.id=0
port=9092
listeners=PLAINTEXT://127.0.0.1:0
log.dirs={data}
zookeeper.connect=localhost:2181
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
"""
NO_ZOOKEEPER = "use --bootstrap-server HOST:PORT to name a broker."
OLD_NAME = "--broker-list is deprecated and will be removed in a future version. Use --bootstrap-server instead."
SALARIES = "ramana,5000\nkrishna,3000\nrushi,9000\nramana,9000\nkrishna, 9000\n"
ONE_FIELD = '{"type":"record","name":"myrecord","fields":[{"name":"f1","type":"string"}]}'
TWO_FIELDS = ONE_FIELD[:-2] + ', {"name":"f2","type":"string","default":"any"}]}'
AVRO_KEYS = '--property parse.key=true --property key.schema=\'{"type":"string"}\''


class Shown(NamedTuple):
    """A command, and text that it prints. `bound` ends what would run for ever; a failing command exits with 1."""

    command: str
    says: str
    stdin: str = ""
    bound: str = ""
    fails: bool = False


def refused(command: str, says: str) -> Shown:
    return Shown(command, says, fails=True)


TOPICS = (
    Shown(
        "kafka-topics.sh --bootstrap-server localhost:9092 --topic first_topic --create --partitions 1 "
        "--replication-factor 1",
        "Created topic first_topic.",
    ),
    Shown("kafka-topics.sh --bootstrap-server localhost:9092 --list", "first_topic\n"),
    Shown("kafka-topics.sh --bootstrap-server localhost:9092 --describe", "Topic: first_topic\tPartition: 0"),
    Shown("kafka-console-producer.sh --bootstrap-server localhost:9092 --topic first_topic", "", stdin="a\nb\n"),
    Shown(
        "kafka-console-producer.sh --bootstrap-server localhost:9092 --topic first_topic --property parse.key=true "
        "--property key.separator=:",
        "Use --reader-property instead.",
        stdin="k:c\n",
    ),
    Shown(
        "kafka-run-class.sh kafka.tools.GetOffsetShell --broker-list localhost:9092 --topic first_topic",
        f"first_topic:0:3\nOption {OLD_NAME}\n",
    ),
    Shown("kafka-topics.sh --bootstrap-server localhost:9092 --topic first_topic --delete", ""),
    Shown(
        "./kafka-topics.sh --create --topic customers-new --bootstrap-server localhost:9092 --partitions 3 "
        "--replication-factor 3",
        "InvalidReplicationFactorException: Replication factor 3 needs as many brokers; 1 are registered.",
        fails=True,
    ),
    refused(
        "./kafka-topics.sh --describe --topic customers-new --bootstrap-server localhost:9092,localhost:9092",
        "Topic 'customers-new' does not exist as expected",
    ),
)
ZOOKEEPER = (
    refused(
        "bin/kafka-topics.sh --create --zookeeper 10.2.3.163:2181 --replication-factor 2 --partitions 1 --topic test",
        NO_ZOOKEEPER,
    ),
    refused("bin/kafka-topics.sh --list --zookeeper 10.2.3.163:2181", NO_ZOOKEEPER),
    refused("bin/kafka-topics.sh --describe --zookeeper 10.2.3.163:2181 --topic test", NO_ZOOKEEPER),
    # The producer makes the topic.
    Shown("bin/kafka-console-producer.sh --broker-list localhost:9092 --topic test", OLD_NAME, stdin="hello\n"),
    Shown(
        "bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --from-beginning --topic test",
        "hello\n",
        bound="--max-messages 1",
    ),
)
CONSOLES = (
    Shown(
        "./kafka-topics.sh --create --topic topic1 --bootstrap-server localhost:9092 --partitions 3 "
        "--replication-factor 1",
        "Created topic topic1.",
    ),
    Shown("./kafka-console-producer.sh --broker-list localhost:9092 --topic topic1", OLD_NAME, stdin="x\ny\n"),
    Shown(
        "./kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic topic1 --from-beginning",
        "Processed a total of 2 messages",
        bound="--max-messages 2",
    ),
    Shown(
        "./kafka-topics.sh --create --topic customers --bootstrap-server localhost:9092 --partitions 3 "
        "--replication-factor 1",
        "Created topic customers.",
    ),
    Shown("./kafka-console-producer.sh --broker-list localhost:9092 --topic customers", OLD_NAME, stdin="1,Ann\n2,B\n"),
    Shown(
        "./kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic customers --from-beginning "
        "--group customer-group",
        "Processed a total of 2 messages",
        bound="--max-messages 2",
    ),
)
COMPACTION = (
    refused(
        "kafka-topics --boot-strap localhost:9092 --create --topic empsalary --partitions 1",
        "boot-strap is not a recognized option; did you mean --bootstrap-server?",
    ),
    Shown(
        "kafka-topics --bootstrap-server localhost:9092 --create --topic empsalary --partitions 1 "
        "--replication-factor 1 --config cleanup.policy=compact --config min.cleanable.dirty.ratio=0.01 "
        "--config segment.ms=5000",
        "Created topic empsalary.",
    ),
    Shown(
        "kafka-console-producer.sh --broker-list localhost:9092 --topic empsalary --property parse.key=true "
        "--property key.separator=,",
        OLD_NAME,
        stdin=SALARIES,
    ),
    Shown(
        "kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic empsalary --property print.key=true "
        "--property key.separator=,",
        SALARIES,
        bound="--from-beginning --max-messages 5",
    ),
    Shown(
        "./kafka-run-class kafka.tools.DumpLogSegments --deep-iteration --print-data-log "
        "--files data/empsalary-0/00000000000000000000.log",
        "key: rushi payload: 9000",
    ),
    Shown("bin/kafka-dump-log.sh --files data/empsalary-0/00000000000000000000.log", "baseOffset: 0 lastOffset: 4"),
)
AVRO = (
    Shown(
        "bin/kafka-avro-console-producer --broker-list localhost:9092 --topic t2 "
        f"{AVRO_KEYS} --property value.schema='{ONE_FIELD}'",
        OLD_NAME,
        stdin='"key1"\t{"f1": "value1"}\n',
    ),
    Shown(
        "bin/kafka-avro-console-consumer --topic t2 --bootstrap-server localhost:9092 --property print.key=true",
        '"key1"\t{"f1":"value1"}\n',
        bound="--from-beginning --max-messages 1",
    ),
    Shown(
        "kafka-avro-console-producer --broker-list localhost:9092 --topic t2 "
        f"{AVRO_KEYS} --property value.schema='{TWO_FIELDS}'",
        OLD_NAME,
        stdin='"key1"\t{"f1":"apache","f2":"kafka"}\n',
    ),
    Shown(
        "bin/kafka-avro-console-consumer --topic t2 --bootstrap-server localhost:9092 --property print.key=true",
        '"key1"\t{"f1":"apache","f2":"kafka"}\n',
        bound="--from-beginning --max-messages 2",
    ),
)

USER = '{"type": "record", "name": "User", "fields": [{"name": "username", "type": "string"}]}'
USERS = {"value_schema": USER, "records": [{"value": {"username": "testUser"}}, {"value": {"username": "testUser2"}}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorials")


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[str]:
    """The address of a broker that `kafka-server-start.sh config/server.properties` started."""
    config = folder / "server.properties"
    config.write_text(OLD_PROPERTIES.format(data=folder / "data"))
    command = [sys.executable, "-m", "moldau", "kafka-server-start.sh", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


@pytest.fixture(scope="module")
def registry(servers: str) -> Iterator[Registry]:
    with run_registry(servers) as started:
        yield started


def follow(shown: Shown, servers: str, folder: Path) -> Done:
    text = shown.command.replace("localhost:9092", servers).replace("data/", f"{folder}/data/")
    name, *words = shlex.split(f"{text} {shown.bound}")
    return run(PurePath(name).name, *words, stdin=shown.stdin)


def test_commands_of_tutorials_do_what_these_say(
    servers: str, registry: Registry, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro_console, "DEFAULT_URL", registry.url)
    wrong = []
    for shown in (*TOPICS, *ZOOKEEPER, *CONSOLES, *COMPACTION, *AVRO):
        done = follow(shown, servers, folder)
        if shown.says not in done.out + done.err or done.code != shown.fails:
            wrong.append(f"{shown.command}\n-> {done.code}\n{done.out}{done.err}")
    assert not wrong, "\n".join(wrong)


def test_the_rest_proxy_answers_requests_of_its_first_version(servers: str, registry: Registry) -> None:
    with run_proxy(servers, registry=registry.url) as proxy:
        version_1 = "application/vnd.kafka.avro.v1+json"
        answer = proxy.raw("POST", "/topics/avrotest", USERS, type=version_1)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/vnd.kafka.v1+json")
    offsets = [{"partition": 0, "offset": offset, "error_code": None, "error": None} for offset in (0, 1)]
    content = answer.json()
    assert content.pop("value_schema_id") > 0
    assert content == {"key_schema_id": None, "offsets": offsets}


def test_a_bootstrap_server_wins_over_a_broker_list(servers: str) -> None:
    done = run("kafka-get-offsets", "--broker-list", "nowhere:1", "--bootstrap-server", servers, "--topic", "test")
    assert done.out == "test:0:1\n" and done.err.count("\n") == 1
