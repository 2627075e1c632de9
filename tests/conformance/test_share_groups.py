"""Share groups with Kafka's own tools: consumed in, listed, described, reset in every way, and deleted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.call import call
from moldau.wire import messages as m
from tests.conformance.java_tools import Tools

pytestmark = pytest.mark.needs("java", "javac", "kafka-jars")

MakeTopic = Callable[..., str]
TOOL, WAIT = "kafka-share-groups", 120


@pytest.fixture
def group(fresh_name: Callable[[str], str]) -> str:
    return fresh_name("share")


@pytest.fixture
def topic(new_topic: MakeTopic, run: Tools) -> str:
    """Two partitions, with three records in one of them."""
    name = new_topic(2)
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    run("kafka-console-producer", "--topic", name, *keyed, stdin="k:a\nk:b\nk:c\n")
    return name


class Member:
    """A member of a share group that never fetches."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        host, port = bootstrap.split(":")
        self.address, self.group, self.epoch = (host, int(port)), group, 0
        call(self.address, m.FindCoordinatorRequest(coordinator_keys=[group]), 4)  # until somebody asks there is none
        deadline = time.monotonic() + WAIT
        while not self.beat(subscribed_topic_names=[topic] if not self.epoch else None):
            assert time.monotonic() < deadline, "nothing is assigned"
            time.sleep(0.3)

    def beat(self, **said: Any) -> Any:
        """What is given to it, if that has changed."""
        request = m.ShareGroupHeartbeatRequest(self.group, "member", self.epoch, **said)
        answer = call(self.address, request, 1)
        self.epoch = self.epoch if answer.error_code else answer.member_epoch
        return answer.assignment and answer.assignment.topic_partitions

    def leave(self) -> None:
        request = m.ShareGroupHeartbeatRequest(self.group, "member", -1)
        assert call(self.address, request, 1).error_code == 0


def table(run: Tools, *arguments: str) -> list[list[str]]:
    """The rows below the heading."""
    return [line.split() for line in run(TOOL, *arguments).lines()[1:]]


def starts(run: Tools, group: str) -> dict[int, tuple[str, str]]:
    """Start offset and lag of each partition."""
    return {int(row[2]): (row[3], row[4]) for row in table(run, "--describe", "--group", group)}


def reset(run: Tools, group: str, *how: str) -> dict[int, str]:
    rows = table(run, "--reset-offsets", "--group", group, *how)
    return {int(row[2]): row[3] for row in rows}


def test_a_group_is_listed_and_described(run: Tools, bootstrap: str, group: str, topic: str) -> None:
    member = Member(bootstrap, group, topic)
    assert [group, "Stable"] in table(run, "--list", "--state", "stable")
    assert group in run(TOOL, "--list").lines()
    assert [group, "Share", "share"] in [line.split() for line in run("kafka-groups", "--list", "--share").lines()]
    assert starts(run, group) == {0: ("-", "-"), 1: ("-", "-")}
    (row,) = table(run, "--describe", "--group", group, "--members", "--verbose")
    assert row == [group, "member", "/127.0.0.1", "moldau", "2", str(member.epoch), f"{topic}:0,1"]
    (row,) = table(run, "--describe", "--group", group, "--state", "--verbose")
    assert row[-4:] == ["Stable", str(member.epoch), str(member.epoch), "1"]
    for command in ("--delete", "--delete-offsets", "--reset-offsets"):
        how = [] if command == "--delete" else ["--topic", topic]
        how += ["--to-earliest", "--execute"] if command == "--reset-offsets" else []
        told = run(TOOL, command, "--group", group, *how, check=False)
        assert "not empty" in (told.out + told.err).lower() or "members" in told.out
    member.leave()
    assert "no active members" in run(TOOL, "--describe", "--group", group, "--members").err


def test_offsets_are_reset_in_every_way(run: Tools, bootstrap: str, group: str, topic: str) -> None:
    Member(bootstrap, group, topic).leave()
    ends = {row[0]: row[1] for row in map(last_two, run("kafka-get-offsets", "--topic", topic).lines())}
    zero = dict.fromkeys(ends, "0")
    assert reset(run, group, "--topic", topic, "--to-earliest", "--dry-run") == zero
    assert starts(run, group) == {0: ("-", "-"), 1: ("-", "-")}
    assert reset(run, group, "--topic", topic, "--to-earliest", "--execute") == zero
    assert starts(run, group) == {index: ("0", end) for index, end in ends.items()}
    assert reset(run, group, "--all-topics", "--to-latest", "--execute") == ends
    assert starts(run, group) == {index: (end, "0") for index, end in ends.items()}
    full = next(index for index, end in ends.items() if end != "0")
    when = ["--to-datetime", "2020-01-01T00:00:00.000"]
    assert reset(run, group, "--topic", f"{topic}:{full}", *when, "--execute") == {full: "0"}
    assert starts(run, group)[full] == ("0", "3")


