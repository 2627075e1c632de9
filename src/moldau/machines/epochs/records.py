"""The records that groups with epochs have in common. Each kind has its own messages for them, named alike."""

from __future__ import annotations

from functools import cache
from typing import Any

from moldau.machines.effects import Change
from moldau.machines.epochs.group import Members
from moldau.wire import messages as m


@cache
def message(kind: str, name: str) -> Any:
    """Return a message of a kind of group, such as ConsumerGroupMetadataKey. It is built when it is first used."""
    return m.message(f"{kind.capitalize()}Group{name}")


def epoch_change(kind: str, group_id: str, epoch: int, *known: Any) -> Change:
    """Return a new epoch, with all that was `known` when it began."""
    return Change(message(kind, "MetadataKey")(group_id), message(kind, "MetadataValue")(epoch, *known))


def target_epoch_change(kind: str, group_id: str, epoch: int, *assigned_ms: int) -> Change:
    value = message(kind, "TargetAssignmentMetadataValue")(epoch, *assigned_ms)
    return Change(message(kind, "TargetAssignmentMetadataKey")(group_id), value)


MEMBER_KEYS = ("CurrentMemberAssignmentKey", "TargetAssignmentMemberKey", "MemberMetadataKey")


def removal(kind: str, group_id: str, member_id: str) -> list[Change]:
    """Tombstones for all that is written about a member."""
    return [Change(message(kind, name)(group_id, member_id), None) for name in MEMBER_KEYS]


def tombstones(group: Members[Any], *more: Any) -> list[Change]:
    """Tombstones for all that is written about a group; `more` are the keys that only its kind has."""
    members = [*dict.fromkeys([*group.members, *group.target])]
    assignments, targets, descriptions = (
        [message(group.kind, name)(group.id, member) for member in members] for name in MEMBER_KEYS
    )
    target_epoch = message(group.kind, "TargetAssignmentMetadataKey")(group.id)
    head = message(group.kind, "MetadataKey")(group.id)
    return [Change(key, None) for key in (*assignments, *targets, target_epoch, *descriptions, *more, head)]
