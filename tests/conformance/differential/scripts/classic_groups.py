"""Classic groups: members join, sync, go on, are replaced and leave, in all versions; wrong requests.

A script has one connection, so a rebalance of two members ends when one is removed for not joining in time. Only the
members of that group have a short rebalance timeout; all other members outlive any pause of a slow machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.wire import codec
from moldau.wire import messages as m
from tests.conformance.differential.case import LONG_MS, Case, Script

TOPIC = "cl"
Versions = int | Iterable[int]
TIMEOUTS = {"session_timeout_ms": LONG_MS, "rebalance_timeout_ms": LONG_MS}
REBALANCE_MS = 6_000  # Kafka waits for the longest timeout of all members
MEMBER_IDS_FROM = 4


def subscription(*topics: str, version: int = 0) -> bytes:
    return version.to_bytes(2) + codec.encode(m.ConsumerProtocolSubscription(list(topics)), version)


def assignment(*partitions: int, topic: str = TOPIC) -> bytes:
    rows = [m.ConsumerProtocolAssignment_TopicPartition(topic, list(partitions))]
    return bytes(2) + codec.encode(m.ConsumerProtocolAssignment(rows), 0)


RANGE = ("range", subscription(TOPIC))


def remember(who: str) -> Callable[[Any, Any], None]:
    """Keep the id that a member gets, under its name."""

    def keep(target: Any, answer: Any) -> None:
        if answer.member_id:
            target.kept[who] = answer.member_id

    return keep


def member(who: str) -> Callable[[Any], str]:
    """A member's id; a name that was not kept is the id itself."""
    return lambda target: target.kept.get(who, who)


def join(name: str, who: str, group: str, versions: Versions = 9, *, known: bool = False, **fields: Any) -> Case:
    told = {"group_id": group, "member_id": member(who) if known else "", "protocol_type": "consumer"}
    body = told | {"protocols": [RANGE]} | TIMEOUTS | fields
    return Case(name, "JoinGroup", versions, body, keep=remember(who))


def sync(name: str, who: str, group: str, generation: int, versions: Versions = 5, **fields: Any) -> Case:
    body = {"group_id": group, "generation_id": generation, "member_id": member(who)}
    agreed = {"protocol_type": "consumer", "protocol_name": "range"}
    return Case(name, "SyncGroup", versions, body | agreed | fields)


def lead(name: str, who: str, group: str, generation: int, versions: Versions = 5, **fields: Any) -> Case:
    given = {"assignments": [(member(who), assignment(0, 1))]}
    return sync(name, who, group, generation, versions, **(given | fields))


def beat(name: str, who: str, group: str, generation: int, versions: Versions = 4, **fields: Any) -> Case:
    body = {"group_id": group, "generation_id": generation, "member_id": member(who)}
    return Case(name, "Heartbeat", versions, body | fields)


def leave(name: str, group: str, *who: str, versions: Versions = 5) -> Case:
    rows = [{"member_id": member(one)} for one in who]
    return Case(name, "LeaveGroup", versions, {"group_id": group, "members": rows})


def leave_instance(name: str, group: str, instance: str, who: str = "", versions: Versions = 5) -> Case:
    row = {"member_id": member(who), "group_instance_id": instance}
    return Case(name, "LeaveGroup", versions, {"group_id": group, "members": [row]})


def describe(name: str, *groups: str, versions: Versions = 6) -> Case:
    body = {"groups": list(groups), "include_authorized_operations": True}
    return Case(name, "DescribeGroups", versions, body)


def life(version: int) -> list[Case]:
    """From the first join to the last leave, in one version of everything."""
    who, group = f"v{version}", f"cl-v{version}"
    start = [join("joins", who, group, version)]
    if version >= MEMBER_IDS_FROM:
        start.append(join("joins with its id", who, group, version, known=True))
    leaving = {"group_id": group, "member_id": member(who), "members": [{"member_id": member(who)}]}
    return [
        *start,
        describe("joined", group, versions=min(version, 6)),
        lead("syncs", who, group, 1, min(version, 5)),
        sync("syncs again", who, group, 1, min(version, 5)),
        beat("goes on", who, group, 1, min(version, 4)),
        describe("stable", group, versions=min(version, 6)),
        join("joins again", who, group, version, known=True),
        lead("syncs anew", who, group, 2, min(version, 5)),
        Case("leaves", "LeaveGroup", min(version, 5), leaving),
        beat("is gone", who, group, 2, min(version, 4)),
        describe("left", group, versions=min(version, 6)),
    ]


STATIC = [
    join("a static member", "s1", "cl-s", group_instance_id="i1"),
    lead("leads", "s1", "cl-s", 1, group_instance_id="i1"),
    beat("goes on", "s1", "cl-s", 1, group_instance_id="i1"),
    beat("under another instance", "s1", "cl-s", 1, group_instance_id="i9"),
    join("comes back", "s2", "cl-s", group_instance_id="i1"),
    beat("the old one is fenced", "s1", "cl-s", 1, group_instance_id="i1"),
    join("and cannot join", "s1", "cl-s", known=True, group_instance_id="i1"),
    sync("nor sync", "s1", "cl-s", 1, group_instance_id="i1"),
    leave_instance("nor leave", "cl-s", "i1", "s1"),
    beat("the new one goes on", "s2", "cl-s", 1, group_instance_id="i1"),
    sync("and syncs", "s2", "cl-s", 1, group_instance_id="i1"),
    describe("static", "cl-s", versions=(3, 4, 5, 6)),
    leave_instance("an unknown instance", "cl-s", "i9"),
    leave_instance("sent away", "cl-s", "i1"),
    describe("nobody is left", "cl-s"),
]

