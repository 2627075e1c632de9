"""`moldau group` on a real broker, with groups that were there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from moldau.testing import Broker, eventually
from tests.cli.running import Moldau


@pytest.fixture
def billing(moldau: Moldau) -> tuple[str, str]:
    """A group that has read all but two records, and its topic."""
    topic = moldau.topic(2)
    moldau.write(topic, *"abcd", options=("-p", "0"))
    moldau.write(topic, *"efg", options=("-p", "1"))
    group = f"g-{topic}"
    assert len(moldau.read(topic, options=("--group", group))) == 7
    moldau.write(topic, "h", "i", options=("-p", "1"))
    return group, topic


@pytest.fixture
def member(cluster: Broker, billing: tuple[str, str]) -> Iterator[Consumer]:
    group, topic = billing
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "client.id": "live"})
    consumer.subscribe([topic])
    eventually(lambda: consumer.poll(0.1) or consumer.assignment(), what="the assignment")
    yield consumer
    consumer.close()


def offsets(moldau: Moldau, group: str) -> list[tuple[int, int, int]]:
    [found] = moldau.json("group", "describe", group)
    return [(row["partition"], row["offset"], row["lag"]) for row in found["partitions"]]


def test_lag_is_told_for_each_partition(moldau: Moldau, billing: tuple[str, str]) -> None:
    group, topic = billing
    [row] = [row for row in moldau.json("group", "list") if row["group"] == group]
    assert (row["type"], row["state"]) == ("classic", "Empty")
    [found] = moldau.json("group", "describe", group)
    assert found["lag"] == 2 and found["members"] == []
    assert offsets(moldau, group) == [(0, 4, 0), (1, 3, 2)]
    assert topic in moldau("group", "describe", group)
    assert [row["group"] for row in moldau.json("group", "list", f"{group[:-1]}*")] == [group]


def test_members_show_what_they_have(moldau: Moldau, billing: tuple[str, str], member: Consumer) -> None:
    group, topic = billing
    [found] = moldau.json("group", "describe", group)
    assert found["state"] == "Stable" and found["members"][0]["client"] == "live"
    assert found["members"][0]["assigned"] == [f"{topic}-0", f"{topic}-1"]
    assert {row["client"] for row in found["partitions"]} == {"live"}
    assert "live" in moldau("group", "describe", group, "--members")
    refused = moldau.run("group", "reset", group, "--to-earliest", "--execute")
    assert refused.code == 1 and "stop its members first (live)" in refused.err
    assert moldau.run("group", "delete", group).code == 1


def test_a_reset_is_shown_first_and_then_done(moldau: Moldau, billing: tuple[str, str]) -> None:
    group, topic = billing
    shown = moldau.run("group", "reset", group, "--to-earliest", "-o", "json")
    assert '"new_offset": 0' in shown.out and "Nothing was changed" in shown.err
    assert offsets(moldau, group) == [(0, 4, 0), (1, 3, 2)]
    moldau("group", "reset", group, "--to-earliest", "--execute")
    assert offsets(moldau, group) == [(0, 0, 4), (1, 0, 5)]
    moldau("group", "reset", group, "--to-latest", "--execute", "--topic", f"{topic}:1")
    assert offsets(moldau, group) == [(0, 0, 4), (1, 5, 0)]
    moldau("group", "reset", group, "--shift", "-2", "--execute", "--topic", f"{topic}:1")
    moldau("group", "reset", group, "--to-offset", "2", "--execute", "--topic", f"{topic}:0")
    assert offsets(moldau, group) == [(0, 2, 2), (1, 3, 2)]
    moldau("group", "reset", group, "--to-time", "-1h", "--execute")
    assert offsets(moldau, group) == [(0, 0, 4), (1, 0, 5)]
    moldau("group", "reset", group, "--by-duration", "PT0S", "--execute")
    assert offsets(moldau, group) == [(0, 4, 0), (1, 5, 0)]


def test_offsets_are_exported_and_read_back(moldau: Moldau, billing: tuple[str, str], tmp_path: Path) -> None:
    group, topic = billing
    lines = moldau("group", "reset", group, "--to-current", "--export")
    assert lines == f"{topic},0,4\n{topic},1,3\n"
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,1\n")
    moldau("group", "reset", group, "--from-file", str(file), "--execute")
    assert offsets(moldau, group) == [(0, 1, 3), (1, 3, 2)]


def test_a_new_group_is_sought_somewhere(moldau: Moldau) -> None:
    topic = moldau.topic()
    moldau.write(topic, *"abc")
    group = f"new-{topic}"
    nothing = moldau.run("group", "seek", group, "start")
    assert nothing.code == 1 and "--topic" in nothing.err
    moldau("group", "seek", group, "1", "--topic", topic)
    assert moldau.read(topic, options=("--group", group)) == ["b", "c"]
    moldau("group", "seek", group, "start")
    moldau("group", "seek", group, "+2")
    assert offsets(moldau, group) == [(0, 2, 1)]
    moldau("group", "seek", group, "--", "-1h")
    assert offsets(moldau, group) == [(0, 0, 3)]


def test_groups_and_their_offsets_are_deleted(moldau: Moldau, billing: tuple[str, str]) -> None:
    group, topic = billing
    moldau("group", "delete", group, "--topic", f"{topic}:0")
    assert offsets(moldau, group) == [(1, 3, 2)]
    moldau("group", "delete", group)
    gone = moldau.run("group", "describe", group)
    assert gone.code == 1 and f"There is no group {group}." in gone.err


def test_mistakes_get_a_sentence(moldau: Moldau, billing: tuple[str, str], tmp_path: Path) -> None:
    group, topic = billing
    for words, code, sentence in (
        (("reset", group), 2, "--to-earliest"),
        (("reset", group, "--to-earliest", "--to-latest"), 2, "one of"),
        (("reset", group, "--to-time", "soon"), 2, "no time"),
        (("reset", group, "--to-earliest", "--topic", f"{topic}:9"), 2, "partitions 0 to 1"),
        (("reset", group, "--from-file", str(tmp_path / "none")), 1, "No such file"),
        (("seek", group, "nowhere"), 2, "no time"),
        (("describe", "nobody"), 1, "moldau group list"),
    ):
        done = moldau.run("group", *words)
        assert (done.code, sentence in done.err) == (code, True), (words, done)
