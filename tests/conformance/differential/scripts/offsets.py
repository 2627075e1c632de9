"""ListOffsets: special times, and times in several segments and out of order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.conformance.differential.case import LONG_MS, Case, Script
from tests.conformance.differential.scripts.records import NOW, fetch, produce, timed, wanted

MINUTE = 60_000
APART_S = 0.02  # between batches with the broker's time: in one millisecond, the first of them has the largest time
BEGIN = NOW - 100 * MINUTE
# A topic whose segments end after ten minutes of its records' time: each row of times is a batch.
SEGMENTS = [
    [BEGIN, BEGIN + 1, BEGIN + 2],
    [BEGIN + MINUTE],
    [BEGIN + 20 * MINUTE, BEGIN + 15 * MINUTE, BEGIN + 21 * MINUTE],
    [BEGIN + 5 * MINUTE],
    [BEGIN + 21 * MINUTE],
    [BEGIN + 50 * MINUTE] * 3,
    [BEGIN + 49 * MINUTE],
    [BEGIN + 80 * MINUTE],
    [BEGIN + 80 * MINUTE],
    [BEGIN + 70 * MINUTE, BEGIN + 71 * MINUTE],
]
MOMENTS = {
    f"minute {minute} {shift:+} ms": BEGIN + minute * MINUTE + shift
    for minute in (0, 1, 5, 15, 16, 20, 21, 49, 50, 70, 71, 80)
    for shift in (-1, 0, 1)
}
SPECIAL = {
    "latest": (-1, range(1, 12)),
    "earliest": (-2, range(1, 12)),
    "largest time": (-3, range(1, 12)),
    "earliest local": (-4, range(1, 12)),
    "latest tiered": (-5, range(1, 12)),
    "earliest pending upload": (-6, range(1, 12)),
    "time -7": (-7, (1, 11)),
    "time 0": (0, range(1, 12)),
    "the last moment": (2**63 - 1, (1, 11)),
}


def at(
    name: str,
    time: int,
    topic: str,
    versions: int | Iterable[int] = 11,
    partition: int = 0,
    epoch: int = -1,
    isolation: int = 0,
    replica: int = -1,
) -> Case:
    rows = [(topic, [(partition, epoch, time)])]
    body = {"replica_id": replica, "isolation_level": isolation, "topics": rows, "timeout_ms": LONG_MS}
    return Case(f"{topic}: {name}", "ListOffsets", versions, body)


def everything(topic: str) -> list[Case]:
    return [at(name, time, topic, versions) for name, (time, versions) in SPECIAL.items()]


CASES = [
    *everything("l"),
    *(produce("a batch to many segments", "l", timed(*times)) for times in SEGMENTS),
    *(produce("a batch to one segment", "l-one", timed(*times)) for times in SEGMENTS),
    *(produce("a compressed batch", "l-packed", timed(*times, compression=4)) for times in SEGMENTS),
    *(produce("a batch with the broker's time", "l-append", timed(*times), settle_s=APART_S) for times in SEGMENTS[:4]),
    *(case for topic in ("l", "l-one", "l-packed") for case in everything(topic)),
    *(at(name, time, topic) for topic in ("l", "l-one", "l-packed") for name, time in MOMENTS.items()),
    *(replace(case, signs=("timestamp",)) for case in everything("l-append")),
    replace(at("an hour ago", NOW - 60 * MINUTE, "l-append"), signs=("timestamp",)),
    at("in an hour", NOW + 60 * MINUTE, "l-append"),
    at("committed, latest", -1, "l", range(2, 12), isolation=1),
    at("committed, earliest", -2, "l", isolation=1),
    at("committed, by time", BEGIN + 21 * MINUTE, "l", isolation=1),
    at("committed, largest time", -3, "l", isolation=1),
    at("isolation level 5", -1, "l", isolation=5),
    at("for a debugger", -1, "l", (1, 11), replica=-2),
    at("leader epoch 0", -1, "l", range(4, 12), epoch=0),
    at("a leader epoch to come", -1, "l", range(4, 12), epoch=5),
    at("an unknown partition", -1, "l", range(1, 12), partition=7),
    at("latest", -1, "nope", range(1, 12)),
    at("latest", -1, "", 11),
    Case("no topic", "ListOffsets", range(1, 12), {"replica_id": -1}),
    Case("no partition", "ListOffsets", 11, {"replica_id": -1, "topics": [("l", [])]}),
    Case(
        "a partition twice", "ListOffsets", (1, 11), {"replica_id": -1, "topics": [("l", [(0, -1, -1), (0, -1, -2)])]}
    ),
    Case("a deletion", "DeleteRecords", 2, ([("l", [(0, 6)])], LONG_MS)),
    *everything("l"),
    *(at(f"after the deletion, {name}", time, "l") for name, time in MOMENTS.items()),
    Case("deletion of all", "DeleteRecords", 2, ([("l", [(0, -1)])], LONG_MS)),
    *(at(f"after all went, {name}", time, "l") for name, (time, _) in SPECIAL.items()),
    fetch("what append time left", [wanted()], topic="l-append"),
]
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "l": (1, {"segment.ms": str(10 * MINUTE)}),
    "l-one": (1, {}),
    "l-packed": (1, {"segment.ms": str(10 * MINUTE), "compression.type": "producer"}),
    "l-append": (1, {"message.timestamp.type": "LogAppendTime"}),
}
SCRIPT = Script("offsets", CASES, TOPICS)
