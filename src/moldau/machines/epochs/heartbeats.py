"""The order of a heartbeat, by which a member with epochs joins, goes on or leaves, and the steps that kinds share.

What the member says of itself is written, which may begin a new epoch of the group; if the target assignment is behind
the group it is computed, but not more often than the setting `assignment.interval.ms` allows; and the member makes its
next step towards the target. All of it is decided on the state before the heartbeat, and becomes true when the changes
are replayed. A kind of group says in `Steps` what it does in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from moldau.machines.effects import Change, Effects, Promise
from moldau.machines.epochs.group import JOIN, config
from moldau.machines.epochs.hashing import metadata_hash
from moldau.machines.epochs.records import epoch_change, target_epoch_change
from moldau.machines.epochs.sessions import touch, watch_revocation
from moldau.machines.group import Client
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


class Turn(Protocol):
    """A heartbeat in the making: the group before it, the epoch after it, and the changes and answers so far."""

    groups: Groups
    now_ms: int
    epoch: int
    changes: list[Change]
    answers: list[tuple[Promise, Any]]

    @property
    def group(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Steps:
    """What a kind of group does in its own way. Members are handed over as they are before the heartbeat, with what
    it says, and a step later; `owned` is what the client says that it owns, None if it does not say."""

    leave: Callable[[Groups, Any, int], tuple[Effects, Any]]  # groups, request, now_ms: what follows, and the answer
    open_turn: Callable[[Groups, Any, int], Turn]
    owned: Callable[[Any], Any]  # request
    find_member: Callable[[Any, Any, Any], Any]  # turn, request, owned
    update: Callable[[Any, Any, Client], Any]  # member, request, client
    take_turn: Callable[[Any, Any, Any, Any], Any]  # turn, before, wanted, owned
    answer: Callable[[Any, Any, Any, Any], Any]  # turn, request, before, moved
    refusal: Callable[[Error, str], Any]


def heartbeat(steps: Steps, groups: Groups, promise: Promise, request: Any, client: Client, now_ms: int) -> Effects:
    """Let a member join, go on or leave, with a request that was checked."""
    try:
        if request.member_epoch < JOIN:
            effects, answer = steps.leave(groups, request, now_ms)
            return effects.add(answers=[(promise, answer)])
        turn = steps.open_turn(groups, request, now_ms)
        owned = steps.owned(request)
        before = steps.find_member(turn, request, owned)
        wanted = steps.update(before, request, client)
        moved = steps.take_turn(turn, before, wanted, owned)
        touch(groups, turn.group, moved.id, now_ms)
        if moved != wanted:
            watch_revocation(groups, turn.group.id, moved, now_ms)
        answer = steps.answer(turn, request, before, moved)
        return Effects(turn.changes, [*turn.answers, (promise, answer)])
    except Refused as refused:
        return Effects(answers=[(promise, steps.refusal(refused.error, refused.message))])


def update_epoch(turn: Turn, names: Callable[[], Collection[str]], *, force: bool) -> bool:
    """Begin a new epoch, if it must be or if the topics of these names are not what they were; whether it began.

    The topics are looked at again only if the cluster's topics or the group have changed since.
    """
    group, cluster = turn.group, turn.groups.cluster()
    if not force and group.seen == (cluster.topic_changes, group.epoch):
        return False
    number = metadata_hash(names(), cluster)
    bumped = force or number != group.metadata_hash
    if bumped:
        turn.epoch = group.epoch + 1
        turn.changes.append(epoch_change(group.kind, group.id, turn.epoch, number))
    group.seen = cluster.topic_changes, turn.epoch
    return bumped


def is_assignment_due(turn: Turn) -> bool:
    """Return whether a target may be computed: the first at once, later ones not too often.

    If the last one is of the future, the clock was set back, or the coordinator has moved to a broker whose clock is
    behind. Kafka waits until that time has come.
    """
    group = turn.group
    interval = config(turn.groups, group.id, "assignment.interval.ms", group.kind)
    return not group.assigned_ms or not 0 <= turn.now_ms - group.assigned_ms < interval


def write_target(turn: Turn, target: Mapping[str, Any], change: Callable[[str, str, Any], Change]) -> None:
    """Write what is new in a target, and that it is the one of this epoch."""
    group = turn.group
    for member_id, mine in target.items():
        if mine != group.target.get(member_id):
            turn.changes.append(change(group.id, member_id, mine))
    turn.changes.append(target_epoch_change(group.kind, group.id, turn.epoch, turn.now_ms))
