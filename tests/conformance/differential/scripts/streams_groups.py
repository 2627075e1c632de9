"""Streams groups: topologies, internal topics, tasks, fencing, descriptions, commits, and other kinds of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.differential.case import LONG_MS, Case, Script

LINES, USERS = "st-lines", "st-users"
GROUP, CLASSIC, MISSING = "st-group", "st-classic", "st-missing"
GROUP_CONFIG = 32
NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
Part = dict[str, Any]


def part(name: str, *sources: str, **more: Any) -> Part:
    return {"subtopology_id": name, "source_topics": list(sources), **more}


def store(name: str, partitions: int = 0) -> tuple[str, int, int, list[tuple[str, str]]]:
    return name, partitions, 0, [("cleanup.policy", "compact")]


def beat(name: str, epoch: int, *, member: str = "m1", group: str = GROUP, settle_s: float = 0, **said: Any) -> Case:
    body = {"group_id": group, "member_id": member, "member_epoch": epoch, **said}
    return Case(name, "StreamsGroupHeartbeat", 0, body, settle_s=settle_s)


def join(name: str, *parts: Part, epoch: int = 0, **said: Any) -> Case:
    process = f"{said.get('member', 'm1')}-p"
    full = {"rebalance_timeout_ms": LONG_MS, "process_id": process, "client_tags": [], **NO_TASKS}
    return beat(name, 0, **{"topology": (epoch, [*parts]), **full, **said})


def owns(active: dict[str, Sequence[int]], standby: dict[str, Sequence[int]] | None = None) -> dict[str, Any]:
    rows = {"active_tasks": active, "standby_tasks": standby or {}, "warmup_tasks": {}}
    return {name: [(one, list(indexes)) for one, indexes in tasks.items()] for name, tasks in rows.items()}


def describe(name: str, *groups: str, operations: bool = True) -> Case:
    return Case(name, "StreamsGroupDescribe", 0, (list(groups), operations))


def setting(name: str, key: str, value: str, settle_s: float = 0.0) -> Case:
    body = {"resources": [(GROUP_CONFIG, GROUP, [(f"streams.{key}", 0, value)])]}
    return Case(name, "IncrementalAlterConfigs", 1, body, settle_s=settle_s)


def commit(name: str, member: str, epoch: int, versions: Any = 9, topic: str = LINES) -> Case:
    rows = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    body = {"group_id": GROUP, "generation_id_or_member_epoch": epoch, "member_id": member, "topics": rows}
    return Case(name, "OffsetCommit", versions, body)


def others(what: str) -> list[Case]:
    """Requests that have no business with a streams group."""
    consumer = {"rebalance_timeout_ms": LONG_MS, "subscribed_topic_names": [LINES], "topic_partitions": []}
    return [
        Case(f"{what}: SyncGroup", "SyncGroup", 5, {"group_id": GROUP, "generation_id": 1, "member_id": "m1"}),
        Case(f"{what}: Heartbeat", "Heartbeat", 4, {"group_id": GROUP, "generation_id": 1, "member_id": "m1"}),
        Case(f"{what}: LeaveGroup", "LeaveGroup", 5, {"group_id": GROUP, "members": [("m1", None)]}),
        Case(f"{what}: consumer", "ConsumerGroupHeartbeat", 1, {"group_id": GROUP, "member_id": "c1", **consumer}),
        Case(f"{what}: OffsetDelete", "OffsetDelete", 0, (GROUP, [(LINES, [(0,)]), (USERS, [(0,)])])),
        Case(f"{what}: OffsetFetch", "OffsetFetch", 9, {"groups": [{"group_id": GROUP, "topics": None}]}),
        Case(f"{what}: DescribeGroups", "DescribeGroups", (5, 6), ([GROUP],)),
        Case(f"{what}: ConsumerGroupDescribe", "ConsumerGroupDescribe", 1, ([GROUP],)),
        Case(f"{what}: ListGroups", "ListGroups", 5, {"types_filter": ["streams"]}),
        Case(f"{what}: by state", "ListGroups", 5, {"types_filter": ["streams"], "states_filter": ["NotReady"]}),
    ]


CLASSIC_JOIN = {
    "group_id": GROUP,
    "protocols": [("range", b"")],
    "session_timeout_ms": LONG_MS,
    "rebalance_timeout_ms": LONG_MS,
    "protocol_type": "consumer",
}
WORDS = (
    part("0", LINES, repartition_sink_topics=["st-words"]),
    part("1", repartition_source_topics=[("st-words", 0, 0, [])], state_changelog_topics=[store("st-counts")]),
)
EVERYTHING = {"0": [0, 1], "1": [0, 1]}


def refused() -> list[Case]:
    together = [{"source_topics": [0, 1], "source_topic_regex": [], "repartition_source_topics": []}]
    return [
        join("no member id", *WORDS, member=""),
        join("no group id", *WORDS, group=""),
        join("an empty rack", *WORDS, rack_id=""),
        join("an instance", *WORDS, instance_id="i"),
        join("task offsets", *WORDS, task_offsets=[]),
        join("task end offsets", *WORDS, task_end_offsets=[]),
        join("warm-ups", *WORDS, warmup_tasks=[("0", [0])]),
        join("a pattern", part("0", source_topic_regex=["st-.*"])),
        join("no timeout", *WORDS, rebalance_timeout_ms=-1),
        join("active tasks", *WORDS, active_tasks=[("0", [0])]),
        join("standby tasks", *WORDS, standby_tasks=[("0", [0])]),
        join("not all kinds of tasks", *WORDS, standby_tasks=None),
        join("no topology", topology=None),
        join("a changelog with partitions", part("0", LINES, state_changelog_topics=[store("st-counts", 2)])),
        join("an internal topic", part("0", "__consumer_offsets")),
        join("an illegal name", part("0", "a/b")),
        join("a topic that nobody writes", part("0", LINES), part("1", repartition_source_topics=[("x", 0, 0, [])])),
        join("a loop", part("0", repartition_source_topics=[("x", 0, 0, [])], repartition_sink_topics=["x"])),
        beat("epoch -2", -2),
        beat("epoch -3", -3),
        beat("a topology later", 1, topology=(0, [])),
        beat("not there yet", 1),
        beat("leave what is not there", -1),
        join("copartitioned", part("0", LINES, USERS, copartition_groups=together), group="st-copartitioned"),
        join("without sources", part("0", "st-none", "st-more", "st-most", "st-last"), group="st-sourceless"),
        describe("what these are", "st-copartitioned", "st-sourceless"),
        beat("leave the one", -1, group="st-copartitioned"),
        beat("leave the other", -1, group="st-sourceless"),
        Case("delete them", "DeleteGroups", 2, (["st-copartitioned", "st-sourceless"],)),
    ]


def two_members() -> list[Case]:
    """Tasks move from one to the other, get standbys, and come back. The first member is in epoch 4."""
    first, second = {"0": [0], "1": [0]}, {"0": [1], "1": [1]}
    return [
        join("a second member", *WORDS, member="m2", user_endpoint=("host", 80)),
        beat("give up half", 4),
        beat("not yet given up", 4, **owns(EVERYTHING)),
        beat("the other waits", 5, member="m2", **NO_TASKS),
        describe("in between", GROUP),
        beat("given up", 4, **owns(first)),
        beat("the other gets it", 5, member="m2", **NO_TASKS),
        commit("commit in the epoch before", "m1", 4),
        beat("who serves what", 5, endpoint_information_epoch=-1, **owns(first)),
        setting("standbys", "num.standby.replicas", "1", settle_s=2.0),
        beat("standbys of the first", 5, **owns(first)),
        beat("standbys of the second", 5, member="m2", **owns(second)),
        describe("with standbys", GROUP),
        beat("the second leaves", -1, member="m2"),
        beat("give up the standby", 6, **owns(first, {"1": [1]})),
        beat("no standby any more", 6, **owns(first)),
        beat("all tasks again", 7, **owns({"0": [0, 1], "1": [0]})),
        beat("all of them", 7, **owns(EVERYTHING)),
        describe("alone again", GROUP),
        Case(
            "a topic grows", "CreatePartitions", 3, {"topics": [(LINES, 3, None)], "timeout_ms": LONG_MS}, settle_s=1.0
        ),
        beat("the changelog does not fit", 7, **owns(EVERYTHING)),
        describe("not ready", GROUP),
        beat("nothing left", 7, **NO_TASKS),
    ]


CASES = [
    Case("who has the group", "FindCoordinator", 6, {"key_type": 0, "coordinator_keys": [GROUP, CLASSIC]}),
    Case("groups that are not there", "DescribeGroups", 6, ([GROUP, CLASSIC, MISSING],)),
    # Targets are computed at once, so that epochs go by requests and not by time.
    setting("targets at once", "assignment.interval.ms", "0"),
    setting("a delay", "initial.rebalance.delay.ms", "1500"),
    setting("a longer interval", "heartbeat.interval.ms", "6000"),
    setting("an interval that is too long", "heartbeat.interval.ms", "100000"),
    setting("a session that is too short", "session.timeout.ms", "1"),
    setting("too many standbys", "num.standby.replicas", "9"),
    Case(
        "settings of the group", "DescribeConfigs", 4, {"resources": [(GROUP_CONFIG, GROUP)], "include_synonyms": True}
    ),
    *refused(),
    join("join", *WORDS, settle_s=2.5, rack_id="r1", client_tags=[("zone", "a")]),
    beat("internal topics are there", 1),
    describe("with tasks", GROUP, MISSING),
    describe("no name", ""),
    describe("without operations", GROUP, operations=False),
    beat("nothing new", 3),
    beat("with tasks", 3, **owns(EVERYTHING)),
    beat("an answer was lost", 1, **owns({})),
    beat("an answer was lost, and it owns too much", 1, **owns({"0": [0, 1, 2]})),
    beat("an epoch to come", 9),
    beat("an old epoch", 2),
    beat("a stranger", 3, member="m9"),
    beat("a stranger leaves", -1, member="m9"),
    beat("a task that is not there", 3, **owns({"0": [2]})),
    beat("a subtopology that is not there", 3, **owns({"7": [0]})),
    commit("commit", "m1", 3, (8, 9)),
    commit("commit in an epoch to come", "m1", 4),
    commit("commit by nobody", "", -1),
    commit("commit by a stranger", "m9", 3),
    join("join with another topology", part("0", LINES), member="m2"),
    join("join again", *WORDS),
    describe("as before", GROUP),
    *others("with members"),
    Case("with members: JoinGroup", "JoinGroup", 9, CLASSIC_JOIN),
    Case("delete with members", "DeleteGroups", 2, ([GROUP],)),
    *two_members(),
    beat("shut down", 8, shutdown_application=True),
    beat("leave", -1),
    describe("an empty group", GROUP),
    *others("empty"),
    commit("commit to an empty group", "", -1),
    join("join a group of another kind", *WORDS, group=CLASSIC),
    beat("leave it", -1, group=CLASSIC),
    Case("delete", "DeleteGroups", 2, ([GROUP, CLASSIC, MISSING],)),
    describe("gone", GROUP),
    Case("offsets of a simple group", "OffsetCommit", 9, {"group_id": GROUP, "topics": []}),
    join("join a simple group", *WORDS, settle_s=2.0),
    beat("go on", 1),
    beat("leave for good", -1),
    Case("an empty group becomes classic", "JoinGroup", 9, {**CLASSIC_JOIN, "member_id": "x"}),
]

SCRIPT = Script("streams groups", CASES, topics={LINES: (2, {}), USERS: (3, {})})
