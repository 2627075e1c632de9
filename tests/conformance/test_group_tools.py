"""Groups as Kafka's own tools see them: kafka-consumer-groups in all its ways, consoles, verifiable clients, dumps."""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.java_tools import Output, Tools, alone

pytestmark = pytest.mark.needs("java", "javac", "kafka-jars")

WAIT = 120
HOUR_MS = 3_600_000
MakeTopic = Callable[..., str]
Offsets = dict[str, int]


@pytest.fixture
def group(fresh_name: Callable[[str], str]) -> str:
    return fresh_name("g")


def fill(bootstrap: str, topic: str, counts: list[int], age_ms: int = 0) -> int:
    """Records in each partition, a minute apart and the last one so long ago; gives the time of the first."""
    producer = Producer({"bootstrap.servers": bootstrap})
    first = int(time.time() * 1000) - age_ms - 60_000 * (max(counts) - 1)
    for partition, count in enumerate(counts):
        for number in range(count):
            producer.produce(topic, str(number), partition=partition, timestamp=first + 60_000 * number)
    assert producer.flush(WAIT) == 0
    return first


def commit(bootstrap: str, group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(
        offsets=[TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)], asynchronous=False
    )
    consumer.close()


@contextmanager
def member(bootstrap: str, group: str, topic: str, partitions: int, **config: Any) -> Iterator[Consumer]:
    """A consumer that has joined and got the partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **config})
    consumer.subscribe([topic])
    deadline = time.monotonic() + WAIT
    while len(consumer.assignment()) != partitions:
        consumer.poll(0.1)
        assert time.monotonic() < deadline, "it got no partitions"
    yield consumer
    consumer.close()


def groups(run: Tools, *arguments: str, check: bool = True) -> Output:
    return run("kafka-consumer-groups", *arguments, check=check)


def rows(output: Output) -> list[dict[str, str]]:
    """The lines under each heading, by the names in the heading."""
    found: list[dict[str, str]] = []
    heading: list[str] = []
    for line in output.lines():
        words = re.split(r"\s+", re.sub(r"(?<=\S) \(ID\)", "(ID)", line))
        if words[0] == "GROUP":
            heading = words
        elif heading and len(words) == len(heading):
            found.append(dict(zip(heading, words, strict=True)))
    return found


def described(run: Tools, group: str, *arguments: str) -> list[dict[str, str]]:
    return rows(groups(run, "--describe", "--group", group, *arguments))


def reset(run: Tools, group: str, *how: str, execute: bool = True) -> Offsets:
    """Topic and partition -> the offset that the tool has set, or would set."""
    done = rows(groups(run, "--reset-offsets", "--group", group, *how, "--execute" if execute else "--dry-run"))
    return {f"{row['TOPIC']}:{row['PARTITION']}": int(row["NEW-OFFSET"]) for row in done}


def committed(run: Tools, group: str) -> Offsets:
    return {f"{row['TOPIC']}:{row['PARTITION']}": int(row["CURRENT-OFFSET"]) for row in described(run, group)}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_described_with_its_offsets_members_and_state(
    run: Tools, bootstrap: str, new_topic: MakeTopic, group: str, protocol: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, [5, 3])
    with member(bootstrap, group, topic, 2, **{"group.protocol": protocol, "client.id": "ada"}) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
        offsets = {row["PARTITION"]: row for row in described(run, group)}
        assert [offsets["0"][name] for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")] == ["2", "5", "3"]
        assert offsets["0"]["CLIENT-ID"] == "ada" and offsets["0"]["HOST"] == "/127.0.0.1"
        (one,) = described(run, group, "--members")
        assert one["#PARTITIONS"] == "2" and one["CONSUMER-ID"] == offsets["0"]["CONSUMER-ID"]
        assert f"{topic}:0,1" in groups(run, "--describe", "--group", group, "--members", "--verbose").out
        state = groups(run, "--describe", "--group", group, "--state").out
        assert group in state and "Stable" in state and re.search(r"\b(range|uniform)\b", state)
        assert "Stable" in groups(run, "--describe", "--group", group, "--state", "--verbose").out
    listed = {line.split()[0]: line.split()[1:] for line in groups(run, "--list", "--state", "--type").lines()}
    assert listed[group][-1] == "Empty" and listed[group][0] == protocol.capitalize()


def test_groups_are_listed_by_state_and_type(run: Tools, bootstrap: str, topic: str, group: str) -> None:
    commit(bootstrap, group, topic, 0)
    with member(bootstrap, f"{group}-busy", topic, 1, **{"group.protocol": "consumer"}):

        def listed(*arguments: str) -> set[str]:
            return {line.split()[0] for line in groups(run, "--list", *arguments).lines()} & {group, f"{group}-busy"}

        assert listed() == {group, f"{group}-busy"}
        assert listed("--state", "Empty") == {group} and listed("--state", "Stable") == {f"{group}-busy"}
        assert listed("--type", "classic") == {group} and listed("--type", "consumer") == {f"{group}-busy"}
        assert {row["GROUP"] for row in rows(groups(run, "--describe", "--all-groups"))} >= {group}


def test_a_group_that_does_not_exist_is_said_not_to(run: Tools, group: str) -> None:
    said = groups(run, "--describe", "--group", group, check=False)
    assert "GroupIdNotFoundException" in said.out + said.err


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (["--to-earliest"], [2, 0]),
        (["--to-latest"], [10, 6]),
        (["--to-current"], [5, 3]),
        (["--to-offset", "4"], [4, 4]),
        (["--to-offset", "8"], [8, 6]),
        (["--to-offset", "0"], [2, 0]),
        (["--shift-by", "2"], [7, 5]),
        (["--shift-by", "-100"], [2, 0]),
        (["--shift-by", "100"], [10, 6]),
        (["--to-datetime", "@3"], [3, 3]),
        (["--to-datetime", "@8"], [8, 6]),
        (["--by-duration", "PT3630S"], [9, 6]),
        (["--by-duration", "P1D"], [2, 0]),
    ],
    ids=lambda value: "".join(value) if isinstance(value, list) and isinstance(value[0], str) else "",
)
def test_offsets_are_reset_in_every_way(
    run: Tools, bootstrap: str, new_topic: MakeTopic, group: str, how: list[str], expected: list[int], tmp_path: Path
) -> None:
    topic = new_topic(2)
    first = fill(bootstrap, topic, [10, 6], age_ms=HOUR_MS)
    delete_records(run, tmp_path, topic, 2)
    commit(bootstrap, group, topic, 5, 3)
    when = [moment(first + 60_000 * int(word[1:])) if word[0] == "@" else word for word in how]
    target = {f"{topic}:{index}": offset for index, offset in enumerate(expected)}
    assert reset(run, group, "--topic", topic, *when, execute=False) == target
    assert committed(run, group) == {f"{topic}:0": 5, f"{topic}:1": 3}
    assert reset(run, group, "--topic", topic, *when) == target
    assert committed(run, group) == target


def moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"


def delete_records(run: Tools, folder: Path, topic: str, offset: int) -> None:
    order = folder / "order.json"
    order.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": offset}]}))
    run("kafka-delete-records", "--offset-json-file", str(order))


def test_offsets_are_reset_for_some_partitions_of_several_topics(
    run: Tools, bootstrap: str, new_topic: MakeTopic, group: str
) -> None:
    one, two = new_topic(3), new_topic(1)
    for topic, counts in ((one, [4, 4, 4]), (two, [4])):
        fill(bootstrap, topic, counts)
        commit(bootstrap, group, topic, *([1] * len(counts)))
    some = ["--topic", f"{one}:0,2", "--topic", two]
    assert reset(run, group, *some, "--to-latest") == {f"{one}:0": 4, f"{one}:2": 4, f"{two}:0": 4}
    assert committed(run, group) == {f"{one}:0": 4, f"{one}:1": 1, f"{one}:2": 4, f"{two}:0": 4}
    everything = reset(run, group, "--all-topics", "--to-earliest")
    assert everything == dict.fromkeys(committed(run, group), 0)


def test_offsets_are_exported_and_come_back_from_a_file(
    run: Tools, bootstrap: str, new_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, [5, 5])
    commit(bootstrap, group, topic, 3, 4)
    plan = tmp_path / "plan.csv"
    exported = groups(run, "--reset-offsets", "--group", group, "--all-topics", "--to-current", "--dry-run", "--export")
    assert sorted(line.replace('"', "") for line in exported.lines()) == [f"{topic},0,3", f"{topic},1,4"]
    plan.write_text(exported.out.replace(",4", ",1"))
    assert reset(run, group, "--from-file", str(plan)) == {f"{topic}:0": 3, f"{topic}:1": 1}
    assert committed(run, group) == {f"{topic}:0": 3, f"{topic}:1": 1}


def test_offsets_of_a_busy_group_are_not_reset_and_the_group_is_not_deleted(
    run: Tools, bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, [3])
    with member(bootstrap, group, topic, 1) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
        refused = groups(
            run, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute", check=False
        )
        assert "inactive" in refused.out + refused.err
        assert committed(run, group) == {f"{topic}:0": 2}
        deleted = groups(run, "--delete", "--group", group, check=False)
        assert "GroupNotEmptyException" in deleted.out + deleted.err
        subscribed = groups(run, "--delete-offsets", "--group", group, "--topic", topic, check=False)
        assert "GroupSubscribedToTopicException" in subscribed.out + subscribed.err


def test_offsets_and_groups_are_deleted(run: Tools, bootstrap: str, new_topic: MakeTopic, group: str) -> None:
    one, two = new_topic(2), new_topic(1)
    commit(bootstrap, group, one, 0, 0)
    commit(bootstrap, group, two, 0)
    gone = groups(run, "--delete-offsets", "--group", group, "--topic", f"{one}:1", "--topic", two)
    assert "Request succeeded for deleting offsets" in gone.out
    assert committed(run, group) == {f"{one}:0": 0}
    missing = groups(run, "--delete-offsets", "--group", group, "--topic", "no-such-topic", check=False)
    assert "UnknownTopicOrPartition" in missing.out
    assert "was successful" in groups(run, "--delete", "--group", group).out
    assert group not in groups(run, "--list").lines()
    again = groups(run, "--delete", "--group", group, check=False)
    assert "GroupIdNotFoundException" in again.out + again.err


def test_regular_expressions_are_validated(run: Tools) -> None:
    assert "valid" in groups(run, "--validate-regex", "a.*b").out
    wrong = groups(run, "--validate-regex", "a(b", check=False)
    assert "missing" in wrong.out + wrong.err


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_console_consumer_goes_on_where_its_group_was(
    run: Tools, bootstrap: str, topic: str, group: str, protocol: str
) -> None:
    fill(bootstrap, topic, [6])
    reader = ["--topic", topic, "--group", group, "--from-beginning", "--timeout-ms", "20000"]
    reader += ["--command-property", f"group.protocol={protocol}"]
    assert run("kafka-console-consumer", *reader, "--max-messages", "4").lines() == ["0", "1", "2", "3"]
    assert committed(run, group) == {f"{topic}:0": 4}
    assert run("kafka-console-consumer", *reader, "--max-messages", "2").lines() == ["4", "5"]


VERBOSELY = ["--reset-policy", "earliest", "--max-messages", "3000", "--verbose"]


def events(output: Output) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.lines()]


def test_what_the_verifiable_producer_wrote_the_verifiable_consumer_reads(
    run: Tools, bootstrap: str, kafka_libs: Path, new_topic: MakeTopic, group: str
) -> None:
    topic = new_topic(3)
    load = ["--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", "3000", "--acks", "-1"]
    summary = events(alone("kafka-verifiable-producer", kafka_libs, *load))[-1]
    assert (summary["name"], summary["sent"], summary["acked"]) == ("tool_data", 3000, 3000)
    for protocol in ("classic", "consumer"):
        reader = ["--topic", topic, "--group-id", f"{group}-{protocol}", "--group-protocol", protocol]
        said = events(run("kafka-verifiable-consumer", *reader, *VERBOSELY))
        values = sorted(int(event["value"]) for event in said if event["name"] == "record_data")
        assert values == list(range(3000))
        assert [event["success"] for event in said if event["name"] == "offsets_committed"][-1] is True
        assert said[-1]["name"] == "shutdown_complete"
        assert sum(committed(run, f"{group}-{protocol}").values()) == 3000


def segments(run: Tools, topic: str) -> Iterator[Path]:
    """The files of all partitions of a topic that have anything in them."""
    answer = json.loads(run("kafka-log-dirs", "--describe", "--topic-list", topic).lines()[-1])
    for place in answer["brokers"][0]["logDirs"]:
        for partition in place["partitions"]:
            if partition["size"]:
                yield from sorted((Path(place["logDir"]) / partition["partition"]).glob("*.log"))


def test_committed_offsets_on_disk_are_read_by_kafkas_own_dump(
    run: Tools, bootstrap: str, topic: str, group: str
) -> None:
    commit(bootstrap, group, topic, 7)
    with member(bootstrap, f"{group}-c", topic, 1, **{"group.protocol": "consumer"}):
        pass
    files = ",".join(map(str, segments(run, "__consumer_offsets")))
    dump = run("kafka-dump-log", "--offsets-decoder", "--files", files).out
    assert "isvalid: false" not in dump
    assert f'"group":"{group}","topic":"{topic}","partition":0' in dump and '"offset":7,' in dump
    assert f'"groupId":"{group}-c"' in dump


def test_transactions_on_disk_are_read_by_kafkas_own_dump(
    run: Tools, bootstrap: str, topic: str, fresh_name: Callable[[str], str]
) -> None:
    name = fresh_name("tx")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    producer.produce(topic, b"v")
    producer.commit_transaction(WAIT)
    files = ",".join(map(str, segments(run, "__transaction_state")))
    dump = run("kafka-dump-log", "--transaction-log-decoder", "--files", files).out
    assert "isvalid: false" not in dump
    assert f'"transactionalId":"{name}"' in dump and topic in dump
