"""Settings of topics, brokers, loggers, groups and client metrics: described, changed one by one, replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from tests.conformance.differential.case import Case, Script

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
SIGN = {SET: "=", DELETE: "deleted", APPEND: "+=", SUBTRACT: "-=", 4: "??"}


def change(name: str, *resources: Any, validate: bool = False, version: int = 1) -> Case:
    """A row of IncrementalAlterConfigs; a resource is (type, name, changes)."""
    return Case(name, "IncrementalAlterConfigs", version, (list(resources), validate), settle_s=settling(resources))


def replace(name: str, *resources: Any, validate: bool = False, version: int = 2) -> Case:
    """A row of AlterConfigs."""
    return Case(name, "AlterConfigs", version, (list(resources), validate), settle_s=settling(resources))


def settling(resources: Iterable[Any]) -> float:
    """Settings of brokers are judged by the broker, beside those it has heard of; all others by the controller."""
    return 0.06 if any(kind == BROKER for kind, *_ in resources) else 0.0


def describe(name: str, *resources: Any, synonyms: bool = True, documentation: bool = False, versions: Any = 4) -> Case:
    """A row of DescribeConfigs; a resource is (type, name, settings or null)."""
    return Case(name, "DescribeConfigs", versions, (list(resources), synonyms, documentation))


def each(kind: int, name: str, rows: Any) -> list[Case]:
    """A request for each change: (setting, operation, value)."""
    return [
        change(f"{setting or 'no name'} {SIGN[operation]} {value!r}", (kind, name, [(setting, operation, value)]))
        for setting, operation, value in rows
    ]


def now(kind: int, name: str, versions: Any = 4) -> Case:
    return describe(f"what {name or 'all brokers'} has", (kind, name, None), versions=versions)


DESCRIBED = [
    describe("a topic", (TOPIC, "g", None), versions=range(1, 5)),
    describe("a topic without synonyms", (TOPIC, "g", None), synonyms=False, versions=range(1, 5)),
    describe("a topic with documentation", (TOPIC, "g", None), documentation=True, versions=(3, 4)),
    describe("an empty list", (TOPIC, "g", [])),
    describe("some settings", (TOPIC, "g", ["retention.ms", "nope", "cleanup.policy", "retention.ms"])),
    describe("an unknown setting", (TOPIC, "g", ["nope"])),
    describe("unknown topics", (TOPIC, "nope", None), (TOPIC, "b/ad", None), (TOPIC, "..", None), (TOPIC, "", None)),
    *(describe(f"resource type {n}", (n, "x", None)) for n in (0, 1, 3, 5, 64, -1)),
    describe("a good and a bad one", (TOPIC, "g", ["retention.ms"]), (3, "x", None)),
    describe("a topic twice", (TOPIC, "g", ["retention.ms"]), (TOPIC, "g", ["retention.ms"])),
    describe("nothing"),
    describe("client metrics", (METRICS, "m", None), (METRICS, "", None)),
    describe("groups", (GROUP, "g", None), (GROUP, "", None), documentation=True),
]

RETENTION = [
    *(("retention.ms", SET, value) for value in ("abc", "-2", None, " 77 ", "", "1.5", "+5", "9" * 22)),
    ("retention.ms", DELETE, None),
    ("retention.ms", DELETE, "5"),
    ("retention.ms", APPEND, "5"),
    ("retention.ms", SUBTRACT, "5"),
    ("retention.ms", 4, "5"),
]
NAMES = [
    ("nope", SET, "1"),
    ("nope", DELETE, None),
    ("nope", APPEND, "1"),
    ("", SET, "1"),
    ("log.retention.ms", SET, "1"),
]
LISTS = [
    ("cleanup.policy", SET, "foo"),
    ("cleanup.policy", APPEND, "compact"),
    ("cleanup.policy", APPEND, "compact"),
    ("cleanup.policy", SUBTRACT, "delete"),
    ("cleanup.policy", SUBTRACT, "compact"),
    ("cleanup.policy", APPEND, None),
    ("cleanup.policy", DELETE, None),
    *(("cleanup.policy", SET, value) for value in ("", "compact, delete", "compact,compact", ",", "compact,")),
    ("cleanup.policy", APPEND, "foo"),
    *(("leader.replication.throttled.replicas", SET, value) for value in ("*", "0:1,x", "0:1,1:1")),
    ("leader.replication.throttled.replicas", APPEND, "2:1"),
    ("leader.replication.throttled.replicas", SUBTRACT, "0:1"),
    ("follower.replication.throttled.replicas", SET, ""),
]
OTHERS = {
    "compression.gzip.level": ("0", "9"),
    "compression.lz4.level": ("18",),
    "compression.type": ("GZIP", "gzip"),
    "compression.zstd.level": ("-5", "23"),
    "delete.retention.ms": ("-1",),
    "errors.deadletterqueue.topic.name": ("x",),
    "file.delete.delay.ms": ("-1",),
    "flush.messages": ("0",),
    "flush.ms": ("0",),
    "index.interval.bytes": ("-1",),
    "internal.segment.bytes": ("1000",),
    "local.retention.ms": ("-3",),
    "max.compaction.lag.ms": ("0",),
    "max.message.bytes": ("2147483648", "-1"),
    "message.format.version": ("1.0",),
    "message.timestamp.before.max.ms": ("-1",),
    "message.timestamp.type": ("LogAppendTime", "logappendtime"),
    "min.cleanable.dirty.ratio": ("2", "0.25", "x", "NaN"),
    "min.compaction.lag.ms": ("-1",),
    "min.insync.replicas": ("0", "3"),
    "preallocate": ("TRUE", "yes"),
    "remote.log.copy.disable": ("true",),
    "remote.storage.enable": ("true",),
    "segment.bytes": ("10", "1048576"),
    "segment.index.bytes": ("3",),
    "segment.jitter.ms": ("-1",),
    "segment.ms": ("0",),
    "unclean.leader.election.enable": ("true",),
}


def topic(name: str, *changes: Any, validate: bool = False) -> Case:
    return change(name, (TOPIC, "g", list(changes)), validate=validate)


ONE = [("retention.ms", SET, "5")]
TOGETHER = [
    topic("a setting twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    topic("lags that contradict", ("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "50")),
    topic("more local than in all", ("retention.bytes", SET, "5"), ("local.retention.bytes", SET, "50")),
    topic("a good and a bad one", ("segment.ms", SET, "5"), ("nope", SET, "50")),
    topic("in thought", ("segment.ms", SET, "5"), validate=True),
    topic("no change"),
    change("oldest version", (TOPIC, "g", [("segment.ms", SET, "77777")]), version=0),
    change(
        "unknown topics and a known one",
        *((TOPIC, name, ONE) for name in ("nope", "b/ad", "")),
        (TOPIC, "nope2", [("xx", SET, "5")]),
        (TOPIC, "g", [("segment.ms", SET, "99999")]),
    ),
    change("a topic twice", (TOPIC, "g", ONE), (TOPIC, "g", ONE)),
    change("resource types", *((n, "x", []) for n in (0, 1, 3, 64)), (-1, "x", [("a", SET, "b")])),
    change("nothing"),
    change("no change of an unknown topic", (TOPIC, "nope", [])),
    change("no change without a name", (TOPIC, "", [])),
    change("deletion in an unknown topic", (TOPIC, "nope", [("retention.ms", DELETE, None)])),
    change("addition in an illegal topic", (TOPIC, "b/ad", [("retention.ms", APPEND, "1")])),
]
REPLACED = [
    replace("one setting", (TOPIC, "g", [("retention.ms", "5000")])),
    now(TOPIC, "g"),
    replace("null", (TOPIC, "g", [("retention.ms", None)])),
    replace("an unknown setting", (TOPIC, "g", [("nope", "5")])),
    replace("a wrong value", (TOPIC, "g", [("retention.ms", "x")])),
    replace("a setting twice, replaced", (TOPIC, "g", [("retention.ms", "5"), ("retention.ms", "6")])),
    replace("nothing left, in thought", (TOPIC, "g", []), validate=True),
    replace(
        "every kind of resource",
        (TOPIC, "nope", [("retention.ms", "5000")]),
        (TOPIC, "g", []),
        (LOGGER, "1", [("root", "INFO")]),
        (BROKER, "2", []),
        (BROKER, "x", []),
        (TOPIC, "", []),
        (TOPIC, "a/b", []),
        (GROUP, "", []),
        (METRICS, "", []),
        (GROUP, "k", []),
        (3, "x", []),
    ),
    now(TOPIC, "g"),
    dataclasses.replace(replace("a topic twice, replaced", (TOPIC, "g", []), (TOPIC, "g", [])), patience_s=1.0),
    replace("no resource"),
    replace("an unknown topic", (TOPIC, "nope", [])),
    replace("an unknown topic, in thought", (TOPIC, "nope", []), validate=True),
    *(replace(f"in version {v}", (TOPIC, "g", [("retention.ms", "5000")]), version=v) for v in (0, 1)),
    replace("all to defaults", (TOPIC, "g", [])),
]

TOPICS = Script(
    "settings of topics",
    [
        *DESCRIBED,
        *each(TOPIC, "g", [("retention.ms", SET, "1000")]),
        now(TOPIC, "g"),
        *each(TOPIC, "g", [*RETENTION, *NAMES, *LISTS]),
        *each(TOPIC, "g", [(name, SET, value) for name, values in OTHERS.items() for value in values]),
        now(TOPIC, "g"),
        *TOGETHER,
        now(TOPIC, "g"),
        *REPLACED,
        now(TOPIC, "g"),
    ],
    {"g": (1, {})},
    slow=True,
)

GROUPS = [
    *(("consumer.session.timeout.ms", SET, value) for value in ("50000", "1", "500000")),
    *(("consumer.heartbeat.interval.ms", SET, value) for value in ("50001", "6000")),
    *(("share.auto.offset.reset", SET, value) for value in ("earliest", "foo", "by_duration:PT1H", "by_duration:x")),
    *(("share.isolation.level", SET, value) for value in ("read_committed", "x")),
    *(("share.record.lock.duration.ms", SET, value) for value in ("1", "20000")),
    *(("share.delivery.count.limit", SET, value) for value in ("3", "100")),
    *(("streams.num.standby.replicas", SET, value) for value in ("1", "9")),
    ("streams.session.timeout.ms", SET, "1"),
    ("share.heartbeat.interval.ms", SET, "x"),
    ("share.session.timeout.ms", SET, "50000"),
    ("streams.initial.rebalance.delay.ms", SET, "-1"),
    ("consumer.session.timeout.ms", APPEND, "1"),
    ("consumer.session.timeout.ms", DELETE, None),
    ("nope", SET, "1"),
    ("nope", DELETE, None),
    ("streams.task.offset.interval.ms", SET, "1"),
    ("share.partition.max.record.locks", SET, "1"),
]
METRIC = [
    *(("interval.ms", SET, value) for value in ("5000", "1", "3600001", "x")),
    *(("metrics", SET, value) for value in ("a,b", "", "*")),
    ("metrics", APPEND, "c"),
    *(
        ("match", SET, value)
        for value in (
            "client_id=x",
            "foo",
            "foo=x",
            "client_id=[",
            "client_id=a,client_software_name=b.*",
            "client_id=a,client_id=b",
        )
    ),
    ("nope", SET, "x"),
    ("nope", DELETE, None),
]
GONE = [("interval.ms", DELETE, None), ("metrics", DELETE, None), ("match", DELETE, None)]


def resources(name: str, *kinds: int) -> Case:
    return Case(name, "ListConfigResources", 1, (list(kinds),))


CLIENTS = Script(
    "settings of clients",
    [
        *each(GROUP, "g1", GROUPS),
        now(GROUP, "g1"),
        change("a group without a name", (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")])),
        *each(METRICS, "m1", METRIC),
        now(METRICS, "m1"),
        change("metrics without a name", (METRICS, "", [("interval.ms", SET, "5000")])),
        change(
            "three at once",
            (METRICS, "m1", [("interval.ms", SET, "5000"), ("metrics", SET, "a"), ("match", SET, "client_id=x")]),
        ),
        now(METRICS, "m1"),
        Case("resources of v0", "ListConfigResources", 0),
        resources("all resources"),
        *(resources(f"resources of type {n}", n) for n in (0, 1, TOPIC, BROKER, LOGGER, METRICS, GROUP, 64)),
        resources("a good and a bad type", TOPIC, 3),
        resources("a type twice", TOPIC, TOPIC, GROUP),
        change("all metrics go", (METRICS, "m1", GONE)),
        now(METRICS, "m1"),
        replace("all of the group goes", (GROUP, "g1", [])),
        now(GROUP, "g1"),
        resources("what is left"),
    ],
)
