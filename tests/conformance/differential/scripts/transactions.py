"""Transactions: producers that begin, fence one another, write, commit offsets and end, in both versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.differential.case import LONG_MS, Case, Script, topic_id
from tests.conformance.differential.scripts.records import batch, wanted
from tests.conformance.differential.scripts.records import fetch as fetch_row

Value = Callable[[Any], Any]
Versions = int | Iterable[int]
TOPIC = "tx"


def remember(who: str) -> Callable[[Any, Any], None]:
    """Keep the identity that an answer gives, under the producer's name."""

    def keep(target: Any, answer: Any) -> None:
        if not answer.error_code and answer.producer_id >= 0:
            target.kept[who] = answer.producer_id, answer.producer_epoch

    return keep


def pid(who: str) -> Value:
    return lambda target: target.kept.get(who, (-1, -1))[0]


def epoch(who: str, off: int = 0) -> Value:
    return lambda target: target.kept.get(who, (-1, -1))[1] + off


def init(
    name: str, versions: Versions = 5, *, who: str = "a", tid: str = "tx-a", timeout: int = LONG_MS, **said: Any
) -> Case:
    body = {"transactional_id": tid, "transaction_timeout_ms": timeout, **said}
    return Case(name, "InitProducerId", versions, body, keep=remember(who))


def go_on(name: str, versions: Versions = 5, *, who: str = "a", tid: str = "tx-a", off: int = 0) -> Case:
    return init(name, versions, who=who, tid=tid, producer_id=pid(who), producer_epoch=epoch(who, off))


def add(
    name: str,
    *partitions: int,
    versions: Versions = 3,
    who: str = "a",
    tid: str = "tx-a",
    off: int = 0,
    topic: str = TOPIC,
) -> Case:
    body = {
        "v3_and_below_transactional_id": tid,
        "v3_and_below_producer_id": pid(who),
        "v3_and_below_producer_epoch": epoch(who, off),
        "v3_and_below_topics": [(topic, list(partitions))],
    }
    return Case(name, "AddPartitionsToTxn", versions, body)


def add_many(name: str, *rows: tuple[str, str, int, bool, list[Any]], versions: Versions = 5) -> Case:
    """Rows of transactional id, producer, epoch behind its own, whether to verify only, and topics."""
    transactions = [(tid, pid(who), epoch(who, off), verify, topics) for tid, who, off, verify, topics in rows]
    return Case(name, "AddPartitionsToTxn", versions, {"transactions": transactions})


def add_group(name: str, group: str = "tx-g", versions: Versions = 4, *, tid: str = "tx-a", off: int = 0) -> Case:
    return Case(name, "AddOffsetsToTxn", versions, (tid, pid("a"), epoch("a", off), group))


def end(
    name: str,
    commit: bool,
    versions: Versions = 5,
    *,
    who: str = "a",
    tid: str = "tx-a",
    off: int = 0,
    stay: bool = False,
) -> Case:
    body = (tid, pid(who), epoch(who, off), commit)
    return Case(name, "EndTxn", versions, body, keep=None if stay else remember(who))


def settled(*tids: str) -> Case:
    """A question, which is put to Kafka again until its markers are written, too."""
    return Case(f"then {', '.join(tids)}", "DescribeTransactions", 0, (list(tids),))


def write(
    name: str,
    versions: Versions = 12,
    *,
    who: str = "a",
    tid: str | None = "tx-a",
    sequence: int = 0,
    off: int = 0,
    partition: int = 0,
    topic: str = TOPIC,
    acks: int = -1,
) -> Case:
    def data(target: Any) -> bytes:
        identity = {"producer_id": pid(who)(target), "producer_epoch": epoch(who, off)(target)}
        return batch(name.encode(), base_sequence=sequence, transactional=True, **identity)

    topics = [{"name": topic, "topic_id": topic_id(topic), "partition_data": [(partition, data)]}]
    return Case(name, "Produce", versions, (tid, acks, LONG_MS, topics))


def commit_offset(
    name: str,
    versions: Versions = 5,
    *,
    group: str = "tx-g",
    tid: str = "tx-a",
    off: int = 0,
    topic: str = TOPIC,
    **said: Any,
) -> Case:
    body = {
        "transactional_id": tid,
        "group_id": group,
        "producer_id": pid("a"),
        "producer_epoch": epoch("a", off),
        "topics": [(topic, [(0, 5, -1, "m"), (9, 5, -1, "")])],
        **said,
    }
    return Case(name, "TxnOffsetCommit", versions, body)


