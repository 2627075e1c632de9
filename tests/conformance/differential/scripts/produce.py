"""Produce: each version, each check of a batch, and idempotent producers."""

from __future__ import annotations

from typing import Any

from moldau.wire.records import Record, build
from tests.conformance.differential.case import LONG_MS, Case, Script, topic_id
from tests.conformance.differential.scripts.records import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIME,
    COUNT,
    LAST_DELTA,
    LENGTH,
    MAGIC,
    MAX_TIME,
    NOW,
    batch,
    changed,
    produce,
    timed,
    wanted,
)
from tests.conformance.differential.scripts.records import fetch as fetch_row

EVERY = range(3, 14)
HOUR = 3_600_000
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ONE = batch()

TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "p": (2, {}),
    "p2": (2, {}),
    "p-compact": (1, {"cleanup.policy": "compact"}),
    "p-both": (1, {"cleanup.policy": "compact,delete"}),
    "p-append-time": (1, {"message.timestamp.type": "LogAppendTime"}),
    "p-small": (1, {"max.message.bytes": "200"}),
    "p-before": (1, {"message.timestamp.before.max.ms": "1000"}),
    "p-after": (1, {"message.timestamp.after.max.ms": "1000"}),
    "p-isr": (1, {"min.insync.replicas": "2"}),
    **{f"p-{codec}": (1, {"compression.type": codec}) for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed")},
}


def many(name: str, *topics: Any, version: int = 12) -> Case:
    """A request of several topics, each with (partition, records)."""
    rows = [{"name": topic, "topic_id": topic_id(topic), "partition_data": list(parts)} for topic, *parts in topics]
    return Case(name, "Produce", version, (None, -1, LONG_MS, rows))


def damaged() -> bytes:
    data = bytearray(ONE)
    data[65] ^= 1
    return bytes(data)


REQUESTS = [
    produce("a record", "p", ONE, EVERY),
    produce("an unknown topic", "nope", ONE, EVERY),
    produce("an unknown partition", "p", ONE, EVERY, partition=9),
    produce("a negative partition", "p", ONE, partition=-1),
    produce("an empty name", "", ONE),
    produce("an illegal name", "a/b", ONE),
    produce("acks 1", "p", ONE, acks=1),
    produce("acks 5", "p", ONE, EVERY, acks=5),
    produce("acks -2", "p", ONE, acks=-2),
    produce("acks 0", "p", ONE, EVERY, acks=0, silent=True),
    produce("acks 0 to an unknown topic", "nope", ONE, acks=0, silent=True),
    produce("acks 0 with a wrong checksum", "p", damaged(), acks=0, silent=True),
    produce("too few in sync", "p-isr", ONE),
    produce("too few in sync, acks 1", "p-isr", ONE, acks=1),
    produce("a transactional id", "p", ONE, transactional_id="tx"),
    produce("an empty transactional id", "p", ONE, transactional_id=""),
    many("no topic"),
    many("no partition", ("p",)),
    many("two topics", ("p", (0, ONE), (1, ONE)), ("p2", (1, ONE))),
    many("one of three fails", ("p", (0, ONE), (1, damaged())), ("nope", (0, ONE)), ("p2", (1, ONE))),
    many("a partition twice", ("p", (0, ONE), (0, batch(b"a", b"b")))),
    many("a topic twice", ("p", (0, ONE)), ("p", (1, ONE)), version=12),
    many("a topic twice, by id", ("p", (0, ONE)), ("p", (1, ONE)), version=13),
    many("two topics, by id", ("p", (0, ONE)), ("p2", (0, ONE)), ("nope", (0, ONE)), version=13),
]

FRAMING = [
    produce("no bytes", "p", b""),
    produce("null", "p", None, patience_s=1.0),
    produce("40 bytes", "p", ONE[:40]),
    produce("10 bytes", "p", ONE[:10]),
    produce("17 bytes", "p", ONE[:17]),
    produce("a torn batch", "p", ONE[:-3]),
    produce("two batches", "p", ONE + ONE),
    produce("two batches, old version", "p", ONE + ONE, 3),
    produce("bytes behind the batch", "p", ONE + b"xxx"),
    produce("half a batch behind the batch", "p", ONE + ONE[:40]),
    produce("wrong checksum", "p", damaged(), (3, 8, 13)),
    *(produce(f"magic {n}", "p", changed((MAGIC, n), sealed=False), (3, 9)) for n in (0, 1, 3, -1)),
    *(produce(f"length {n}", "p", changed((LENGTH, n), sealed=False)) for n in (-5, 0, 10, 48, 49, 10_000, 2**31 - 1)),
    produce("base offset 5", "p", changed((BASE_OFFSET, 5), sealed=False)),
    produce("base offset -5", "p", changed((BASE_OFFSET, -5), sealed=False)),
]

