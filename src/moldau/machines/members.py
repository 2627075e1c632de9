"""A member of a consumer group (KIP-848), and how it comes to own what the group's target assignment gives it.

Each member goes at its own pace, by epochs. It first gives up what the target takes away (UNREVOKED, still in its
old epoch), then moves to the target's epoch and gets what is free; what another member still holds it waits for
(UNRELEASED). So a partition never has two owners, and nobody stops who need not. Every partition that is owned has
the epoch in which it was given (KIP-1251): a commit from an older epoch is then still good for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from moldau.machines.assignors import Partitions
from moldau.machines.effects import Change
from moldau.machines.group import refuse
from moldau.wire import messages as m
from moldau.wire.errors import Error

JOIN, LEAVE, STATIC_LEAVE = 0, -1, -2  # member epochs that clients send

Owned = Mapping[bytes, Mapping[int, int]]  # by topic id: each partition with the epoch in which it was given
NOTHING: Owned = {}


class State(IntEnum):
    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """What a member that speaks the classic protocol said in its JoinGroup: it is a guest during an upgrade."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """All that is written about a member: who it is, what it asked for, how far it is."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicProtocol | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: State = State.STABLE
    assigned: Owned = field(default_factory=dict[bytes, Mapping[int, int]])
    revoking: Owned = field(default_factory=dict[bytes, Mapping[int, int]])

    def is_reconciled(self, target_epoch: int) -> bool:
        return self.state == State.STABLE and self.epoch == target_epoch

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which a partition that it owns, or is giving up, was given to it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go. `owned` is what the client says that it owns, None if it did not say; `is_taken` tells
    what others own; a change of the subscription takes topics away at once, before there is a new target."""

    epoch: int
    target: Partitions
    owned: Partitions | None
    is_taken: Callable[[bytes, int], bool]
    subscribed: Collection[bytes]
    subscription_changed: bool = False


def reconcile(member: Member, goal: Goal) -> Member:
    """The member's next step, or the same member if there is none; raises Refused."""
    if member.state == State.UNKNOWN:
        if goal.owned is None or goal.owned:
            refuse(Error.FENCED_MEMBER_EPOCH, "The member is in an unknown state: give up all partitions and rejoin.")
        return advance(member, goal, goal.epoch)
    waits = member.state == State.UNREVOKED and owns_any(goal.owned, member.revoking)
    if waits or member.is_reconciled(goal.epoch):
        return drop_unsubscribed(member, goal) if goal.subscription_changed else member
    return advance(member, goal, member.epoch)


def owns_any(owned: Partitions | None, of: Owned) -> bool:
    """Whether the client owns any of these partitions, as far as we know."""
    if owned is None:
        return True
    return any(not of[topic].keys().isdisjoint(owned[topic]) for topic in owned if topic in of)


def advance(member: Member, goal: Goal, epoch: int) -> Member:
    """Give up first; if there is nothing to give up, go to the target's epoch with all that is free."""
    kept, lost = split(member.assigned, goal)
    if lost and owns_any(goal.owned, lost):
        return step(member, epoch, State.UNREVOKED, kept, lost)
    missing = False
    gained: dict[bytes, dict[int, int]] = {topic: dict(mine) for topic, mine in kept.items()}
    for topic, wanted in goal.target.items():
        if topic in goal.subscribed:
            for index in wanted - kept.get(topic, {}).keys():
                if goal.is_taken(topic, index):
                    missing = True
                else:
                    gained.setdefault(topic, {})[index] = goal.epoch
    return step(member, goal.epoch, State.UNRELEASED if missing else State.STABLE, gained, NOTHING)


def split(assigned: Owned, goal: Goal) -> tuple[Owned, Owned]:
    """What stays and what goes."""
    kept: dict[bytes, Mapping[int, int]] = {}
    lost: dict[bytes, Mapping[int, int]] = {}
    for topic, mine in assigned.items():
        wanted = goal.target.get(topic, frozenset()) if topic in goal.subscribed else frozenset[int]()
        if stays := {index: epoch for index, epoch in mine.items() if index in wanted}:
            kept[topic] = stays
        if goes := {index: epoch for index, epoch in mine.items() if index not in wanted}:
            lost[topic] = goes
    return kept, lost