def marker(
    name: str, commit: bool, *, who: str = "a", off: int = 0, coordinator: int = 0, versions: Versions = 1
) -> Case:
    row = (pid(who), epoch(who, off), commit, [(TOPIC, [1, 9]), ("nope", [0])], coordinator, 2)
    return Case(name, "WriteTxnMarkers", versions, {"markers": [row]})


def committed(name: str) -> Case:
    partitions = [wanted(index) for index in (0, 1)]
    return fetch_row(name, partitions, topic=TOPIC, isolation_level=1)


BEGIN = [
    Case("who coordinates", "FindCoordinator", 4, {"key_type": 1, "coordinator_keys": ["tx-a", "tx-b", "tx-c"]}),
    Case("who coordinates groups", "FindCoordinator", 4, {"coordinator_keys": ["tx-g"]}),
    settled("tx-a", "tx-b", "tx-c"),
    Case("the group is empty", "DescribeGroups", 5, {"groups": ["tx-g"]}),
    init("a producer", range(6)),
    init("no id", tid=""),
    init("a long id", (1, 5), who="long", tid="x" * 30_000),
    *(init(f"a time-out of {n}", (0, 5), timeout=n) for n in (0, -1, 900_001)),
    init("a producer id without epoch", (3, 5), producer_id=5),
    init("an epoch without producer id", (3, 5), producer_epoch=5),
    init("another's producer id", (3, 4, 5), producer_id=999, producer_epoch=0),
    go_on("goes on", (3, 4, 5)),
    go_on("goes on with the epoch before", off=-1),
    go_on("goes on with an old epoch", (3, 4, 5), off=-2),
    go_on("goes on with an epoch to come", off=1),
    settled("tx-a", "", "tx-nobody"),
]

VERSION_1 = [
    add("adds a partition", 0, versions=range(4)),
    add("adds it again", 0),
    add("adds an unknown one", 0, 9),
    add("adds an unknown topic", 0, topic="nope"),
    add("adds with an epoch to come", 0, versions=range(4), off=1),
    add("adds with an old epoch", 0, versions=(1, 3), off=-1),
    add("adds without an id", 0, tid=""),
    add("adds with an unknown id", 0, tid="tx-nobody"),
    add("adds internal topics", 0, topic="__transaction_state"),
    Case("adds nothing", "AddPartitionsToTxn", 3, {"v3_and_below_transactional_id": "tx-a"}),
    settled("tx-a"),
    *(write(f"not added, v{n}", n, partition=1) for n in (7, 9, 10, 11)),
    write("added", 9),
    write("more", 11, sequence=1),
    write("again", 9, sequence=1),
    write("a gap", 9, sequence=7),
    write("old epoch", 9, off=-1),
    write("an epoch to come", 9, off=1),
    write("another id", 9, partition=1, tid="tx-nobody"),
    write("no id", (9, 12), tid=None),
    write("an empty id", (9, 12), partition=1, tid=""),
    Case("who writes", "DescribeProducers", 0, ([(TOPIC, [0, 1])],)),
    committed("nothing is committed"),
    fetch_row("but it is there", [wanted()], topic=TOPIC),
    Case("ends of the log", "ListOffsets", 8, (-1, 1, [(TOPIC, [(0, -1, -1)])])),
    end("commits", True, 4),
    settled("tx-a"),
    committed("it is committed"),
    end("commits again", True, range(5)),
    end("aborts what is committed", False, (0, 4)),
    end("with an old epoch", True, range(5), off=-1),
    end("with an epoch to come", True, (1, 2), off=1),
    end("without an id", True, tid=""),
    end("with an unknown id", True, tid="tx-nobody"),
    write("late", (9, 11), sequence=2),
    add("adds for the next", 0, 1),
    write("next", 9, sequence=2),
    write("next in another", 9, partition=1),
    end("aborts", False, 4),
    settled("tx-a"),
    committed("one is committed, one aborted"),
    end("aborts again", False, (0, 4)),
]