ATTRIBUTE = [
    produce("unknown attributes", "p", changed((ATTRIBUTES, 0x80))),
    produce("append time set by the producer", "p", changed((ATTRIBUTES, 0x08))),
    produce("append time set by the producer, append time topic", "p-append-time", changed((ATTRIBUTES, 0x08))),
    produce("control batch", "p", changed((ATTRIBUTES, 0x20))),
    produce("transactional without producer id", "p", changed((ATTRIBUTES, 0x10))),
    produce("transactional control batch", "p", changed((ATTRIBUTES, 0x30))),
    produce("delete horizon", "p", changed((ATTRIBUTES, 0x40))),
    *(produce(f"{codec} in", "p", batch(b"a" * 100, compression=n), (3, 6, 7, 13)) for codec, n in CODECS.items()),
    *(
        produce(f"{codec} to {kept}", f"p-{kept}", batch(b"a" * 100, compression=n))
        for kept in ("gzip", "snappy", "lz4", "zstd", "uncompressed")
        for codec, n in CODECS.items()
    ),
    *(fetch_row(f"kept as {kept}", [wanted()], topic=f"p-{kept}") for kept in ("gzip", "snappy", "uncompressed")),
]

SETTINGS = [
    produce("compacted, no key", "p-compact", ONE, (3, 9, 13)),
    produce("compacted, key", "p-compact", batch(key=b"k")),
    produce("compacted, empty key", "p-compact", batch(key=b"")),
    produce("compacted, tombstone", "p-compact", batch(None, key=b"k")),
    produce(
        "compacted, second of three without key",
        "p-compact",
        bytes(build([Record(0, NOW, b"k", b"v"), Record(0, NOW, None, b"v"), Record(0, NOW, None, b"v")])),
    ),
    produce("compacted, compressed without key", "p-compact", batch(compression=1)),
    produce("compacted and deleted, no key", "p-both", ONE),
    produce("append time", "p-append-time", ONE, EVERY),
    produce("append time, compressed", "p-append-time", batch(b"a", b"b", compression=3)),
    fetch_row("what append time left", [wanted()], topic="p-append-time"),
    produce("too large", "p-small", batch(b"x" * 500), (3, 9)),
    produce("200 bytes", "p-small", batch(b"x" * 130)),
    produce("201 bytes", "p-small", batch(b"x" * 131)),
    produce("compressed small enough", "p-small", batch(b"x" * 500, compression=1)),
    produce("larger than any topic takes", "p", batch(b"x" * 1_100_000)),
    produce("too old", "p-before", batch(time=NOW - HOUR)),
    produce("too new", "p-after", batch(time=NOW + HOUR), (3, 9)),
    produce("second too new", "p-after", timed(NOW, NOW + HOUR, NOW)),
    produce("all too new", "p-after", timed(NOW + HOUR, NOW + HOUR)),
    produce("an hour too new for any", "p", batch(time=NOW + 2 * HOUR)),
    produce("no time", "p", batch(time=-1)),
    produce("no time where it must be new", "p-before", batch(time=-1)),
    produce("times out of order", "p", timed(NOW, NOW - 50, NOW + 50)),
    fetch_row("all that was kept", [wanted(), wanted(1)], topic="p"),
]

TWO = batch(b"a", b"b")
LIES = {
    "count 5 of 1": changed((COUNT, 5)),
    "count 0 of 1": changed((COUNT, 0)),
    "count -1": changed((COUNT, -1)),
    "last delta 7": changed((LAST_DELTA, 7)),
    "last delta -1": changed((LAST_DELTA, -1)),
    "count 5 of 1, last delta 4": changed((COUNT, 5), (LAST_DELTA, 4)),
    "count 1 of 2": changed((COUNT, 1), (LAST_DELTA, 0), of=TWO),
    "count 0, last delta -1": changed((COUNT, 0), (LAST_DELTA, -1)),
    "deltas from 1 on": bytes(build([Record(1, NOW, None, b"v"), Record(2, NOW, None, b"v")], sparse=True)),
    "deltas with a gap": bytes(build([Record(0, NOW, None, b"v"), Record(2, NOW, None, b"v")], sparse=True)),
    "a record that is longer than the batch": changed(of=ONE[:61] + b"\x7e" + ONE[62:]),
    "bytes behind the last record": changed((LENGTH, len(ONE) - 12 + 3), of=ONE + b"xxx"),
    **{f"{codec} that is none": changed((ATTRIBUTES, n)) for codec, n in CODECS.items() if n},
    **{f"codec {n}": changed((ATTRIBUTES, n)) for n in (5, 6, 7)},
    "a largest time that is less": changed((MAX_TIME, NOW - 1000), of=timed(NOW, NOW + 5)),
    "a largest time that is more": changed((MAX_TIME, NOW + 1000), of=timed(NOW, NOW + 5)),
    "a base time that is too new": changed((BASE_TIME, NOW + 2 * HOUR), of=timed(NOW, NOW + 5)),
    "a negative time": batch(time=-5),
}
# Each to a partition of its own, which has that batch or not.
LYING = [
    case
    for partition, (name, data) in enumerate(LIES.items())
    for case in (
        produce(name, "p-lies", data, partition=partition),
        fetch_row(f"{name}, read back", [wanted(partition)], topic="p-lies"),
    )
]
TOPICS["p-lies"] = (len(LIES), {})
LYING.append(Case("the lies go", "DeleteTopics", 6, ([("p-lies", bytes(16))], [], LONG_MS)))

