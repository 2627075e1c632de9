"""Committed offsets: commits, fetches and deletions in all versions, with and without members; wrong requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.conformance.differential.case import Case, Script, topic_id
from tests.conformance.differential.scripts.classic_groups import TIMEOUTS, join, lead, leave, member, subscription

TOPIC = "go"
Versions = int | Iterable[int]
COMMITS, FETCHES = range(2, 11), range(1, 11)
BY_ID, BATCHED = 10, 8
LIMIT = 4096  # offset.metadata.max.bytes


def rows(topic: str, *partitions: Any) -> list[dict[str, Any]]:
    return [{"name": topic, "topic_id": topic_id(topic), "partitions": list(partitions)}]


def at(index: int, offset: int, metadata: str | None = "", epoch: int = -1) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": offset,
        "committed_leader_epoch": epoch,
        "committed_metadata": metadata,
    }


def commit(
    name: str, *partitions: Any, group: str = "go-a", versions: Versions = 10, topic: str = TOPIC, **fields: Any
) -> Case:
    body = {"group_id": group, "topics": rows(topic, *partitions)}
    return Case(name, "OffsetCommit", versions, body | fields)


def fetch(name: str, *indexes: int, group: str = "go-a", topic: str | None = TOPIC, stable: bool = False) -> list[Case]:
    """In all versions; all offsets of the group without a topic."""
    wanted = topic and [{"name": topic, "topic_id": topic_id(topic), "partition_indexes": list(indexes)}]
    single = {"group_id": group, "topics": topic and [(topic, list(indexes))], "require_stable": stable}
    many = {"groups": [(group, None, -1, wanted)], "require_stable": stable}
    return [
        Case(name, "OffsetFetch", range(1 if topic else 2, BATCHED), single),
        Case(name, "OffsetFetch", range(BATCHED, 11), many),
    ]


def fetch_as(name: str, who: str, epoch: int, group: str = "go-m") -> Case:
    wanted = [{"name": TOPIC, "topic_id": topic_id(TOPIC), "partition_indexes": [0]}]
    return Case(name, "OffsetFetch", (9, 10), {"groups": [(group, member(who), epoch, wanted)]})


def forget(name: str, *indexes: int, group: str = "go-a", topic: str = TOPIC) -> Case:
    return Case(name, "OffsetDelete", 0, (group, [(topic, [(index,) for index in indexes])]))


ALONE = [
    *fetch("a group that is not there", 0),
    *fetch("all of a group that is not there", topic=None),
    commit("commits", at(0, 5, "m"), at(1, 6, None, 0), versions=COMMITS),
    commit("commits with a time", at(0, 6, "m"), versions=range(2, 5), retention_time_ms=100_000),
    *fetch("fetches", 0, 1, 2, 9),
    *fetch("fetches all", topic=None),
    *fetch("fetches what is stable", 0, stable=True),
    *fetch("fetches an unknown topic", 0, topic="nope"),
    *fetch("fetches no partition"),
    commit("an unknown partition", at(9, 5), at(0, 7), versions=COMMITS),
    commit("an unknown topic", at(0, 5), topic="nope", versions=COMMITS),
    commit("the longest metadata", at(0, 5, "x" * LIMIT), versions=COMMITS),
    commit("longer metadata", at(0, 5, "x" * (LIMIT + 1)), at(1, 9), versions=COMMITS),
    commit("long metadata of few letters", at(0, 5, "ä" * (LIMIT - 1)), versions=COMMITS),
    *(commit(f"offset {offset}", at(0, offset), versions=(2, 10)) for offset in (-1, -2, 0, 2**63 - 1)),
    commit("leader epoch 7", at(0, 8, "", 7), versions=(6, 10)),
    commit("a partition twice", at(0, 8), at(0, 9)),
    commit("nothing"),
    Case("no topic", "OffsetCommit", COMMITS, {"group_id": "go-a"}),
    commit("a generation of nobody", at(0, 5), versions=COMMITS, generation_id_or_member_epoch=3),
    commit("a member of nobody", at(0, 5), versions=COMMITS, member_id="m"),
    commit("an instance of nobody", at(0, 5), versions=(7, 10), group_instance_id="i"),
    commit("no group", at(0, 5), group="", versions=COMMITS),
    *fetch("of no group", 0, group=""),
    commit("a group that is not there with a generation", at(0, 5), group="go-z", generation_id_or_member_epoch=3),
    commit("a group with a long id", at(0, 5), group="g" * 30_000, versions=(2, 10)),
    *fetch("a group with a long id", 0, group="g" * 30_000),
]

MEMBERS = [
    join("joins", "go1", "go-m", 3, protocols=[("range", subscription(TOPIC))], **TIMEOUTS),
    commit("before the sync", at(0, 5), group="go-m", member_id=member("go1"), generation_id_or_member_epoch=1),
    lead("syncs", "go1", "go-m", 1),
    *(
        commit(f"{name}", at(0, 5), group="go-m", versions=COMMITS, **fields)
        for name, fields in {
            "as a member": {"member_id": member("go1"), "generation_id_or_member_epoch": 1},
            "in a generation to come": {"member_id": member("go1"), "generation_id_or_member_epoch": 2},
            "without a generation": {"member_id": member("go1")},
            "as nobody": {},
            "as a stranger": {"member_id": "mx", "generation_id_or_member_epoch": 1},
        }.items()
    ),
    commit("as an instance", at(0, 5), group="go-m", versions=(7, 10), member_id=member("go1"), group_instance_id="i"),
    fetch_as("fetches as a member", "go1", 1),
    fetch_as("fetches in an epoch to come", "go1", 7),
    fetch_as("fetches as a stranger", "mx", 1),
    forget("what it reads", 0, group="go-m"),
    Case("it is not empty", "DeleteGroups", 2, {"groups_names": ["go-m"]}),
    leave("leaves", "go-m", "go1"),
    commit("when it has left", at(0, 5), group="go-m", member_id=member("go1"), generation_id_or_member_epoch=1),
    commit("after all", at(0, 7), group="go-m"),
    forget("what nobody reads", 0, 9, group="go-m"),
    *fetch("forgotten", 0, group="go-m"),
]

LARGE = [at(0, 5, "x" * LIMIT) for _ in range(300)]  # more than the offsets topic takes in one batch
ENDS = [
    commit("more than fits", *LARGE, versions=(2, 10)),
    forget("of no group", 0, group=""),
    forget("of an unknown group", 0, group="go-none"),
    forget("an unknown topic", 0, topic="nope"),
    forget("some", 0, 9),
    *fetch("what is left", 0, 1),
    Case("deleted", "DeleteGroups", 2, {"groups_names": ["go-a", "go-m"]}),
    *fetch("nothing is left", 0, 1),
    Case("no empty group", "ListGroups", 5, {"types_filter": ["classic"], "states_filter": ["Nope"]}),
]

SCRIPT = Script(
    "group offsets",
    [
        Case("who coordinates", "FindCoordinator", 4, {"coordinator_keys": ["go-a", "go-m"]}),
        Case("before anything", "DescribeGroups", 5, {"groups": ["go-a", "go-m"]}),
        *ALONE,
        *MEMBERS,
        *ENDS,
    ],
    {TOPIC: (3, {})},
)
