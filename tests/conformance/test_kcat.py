"""kcat, the command that people reach for first."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.needs("kcat")

Kcat = Callable[..., str]


@pytest.fixture
def kcat(bootstrap: str) -> Kcat:
    def run(*arguments: str, feed: str = "") -> str:
        command = ["kcat", "-b", bootstrap, *arguments]
        done = subprocess.run(command, input=feed, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
        return done.stdout

    return run


def consume(kcat: Kcat, topic: str, *arguments: str) -> list[str]:
    return kcat("-C", "-t", topic, "-e", "-q", *arguments).splitlines()


def test_lines_come_back_in_order(kcat: Kcat, topic: str) -> None:
    lines = [f"line {n}" for n in range(500)]
    kcat("-P", "-t", topic, feed="\n".join(lines))
    assert consume(kcat, topic, "-o", "beginning") == lines


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_lines_come_back(kcat: Kcat, topic: str, codec: str) -> None:
    lines = [f"the same words again and again {n}" for n in range(300)]
    kcat("-P", "-t", topic, "-z", codec, feed="\n".join(lines))
    assert consume(kcat, topic, "-o", "beginning") == lines


def test_keys_headers_and_nulls_come_back(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-K", ":", "-H", "trace=1", "-H", "who=me", feed="a:1\n")
    kcat("-P", "-t", topic, "-K", ":", "-Z", feed="b:\n")
    rows = consume(kcat, topic, "-o", "beginning", "-f", "%o|%k|%s|%S|%h\\n")
    assert rows == ["0|a|1|1|trace=1,who=me", "1|b||-1|"]


def test_keys_choose_the_partition(kcat: Kcat, new_topic: Callable[..., str]) -> None:
    topic = new_topic(4)
    kcat("-P", "-t", topic, "-K", ":", feed="\n".join(f"k{n % 8}:{n}" for n in range(80)))
    rows = [row.split() for row in consume(kcat, topic, "-o", "beginning", "-f", "%p %k %s\\n")]
    assert sorted(int(value) for _, _, value in rows) == list(range(80))
    places = {(key, partition) for partition, key, _ in rows}
    assert len(places) == 8 and len({partition for _, partition in places}) > 1


def test_json_envelope_has_offset_time_and_partition(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-k", "key", feed="value")
    (row,) = map(json.loads, consume(kcat, topic, "-o", "beginning", "-J"))
    assert (row["topic"], row["partition"], row["offset"], row["key"], row["payload"]) == (topic, 0, 0, "key", "value")
    assert row["tstype"] == "create" and row["ts"] > 1_600_000_000_000


def test_metadata_lists_broker_and_partitions(kcat: Kcat, bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic(3)
    listing = json.loads(kcat("-L", "-J", "-t", topic))
    assert [broker["name"] for broker in listing["brokers"]] == [bootstrap]
    leader = listing["brokers"][0]["id"]
    assert listing["controllerid"] == leader
    (found,) = listing["topics"]
    assert found["topic"] == topic
    assert [(p["partition"], p["leader"], p["isrs"]) for p in found["partitions"]] == [
        (n, leader, [{"id": leader}]) for n in range(3)
    ]


def test_offsets_are_found_by_time(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, feed="\n".join("abc"))
    stamps = [int(row) for row in consume(kcat, topic, "-o", "beginning", "-f", "%T\\n")]
    assert kcat("-Q", "-t", f"{topic}:0:{stamps[0]}") == f"{topic} [0] offset 0\n"
    assert kcat("-Q", "-t", f"{topic}:0:{stamps[-1] + 1}") == f"{topic} [0] offset -1\n"
    assert kcat("-Q", "-t", f"{topic}:0:-1") == f"{topic} [0] offset 3\n"
    assert kcat("-Q", "-t", f"{topic}:0:-2") == f"{topic} [0] offset 0\n"


def test_reading_starts_where_it_is_told(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, feed="\n".join(str(n) for n in range(20)))
    assert consume(kcat, topic, "-p", "0", "-o", "15") == ["15", "16", "17", "18", "19"]
    assert consume(kcat, topic, "-p", "0", "-o", "-3") == ["17", "18", "19"]
    assert consume(kcat, topic, "-p", "0", "-o", "5", "-c", "2") == ["5", "6"]
    assert consume(kcat, topic, "-p", "0", "-o", "end") == []


def test_a_topic_springs_up_when_it_is_written_to(kcat: Kcat, fresh_name: Callable[[str], str]) -> None:
    topic = fresh_name("auto")
    kcat("-P", "-t", topic, feed="hello")
    assert consume(kcat, topic, "-o", "beginning") == ["hello"]


def test_idempotent_producer_writes_once(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-X", "enable.idempotence=true", feed="\n".join("abc"))
    assert consume(kcat, topic, "-o", "beginning", "-X", "isolation.level=read_committed") == list("abc")
