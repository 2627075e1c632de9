"""`moldau log` on files that a broker wrote, sound and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.admin import groups
from moldau.cli import segments
from moldau.client import Client
from moldau.testing import Broker
from tests.cli.running import Moldau


@pytest.fixture(scope="module")
def written(cluster: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment that a broker wrote."""
    moldau = Moldau(cluster.bootstrap_servers, tmp_path_factory.mktemp("home"))
    topic = moldau.topic()
    for number in range(20):
        moldau.write(topic, *(f"{number}-{letter}" * 100 for letter in "abc"), options=("-k", "key", "-H", "h=1"))
    return Path(cluster.data_dir) / f"{topic}-0" / f"{0:020}.log"


@pytest.fixture
def partition(written: Path, tmp_path: Path) -> Path:
    """A copy of it, with indexes that fit."""
    place = tmp_path / "orders-0"
    place.mkdir()
    (place / written.name).write_bytes(written.read_bytes())
    found = list(segments.batches(place / written.name))
    index = [segments.OFFSET_ENTRY.pack(one.batch.last_offset, one.position) for one in found[5::5]]
    times = [segments.TIME_ENTRY.pack(one.batch.max_timestamp, one.batch.last_offset) for one in found[5::5]]
    (place / f"{0:020}.index").write_bytes(b"".join(index) + bytes(80))
    (place / f"{0:020}.timeindex").write_bytes(b"".join(times))
    return place


def test_batches_records_and_indexes_are_printed(moldau: Moldau, partition: Path) -> None:
    rows = moldau.json("log", "dump", str(partition))
    assert len(rows) == 20 and sum(row["records"] for row in rows) == 60 and all(row["valid"] for row in rows)
    assert "compression" in moldau("log", "dump", str(partition))
    records = moldau.json("log", "dump", str(partition), "--records", "--from-offset", "10", "--limit", "2")
    assert [row["offset"] for row in records] == [10, 11]
    assert records[0]["key"] == "key" and records[0]["headers"] == {"h": "1"}
    for suffix in (segments.INDEX, segments.TIME_INDEX):
        entries = moldau.json("log", "dump", str(partition / f"{0:020}{suffix}"))
        assert [entry["offset"] for entry in entries] == [17, 32, 47]


def test_records_of_internal_topics_are_shown_as_what_they_say(moldau: Moldau, cluster: Broker, client: Client) -> None:
    topic = moldau.topic()
    groups.commit(client, f"of-{topic}", {(topic, 0): 7})
    home = Path(cluster.data_dir)
    rows = moldau.json("log", "dump", *map(str, home.glob("__consumer_offsets-*")), "--records")
    [found] = [row for row in rows if row["key"] and row["key"]["data"].get("group") == f"of-{topic}" and row["value"]]
    assert found["key"]["data"]["topic"] == topic and found["value"]["data"]["offset"] == 7
    rows = moldau.json("log", "dump", str(home / "__cluster_metadata-0"), "--records")
    assert any(isinstance(row["value"], dict) and row["value"]["data"].get("name") == topic for row in rows)
    assert "TOPIC_RECORD" in moldau("log", "dump", str(home / "__cluster_metadata-0"), "--records")


def test_a_sound_log_is_told_so(moldau: Moldau, partition: Path) -> None:
    facts = moldau.json("log", "verify", str(partition))
    assert (facts["segments"], facts["batches"], facts["records"], facts["problems"]) == (1, 20, 60, [])
    assert "problems  0" in moldau("log", "verify", str(partition))


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda data: data[:-7], "torn"),
        (lambda data: data[:100] + b"?" + data[101:], "CRC"),
        (
            lambda data: data + b"\0\0\0\1garbage that is no batch, and long enough to be taken for one, really",
            "cannot",
        ),
        (lambda data: data + data[: len(data) // 20], "behind"),
    ],
)
def test_damage_is_found(moldau: Moldau, partition: Path, tmp_path: Path, damage, word: str) -> None:
    file = tmp_path / f"{0:020}.log"
    file.write_bytes(damage((partition / file.name).read_bytes()))
    done = moldau.run("log", "verify", str(file), "-o", "json")
    assert done.code == 3
    problems = json.loads(done.out)["problems"]
    assert any(word in one["problem"] for one in problems), problems


def test_an_index_that_points_nowhere_is_found(moldau: Moldau, partition: Path) -> None:
    (partition / f"{0:020}.index").write_bytes(segments.OFFSET_ENTRY.pack(3, 5))
    done = moldau.run("log", "verify", str(partition), "-o", "json")
    assert done.code == 3 and "points at 5" in json.loads(done.out)["problems"][0]["problem"]


def test_mistakes_get_a_sentence(moldau: Moldau, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"x" * 100)
    (tmp_path / "x.txt").write_bytes(b"x")
    for words, code, sentence in (
        (("dump", str(tmp_path / "none")), 1, "no file"),
        (("dump", str(tmp_path / "x.txt")), 2, ".timeindex"),
        (("dump", str(tmp_path / "x.log")), 1, "log verify"),
        (("verify", str(tmp_path / "x.log")), 1, "a number"),
        (("verify", str(tmp_path / "empty")), 1, "no file"),
    ):
        done = moldau.run("log", *words)
        assert (done.code, sentence in done.err) == (code, True), (words, done)
