"""How the records of a group are replayed: a value is put into its group, and its tombstone takes it out again.

Groups whose members have epochs (consumer, share and streams groups) write the same five kinds of records, each under
names of its own: `members_with_epochs` makes the rows for them, `row` one for a record that only one kind has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from moldau.machines.group import Group

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

Replay = Callable[["Groups", Any, Any], None]
Put = Callable[[Any, Any, Any], None]  # what a value does to its group: group, key, value


class Epochs(Group, Protocol):
    """A group with epochs, a target for each member, and members that are put in and taken out."""

    epoch: int
    metadata_hash: int
    members: Any
    target: Any
    target_epoch: int
    assigned_ms: int

    def put(self, member: Any, /) -> None: ...

    def remove(self, member_id: str) -> None: ...


G = TypeVar("G")
M = TypeVar("M")


def existing(groups: Groups, group_id: str, kind: type[G]) -> G | None:
    """Return the group if it is there and of this kind."""
    group = groups.groups.get(group_id)
    return group if isinstance(group, kind) else None


def row(kind: type[Any], put: Put, take_out: Callable[[Any, Any], None]) -> Replay:
    """`take_out` is told the group and the key. A classic group that only stored offsets makes room for a value."""

    def replay(groups: Groups, key: Any, value: Any) -> None:
        group = existing(groups, key.group_id, kind)
        if value is None:
            if group is not None:
                take_out(group, key)
            return
        if group is None:
            group = groups.groups[key.group_id] = kind(key.group_id)
        put(group, key, value)

    return replay


def head(kind: type[Any], put: Put) -> Replay:
    """Make the row of the record whose tombstone ends the group."""
    replay_value = row(kind, put, lambda group, key: None)

    def replay(groups: Groups, key: Any, value: Any) -> None:
        if value is not None:
            replay_value(groups, key, value)
        elif existing(groups, key.group_id, kind) is not None:
            del groups.groups[key.group_id]

    return replay


def members_with_epochs(
    kind: type[Any],
    member: Callable[[str], M],
    described: Callable[[M, Any], M],
    assigned: Callable[[M, Any], M],
    unassigned: Callable[[M], M],
    target: Callable[[Any], Any],
    put_epoch: Put,
) -> dict[str, Replay]:
    """Make the rows of the records that these kinds have in common, by the names of their keys.

    `described` and `assigned` make a member of the one before and a record, `unassigned` of the one before alone;
    `target` reads what a member is to have.
    """

    def put_description(group: Epochs, key: Any, value: Any) -> None:
        group.put(described(group.members.get(key.member_id) or member(key.member_id), value))

    def put_assignment(group: Epochs, key: Any, value: Any) -> None:
        group.put(assigned(group.members.get(key.member_id) or member(key.member_id), value))

    def take_assignment(group: Epochs, key: Any) -> None:
        if (known := group.members.get(key.member_id)) is not None:
            group.put(unassigned(known))

    def put_target(group: Epochs, key: Any, value: Any) -> None:
        group.target[key.member_id] = target(value)

    name = kind.__name__
    return {
        f"{name}MetadataKey": head(kind, put_epoch),
        f"{name}MemberMetadataKey": row(kind, put_description, take_member),
        f"{name}TargetAssignmentMetadataKey": row(kind, put_target_epoch, take_target_epoch),
        f"{name}TargetAssignmentMemberKey": row(kind, put_target, take_target),
        f"{name}CurrentMemberAssignmentKey": row(kind, put_assignment, take_assignment),
    }


def put_epoch(group: Epochs, key: Any, value: Any) -> None:
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def take_member(group: Epochs, key: Any) -> None:
    group.remove(key.member_id)


def put_target_epoch(group: Epochs, key: Any, value: Any) -> None:
    group.target_epoch, group.assigned_ms = value.assignment_epoch, value.assignment_timestamp


def take_target_epoch(group: Epochs, key: Any) -> None:
    group.target_epoch = -1


def take_target(group: Epochs, key: Any) -> None:
    group.target.pop(key.member_id, None)
