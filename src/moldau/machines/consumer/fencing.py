"""How members of a consumer group come to be out of it: they leave, they fall silent, or they do not let go.

Deadlines are soft: after a crash everybody has a session's time to be heard of.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from moldau.machines import sessions
from moldau.machines.consumer import migration
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.heartbeat_step import config, epoch_change, regex_change
from moldau.machines.consumer.members import Member, removal
from moldau.machines.consumer.subscriptions import metadata_hash
from moldau.machines.effects import Effects
from moldau.machines.replaying import existing

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


def fence(groups: Groups, group: ConsumerGroup, gone: Collection[Member], now_ms: int) -> Effects:
    """Take members out: a new epoch for those who stay. If these all speak the classic protocol, so does the group."""
    if not gone:
        return Effects()
    for member in gone:
        cancel_timers(groups, group.id, member.id)
    if migration.may_downgrade(groups, group, gone):
        return migration.downgrade(groups, group, gone, now_ms)
    changes = [change for member in gone for change in removal(group.id, member.id)]
    ids = {member.id for member in gone}
    stay = [member for member in group.members.values() if member.id not in ids]
    patterns = {member.regex for member in stay}
    for pattern in sorted({member.regex for member in gone} - patterns):
        if pattern:
            changes.append(regex_change(group.id, pattern, None))
    names = {name for member in stay for name in group.topics_of(member)}
    changes.append(epoch_change(group.id, group.epoch + 1, metadata_hash(names, groups.cluster())))
    return Effects(changes)


def loaded(groups: Groups, group: ConsumerGroup, now_ms: int) -> Effects:
    """Go on with a group that was replayed."""
    for member in group.members.values():
        touch(groups, group.id, member.id, config(groups, group.id, "session.timeout.ms"), now_ms)
        if member.classic is None:
            watch_revocation(groups, group.id, member, now_ms)
    return Effects()


def touch(groups: Groups, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
    """A sign of life."""
    action = partial(give_up, groups, group_id, member_id)
    groups.timers.renew(("session", group_id, member_id), now_ms + timeout_ms, action)


def give_up(groups: Groups, group_id: str, member_id: str, now_ms: int) -> Effects:
    """Take out a member that was not heard of, or that does not do what it was asked to do."""
    group = existing(groups, group_id, ConsumerGroup)
    member = group.members.get(member_id) if group else None
    return fence(groups, group, [member], now_ms) if group and member else Effects()


def watch_revocation(groups: Groups, group_id: str, member: Member, now_ms: int) -> None:
    action = partial(give_up_in_epoch, groups, group_id, member.id, member.epoch)
    sessions.watch_revocation(groups, group_id, member, now_ms, action)


def give_up_in_epoch(groups: Groups, group_id: str, member_id: str, epoch: int, now_ms: int) -> Effects:
    """It was to give up partitions, and has not left the epoch in which it was asked to."""
    group = existing(groups, group_id, ConsumerGroup)
    member = group.members.get(member_id) if group else None
    stuck = member is not None and member.epoch == epoch
    return give_up(groups, group_id, member_id, now_ms) if stuck else Effects()


def cancel_timers(groups: Groups, group_id: str, member_id: str) -> None:
    sessions.cancel_timers(groups, group_id, member_id)
    for name in ("guest-join", "guest-sync"):
        groups.timers.cancel((name, group_id, member_id))