VERSION_2 = [
    end("commits although nothing is open", True, stay=True),
    end("aborts although nothing is open", False),
    settled("tx-a"),
    end("aborts that again", False, off=-1, stay=True),
    write("begins with sequence 3", sequence=3),
    write("begins", (12, 12)),
    write("goes on", 13, sequence=1),
    write("in another", 13, partition=1),
    write("an old epoch", off=-1),
    write("an old epoch where it was not", off=-1, partition=2),
    write("an epoch to come", off=1, partition=2),
    write("with another id", tid="tx-nobody", partition=2),
    settled("tx-a"),
    add_group("a group", versions=range(5)),
    add_group("a group without name", ""),
    add_group("a group with an old epoch", versions=range(5), off=-1),
    add_group("a group without id", tid=""),
    commit_offset("offsets", range(6)),
    commit_offset("offsets with an old epoch", range(6), off=-1),
    commit_offset("offsets of no group", group=""),
    commit_offset("offsets of an unknown topic", topic="nope"),
    commit_offset("offsets of an unknown id", tid="tx-nobody"),
    commit_offset("offsets of a member", (3, 5), member_id="m", generation_id=3),
    commit_offset("offsets of a generation", (3, 5), generation_id=3),
    end("ends with an old epoch", True, off=-1, stay=True),
    end("commits", True),
    settled("tx-a"),
    end("commits again, as before", True, off=-1, stay=True),
    end("aborts instead", False, off=-1, stay=True),
    end("commits what is not open", True, stay=True),
    write("late", off=-1, sequence=2),
    committed("what was committed"),
    write("begins the next"),
    end("aborts", False),
    settled("tx-a"),
    end("aborts again, as before", False, off=-1, stay=True),
    committed("and not aborted"),
]

MANY = [
    init("another producer", who="b", tid="tx-b"),
    add_many(
        "two at once",
        ("tx-a", "a", 0, False, [(TOPIC, [0, 2])]),
        ("tx-b", "b", 0, False, [(TOPIC, [1])]),
        versions=(4, 5),
    ),
    add_many(
        "verified",
        ("tx-a", "a", 0, True, [(TOPIC, [0, 1])]),
        ("tx-b", "a", 0, True, [(TOPIC, [1])]),
        ("tx-nobody", "a", 0, True, [(TOPIC, [1])]),
        versions=(4, 5),
    ),
    add_many("verified with an old epoch", ("tx-a", "a", -1, True, [(TOPIC, [0])])),
    add_many("verified and unknown", ("tx-a", "a", 0, True, [(TOPIC, [0, 9])])),
    add_many("internal topics", ("tx-a", "a", 0, False, [("__consumer_offsets", [0])])),
    add_many("no id", ("", "a", 0, False, [(TOPIC, [0])]), ("", "a", 0, True, [(TOPIC, [0])])),
    write("a writes"),
    write("b writes", who="b", tid="tx-b"),
    write("a writes as b", who="a", tid="tx-b", partition=2),
    end("a commits", True),
    settled("tx-a"),
    committed("b is in the way"),
    end("b aborts", False, who="b", tid="tx-b"),
    settled("tx-a", "tx-b"),
    committed("nobody is in the way"),
]

FENCED = [
    write("begins"),
    init("a second producer must wait", who="second"),
    settled("tx-a"),
    init("a second producer", who="second"),
    write("the first is fenced", sequence=1),
    write("where it was not, too", partition=2),
    add("it cannot add", 2, versions=range(4)),
    end("it cannot end", True, range(6), stay=True),
    go_on("it cannot go on", (3, 4, 5)),
    commit_offset("it cannot commit offsets", range(6)),
    write("the second writes", who="second", sequence=0),
    end("and commits", True, who="second"),
    settled("tx-a"),
    committed("what the second wrote"),
]

LISTS = [
    Case("all", "ListTransactions", (0, 1, 2), {}),
    Case("of some states", "ListTransactions", (0, 2), {"state_filters": ["CompleteAbort", "nope"]}),
    Case("of an unknown state", "ListTransactions", 2, {"state_filters": ["nope"]}),
    Case("of a producer", "ListTransactions", 2, {"producer_id_filters": [pid("b")]}),
    Case("that take long", "ListTransactions", (1, 2), {"duration_filter": 10_000_000}),
    Case("that take any time", "ListTransactions", (1, 2), {"duration_filter": 0}),
    *(
        Case(f"like {text}", "ListTransactions", 2, {"transactional_id_pattern": text})
        for text in ("tx-.", "tx", "", "tx-(a|b)", "(", ".*b")
    ),
]

HANGING = [
    init("a producer that is forgotten", (4, 5), who="c", tid="tx-c"),
    write("it writes", who="c", tid="tx-c", partition=1),
    marker("a marker of an old epoch", False, who="c", off=-1),
    marker("a marker of the tool", False, who="c", versions=(1,)),
    marker("once more", False, who="c", versions=(1, 2)),
    marker("from an old coordinator", False, who="c", coordinator=-1),
    committed("nothing hangs"),
    Case("who writes now", "DescribeProducers", 0, ([(TOPIC, [0, 1])],), signs=["last_timestamp"]),
    end("its coordinator aborts, too", False, who="c", tid="tx-c"),
    settled("tx-c"),
]

SCRIPT = Script("transactions", [*BEGIN, *VERSION_1, *VERSION_2, *MANY, *FENCED, *LISTS, *HANGING], {TOPIC: (3, {})})
