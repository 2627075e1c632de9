"""Fetch: each version, limits, epochs and sessions; and what a reader asks beside it."""

from __future__ import annotations

from typing import Any

from tests.conformance.differential.case import LONG_MS, Case, Script
from tests.conformance.differential.scripts.records import batch, fetch, produce, wanted

EVERY = range(4, 19)

READS = [
    *(produce("five batches of two", "f", batch(b"%d" % n, b"x" * 20)) for n in range(5)),
    fetch("all", [wanted()], EVERY),
    fetch("from the middle of a batch", [wanted(offset=3)]),
    fetch("at the end", [wanted(offset=10)], EVERY),
    fetch("beyond the end", [wanted(offset=11)], EVERY),
    fetch("offset -1", [wanted(offset=-1)]),
    fetch("offset -2", [wanted(offset=-2)]),
    *(fetch(f"{size} bytes of a partition", [wanted(max_bytes=size)]) for size in (-1, 0, 10, 100, 180, 250, 300)),
    *(fetch(f"{size} bytes in all", [wanted()], max_bytes=size) for size in (-1, 0, 10, 100, 180, 250, 300)),
    fetch("a few bytes of two", [wanted(max_bytes=10), wanted(1, max_bytes=10)]),
    fetch("two partitions", [wanted(), wanted(1)]),
    fetch("an empty partition first", [wanted(1), wanted()], max_bytes=10),
    fetch("a partition twice", [wanted(), wanted(offset=4)]),
    fetch("no partition", []),
    fetch("an unknown partition", [wanted(7)], EVERY),
    fetch("a negative partition", [wanted(-1)]),
    fetch("an unknown topic", [wanted()], EVERY, topic="nope"),
    fetch("an empty name", [wanted()], 12, topic=""),
    fetch("a good and a bad partition", [wanted(), wanted(7), wanted(1)]),
    fetch("leader epoch 0", [wanted(epoch=0)]),
    fetch("a leader epoch to come", [wanted(epoch=5)], range(9, 19)),
    fetch("leader epoch -2", [wanted(epoch=-2)]),
    fetch("last fetched epoch 0", [wanted(offset=5, last=0)]),
    fetch("a last fetched epoch to come", [wanted(offset=5, last=3)], range(12, 19)),
    fetch("last fetched epoch 0, beyond the end", [wanted(offset=50, last=0)]),
    fetch("last fetched epoch -2", [wanted(offset=5, last=-2)]),
    fetch("committed records", [wanted()], EVERY, isolation_level=1),
    fetch("committed records at the end", [wanted(offset=10)], isolation_level=1),
    fetch("isolation level 5", [wanted()], isolation_level=5),
    fetch("a short wait for more", [wanted(offset=10)], max_wait_ms=60),
    fetch("a short wait for much", [wanted()], max_wait_ms=60, min_bytes=1 << 20),
    fetch("a wait that has enough", [wanted()], max_wait_ms=20_000, min_bytes=300),
    fetch("a wait that meets an error", [wanted(offset=99)], max_wait_ms=20_000),
    fetch("a wait for nothing", [], max_wait_ms=60),
    fetch("a wait for 0 bytes", [wanted(offset=10)], max_wait_ms=20_000, min_bytes=0),
    fetch("a negative wait", [wanted(offset=10)], max_wait_ms=-1),
    fetch("a rack", [wanted()], (11, 16), rack_id="rack"),
    fetch("a log start offset", [{**wanted(), "log_start_offset": 5}]),
    fetch("a cluster's id", [wanted()], cluster_id="other"),
    fetch("a high watermark", [{**wanted(offset=10), "high_watermark": 3}], 18),
]
AS_A_REPLICA = [
    fetch("replica 7", [wanted()], 14, replica_id=7),
    fetch("replica -2", [wanted()], 14, replica_id=-2),
    fetch("replica 7 with state", [wanted()], 16, replica_state=(7, -1)),
]


def deletion(name: str, offset: int, topic: str = "f", partition: int = 0, versions: Any = 2) -> Case:
    return Case(name, "DeleteRecords", versions, ([(topic, [(partition, offset)])], LONG_MS))


def epoch_end(
    name: str, epoch: int, current: int = -1, topic: str = "f", partition: int = 0, replica: int = -1
) -> Case:
    row = {"replica_id": replica, "topics": [(topic, [(partition, current, epoch)])]}
    return Case(name, "OffsetForLeaderEpoch", range(2, 5), row)


