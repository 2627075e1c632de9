"""Share partitions: their state at the share coordinator, and members that fetch, settle and leave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.conformance.differential.case import Case, Script, topic_id
from tests.conformance.differential.scripts.records import batch, produce

TOPIC, KEPT = "sf", "sk"
GROUP, OTHER, STATE = "sf-group", "sf-other", "sk-group"
SHARE_COORDINATOR = 2
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
FINAL = -1
VERBS = ("Initialize", "Read", "Write", "Delete")

Said = tuple[int, int, list[int]]


# The share coordinator.


def state(
    name: str, verb: str, *rows: tuple[Any, ...], topic: str = KEPT, group: str = STATE, version: int = 0
) -> Case:
    return Case(name, f"{verb}ShareGroupState", version, (group, [(topic_id(topic), list(rows))]))


def initialize(name: str, *rows: tuple[int, int, int], **said: Any) -> Case:
    """Rows of partition, state epoch and start offset."""
    return state(name, "Initialize", *rows, **said)


def read(name: str, partition: int = 0, leader_epoch: int = 0, **said: Any) -> Case:
    return state(name, "Read", (partition, leader_epoch), **said)


def summary(name: str, partition: int = 0, leader_epoch: int = 0, topic: str = KEPT, group: str = STATE) -> Case:
    body = group, [(topic_id(topic), [(partition, leader_epoch)])]
    return Case(name, "ReadShareGroupStateSummary", (0, 1), body)


def write(
    name: str,
    start: int,
    *batches: tuple[int, int, int, int],
    epochs: tuple[int, int] = (0, 0),
    done: int = 0,
    **said: Any,
) -> Case:
    """Epochs of state and leader; batches of first and last offset, state and count."""
    partition = said.pop("partition", 0)
    return state(name, "Write", (partition, *epochs, start, done, list(batches)), version=1, **said)


def delete(name: str, partition: int = 0, **said: Any) -> Case:
    return state(name, "Delete", (partition,), **said)


def nothing(name: str, verb: str, *topics: Any, group: str = STATE) -> Case:
    return Case(name, verb, 0, (group, list(topics)))


# Kafka makes the topic of the share coordinator when it is first asked for, and loads it some time later.
FIRST = Case(
    "who has the state",
    "FindCoordinator",
    6,
    {"key_type": SHARE_COORDINATOR, "coordinator_keys": [f"{STATE}:{'A' * 22}:0"]},
    settle_s=5.0,
)

COORDINATOR = Script(
    "share state",
    [
        FIRST,
        read("nothing is known"),
        summary("nothing to sum up"),
        write("nothing to write to", 0),
        delete("nothing to delete"),
        initialize("partitions that are not there", (0, 0, 0), (7, 0, 0), (-1, 0, 0)),
        initialize("a topic that is not there", (0, 0, 0), topic="nowhere"),
        initialize("wherever it begins", (1, 0, -1)),
        summary("it has not begun", 1),
        read("nor for its leader", 1),
        write("what was delivered", 0, (0, 4, 2, 1), (5, 9, 0, 1)),
        read("that", leader_epoch=-1),
        write("over one another", 2, (3, 6, 0, 2), (9, 12, 4, 1), (20, 25, 2, 3)),
        read("merged", leader_epoch=-1),
        write("delivered less often", 2, (20, 25, 0, 1), done=11),
        read("changes nothing", leader_epoch=-1),
        summary("summed up"),
        write("nothing but a new beginning", 7),
        read("of which the rest is left", leader_epoch=-1),
        read("a leader", leader_epoch=3),
        read("an old one", leader_epoch=2),
        write("by an old one", 7, epochs=(0, 2)),
        write("by a later one, that has not read", 8, epochs=(0, 9)),
        read("which does not lead", leader_epoch=5),
        summary("an old one may look", leader_epoch=1),
        write("of a later state", 8, epochs=(4, 9)),
        initialize("of that state", (0, 4, 100)),
        read("begun anew", leader_epoch=9),
        write("of an old state", 8, epochs=(3, 9)),
        initialize("with an old state", (0, 3, 100)),
        initialize("the same again", (0, 4, 50)),
        write("without epochs", -1, (60, 61, 2, 1), epochs=(-1, -1), done=2),
        summary("with epochs"),
        delete("all of it"),
        read("gone"),
        initialize("with an old state, but nobody remembers", (0, 1, 0)),
        delete("partition 7", 7),
        delete("partition -1", -1),
        read("partition 7", 7),
        read("partition -1", -1),
        write("partition -1", 0, partition=-1),
        summary("partition -1", -1),
        summary("partition 7", 7),
        *(
            nothing(f"no topics: {verb}", f"{verb}ShareGroupState")
            for verb in ("Initialize", "Read", "Write", "Delete")
        ),
        nothing("no partitions", "ReadShareGroupState", (topic_id(KEPT), [])),
        read("no group", group=""),
    ],
    topics={KEPT: (2, {})},
)


# Members.


def fetch(
    name: str,
    epoch: int,
    *parts: int,
    member: str = "m1",
    group: str | None = GROUP,
    said: dict[int, list[Said]] | None = None,
    versions: int | Iterable[int] = 2,
    topic: str = TOPIC,
    **fields: Any,
) -> Case:
    """A member that leaves is answered by Kafka before what it held is released, so that takes a moment to be seen."""
    said = said or {}
    rows = [(part, said.get(part, [])) for part in dict.fromkeys([*parts, *said])]
    usual = {"max_wait_ms": 500, "min_bytes": 1, "max_records": 500, "batch_size": 500}
    topics = [(topic_id(topic), rows)] if rows else []
    who = {"group_id": group, "member_id": member, "share_session_epoch": epoch}
    return Case(name, "ShareFetch", versions, {**who, **usual, "topics": topics, **fields}, settle_s=leaving_s(epoch))


def settle(
    name: str, epoch: int, *said: Said, part: int = 0, member: str = "m1", renews: bool = False, version: int = 2
) -> Case:
    rows = [(topic_id(TOPIC), [(part, list(said))])]
    body = GROUP, member, epoch, renews, rows
    return Case(name, "ShareAcknowledge", version, body, settle_s=leaving_s(epoch))


def leaving_s(epoch: int) -> float:
    return 1.0 if epoch == FINAL else 0.0


def begin(name: str, group: str, *partitions: int, **said: Any) -> Case:
    return initialize(name, *((partition, 0, 0) for partition in partitions), topic=TOPIC, group=group, **said)


RENEWING = {"max_wait_ms": 0, "max_bytes": 0, "min_bytes": 0, "max_records": 0, "is_renew_ack": True}

MEMBERS = Script(
    "share fetch",
    [
        FIRST,
        produce("ten records", TOPIC, batch(*(b"%d" % place for place in range(10)))),
        produce("ten more", TOPIC, batch(*(b"%d" % place for place in range(10)))),
        produce("and ten", TOPIC, batch(*(b"%d" % place for place in range(10)))),
        begin("a group begins", GROUP, 0, 1),
        begin("another", OTHER, 0),
        fetch("no group", 0, 0, group=None, versions=(1, 2)),
        fetch("no member", 0, 0, member="", versions=(1, 2)),
        fetch("a long member", 0, 0, member="x" * 37),
        fetch("no session", 1, 0),
        fetch("no session to end", FINAL),
        fetch("an epoch below all", -5, 0),
        settle("no session to settle in", 1, (0, 0, [ACCEPT])),
        settle("none begins so", 0, (0, 0, [ACCEPT])),
        settle("none ends so", FINAL),
        fetch("nothing was delivered yet", 0, 0, said={0: [(0, 0, [ACCEPT])]}),
        fetch("a session", 0, 0, max_records=5),
        fetch("it goes on", 1, max_records=5),
        fetch("at another epoch", 1),
        fetch("the rest", 2),
        fetch("nothing is left", 3),
        fetch("a partition that is not there", 4, 7),
        fetch("another that is forgotten", 5, forgotten_topics_data=[(topic_id(TOPIC), [7])]),
        settle("accepted", 6, (0, 4, [ACCEPT])),
        settle("accepted again", 7, (0, 4, [ACCEPT])),
        settle("one by one", 8, (5, 9, [ACCEPT, RELEASE, REJECT, RELEASE, ACCEPT])),
        fetch("what was released", 9),
        settle("not delivered yet", 10, (25, 35, [ACCEPT])),
        settle("far away", 11, (100, 101, [ACCEPT])),
        settle("backwards", 12, (12, 11, [ACCEPT])),
        settle("no type", 13, (12, 13, [])),
        settle("too few types", 14, (12, 14, [ACCEPT, ACCEPT])),
        settle("an unknown type", 15, (12, 13, [5])),
        settle("a type below all", 16, (12, 13, [-1])),
        settle("renewed unsaid", 17, (12, 13, [RENEW])),
        settle("renewed", 18, (12, 13, [RENEW]), renews=True),
        settle("renewed by an old client", 19, (12, 13, [RENEW]), version=1),
        settle("out of order", 20, (14, 15, [ACCEPT]), (12, 13, [ACCEPT])),
        settle("one twice", 21, (12, 13, [ACCEPT]), (13, 14, [ACCEPT])),
        settle("gaps", 22, (12, 13, [0])),
        settle("nothing", 23),
        settle("where nothing was delivered", 24, (0, 0, [ACCEPT]), part=1),
        settle("in a partition that is not there", 25, (0, 0, [ACCEPT]), part=7),
        fetch("renewing while asking for records", 26, is_renew_ack=True),
        fetch("renewing", 26, said={0: [(20, 29, [RENEW])]}, **RENEWING),
        fetch("renewing what is not held", 27, said={0: [(12, 13, [RENEW])]}, **RENEWING),
        fetch("settling on the way", 28, said={0: [(14, 15, [ACCEPT]), (16, 17, [RELEASE])], 1: [(0, 0, [ACCEPT])]}),
        fetch("settling nonsense on the way", 29, said={0: [(18, 17, [ACCEPT])]}),
        fetch("no records wanted", 30, max_records=0),
        fetch("no bytes wanted", 31, max_bytes=0),
        fetch("another member", 0, 0, member="m2"),
        settle("what the first one holds", 1, (18, 19, [ACCEPT]), member="m2"),
        fetch("another group", 0, 0, group=OTHER, max_records=3, share_acquire_mode=1),
        fetch("that takes no more than it says", 1, group=OTHER, max_records=3, share_acquire_mode=1),
        fetch("or batches", 2, group=OTHER, max_records=3),
        fetch("cut to its size", 3, group=OTHER, batch_size=5),
        fetch("the first one leaves", FINAL, said={0: [(18, 18, [ACCEPT])]}),
        fetch("it has left", 32),
        settle("and cannot settle", 32, (19, 19, [ACCEPT])),
        fetch("the second takes over", 2, member="m2"),
        settle("settles and leaves", FINAL, (19, 29, [ACCEPT]), member="m2"),
        fetch("a third finds what is left", 0, 0, member="m3"),
        fetch("and leaves", FINAL, member="m3"),
        read("what is written down", topic=TOPIC, group=GROUP, leader_epoch=-1),
        summary("and summed up", topic=TOPIC, group=GROUP, leader_epoch=-1),
        fetch("a group that has not begun", 0, 0, group="sf-none"),
        fetch("a topic that is not there", 0, 0, topic="nowhere", member="m4"),
        fetch("an acquire mode that is not there", 0, 0, member="m5", share_acquire_mode=2),
    ],
    topics={TOPIC: (2, {})},
    slow=True,  # what Kafka has released when a member asks depends on its threads
)
