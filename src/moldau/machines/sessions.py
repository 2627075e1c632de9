"""Sessions of members of modern groups: who is silent for too long, or does not give up what it was asked to, is out.

All of it is soft: after a load everybody has a session's time to be heard of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from moldau.machines.reconciling import State
from moldau.machines.timers import Action

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


class Watched(Protocol):
    """A member that may have been asked to give something up."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...


def watch_revocation(groups: Groups, group_id: str, member: Watched, now_ms: int, give_up: Action) -> None:
    """Whoever is asked to give something up has its rebalance timeout to do so."""
    name = "revocation", group_id, member.id
    if member.state == State.UNREVOKED:
        groups.timers.set(name, now_ms + member.rebalance_timeout_ms, give_up)
    else:
        groups.timers.cancel(name)


def cancel_timers(groups: Groups, group_id: str, member_id: str) -> None:
    for name in ("session", "revocation"):
        groups.timers.cancel((name, group_id, member_id))
