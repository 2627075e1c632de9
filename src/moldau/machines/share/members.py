"""A member of a share group (KIP-932): its subscription, and the partitions that it may fetch from.

Nobody owns a partition alone, so nothing must be given up before another may have it: a member goes to the target's
epoch, and to what the target gives it, in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from moldau.machines.consumer.assignors import NO_TARGET, Partitions
from moldau.machines.consumer.members import partitions_of
from moldau.machines.effects import Change
from moldau.machines.group import Client
from moldau.machines.reconciling import State
from moldau.wire import messages as m


class ShareMember(NamedTuple):
    """All that is written about a member."""

    id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Partitions = NO_TARGET

    # Of all members of share groups.
    state = State.STABLE
    classic = None

    def at(self, epoch: int, target: Partitions) -> ShareMember:
        """Return the member in the target's epoch, with what the target gives it."""
        before = self.previous_epoch if epoch == self.epoch else self.epoch
        return self._replace(epoch=epoch, previous_epoch=before, assigned=target)


def update(member: ShareMember, request: Any, client: Client) -> ShareMember:
    """Return the member with what a heartbeat says; null leaves a field as it was."""
    names = request.subscribed_topic_names
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.id,
        client_host=client.host,
        topics=member.topics if names is None else frozenset(names),
    )


# Records, as Kafka writes them.


def subscription_change(group_id: str, member: ShareMember) -> Change:
    value = m.ShareGroupMemberMetadataValue(member.rack_id, member.client_id, member.client_host, sorted(member.topics))
    return Change(m.ShareGroupMemberMetadataKey(group_id, member.id), value)


def with_subscription(member: ShareMember, value: Any) -> ShareMember:
    """Return a member after its subscription was replayed."""
    return member._replace(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
    )


def assignment_change(group_id: str, member: ShareMember) -> Change:
    rows = rows_of(member.assigned, m.ShareGroupCurrentMemberAssignmentValue_TopicPartitions)
    value = m.ShareGroupCurrentMemberAssignmentValue(member.epoch, member.previous_epoch, member.state, rows)
    return Change(m.ShareGroupCurrentMemberAssignmentKey(group_id, member.id), value)


def with_assignment(member: ShareMember, value: Any) -> ShareMember:
    """Return a member after its assignment was replayed."""
    assigned = partitions_of(value.assigned_partitions)
    return member._replace(epoch=value.member_epoch, previous_epoch=value.previous_member_epoch, assigned=assigned)


def target_change(group_id: str, member_id: str, target: Partitions) -> Change:
    rows = rows_of(target, m.ShareGroupTargetAssignmentMemberValue_TopicPartition)
    key = m.ShareGroupTargetAssignmentMemberKey(group_id, member_id)
    return Change(key, m.ShareGroupTargetAssignmentMemberValue(rows))


def rows_of(partitions: Mapping[bytes, Iterable[int]], row: Callable[[bytes, list[int]], Any]) -> list[Any]:
    return [row(topic, sorted(indexes)) for topic, indexes in partitions.items()]