def last_two(line: str) -> tuple[int, str]:
    _, partition, offset = line.rsplit(":", 2)
    return int(partition), offset


def test_offsets_and_groups_are_deleted(run: Tools, group: str, topic: str) -> None:
    reset(run, group, "--topic", topic, "--to-earliest", "--execute")
    assert table(run, "--delete-offsets", "--group", group, "--topic", topic) == [[topic, "Successful"]]
    assert "has no offset information" in run(TOOL, "--describe", "--group", group).out
    reset(run, group, "--topic", topic, "--to-latest", "--execute")
    assert "was successful" in run(TOOL, "--delete", "--group", group).out
    assert group not in run(TOOL, "--list").lines()
    assert "is not a share group" in run(TOOL, "--delete", "--group", group).out


def test_settings_of_a_group_are_altered_and_described(run: Tools, group: str) -> None:
    of_group = ["--entity-type", "groups", "--entity-name", group]
    run("kafka-configs", "--alter", *of_group, "--add-config", "share.auto.offset.reset=earliest")
    run("kafka-configs", "--alter", *of_group, "--add-config", "share.isolation.level=read_committed")
    told = run("kafka-configs", "--describe", *of_group).out
    assert "share.auto.offset.reset=earliest" in told and "share.isolation.level=read_committed" in told
    refused = run("kafka-configs", "--alter", *of_group, "--add-config", "share.record.lock.duration.ms=1", check=False)
    assert refused.exit and "InvalidConfigurationException" in refused.err


def consume(run: Tools, group: str, topic: str, count: int, *how: str) -> list[str]:
    """What Java's share consumer gets."""
    limits = ["--max-messages", str(count), "--timeout-ms", "30000"]
    return sorted(run("kafka-console-share-consumer", "--topic", topic, "--group", group, *limits, *how).lines())


def configure(run: Tools, group: str, *settings: str) -> None:
    """Settings of the group; its targets are computed at once, which saves consumers a heartbeat's time."""
    named = ["--entity-type", "groups", "--entity-name", group]
    wanted = ",".join(["share.assignment.interval.ms=0", *settings])
    run("kafka-configs", "--alter", *named, "--add-config", wanted)


def test_records_are_consumed_once_and_again_after_a_reset(run: Tools, group: str, topic: str) -> None:
    configure(run, group, "share.auto.offset.reset=earliest")
    assert consume(run, group, topic, 3) == ["a", "b", "c"]
    assert {lag for _, lag in starts(run, group).values()} <= {"0", "-"}
    run("kafka-console-producer", "--topic", topic, stdin="d\n")
    assert consume(run, group, topic, 1) == ["d"]
    reset(run, group, "--topic", topic, "--to-earliest", "--execute")
    assert consume(run, group, topic, 4) == ["a", "b", "c", "d"]
    run(TOOL, "--delete-offsets", "--group", group, "--topic", topic)
    assert consume(run, group, topic, 4) == ["a", "b", "c", "d"]


def test_what_a_consumer_releases_another_gets_and_what_it_rejects_nobody(run: Tools, group: str, topic: str) -> None:
    configure(run, group)
    reset(run, group, "--topic", topic, "--to-earliest", "--execute")
    assert consume(run, group, topic, 3, "--release") == ["a", "b", "c"]
    assert consume(run, group, topic, 3, "--reject") == ["a", "b", "c"]
    run("kafka-console-producer", "--topic", topic, stdin="d\n")
    assert consume(run, group, topic, 1) == ["d"]


def test_what_a_group_wrote_is_read_by_kafkas_own_dump(run: Tools, bootstrap: str, group: str, topic: str) -> None:
    Member(bootstrap, group, topic).leave()
    told = run("kafka-log-dirs", "--describe", "--topic-list", "__consumer_offsets").lines()[-1]
    folder = json.loads(told)["brokers"][0]["logDirs"][0]["logDir"]
    logs = ",".join(str(path) for path in Path(folder).glob("__consumer_offsets-*/*.log"))
    dump = run("kafka-dump-log", "--offsets-decoder", "--files", logs).lines()
    mine = [line for line in dump if f'"groupId":"{group}"' in line]
    assert all(any(f'"type":"{number}"' in line for line in mine) for number in range(10, 16))
    assert any('"initializedTopics":[{' in line and f'"topicName":"{topic}"' in line for line in mine)
