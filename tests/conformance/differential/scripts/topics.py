"""Metadata, and topics made, widened and deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.conformance.differential.case import LONG_MS, Case, Script, topic_id

NO_ID = bytes(16)
NAMES = {
    "empty": "",
    "a dot": ".",
    "two dots": "..",
    "a slash": "a/b",
    "a space": "a b",
    "not ASCII": "ä",
    "249 letters": "n" * 249,
    "250 letters": "n" * 250,
    "internal": "__consumer_offsets",
    "a null letter": "a\0b",
}


def metadata(name: str, topics: Any, versions: int | Iterable[int], create: bool = False, **fields: bool) -> Case:
    """A row of Metadata: null, or names, or (id, name)."""
    rows = topics and [topic if isinstance(topic, tuple) else (NO_ID, topic) for topic in topics]
    return Case(name, "Metadata", versions, {"topics": rows, "allow_auto_topic_creation": create, **fields})


ANY, NAMED = range(1, 14), range(4, 14)
METADATA = [
    metadata("all topics", [], 0),
    metadata("all topics", None, ANY),
    metadata("no topic", [], ANY),
    metadata("a topic", ["t"], NAMED),
    metadata("an unknown topic", ["nope"], NAMED),
    metadata("three topics and an unknown one", ["t", "nope", "t-two", "t"], NAMED),
    metadata("a topic and its operations", ["t"], range(8, 14), include_topic_authorized_operations=True),
    metadata("an unknown topic and its operations", ["nope"], 12, include_topic_authorized_operations=True),
    metadata("operations on an illegal name", ["a/b"], 12, include_topic_authorized_operations=True),
    metadata("operations on an unknown id", [(b"?" * 16, None)], 12, include_topic_authorized_operations=True),
    metadata("all topics and operations", None, range(8, 14), include_topic_authorized_operations=True),
    metadata("operations on the cluster", [], range(8, 11), include_cluster_authorized_operations=True),
    *(metadata(f"name: {what}", [name], (4, 9, 12)) for what, name in NAMES.items() if name != "__consumer_offsets"),
    *(
        metadata(f"create, name: {what}", [name], 9, create=True)
        for what, name in NAMES.items()
        if name not in ("__consumer_offsets", "n" * 249)
    ),
    metadata("create all", None, 9, create=True),
    metadata("by id", [(topic_id("t"), None)], (12, 13)),
    metadata("by an unknown id", [(b"?" * 16, None)], (12, 13)),
    metadata("by id 0 and null", [(NO_ID, None)], (10, 11, 12, 13)),
    metadata("by id and name", [(topic_id("t"), "t-two")], (10, 11, 12, 13)),
    metadata("by an unknown id and a name", [(b"?" * 16, "t")], (12, 13)),
    metadata("one by id, one by name", [(topic_id("t"), None), "t-two"], (12, 13)),
    metadata("by id twice", [(topic_id("t"), None), (topic_id("t"), None)], (12, 13)),
    metadata("by id with creation", [(b"?" * 16, None)], 12, create=True),
    metadata("made unasked", ["t-unasked"], 9, create=True),
]


def create(name: str, *topics: Any, versions: int | Iterable[int] = 7, validate: bool = False) -> Case:
    """A row of CreateTopics; a topic is (name, partitions, replicas, assignment, settings)."""
    return Case(name, "CreateTopics", versions, (list(topics), LONG_MS, validate))


EVERY = range(2, 8)
SETTINGS = {
    "known": [("retention.ms", "1000")],
    "unknown": [("nope", "1")],
    "of a wrong type": [("retention.ms", "x")],
    "out of range": [("min.cleanable.dirty.ratio", "2")],
    "null": [("retention.ms", None)],
    "twice": [("retention.ms", "1"), ("retention.ms", "2")],
    "two policies": [("cleanup.policy", "compact,delete")],
    "no policy": [("cleanup.policy", "")],
    "no name": [("", "1")],
    "lags that contradict": [("min.compaction.lag.ms", "100"), ("max.compaction.lag.ms", "50")],
    "remote storage": [("remote.storage.enable", "true")],
    "a broker's": [("log.retention.ms", "5")],
    "more in sync than replicas": [("min.insync.replicas", "3")],
}
ASSIGNMENTS = {
    "one partition": [(0, [1])],
    "two partitions": [(0, [1]), (1, [1])],
    "second partition first": [(1, [1]), (0, [1])],
    "a gap": [(0, [1]), (2, [1])],
    "not from 0": [(1, [1])],
    "a partition twice": [(0, [1]), (0, [1])],
    "an unknown broker": [(0, [7])],
    "a broker twice": [(0, [1, 1])],
    "no broker": [(0, [])],
    "unequal numbers": [(0, [1]), (1, [])],
    "a negative partition": [(-1, [1])],
    "a negative broker": [(0, [-1])],
}
CREATE = [
    *(create("a topic", (f"c-{v}", 2, 1), versions=v) for v in EVERY),
    *(create("a topic, in thought", ("c-thought", 3, 1), versions=v, validate=True) for v in EVERY),
    create("the brokers' defaults", ("c-default", -1, -1), versions=EVERY, validate=True),
    *(
        create(f"{count} partitions, {replicas} replicas", (f"c-{count}-{replicas}", count, replicas), validate=True)
        for count, replicas in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (-1, 1), (1, -1), (0, 0), (10_001, 1))
    ),
    *(create(f"name: {what}", (name, 1, 1), versions=EVERY, validate=True) for what, name in NAMES.items()),
    create("a topic that is there", ("t", 1, 1), versions=EVERY),
    create("a topic that is there, in thought", ("t", 1, 1), validate=True),
    create("a name like one that is there", ("t_dot.ted", 1, 1), validate=True),
    create("a name with dots like one with lines", ("t.two", 1, 1), ("t_three", 1, 1), validate=True),
    create("a topic twice", ("c-twice", 1, 1), ("c-twice", 2, 1)),
    create("a topic twice and another", ("c-twice", 1, 1), ("c-once", 1, 1), ("c-twice", 1, 1), validate=True),
    create("no topic"),
    create("three, one of them wrong", ("c-x", 1, 1), ("c/x", 1, 1), ("c-y", 0, 1), validate=True),
    *(create(f"settings: {what}", ("c-set", 1, 1, [], rows), validate=True) for what, rows in SETTINGS.items()),
    *(create(f"assigned: {what}", ("c-as", -1, -1, rows), validate=True) for what, rows in ASSIGNMENTS.items()),
    create("assigned and counted", ("c-as", 1, -1, [(0, [1])]), validate=True),
    create("assigned and replicated", ("c-as", -1, 1, [(0, [1])]), validate=True),
    create("assigned for good", ("c-as", -1, -1, [(0, [1]), (1, [1])], [("cleanup.policy", "compact")])),
]


def widen(name: str, *topics: Any, versions: int | Iterable[int] = 3, validate: bool = False) -> Case:
    return Case(name, "CreatePartitions", versions, ([(*topic, None)[:3] for topic in topics], LONG_MS, validate))


PARTITIONS = [
    *(widen(f"to {n} from 2", ("t-wide", n), validate=True) for n in (3, 2, 1, 0, -1, 10_001)),
    *(widen("one more each time", ("t-wide", 3 + v), versions=v) for v in range(4)),
    widen("an unknown topic", ("nope", 3), versions=range(4)),
    widen("an empty name", ("", 3)),
    widen("an illegal name", ("a/b", 3)),
    widen("a topic twice", ("t-wide", 9), ("t-wide", 9)),
    widen("no topic"),
    widen("two topics", ("t-wide", 20), ("t-two", 3), ("nope", 1), validate=True),
    widen("with an assignment", ("t-wide", 7, [([1],)]), validate=True),
    widen("with too few assigned", ("t-wide", 9, [([1],)]), validate=True),
    widen("with too many assigned", ("t-wide", 7, [([1],), ([1],)]), validate=True),
    widen("with an unknown broker", ("t-wide", 7, [([7],)]), validate=True),
    widen("with a broker twice", ("t-wide", 7, [([1, 1],)]), validate=True),
    widen("with no broker", ("t-wide", 7, [([],)]), validate=True),
    widen("with an empty assignment", ("t-wide", 7, []), validate=True),
    metadata("what became of them", ["t-wide", "c-as", "c-thought", "c-7"], 12),
    Case("settings of a new one", "DescribeConfigs", 4, ([(2, "c-as", ["cleanup.policy"])], True)),
]


def delete(name: str, *topics: Any, versions: int | Iterable[int] = 6) -> Case:
    """A row of DeleteTopics: names, or since v6 also (name, id)."""
    rows = [topic if isinstance(topic, tuple) else (topic, NO_ID) for topic in topics]
    return Case(name, "DeleteTopics", versions, {"topics": rows, "topic_names": list(topics), "timeout_ms": LONG_MS})


DELETE = [
    *(delete("a topic", f"c-{v}", versions=v) for v in range(2, 7)),
    delete("a topic, oldest version", "c-7", versions=1),
    metadata("they are gone", [f"c-{v}" for v in EVERY], 12),
    delete("an unknown topic", "nope", versions=range(1, 7)),
    delete("by id", (None, topic_id("t-gone"))),
    delete("by id again", (None, topic_id("t-gone"))),
    delete("by an unknown id", (None, b"?" * 16)),
    delete("by id 0", (None, NO_ID)),
    delete("by id and name", ("t", topic_id("t"))),
    delete("a topic twice", "t-two", "t-two"),
    delete("by name and by id at once", "t-two", (None, topic_id("t-two"))),
    delete("by id twice", (None, topic_id("t-two")), (None, topic_id("t-two"))),
    delete("an empty name", "", versions=(5, 6)),
    delete("an illegal name", "a/b"),
    delete("no topic", versions=range(1, 7)),
    delete("a good one and a bad one", "c-as", "nope"),
    metadata("what is left", ["t", "t-two", "t-gone", "c-as"], 12),
]
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "t": (2, {}),
    "t-two": (1, {}),
    "t-wide": (2, {}),
    "t-gone": (1, {}),
    "t.dot_ted": (1, {}),
    "t_two": (1, {}),
}
SCRIPT = Script("topics", [*METADATA, *CREATE, *PARTITIONS, *DELETE], TOPICS)


def page(name: str, names: Iterable[str], limit: int = 2000, cursor: Any = None) -> Case:
    return Case(name, "DescribeTopicPartitions", 0, ([(topic,) for topic in names], limit, cursor))


BAD_CURSORS = (("d-a", 1), ("d-a", 3), ("d-a", 99), ("d-aa", 1), ("zzz", 0), ("d-a", -1), ("", 0))
PAGES = Script(
    "pages of topics",
    [
        page("known, unknown and illegal", ["d-b", "nope", "d-a", "b/ad", ".."]),
        page("an empty name", ["d-b", "", "d-a"]),
        page("a topic twice", ["d-a", "d-a"]),
        page("not in order", ["d-c", "d-a", "d-b"]),
        *(page(f"all, {n} at a time", [], n) for n in (3, 1, 0, -1)),
        *(page(f"all, from {topic} {n}", [], 2000, (topic, n)) for topic, n in BAD_CURSORS),
        page("from the second", ["d-a", "d-b"], 2000, ("d-b", 1)),
        page("from one that was not asked for", ["d-a"], 2000, ("d-b", 1)),
        page("from one between", ["d-a", "d-c"], 2000, ("d-b", 1)),
        page("3 of 5", ["d-a", "d-b"], 3),
        page("3 with an unknown one", ["d-a", "nope"], 3),
        page("3 with an unknown one between", ["d-a", "nope", "d-b"], 3),
        page("3 of 3", ["d-a"], 3),
        page("2 of 3", ["d-a"], 2),
        page("1, unknown ones only", ["nope", "nopf"], 1),
        page("1 with an unknown one", ["d-a", "nope"], 1),
        page("2 behind an unknown one", ["d-0", "d-a", "nope"], 2),
        page("from -5", [], 2, ("d-c", -5)),
        page("from an unknown one", ["nope"], 5, ("nope", 0)),
        page("from -1 of an unknown one", ["nope"], 5, ("nope", -1)),
        page("from behind the end", ["d-a", "d-b"], 3, ("d-a", 99)),
        page("one from the last", ["d-a", "d-b"], 1, ("d-a", 2)),
    ],
    {"d-a": (3, {}), "d-b": (2, {}), "d-c": (1, {})},
)
