"""The cluster, its quorum, directories, features and producers; elections and moves of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.differential.case import LONG_MS, Case, Script

METADATA = "__cluster_metadata"


def quorum(name: str, *topics: Any) -> Case:
    return Case(name, "DescribeQuorum", range(3), ([(topic, [(n,) for n in parts]) for topic, *parts in topics],))


DESCRIBE = [
    Case("the cluster", "DescribeCluster", range(3), (False,)),
    Case("the cluster and operations", "DescribeCluster", range(3), (True,)),
    *(Case(f"endpoint type {n}", "DescribeCluster", (1, 2), (False, n)) for n in (0, 2, 3, -1)),
    Case("fenced brokers", "DescribeCluster", 2, (True, 1, True)),
    quorum("the quorum", (METADATA, 0)),
    quorum("another partition", (METADATA, 1)),
    quorum("another topic", ("foo", 0)),
    quorum("no topic"),
    quorum("a second topic", (METADATA, 0), ("foo", 0)),
    quorum("no partition", (METADATA,)),
    quorum("two partitions", (METADATA, 0, 1)),
    quorum("a second topic without partitions", (METADATA, 0), ("foo",)),
    *(Case(f"forget broker {n}", "UnregisterBroker", 0, (n,)) for n in (7, -1)),
    Case("producers", "DescribeProducers", 0, ([("k-a", [0, 9, -1]), ("nope", [0, 1]), ("b/ad", [0]), ("k-b", [])],)),
    Case("producers of a topic twice", "DescribeProducers", 0, ([("k-a", [0]), ("k-a", [0, 1])],)),
    Case("producers of an empty name", "DescribeProducers", 0, ([("", [0])],)),
    Case("producers of nothing", "DescribeProducers", 0, ([],)),
]


def elect(name: str, kind: int, topics: Any, versions: int | Iterable[int] = 2) -> Case:
    return Case(name, "ElectLeaders", versions, (kind, topics, LONG_MS))


ELECT = [
    elect("preferred leaders", 0, [("k-a", [0, 1])], range(3)),
    elect("unknown ones", 0, [("k-a", [0, 9]), ("nope", [0]), ("", [0])], range(3)),
    elect("unclean", 1, [("k-a", [0])]),
    elect("election type 2", 2, [("k-a", [0])]),
    elect("all", 0, None, range(3)),
    elect("all, unclean", 1, None),
    elect("none", 0, []),
    elect("election type 5, none", 5, []),
    elect("election type 5, all", 5, None),
    elect("a partition three times", 0, [("k-a", [0, 0]), ("k-a", [0])]),
    elect("a topic without partitions", 0, [("k-a", [])]),
]

PLACES = [(0, [1]), (1, None), (2, [7]), (9, [1]), (0, []), (0, [1, 1]), (0, [1, 7]), (0, [-1])]


def move(name: str, *topics: Any, versions: int | Iterable[int] = 1, factor: bool = True) -> Case:
    body = {"timeout_ms": LONG_MS, "allow_replication_factor_change": factor, "topics": list(topics)}
    return Case(name, "AlterPartitionReassignments", versions, body)


MOVE = [
    move("every kind of place", ("k-a", PLACES), ("nope", [(0, [1])]), ("k-b", []), versions=range(2)),
    move("without a change of the factor", ("k-a", PLACES), factor=False),
    move("no topic", factor=False),
    move("to where it is", ("k-a", [(0, [1])])),
    Case("all moves", "ListPartitionReassignments", 0, (1000, None)),
    Case("some moves", "ListPartitionReassignments", 0, (1000, [("k-a", [0, 9]), ("nope", [0])])),
    Case("moves of nothing", "ListPartitionReassignments", 0, (1000, [])),
]


def directory(more: str = "") -> Callable[[Any], str]:
    return lambda target: target.data_dir + more


HERE = directory()
DIRECTORIES = [
    Case("all directories", "DescribeLogDirs", range(1, 6), (None,)),
    Case("no partition's", "DescribeLogDirs", range(1, 6), ([],)),
    Case("some partitions'", "DescribeLogDirs", range(1, 6), ([("k-a", [0, 1, 9]), ("nope", [0]), ("k-b", [])],)),
    *(
        Case(name, "AlterReplicaLogDirs", (1, 2), (rows,))
        for name, rows in {
            "to the same directory": [(HERE, [("k-a", [0])])],
            "unknown partitions": [(HERE, [("k-a", [0, 9]), ("nope", [0])])],
            "an unknown directory": [("/nope", [("k-a", [1])])],
            "a relative directory": [("rel", [("k-a", [2])])],
            "a slash at its end": [(directory("/"), [("k-b", [0])])],
            "to two directories": [(HERE, [("k-a", [0])]), ("/nope", [("k-a", [0])])],
            "a topic twice": [(HERE, [("k-a", [0]), ("k-a", [1])]), (HERE, [("k-a", [2])])],
            "no directory": [],
            "no topic": [(HERE, [])],
            "no partition": [(HERE, [("k-a", [])])],
        }.items()
    ),
]


def feature(name: str, *rows: Any, versions: int | Iterable[int] = 2, validate: bool = True) -> Case:
    """A row of UpdateFeatures; a feature is (name, level, allow downgrade in v0, type of upgrade since v1)."""
    return Case(name, "UpdateFeatures", versions, (5000, [(*row, False, 1)[:4] for row in rows], validate))


UP, SAFE, UNSAFE = 1, 2, 3
LEVELS = [
    *(("metadata.version", level, UP) for level in (30, 31, 29, -1)),
    *(("metadata.version", level, SAFE) for level in (29, 7, 6, 0)),
    ("metadata.version", 29, UNSAFE),
    *(("nope", level, kind) for level, kind in ((1, UP), (0, SAFE), (0, UP))),
    ("", 1, UP),
    *(("group.version", level, kind) for level, kind in ((1, UP), (0, UP), (0, SAFE), (0, UNSAFE), (2, UP))),
    *(("group.version", 1, kind) for kind in (0, 4, SAFE)),
    *(("kraft.version", level, kind) for level, kind in ((1, UP), (0, UP), (0, SAFE), (2, UP))),
    *(("transaction.version", level, kind) for level, kind in ((2, SAFE), (1, SAFE), (0, UNSAFE), (3, UP))),
    *(("share.version", level, kind) for level, kind in ((0, SAFE), (1, UP), (2, UP))),
    ("streams.version", 0, SAFE),
    ("eligible.leader.replicas.version", 0, SAFE),
]
BOTH = range(1, 3)
FEATURES = [
    *(feature(f"{name} to {level}, type {kind}", (name, level, False, kind)) for name, level, kind in LEVELS),
    feature("no feature", versions=range(3)),
    feature("one unknown", ("group.version", 1), ("nope", 1), versions=BOTH),
    feature("two known", ("group.version", 1), ("share.version", 1), versions=BOTH),
    feature("a feature twice", ("group.version", 1), ("group.version", 1), versions=BOTH),
    feature("oldest version, one unknown", ("group.version", 1), ("nope", 1), versions=0),
    feature("oldest version, less than now", ("group.version", 0, True), versions=0),
    feature("oldest version, as now", ("group.version", 1, True), versions=0),
]

SCRIPT = Script(
    "cluster", [*DESCRIBE, *ELECT, *MOVE, *DIRECTORIES, *FEATURES], {"k-a": (3, {}), "k-b": (2, {}), "k-c": (1, {})}
)
