"""A member of a share group (KIP-932): its subscription, and the partitions that it may fetch from.

Nobody owns a partition alone, so nothing must be given up before another may have it: a member goes to the target's
epoch, and to what the target gives it, in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.machines.consumer.assignors import Partitions
from moldau.machines.effects import Change
from moldau.machines.group import Client
from moldau.wire import messages as m

JOIN, LEAVE = 0, -1  # member epochs that clients send
STABLE = 0  # the one state that members of share groups are in


@dataclass(frozen=True, slots=True)
class ShareMember:
    """All that is written about a member."""

    id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Partitions = field(default_factory=dict[bytes, frozenset[int]])

    def after(self, request: Any, client: Client) -> ShareMember:
        """The member with what a heartbeat says; null leaves a field as it was."""
        names = request.subscribed_topic_names
        return replace(
            self,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client.id,
            client_host=client.host,
            topics=self.topics if names is None else frozenset(names),
        )

    def at(self, epoch: int, target: Partitions) -> ShareMember:
        """The member in the target's epoch, with what the target gives it."""
        if epoch == self.epoch:
            return replace(self, assigned=target)
        return replace(self, epoch=epoch, previous_epoch=self.epoch, assigned=target)


# Records, as Kafka writes them.


def subscription_change(group_id: str, member: ShareMember) -> Change:
    value = m.ShareGroupMemberMetadataValue(member.rack_id, member.client_id, member.client_host, sorted(member.topics))
    return Change(m.ShareGroupMemberMetadataKey(group_id, member.id), value)


def with_subscription(member: ShareMember, value: Any) -> ShareMember:
    """A member after its subscription was replayed."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
    )


def assignment_change(group_id: str, member: ShareMember) -> Change:
    rows = rows_of(member.assigned, m.ShareGroupCurrentMemberAssignmentValue_TopicPartitions)
    value = m.ShareGroupCurrentMemberAssignmentValue(member.epoch, member.previous_epoch, STABLE, rows)
    return Change(m.ShareGroupCurrentMemberAssignmentKey(group_id, member.id), value)


def with_assignment(member: ShareMember, value: Any) -> ShareMember:
    """A member after its assignment was replayed."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=partitions_of(value.assigned_partitions),
    )


def target_change(group_id: str, member_id: str, target: Partitions) -> Change:
    rows = rows_of(target, m.ShareGroupTargetAssignmentMemberValue_TopicPartition)
    key = m.ShareGroupTargetAssignmentMemberKey(group_id, member_id)
    return Change(key, m.ShareGroupTargetAssignmentMemberValue(rows))


def target_epoch_change(group_id: str, epoch: int, now_ms: int) -> Change:
    value = m.ShareGroupTargetAssignmentMetadataValue(epoch, now_ms)
    return Change(m.ShareGroupTargetAssignmentMetadataKey(group_id), value)


def epoch_change(group_id: str, epoch: int, number: int) -> Change:
    return Change(m.ShareGroupMetadataKey(group_id), m.ShareGroupMetadataValue(epoch, number))


def removal(group_id: str, member_id: str) -> list[Change]:
    """Tombstones for all that is written about a member."""
    return [
        Change(m.ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        Change(m.ShareGroupTargetAssignmentMemberKey(group_id, member_id), None),
        Change(m.ShareGroupMemberMetadataKey(group_id, member_id), None),
    ]


def rows_of(partitions: Mapping[bytes, Iterable[int]], row: Callable[[bytes, list[int]], Any]) -> list[Any]:
    return [row(topic, sorted(indexes)) for topic, indexes in partitions.items()]


def partitions_of(rows: Iterable[Any]) -> Partitions:
    return {bytes(row.topic_id): frozenset(row.partitions) for row in rows}
