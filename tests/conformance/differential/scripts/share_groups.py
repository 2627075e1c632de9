"""Share groups: heartbeats, fencing, descriptions, offsets that are described, altered and deleted, and other kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance.differential.case import LONG_MS, Case, Script

TOPIC, OTHER = "sg", "sg-other"
GROUP, NEW, CLASSIC, MISSING = "sg-group", "sg-new", "sg-classic", "sg-missing"
GROUP_CONFIG, SHARE_COORDINATOR = 32, 2
PARTITION = f"{GROUP}:{'A' * 22}:0"  # how a share partition is named to its coordinator


def beat(name: str, epoch: int, *, member: str = "m1", group: str = GROUP, **said: Any) -> Case:
    return Case(name, "ShareGroupHeartbeat", 1, {"group_id": group, "member_id": member, "member_epoch": epoch, **said})


def join(name: str, *topics: str, **said: Any) -> Case:
    return beat(name, 0, subscribed_topic_names=list(topics), **said)


def describe(name: str, *groups: str, operations: bool = True) -> Case:
    return Case(name, "ShareGroupDescribe", 1, (list(groups), operations))


def offsets(name: str, *groups: tuple[str, Any]) -> Case:
    return Case(name, "DescribeShareGroupOffsets", (0, 1), ([*groups],))


def alter(name: str, *topics: tuple[str, Mapping[int, int]], group: str = GROUP) -> Case:
    return Case(name, "AlterShareGroupOffsets", 0, (group, [(topic, [*starts.items()]) for topic, starts in topics]))


def delete_offsets(name: str, *topics: str, group: str = GROUP) -> Case:
    return Case(name, "DeleteShareGroupOffsets", 0, (group, [(topic,) for topic in topics]))


def delete_groups(name: str, *groups: str) -> Case:
    return Case(name, "DeleteGroups", 2, (list(groups),))


def others(what: str) -> list[Case]:
    """Requests that have no business with a share group."""
    protocol = [("range", b"")]
    join = {"session_timeout_ms": LONG_MS, "rebalance_timeout_ms": LONG_MS, "protocol_type": "consumer"}
    row: Callable[..., Case] = Case
    return [
        row(f"{what}: JoinGroup", "JoinGroup", 9, {"group_id": GROUP, "protocols": protocol, **join}),
        row(f"{what}: SyncGroup", "SyncGroup", 5, {"group_id": GROUP, "generation_id": 1, "member_id": "m1"}),
        row(f"{what}: Heartbeat", "Heartbeat", 4, {"group_id": GROUP, "generation_id": 1, "member_id": "m1"}),
        row(f"{what}: LeaveGroup", "LeaveGroup", 5, {"group_id": GROUP, "members": [("m1", None)]}),
        row(
            f"{what}: ConsumerGroupHeartbeat",
            "ConsumerGroupHeartbeat",
            1,
            {
                "group_id": GROUP,
                "member_id": "c1",
                "rebalance_timeout_ms": LONG_MS,
                "subscribed_topic_names": [TOPIC],
                "topic_partitions": [],
            },
        ),
        row(f"{what}: OffsetCommit", "OffsetCommit", (8, 9), {"group_id": GROUP, "topics": [commit(TOPIC)]}),
        row(f"{what}: OffsetDelete", "OffsetDelete", 0, (GROUP, [(TOPIC, [(0,)])])),
        row(f"{what}: OffsetFetch", "OffsetFetch", 9, {"groups": [{"group_id": GROUP, "topics": None}]}),
        row(f"{what}: DescribeGroups", "DescribeGroups", (5, 6), ([GROUP],)),
        row(f"{what}: ConsumerGroupDescribe", "ConsumerGroupDescribe", 1, ([GROUP],)),
        row(f"{what}: ListGroups", "ListGroups", 5, {"types_filter": ["share"]}),
    ]


def commit(topic: str) -> dict[str, Any]:
    return {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}


def setting(name: str, key: str, value: str) -> Case:
    return Case(name, "IncrementalAlterConfigs", 1, {"resources": [(GROUP_CONFIG, GROUP, [(key, 0, value)])]})


CASES = [
    # Both coordinators must be there: Kafka creates their topics when they are first asked for, and loads them.
    Case("who has the group", "FindCoordinator", 6, {"key_type": 0, "coordinator_keys": [GROUP, NEW, CLASSIC]}),
    Case("who has its states", "FindCoordinator", 6, {"key_type": SHARE_COORDINATOR, "coordinator_keys": [PARTITION]}),
    Case("groups that are not there", "DescribeGroups", 6, ([GROUP, NEW, CLASSIC, MISSING],)),
    # Targets are computed at once, so that epochs go by requests and not by time.
    setting("targets at once", "share.assignment.interval.ms", "0"),
    setting("a longer interval", "share.heartbeat.interval.ms", "6000"),
    setting("an interval that is too long", "share.heartbeat.interval.ms", "100000"),
    setting("a session that is too short", "share.session.timeout.ms", "1"),
    setting("locks that are too long", "share.record.lock.duration.ms", "10000000"),
    setting("too many deliveries", "share.delivery.count.limit", "11"),
    setting("earliest", "share.auto.offset.reset", "earliest"),
    setting("an hour ago", "share.auto.offset.reset", "by_duration:PT1H"),
    setting("an hour from now", "share.auto.offset.reset", "by_duration:-PT1H"),
    setting("whenever", "share.auto.offset.reset", "whenever"),
    setting("an isolation level", "share.isolation.level", "read_committed"),
    setting("another isolation level", "share.isolation.level", "READ_COMMITTED"),
    Case(
        "settings of the group", "DescribeConfigs", 4, {"resources": [(GROUP_CONFIG, GROUP)], "include_synonyms": True}
    ),
    join("without topics"),
    beat("without any topics", 0),
    join("no member id", TOPIC, member=""),
    join("no group id", TOPIC, group=""),
    join("an empty rack", TOPIC, rack_id=""),
    beat("epoch -2", -2),
    beat("not there yet", 1),
    beat("leave what is not there", -1),
    join("join", TOPIC, rack_id="r1"),
    offsets("states are there", (GROUP, None)),
    beat("partitions are given", 2),
    beat("nothing new", 3),
    beat("the answer was lost", 2),
    beat("an old epoch", 1),
    beat("an epoch to come", 4),
    beat("a stranger", 3, member="m2"),
    beat("a stranger leaves", -1, member="m2"),
    join("join again", TOPIC),
    beat("subscribe to nothing", 3, subscribed_topic_names=[]),
    beat("subscribe to two topics", 4, subscribed_topic_names=[TOPIC, OTHER, "sg-none"]),
    offsets("more states are there", (GROUP, None)),
    beat("partitions of both", 5),
    beat("subscribe to one", 6, subscribed_topic_names=[OTHER]),
    beat("go on", 7),
    join("another member", OTHER, member="m2"),
    describe("a group, none, and no name", GROUP, MISSING, ""),
    describe("without operations", GROUP, operations=False),
    *others("with members"),
    offsets(
        "asked for",
        (GROUP, []),
        (GROUP, [(TOPIC, [0, 1]), ("sg-none", [0])]),
        (MISSING, None),
        (MISSING, [(TOPIC, [0])]),
    ),
    alter("alter with members", (TOPIC, {0: 1})),
    delete_offsets("delete offsets with members", TOPIC),
    delete_groups("delete with members", GROUP),
    beat("leave", -1),
    beat("the last one leaves", -1, member="m2"),
    describe("an empty group", GROUP),
    *others("empty"),
    alter("alter", (TOPIC, {0: 5, 7: 1}), ("sg-none", {0: 0})),
    alter("below 0", (TOPIC, {1: -7})),
    alter("no partitions", (TOPIC, {})),
    alter("no topics"),
    alter("a topic twice", (OTHER, {0: 3}), (OTHER, {0: 4})),
    alter("no group", (TOPIC, {0: 1}), group=""),
    offsets("after that", (GROUP, None)),
    alter("a new group", (TOPIC, {0: 1}), group=NEW),
    describe("it is there", NEW),
    offsets("and has offsets", (NEW, None)),
    alter("a new group for nothing", ("sg-none", {0: 1}), group=MISSING),
    describe("it is not there", MISSING),
    delete_offsets("delete offsets", TOPIC, "sg-none", TOPIC),
    delete_offsets("again", TOPIC),
    delete_offsets("of no topics"),
    delete_offsets("of no group", TOPIC, group=MISSING),
    delete_offsets("without a group", TOPIC, group=""),
    offsets("what is left", (GROUP, None)),
    Case("a group that stores offsets", "OffsetCommit", 9, {"group_id": CLASSIC, "topics": [commit(TOPIC)]}),
    join("join a classic group", TOPIC, group=CLASSIC),
    beat("leave a classic group", -1, group=CLASSIC),
    alter("alter a classic group", (TOPIC, {0: 1}), group=CLASSIC),
    delete_offsets("delete offsets of a classic group", TOPIC, group=CLASSIC),
    describe("describe a classic group", CLASSIC),
    offsets("share offsets of a classic group", (CLASSIC, None)),
    join("back again", TOPIC),
    offsets("with new states", (GROUP, None)),
    Case("a topic goes", "DeleteTopics", 6, {"topics": [(OTHER,)], "timeout_ms": LONG_MS}, settle_s=1.0),
    offsets("its states go with it", (GROUP, None)),
    beat("leave for good", -1),
    delete_groups("delete", GROUP, NEW, MISSING),
    describe("gone", GROUP, NEW),
    offsets("without offsets", (GROUP, None), (GROUP, [(TOPIC, [0])])),
]

SCRIPT = Script("share groups", CASES, topics={TOPIC: (2, {}), OTHER: (1, {})})