def drop_unsubscribed(member: Member, goal: Goal) -> Member:
    """Give up the topics that the member does not ask for any longer."""
    gone = [topic for topic in member.assigned if topic not in goal.subscribed]
    if not gone:
        return member
    kept = {topic: mine for topic, mine in member.assigned.items() if topic not in gone}
    lost = {topic: dict(going) for topic, going in member.revoking.items()}
    for topic in gone:
        lost.setdefault(topic, {}).update(member.assigned[topic])
    if owns_any(goal.owned, lost):
        return step(member, member.epoch, State.UNREVOKED, kept, lost)
    return step(member, member.epoch, member.state, kept, member.revoking)


def step(member: Member, epoch: int, state: State, assigned: Owned, revoking: Owned) -> Member:
    return replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking)


def partitions_of(rows: Iterable[Any]) -> Partitions:
    """Topic ids and partitions of a request or a record."""
    return {bytes(row.topic_id): frozenset(row.partitions) for row in rows}


# Records, as Kafka writes them.


def subscription_change(group_id: str, member: Member) -> Change:
    classic = member.classic and m.ConsumerGroupMemberMetadataValue_ClassicMemberMetadata(
        member.classic.session_timeout_ms,
        [
            m.ConsumerGroupMemberMetadataValue_ClassicProtocol(name, metadata)
            for name, metadata in member.classic.protocols
        ],
    )
    value = m.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return Change(m.ConsumerGroupMemberMetadataKey(group_id, member.id), value)


def with_subscription(member: Member, value: Any) -> Member:
    """A member after its subscription was replayed."""
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=classic
        and ClassicProtocol(
            classic.session_timeout_ms, tuple((row.name, row.metadata) for row in classic.supported_protocols)
        ),
    )


def assignment_change(group_id: str, member: Member) -> Change:
    value = m.ConsumerGroupCurrentMemberAssignmentValue(
        member.epoch, member.previous_epoch, member.state, owned_rows(member.assigned), owned_rows(member.revoking)
    )
    return Change(m.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.id), value)


def owned_rows(owned: Owned) -> list[Any]:
    return [
        m.ConsumerGroupCurrentMemberAssignmentValue_TopicPartitions(
            topic, sorted(mine), [mine[index] for index in sorted(mine)]
        )
        for topic, mine in owned.items()
    ]


def with_assignment(member: Member, value: Any) -> Member:
    """A member after its assignment was replayed."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=State(value.state) if value.state in STATES else State.UNKNOWN,
        assigned=owned_of(value.assigned_partitions),
        revoking=owned_of(value.partitions_pending_revocation),
    )


STATES = frozenset(State)


def owned_of(rows: Iterable[Any]) -> Owned:
    """Partitions with their epochs; before KIP-1251 there were none, and any epoch of the member was good."""
    return {
        bytes(row.topic_id): dict(zip(row.partitions, row.assignment_epochs or [0] * len(row.partitions), strict=True))
        for row in rows
    }


def target_change(group_id: str, member_id: str, target: Partitions) -> Change:
    rows = [
        m.ConsumerGroupTargetAssignmentMemberValue_TopicPartition(topic, sorted(indexes))
        for topic, indexes in target.items()
        if indexes
    ]
    key = m.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
    return Change(key, m.ConsumerGroupTargetAssignmentMemberValue(rows))


def removal(group_id: str, member_id: str) -> list[Change]:
    """Tombstones for all that is written about a member."""
    return [
        Change(m.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        Change(m.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        Change(m.ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def owned_slots(owned: Owned) -> Iterator[tuple[bytes, int]]:
    return ((topic, index) for topic, mine in owned.items() for index in mine)
