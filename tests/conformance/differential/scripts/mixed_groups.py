"""Groups with members of both protocols: guests in a consumer group, upgrades and downgrades (KIP-848)."""

from __future__ import annotations

from typing import Any

from tests.conformance.differential.case import Case, Script
from tests.conformance.differential.scripts import classic_groups as classic
from tests.conformance.differential.scripts import consumer_groups as consumer
from tests.conformance.differential.scripts.group_offsets import at, commit

TOPIC = "mx"
SUBSCRIBED = [("range", classic.subscription(TOPIC))]


def join(name: str, who: str, group: str, versions: Any = 9, **fields: Any) -> Case:
    return classic.join(name, who, group, versions, **({"protocols": SUBSCRIBED} | fields))


def enter(name: str, member: str, group: str, **fields: Any) -> Case:
    return consumer.join(name, member, group=group, subscribed_topic_names=[TOPIC], **fields)


def goes_on(name: str, member: str, epoch: int, group: str, **fields: Any) -> Case:
    return consumer.beat(name, member, epoch, group=group, **fields)


def lead(name: str, who: str, group: str, generation: int) -> Case:
    shares = [(classic.member(who), classic.assignment(0, 1, 2, 3, topic=TOPIC))]
    return classic.lead(name, who, group, generation, assignments=shares)


def commit_as(name: str, who: str, epoch: int, versions: Any) -> Case:
    member = {"member_id": classic.member(who), "generation_id_or_member_epoch": epoch}
    return commit(name, at(0, 5), group="mx-g", topic=TOPIC, versions=versions, **member)


GUESTS = [
    enter("the first has the new protocol", "n1", "mx-g"),
    join("a guest gets an id", "g1", "mx-g"),
    join("and comes in", "g1", "mx-g", known=True),
    classic.sync("it waits for its share", "g1", "mx-g", 3),
    classic.beat("and may go on", "g1", "mx-g", 3),
    consumer.describe("one of each", "mx-g"),
    classic.describe("which is not classic", "mx-g"),
    goes_on("the first must give up", "n1", 2, "mx-g"),
    goes_on("it has given up", "n1", 2, "mx-g", topic_partitions=consumer.owned("n1")),
    classic.beat("the guest hears of it", "g1", "mx-g", 3),
    join("it joins for it", "g1", "mx-g", known=True),
    classic.sync("and gets its share", "g1", "mx-g", 3),
    classic.beat("then all is well", "g1", "mx-g", 3),
    consumer.describe("both have their share", "mx-g"),
    commit_as("the guest commits", "g1", 3, (2, 8, 9, 10)),
    commit_as("in an old generation", "g1", 1, (2, 9)),
    commit_as("the first commits", "n1", 3, (2, 8, 9, 10)),
    classic.sync("an old generation", "g1", "mx-g", 2),
    classic.sync("another protocol", "g1", "mx-g", 3, protocol_name="roundrobin"),
    classic.sync("another type", "g1", "mx-g", 3, protocol_type="connect"),
    classic.beat("a generation to come", "g1", "mx-g", 9),
    classic.beat("nobody", "nobody", "mx-g", 3),
    classic.beat("the first in the old protocol", "n1", "mx-g", 3),
    classic.sync("it cannot sync", "n1", "mx-g", 3),
    goes_on("the guest in the new protocol", "g1", 3, "mx-g"),
    join("with other protocols", "g2", "mx-g", protocols=[("mine", SUBSCRIBED[0][1])]),
    join("with another type", "g2", "mx-g", protocol_type="connect"),
    join("with no protocol", "g2", "mx-g", protocols=[]),
    join("with a subscription of nothing", "g2", "mx-g", 3, protocols=[("range", b"")]),
    join("for a moment", "g2", "mx-g", session_timeout_ms=1),
    classic.leave("nobody leaves", "mx-g", "nobody"),
    classic.leave("the guest leaves", "mx-g", "g1"),
    classic.beat("it is gone", "g1", "mx-g", 3),
]

# A member that was taken out and has not heard of it is taken in again, under the id that it had.
UNAWARE = [
    join("an id that nobody knows", "stranger", "mx-g", known=True),
    consumer.describe("is that of a member", "mx-g"),
    classic.sync("which waits like any other", "stranger", "mx-g", 5),
    classic.leave("it leaves", "mx-g", "stranger"),
    goes_on("the first leaves", "n1", -1, "mx-g"),
]

UP = [
    join("a classic group", "u1", "mx-u", 3),
    lead("has a leader", "u1", "mx-u", 1),
    enter("is upgraded", "n2", "mx-u"),
    consumer.describe("with a guest", "mx-u"),
    classic.beat("the guest must join", "u1", "mx-u", 1),
    join("it joins", "u1", "mx-u", known=True),
    classic.sync("it gives up", "u1", "mx-u", 1),
    classic.beat("and must join again", "u1", "mx-u", 1),
]

DOWN = [
    goes_on("the last new member leaves", "n2", -1, "mx-u"),
    classic.describe("it is classic again", "mx-u"),
    consumer.describe("and no consumer group", "mx-u"),
    classic.beat("the guest hears of it", "u1", "mx-u", 3),
    join("it joins", "u1", "mx-u", known=True),
    lead("and leads", "u1", "mx-u", 4),
    classic.leave("it leaves", "mx-u", "u1"),
]

OTHERS = [
    join("a group of another type", "o1", "mx-o", 3, protocol_type="connect"),
    classic.lead("has a leader", "o1", "mx-o", 1, protocol_type="connect"),
    enter("and is not upgraded", "n3", "mx-o"),
    classic.leave("it is empty", "mx-o", "o1"),
    enter("then it makes room", "n3", "mx-o"),
    goes_on("which is left", "n3", -1, "mx-o"),
    join("and makes room", "o1", "mx-o", 3),
    classic.describe("for a classic group", "mx-o"),
]

GROUPS = ("mx-g", "mx-u", "mx-o")
SCRIPT = Script("mixed groups", [*consumer.ready(*GROUPS), *GUESTS, *UNAWARE, *UP, *DOWN, *OTHERS], {TOPIC: (4, {})})
