"""A member of a streams group (KIP-1071): who it is, which tasks it owns, how far it is; and its records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from moldau.machines.effects import Change
from moldau.machines.reconciling import NOTHING, State, state_of
from moldau.machines.streams.tasks import FIELDS, OwnedTasks, Role, Tasks, task_rows
from moldau.wire import messages as m


class Member(NamedTuple):
    """All that is written about a member. Members of one process share its disk."""

    id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    state: State = State.STABLE
    assigned: OwnedTasks = NOTHING
    revoking: OwnedTasks = NOTHING

    classic = None  # none speaks the classic protocol

    def moved(self, epoch: int, state: State, assigned: OwnedTasks, revoking: OwnedTasks) -> Self:
        """Return the member a step later."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    def epoch_of(self, subtopology: str, partition: int) -> int | None:
        """Return the epoch in which an active task that it owns, or is giving up, was given to it."""
        kind = Role.ACTIVE, subtopology
        epoch = self.assigned.get(kind, {}).get(partition)
        return self.revoking.get(kind, {}).get(partition) if epoch is None else epoch


# Records, as Kafka writes them.


def member_change(group_id: str, member: Member) -> Change:
    value = m.StreamsGroupMemberMetadataValue(
        instance_id=None,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.endpoint and m.StreamsGroupMemberMetadataValue_Endpoint(*member.endpoint),
        client_tags=[m.StreamsGroupMemberMetadataValue_KeyValue(*tag) for tag in member.tags],
    )
    return Change(m.StreamsGroupMemberMetadataKey(group_id, member.id), value)


def with_metadata(member: Member, value: Any) -> Member:
    """Return a member after what it says of itself was replayed."""
    endpoint = value.user_endpoint
    return member._replace(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=endpoint and (endpoint.host, endpoint.port),
        tags=tags_of(value.client_tags),
    )


def tags_of(rows: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({row.key: row.value for row in rows}.items()))


def assignment_change(group_id: str, member: Member) -> Change:
    revoking = owned_rows(member.revoking)
    value = m.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        **owned_rows(member.assigned),
        **{f"{field}_pending_revocation": rows for field, rows in revoking.items()},
    )
    return Change(m.StreamsGroupCurrentMemberAssignmentKey(group_id, member.id), value)


def owned_rows(owned: OwnedTasks) -> dict[str, list[Any]]:
    """Only active tasks have the epochs in which they were given."""
    rows = task_rows(owned, m.StreamsGroupCurrentMemberAssignmentValue_TaskIds)
    for row in rows[FIELDS[Role.ACTIVE]]:
        mine = owned[Role.ACTIVE, row.subtopology_id]
        row.assignment_epochs = [mine[index] for index in row.partitions]
    return rows


def with_assignment(member: Member, value: Any) -> Member:
    """Return a member after its assignment was replayed."""
    return member._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=state_of(value.state),
        assigned=owned_of(value, ""),
        revoking=owned_of(value, "_pending_revocation"),
    )


def owned_of(value: Any, suffix: str) -> OwnedTasks:
    return {
        (role, row.subtopology_id): dict(zip(row.partitions, epochs_of(row), strict=True))
        for role, field in FIELDS.items()
        for row in getattr(value, field + suffix)
        if row.partitions
    }


def epochs_of(row: Any) -> list[int]:
    """Return the epochs of a record, or 0 for each partition where it has none: any epoch was good then."""
    epochs = row.assignment_epochs
    return epochs if epochs and len(epochs) == len(row.partitions) else [0] * len(row.partitions)


def target_change(group_id: str, member_id: str, target: Tasks) -> Change:
    rows = task_rows(target, m.StreamsGroupTargetAssignmentMemberValue_TaskIds)
    key = m.StreamsGroupTargetAssignmentMemberKey(group_id, member_id)
    return Change(key, m.StreamsGroupTargetAssignmentMemberValue(**rows))
