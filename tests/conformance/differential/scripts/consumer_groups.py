"""Consumer groups (KIP-848): members join, share, give up, are fenced and leave; static members; wrong requests.

The groups assign without a pause (`consumer.assignment.interval.ms`), so that no answer hangs on the time of day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.differential.case import LONG_MS, Case, Script, topic_id

GROUP = 32  # the type of a group as a resource with settings
FULL = {"rebalance_timeout_ms": LONG_MS, "subscribed_topic_names": ["cg"], "topic_partitions": []}
ASSIGNED = "assigned"


def beat(name: str, member: str, epoch: int, *, group: str = "cg-a", versions: Any = 1, **fields: Any) -> Case:
    body = {"group_id": group, "member_id": member, "member_epoch": epoch, **fields}
    return Case(name, "ConsumerGroupHeartbeat", versions, body, keep=remember(member))


def remember(member: str) -> Callable[[Any, Any], None]:
    """Keep what each broker gave to a member: which partitions these are is its own affair."""

    def keep(target: Any, answer: Any) -> None:
        if answer.assignment is not None:
            target.kept[ASSIGNED, member] = [
                (row.topic_id, row.partitions) for row in answer.assignment.topic_partitions
            ]

    return keep


def owned(member: str) -> Callable[[Any], Any]:
    return lambda target: target.kept.get((ASSIGNED, member), [])


def join(name: str, member: str, **fields: Any) -> Case:
    return beat(name, member, 0, **(FULL | fields))


def describe(name: str, *groups: str, versions: Any = (0, 1)) -> Case:
    return Case(
        name, "ConsumerGroupDescribe", versions, {"group_ids": list(groups), "include_authorized_operations": True}
    )


def ready(*groups: str) -> Iterable[Case]:
    """The coordinators are there, and the groups need no pause between assignments."""
    yield Case("who coordinates", "FindCoordinator", 4, {"coordinator_keys": list(groups)})
    yield describe("before anything", *groups, versions=1)
    row = ("consumer.assignment.interval.ms", 0, "0")
    changes = [(GROUP, group, [row]) for group in groups]
    yield Case("no pause", "IncrementalAlterConfigs", 1, {"resources": changes}, settle_s=1.0)


SHARING = [
    join("the first joins", "m1"),
    beat("it goes on", "m1", 2),
    beat("it says what it owns", "m1", 2, topic_partitions=[(topic_id("cg"), [0, 1, 2, 3])]),
    beat(
        "it says everything",
        "m1",
        2,
        rebalance_timeout_ms=LONG_MS,
        subscribed_topic_names=["cg"],
        topic_partitions=owned("m1"),
    ),
    join("the second joins", "m2"),
    describe("the second waits", "cg-a"),
    beat("the second asks in vain", "m2", 3),
    beat("the first must give up", "m1", 2),
    beat("it is told only once", "m1", 2),
    describe("one gives up", "cg-a"),
    beat("the first has given up", "m1", 2, topic_partitions=owned("m1")),
    beat("the second gets its share", "m2", 3),
    beat("the first with the epoch before", "m1", 2, topic_partitions=owned("m1")),
    beat("the first with the epoch before, saying nothing", "m1", 2),
    beat("an epoch to come", "m1", 9),
    beat("an unknown member", "mx", 3),
    beat("an unknown group", "m1", 3, group="cg-none"),
    describe("both have their share", "cg-a", "cg-none", ""),
    Case("consumer groups", "ListGroups", 5, {"types_filter": ["consumer"], "states_filter": ["Stable"]}),
    beat("the second joins again", "m2", 0, **FULL),
    beat("it drops its topic", "m2", 3, subscribed_topic_names=[]),
    beat("it has given it up", "m2", 3, topic_partitions=[]),
    beat("the first takes over", "m1", 3),
    beat("it waited for that", "m1", 4),
    beat("the second leaves", "m2", -1),
    beat("it is gone", "m2", 4),
    beat("the first leaves", "m1", -1),
    describe("nobody is left", "cg-a"),
]

STATIC = [
    join("a static member joins", "s1", group="cg-s", instance_id="i1"),
    join("another in its place", "s2", group="cg-s", instance_id="i1"),
    join("itself once more", "s1", group="cg-s", instance_id="i1"),
    beat("it goes on", "s1", 2, group="cg-s", instance_id="i1"),
    beat("under another instance", "s1", 2, group="cg-s", instance_id="i9"),
    beat("it goes for a while", "s1", -2, group="cg-s", instance_id="i1"),
    describe("it is away", "cg-s"),
    join("its heir", "s2", group="cg-s", instance_id="i1"),
    beat("the old one is fenced", "s1", 2, group="cg-s", instance_id="i1"),
    beat("the heir goes on", "s2", 2, group="cg-s", instance_id="i1"),
    beat("the old one cannot leave", "s1", -1, group="cg-s", instance_id="i1"),
    beat("the heir leaves for good", "s2", -1, group="cg-s", instance_id="i1"),
    describe("an instance is gone", "cg-s"),
]

ASSIGNORS = [
    join("range is asked for", "a1", group="cg-r", server_assignor="range"),
    join("and again", "a2", group="cg-r", server_assignor="range"),
    join("one for uniform", "a3", group="cg-r", server_assignor="uniform"),
    describe("range has the majority", "cg-r"),
]

WRONG = [
    join("no member id", "", group="cg-w", versions=1),
    join("no group id", "w", group=""),
    join("an empty instance id", "w", group="cg-w", instance_id=""),
    join("an empty rack", "w", group="cg-w", rack_id=""),
    join("no rebalance timeout", "w", group="cg-w", rebalance_timeout_ms=-1),
    join("no partitions", "w", group="cg-w", topic_partitions=None),
    join("partitions at once", "w", group="cg-w", topic_partitions=[(topic_id("cg"), [0])]),
    join("no subscription", "w", group="cg-w", subscribed_topic_names=None),
    join("an unknown assignor", "w", group="cg-w", server_assignor="mine"),
    join("no regular expression", "w", group="cg-w", subscribed_topic_regex="("),
    join("one that looks ahead", "w", group="cg-w", subscribed_topic_regex="(?=x)"),
    beat("epoch -3", "w", -3, group="cg-w"),
    beat("a static leave without an instance", "w", -2, group="cg-w"),
    beat("a leave without a member id", "", -1, group="cg-w", versions=0),
    beat("a leave of nobody", "w", -1, group="cg-w"),
    beat("going on in a group that is not there", "w", 5, group="cg-w"),
    describe("nothing came of it", "cg-w"),
]

LONG = "x" * 30_000
OVERSIZED = [
    join("a member with a long id", LONG, group="cg-l"),
    join("an instance with a long name", "l1", group="cg-l", instance_id=LONG),
    join("a rack with a long name", "l2", group="cg-l", rack_id=LONG),
    join("a long pattern", "l3", group="cg-l", subscribed_topic_regex=LONG),
    join(
        "more topics than can be written", "l4", group="cg-l", subscribed_topic_names=[f"{LONG}{n}" for n in range(40)]
    ),
    beat("which makes no member", "l4", 5, group="cg-l"),
    join("a group with a long id", "l5", group=LONG),
]

GROUPS = ("cg-a", "cg-s", "cg-r", "cg-w", "cg-l")
CASES = [*ready(*GROUPS), *SHARING, *STATIC, *ASSIGNORS, *WRONG, *OVERSIZED]
SCRIPT = Script("consumer groups", CASES, {"cg": (4, {})})