SCRIPT = Script("produce", [*REQUESTS, *FRAMING, *ATTRIBUTE, *SETTINGS, *LYING], TOPICS)


def by(producer: int, sequence: int, epoch: int = 0, count: int = 1, **options: Any) -> bytes:
    """A batch of an idempotent producer."""
    values = [b"v"] * count
    return batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **options)


def told(name: str, producer: int, *args: int, **options: Any) -> Case:
    """A row for partition 0 of topic `i`; the name says who sends what."""
    return produce(f"{name} (producer {producer}: {', '.join(map(str, args))})", "i", by(producer, *args), **options)


LAST = 2**31 - 1
SEQUENCES = [
    told("no sequence", 70, -1),
    told("no epoch", 71, 0, -1),
    told("epoch -2", 71, 0, -2),
    told("producer -5", -5, 0),
    told("first", 1, 0),
    told("again", 1, 0),
    told("a gap", 1, 5),
    told("next", 1, 1),
    told("longer than the first time", 1, 1, 0, 2),
    told("three", 1, 2, 0, 3),
    told("three again", 1, 2, 0, 3),
    told("the last of three", 1, 4),
    told("two of three", 1, 2, 0, 2),
    told("next epoch must begin at 0", 1, 1, 1),
    told("next epoch", 1, 0, 1),
    told("old epoch", 1, 5, 0),
    told("epoch after next", 1, 0, 3),
    told("an epoch between", 1, 0, 2),
    told("unknown producer in the middle", 2, 5),
    told("and on", 2, 6),
    *(told("a window of five", 3, n) for n in range(7)),
    *(told("is it still known", 3, n) for n in (6, 2, 1, 0)),
    told("before the wrap", 4, LAST - 1, 0, 2),
    told("after the wrap", 4, 0),
    told("over the wrap", 5, LAST - 1, 0, 4),
    told("over the wrap again", 5, LAST - 1, 0, 4),
    told("behind the wrap", 5, 2),
    told("a gap behind the wrap", 5, 4),
    told("at the wrap", 6, LAST),
    told("one behind", 6, 0),
    told("largest epoch", 7, 0, 32767),
    told("an epoch that is less", 7, 0, 1),
    produce("another partition knows nothing", "i", by(1, 9), partition=1),
    produce("two batches of a producer", "i", by(8, 0) + by(8, 1)),
    produce("transactional batch", "i", by(9, 0, transactional=True)),
    produce("transactional batch and id", "i", by(9, 0, transactional=True), transactional_id="tx"),
    produce("transactional batch by id", "i", by(9, 0, transactional=True), 13, transactional_id="tx"),
    produce("a refused batch", "i", changed((ATTRIBUTES, 0x20), of=by(10, 0))),
    told("is not remembered", 10, 0),
    produce("compressed", "i", by(11, 0, 0, 3, compression=2)),
    produce("compressed again", "i", by(11, 0, 0, 3, compression=2)),
    Case("who wrote", "DescribeProducers", 0, ([("i", [0, 1])],)),
    fetch_row("what they wrote", [wanted(), wanted(1)], topic="i"),
]
IDS = [
    Case("a producer id", "InitProducerId", range(6), {"transactional_id": None, "transaction_timeout_ms": 1000}),
    Case("an empty transactional id", "InitProducerId", range(6), {"transactional_id": ""}),
    Case("a time-out of 0", "InitProducerId", 4, {"transactional_id": None}),
    *(
        Case(
            f"with id {producer} and epoch {epoch}",
            "InitProducerId",
            (3, 5),
            {"transactional_id": None, "producer_id": producer, "producer_epoch": epoch},
        )
        for producer, epoch in ((5, -1), (-1, 5), (5, 5), (-2, -2))
    ),
]

IDEMPOTENT = Script("idempotence", [*SEQUENCES, *IDS], {"i": (2, {})})