BESIDE = [
    *(epoch_end(f"the end of epoch {n}", n) for n in (0, 1, 5, -1, -2)),
    epoch_end("the end of epoch 0, for a replica", 0, replica=-2),
    epoch_end("the end of epoch 0, for replica 7", 0, replica=7),
    epoch_end("an epoch, with the current one", 0, 0),
    epoch_end("an epoch, with one to come", 0, 3),
    epoch_end("an epoch of an unknown partition", 0, partition=7),
    epoch_end("an epoch of an unknown topic", 0, topic="nope"),
    epoch_end("an epoch of an empty partition", 0, partition=1),
    Case("epochs of nothing", "OffsetForLeaderEpoch", range(2, 5), {"topics": []}),
    *(deletion(f"delete up to {n}", n, versions=range(3)) for n in (3, 2, 3, 0, 100, 10, -1, -2, -3)),
    fetch("below the start", [wanted(offset=0)], EVERY),
    produce("behind what was deleted", "f", batch()),
    fetch("at the start", [wanted(offset=10)]),
    *(epoch_end(f"epoch {n} after the deletion", n) for n in (0, 1)),
    deletion("delete in an unknown partition", 0, partition=7),
    deletion("delete in an unknown topic", 0, topic="nope"),
    deletion("delete in a compacted topic", 0, topic="f-compact"),
    deletion("delete in a topic kept both ways", 0, topic="f-both"),
    deletion("delete all of nothing", -1, partition=1),
    deletion("delete with an empty name", 0, topic=""),
    Case("delete nothing", "DeleteRecords", range(3), ([], LONG_MS)),
    Case("delete in a partition twice", "DeleteRecords", 2, ([("f", [(0, 10), (0, 11)])], LONG_MS)),
]
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "f": (2, {}),
    "f-compact": (1, {"cleanup.policy": "compact"}),
    "f-both": (1, {"cleanup.policy": "compact,delete"}),
}
SCRIPT = Script("fetch", [*READS, *AS_A_REPLICA, *BESIDE], TOPICS)


def remember(target: Any, answer: Any) -> None:
    target.kept["session"] = answer.session_id


def begin(name: str, partitions: list[Any], versions: int = 16) -> Case:
    return fetch(name, partitions, versions, topic="s", session_epoch=0, keep=remember)


def go_on(name: str, epoch: int, partitions: Any = (), versions: int = 16, forget: Any = (), topic: str = "s") -> Case:
    session = {"session_id": lambda target: target.kept["session"], "session_epoch": epoch}
    return fetch(name, partitions, versions, topic=topic, forget=forget, **session)


BY_ID = [
    produce("two records", "s", batch(b"a", b"b")),
    begin("a session", [wanted(), wanted(1)]),
    go_on("nothing new", 1),
    go_on("moved on", 2, [wanted(offset=2)]),
    go_on("still nothing", 3),
    go_on("an epoch too high", 9),
    fetch("an unknown session", [], topic="s", session_id=12345, session_epoch=4),
    produce("a third record", "s", batch()),
    go_on("news", 4),
    produce("a first record in the other", "s", batch(), partition=1),
    go_on("news in the other", 5),
    go_on("an unknown partition joins", 6, [wanted(9)]),
    go_on("and is told again", 7),
    go_on("two are forgotten", 8, forget=[9, 0]),
    go_on("by name in a session by id", 9, [wanted()], versions=12),
    go_on("and on with 9", 9),
    go_on("and on with 10", 10),
    go_on("an unknown topic joins", 11, [wanted()], topic="nope"),
    go_on("and is told again", 12),
    go_on("forgotten and named at once", 13, [wanted(1)], forget=[1]),
    go_on("the last one is forgotten", 14, forget=[1]),
    go_on("nothing is left", 15),
    go_on("epoch 0 in a session", 0, [wanted()]),
    go_on("closed", -1),
    go_on("gone", 16),
    fetch("a session without partitions", [], topic="s", session_epoch=0),
    begin("a session of an unknown partition", [wanted(9)]),
    go_on("which is told again", 1),
    begin("a session beyond the end", [wanted(offset=99)]),
    go_on("which is told again", 1),
    fetch("session epoch -2", [wanted()], topic="s", session_epoch=-2),
    fetch("a session with epoch -1", [wanted()], topic="s", session_id=77, session_epoch=-1),
]
BY_NAME = [
    begin("a session by name", [wanted(), wanted(1)], 12),
    go_on("goes on", 1, versions=12),
    go_on("with an older version", 2, versions=7),
    go_on("an unknown topic joins by name", 3, [wanted()], 12, topic="nope"),
    go_on("and is told again by name", 4, versions=12),
    go_on("by id in a session by name", 5, [wanted()], versions=13),
    go_on("waits in vain", 5, [wanted(offset=3), wanted(1, offset=1)], 12),
    go_on("at its end", 6, versions=12),
]
SESSIONS = Script("fetch sessions", [*BY_ID, *BY_NAME], {"s": (2, {})})
