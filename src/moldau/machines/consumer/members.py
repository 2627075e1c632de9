"""A member of a consumer group (KIP-848): who it is, what it asks for, which partitions it owns; and its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import pack
from typing import Any, NamedTuple, Self

from moldau.machines.consumer.assignors import Partitions
from moldau.machines.effects import Change
from moldau.machines.offset_records import text
from moldau.machines.reconciling import NOTHING, Owned, State, state_of
from moldau.wire import messages as m
from moldau.wire.numbers import uvarint

# The numbers of ConsumerGroupTargetAssignmentMemberKey and ConsumerGroupCurrentMemberAssignmentKey.
TARGET_KEY, ASSIGNMENT_KEY = b"\0\7", b"\0\10"


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """What a member that speaks the classic protocol said in its JoinGroup: it is a guest during an upgrade."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(NamedTuple):
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
    assigned: Owned[bytes] = NOTHING
    revoking: Owned[bytes] = NOTHING

    def moved(self, epoch: int, state: State, assigned: Owned[bytes], revoking: Owned[bytes]) -> Self:
        """Return the member a step later."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which a partition that it owns, or is giving up, was given to it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch


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
    """Return a member after its subscription was replayed."""
    classic = value.classic_member_metadata
    return member._replace(
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


class Assigned(NamedTuple):
    """How far a member is: the value of a record that is not read from a log but about to be written."""

    epoch: int
    previous_epoch: int
    state: State
    assigned: Owned[bytes]
    revoking: Owned[bytes]


def assignment_change(group_id: str, member: Member) -> Change:
    value = Assigned(member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking)
    encoded = ASSIGNMENT_KEY + text(group_id) + text(member.id), encoded_assignment(value)
    return Change(m.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.id), value, encoded=encoded)


def encoded_assignment(value: Assigned) -> bytes:
    """Encode as the codec would, as `encoded_target` does."""
    head = pack(">2xiib", value.epoch, value.previous_epoch, value.state)
    return head + encoded_owned(value.assigned) + encoded_owned(value.revoking) + b"\0"


def encoded_owned(owned: Owned[bytes]) -> bytes:
    """Rows of partitions, each with the epochs as its one tagged field."""
    parts: list[bytes] = []
    for topic, mine in owned.items():
        indexes, count = sorted(mine), len(mine)
        numbers, size = f">{count}i", uvarint(count + 1)
        epochs = size + pack(numbers, *[mine[index] for index in indexes])
        tags = b"\1\0" + uvarint(len(epochs)) + epochs if mine else b"\0"
        parts.append(topic + size + pack(numbers, *indexes) + tags)
    return uvarint(len(parts) + 1) + b"".join(parts)


def with_assignment(member: Member, value: Any) -> Member:
    """Return a member after its assignment was replayed."""
    if value.__class__ is Assigned:
        return member._replace(
            epoch=value.epoch,
            previous_epoch=value.previous_epoch,
            state=value.state,
            assigned=value.assigned,
            revoking=value.revoking,
        )
    return member._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=state_of(value.state),
        assigned=owned_of(value.assigned_partitions),
        revoking=owned_of(value.partitions_pending_revocation),
    )


def owned_of(rows: Iterable[Any]) -> Owned[bytes]:
    """Partitions with their epochs; before KIP-1251 there were none, and any epoch of the member was good."""
    return {
        bytes(row.topic_id): dict(zip(row.partitions, row.assignment_epochs or [0] * len(row.partitions), strict=True))
        for row in rows
    }


class Target(NamedTuple):
    """What a member is to have: the value of a record that is not read from a log but about to be written."""

    partitions: Partitions


def target_change(group_id: str, member_id: str, target: Partitions) -> Change:
    if not all(target.values()):
        target = {topic: indexes for topic, indexes in target.items() if indexes}
    key = m.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
    encoded = TARGET_KEY + text(group_id) + text(member_id), encoded_target(target)
    return Change(key, Target(target), encoded=encoded)


def encoded_target(target: Partitions) -> bytes:
    """Encode as the codec would, in a fraction of its time: each member that joins a group writes many."""
    parts = [
        topic + uvarint(len(indexes) + 1) + pack(f">{len(indexes)}ix", *sorted(indexes))
        for topic, indexes in target.items()
    ]
    return b"\0\0" + uvarint(len(parts) + 1) + b"".join(parts) + b"\0"


def target_of(value: Any) -> Partitions:
    return value.partitions if value.__class__ is Target else partitions_of(value.topic_partitions)
