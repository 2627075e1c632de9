"""How members of a group come to own what its target assignment gives them: partitions (KIP-848), or tasks (KIP-1071).

Each member goes at its own pace, by epochs. It first gives up what the target takes away (UNREVOKED, still in its
old epoch), then moves to the target's epoch and gets what is free; what another member still holds it waits for
(UNRELEASED). So nothing has two owners, and nobody stops who need not. Everything that is owned has the epoch in
which it was given (KIP-1251): a commit from an older epoch is then still good for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, Self, TypeVar

from moldau.machines.group import refuse
from moldau.wire.errors import Error

K = TypeVar("K")
Owned = Mapping[K, Mapping[int, int]]  # by topic, or by kind of task: each number with the epoch in which it was given
Wanted = Mapping[K, frozenset[int]]
NOTHING: Owned[Any] = {}


class State(IntEnum):
    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127


STATES = frozenset(State)


def state_of(number: int) -> State:
    """Return the state that a record tells; one of a later release is not known."""
    return State(number) if number in STATES else State.UNKNOWN


class Moving(Protocol):
    """A member, as far as it moves: a named tuple."""

    @property
    def epoch(self) -> int: ...
    @property
    def state(self) -> State: ...
    @property
    def assigned(self) -> Owned[Any]: ...
    @property
    def revoking(self) -> Owned[Any]: ...
    def moved(self, epoch: int, state: State, assigned: Owned[Any], revoking: Owned[Any]) -> Self:
        """Return the member a step later."""
        ...


M = TypeVar("M", bound=Moving)


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go. `owned` is what the client says that it owns, None if it did not say; `is_taken` tells
    what others own. Of what is not `subscribed` (None: everything is) nothing is kept; a change of the subscription
    takes topics away at once, before there is a new target. `stride` is by how much the epoch of a member grows that
    has given up what it was asked to and is asked for more."""

    epoch: int
    target: Wanted[Any]
    owned: Wanted[Any] | None
    is_taken: Callable[[Any, int], bool]
    subscribed: Collection[Any] | None = None
    subscription_changed: bool = False
    stride: int = 0

    def wants(self, key: Any) -> frozenset[int]:
        subscribed = self.subscribed is None or key in self.subscribed
        return self.target.get(key, frozenset()) if subscribed else frozenset()


def is_reconciled(member: Moving, target_epoch: int) -> bool:
    return member.state == State.STABLE and member.epoch == target_epoch


def reconcile(member: M, goal: Goal) -> M:
    """Return the member's next step, or the same member if there is none; raises Refused."""
    if member.state == State.UNKNOWN:
        if goal.owned is None or goal.owned:
            refuse(Error.FENCED_MEMBER_EPOCH, "The member is in an unknown state: give up everything and rejoin.")
        return advance(member, goal, goal.epoch)
    waits = member.state == State.UNREVOKED and owns_any(goal.owned, member.revoking)
    if waits or is_reconciled(member, goal.epoch):
        return drop_unsubscribed(member, goal) if goal.subscription_changed else member
    return advance(member, goal, member.epoch + (goal.stride if member.state == State.UNREVOKED else 0))


def owns_any(owned: Wanted[Any] | None, of: Owned[Any]) -> bool:
    """Return whether the client owns any of these, as far as we know."""
    if owned is None:
        return True
    return any(not of[key].keys().isdisjoint(owned[key]) for key in owned if key in of)


def advance(member: M, goal: Goal, epoch: int) -> M:
    """Give up first; if there is nothing to give up, go to the target's epoch with all that is free."""
    kept, lost = split(member.assigned, goal)
    if lost and owns_any(goal.owned, lost):
        return member.moved(epoch, State.UNREVOKED, kept, lost)
    missing = False
    gained: dict[Any, dict[int, int]] = {key: dict(mine) for key, mine in kept.items()}
    for key in goal.target:
        for index in goal.wants(key) - kept.get(key, {}).keys():
            if goal.is_taken(key, index):
                missing = True
            else:
                gained.setdefault(key, {})[index] = goal.epoch
    return member.moved(goal.epoch, State.UNRELEASED if missing else State.STABLE, gained, NOTHING)


def split(assigned: Owned[Any], goal: Goal) -> tuple[Owned[Any], Owned[Any]]:
    """Return what stays and what goes."""
    kept: dict[Any, Mapping[int, int]] = {}
    lost: dict[Any, Mapping[int, int]] = {}
    for key, mine in assigned.items():
        wanted = goal.wants(key)
        if stays := {index: epoch for index, epoch in mine.items() if index in wanted}:
            kept[key] = stays
        if goes := {index: epoch for index, epoch in mine.items() if index not in wanted}:
            lost[key] = goes
    return kept, lost


def drop_unsubscribed(member: M, goal: Goal) -> M:
    """Give up the topics that the member does not ask for any longer."""
    gone = [key for key in member.assigned if goal.subscribed is not None and key not in goal.subscribed]
    if not gone:
        return member
    kept = {key: mine for key, mine in member.assigned.items() if key not in gone}
    lost = {key: dict(going) for key, going in member.revoking.items()}
    for key in gone:
        lost.setdefault(key, {}).update(member.assigned[key])
    if owns_any(goal.owned, lost):
        return member.moved(member.epoch, State.UNREVOKED, kept, lost)
    return member.moved(member.epoch, member.state, kept, member.revoking)


def owned_slots(owned: Owned[K]) -> Iterator[tuple[K, int]]:
    return ((key, index) for key, mine in owned.items() for index in mine)
