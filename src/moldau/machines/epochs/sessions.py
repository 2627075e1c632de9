"""Sessions of members with epochs: who is silent for too long, or does not give up what it was asked to, is out.

All of it is soft: after a load everybody has a session's time to be heard of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.machines.effects import Change, Effects
from moldau.machines.epochs.group import Member, Members, config
from moldau.machines.epochs.records import epoch_change, removal
from moldau.machines.reconciling import State

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

TIMERS = ("session", "revocation", "guest-join", "guest-sync")


def touch(groups: Groups, group: Members[Any], member_id: str, now_ms: int, timeout_ms: int | None = None) -> None:
    """Note a sign of life. A guest brings its own session timeout."""
    if timeout_ms is None:
        timeout_ms = config(groups, group.id, "session.timeout.ms", group.kind)
    action = partial(groups.give_up, group.id, member_id, None)
    groups.timers.renew(("session", group.id, member_id), now_ms + timeout_ms, action)


def watch_revocation(groups: Groups, group_id: str, member: Member, now_ms: int) -> None:
    """Give a member that was asked to give something up its rebalance timeout to do so."""
    name = "revocation", group_id, member.id
    if member.state == State.UNREVOKED:
        action = partial(groups.give_up, group_id, member.id, member.epoch)
        groups.timers.set(name, now_ms + member.rebalance_timeout_ms, action)
    else:
        groups.timers.cancel(name)


def loaded(groups: Groups, group: Any, now_ms: int) -> Effects:
    """Go on with a group that was replayed. A guest joins when it is told to, so nothing else is expected of it."""
    for member in group.members.values():
        touch(groups, group, member.id, now_ms)
        if member.classic is None:
            watch_revocation(groups, group.id, member, now_ms)
    return Effects()


def cancel_timers(groups: Groups, group_id: str, member_id: str) -> None:
    for name in TIMERS:
        groups.timers.cancel((name, group_id, member_id))


def fence(
    groups: Groups, group: Members[Any], gone: Collection[Any], *known: Any, more: Iterable[Change] = ()
) -> Effects:
    """Take members out, and begin a new epoch for those who stay. `known` is what its record tells of the group."""
    for member in gone:
        cancel_timers(groups, group.id, member.id)
    changes = [change for member in gone for change in removal(group.kind, group.id, member.id)]
    return Effects([*changes, *more, epoch_change(group.kind, group.id, group.epoch + 1, *known)])