TWO = [
    join("the first", "t1", "cl-t", 3, rebalance_timeout_ms=REBALANCE_MS),
    lead("leads alone", "t1", "cl-t", 1, 2),
    join("the second waits until the first is out", "t2", "cl-t", 3, rebalance_timeout_ms=REBALANCE_MS),
    beat("the first is out", "t1", "cl-t", 1),
    lead("the second leads", "t2", "cl-t", 2),
    join("a leader may ask for a rebalance", "t2", "cl-t", known=True, reason="because"),
    beat("which is over when it has synced", "t2", "cl-t", 3),
    beat("the generation before", "t2", "cl-t", 2),
    lead("it syncs", "t2", "cl-t", 3),
    join("other protocols", "t3", "cl-t", protocols=[("roundrobin", subscription(TOPIC))]),
    join("another type", "t3", "cl-t", protocol_type="connect"),
    join("no protocol", "t3", "cl-t", protocols=[]),
    join("no type", "t3", "cl-t", protocol_type=""),
    join("an unknown member", "mx", "cl-t", known=True),
    join("an unknown member of an instance", "mx", "cl-t", known=True, group_instance_id="i"),
]

WRONG = [
    join("an unknown member of an unknown group", "mx", "cl-w", (0, 9), known=True),
    join("no group", "w", "", (0, 9)),
    join("for a moment", "w", "cl-w", (0, 9), session_timeout_ms=5_999),
    join("for ever", "w", "cl-w", (0, 9), session_timeout_ms=1_800_001),
    join("a new group without protocols", "w", "cl-w", (0, 9), protocols=[]),
    join("a new group without type", "w", "cl-w", (0, 9), protocol_type=""),
    *(
        case
        for group in ("", "cl-w", "cl-t")
        for case in (
            sync(f"syncs with {group or 'nobody'}", "mx", group, 1, (0, 5)),
            beat(f"a heartbeat to {group or 'nobody'}", "mx", group, 1, (0, 4)),
            leave(f"leaves {group or 'nobody'}", group, "mx", versions=(3, 5)),
            Case(f"leaves {group or 'nobody'} alone", "LeaveGroup", (0, 2), (group, "mx")),
        )
    ),
    sync("an old generation", "t2", "cl-t", 2, range(6)),
    sync("a generation to come", "t2", "cl-t", 9, range(6)),
    sync("another protocol", "t2", "cl-t", 3, protocol_name="roundrobin"),
    sync("another type", "t2", "cl-t", 3, protocol_type="connect"),
    sync("no protocol", "t2", "cl-t", 3, protocol_name=None),
    sync("no type", "t2", "cl-t", 3, protocol_type=None),
    beat("a generation to come", "t2", "cl-t", 9, range(5)),
    beat("generation -1", "t2", "cl-t", -1),
    leave("nobody leaves", "cl-t"),
    leave("one of two", "cl-t", "mx", "t2"),
    describe("unknown groups", "cl-w", "", "cl-none", versions=range(7)),
]

LARGE = 1_200_000  # bytes: more than the offsets topic takes in one batch
OVERSIZED = [
    join("a group with a long id", "l1", "l" * 30_000, 3),
    join("a subscription that is too large", "l2", "cl-l", 3, protocols=[("range", bytes(LARGE))]),
    lead("which cannot be written", "l2", "cl-l", 1),
    describe("so the group is not stable", "cl-l"),
    join("an assignment that is too large", "l3", "cl-m", 3),
    lead("is not written either", "l3", "cl-m", 1, assignments=[(member("l3"), bytes(LARGE))]),
    beat("and the member joins again", "l3", "cl-m", 1),
    describe("the group goes on", "cl-m"),
    join("a protocol with a long name", "l4", "cl-n", 3, protocols=[("r" * 30_000, RANGE[1])]),
    join("an instance with a long name", "l5", "cl-o", group_instance_id="i" * 30_000),
]

LISTS = [
    Case("all of one state", "ListGroups", (4, 5), {"states_filter": ["stable"]}),
    Case("all of two states", "ListGroups", (4, 5), {"states_filter": ["Empty", "Dead"]}),
    Case("of no state", "ListGroups", 5, {"states_filter": ["nope"]}),
    Case("of the classic type", "ListGroups", 5, {"types_filter": ["classic"], "states_filter": ["Empty"]}),
    Case("of no type", "ListGroups", 5, {"types_filter": ["nope"]}),
    Case("deleted", "DeleteGroups", range(3), {"groups_names": ["cl-v0", "cl-none", "", "cl-m", "cl-v1", "cl-v1"]}),
    describe("they are gone", "cl-v0", "cl-v1"),
]

GROUPS = ("cl-a", *(f"cl-v{version}" for version in range(10)))
SCRIPT = Script(
    "classic groups",
    [
        Case("who coordinates", "FindCoordinator", 4, {"coordinator_keys": list(GROUPS)}),
        describe("before anything", *GROUPS),
        *(case for version in range(10) for case in life(version)),
        *STATIC,
        *TWO,
        *WRONG,
        *OVERSIZED,
        *LISTS,
    ],
    {TOPIC: (2, {})},
)
