"""What a run does next, decided from the plan and from what the cluster says, and from nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from moldau.balance.model import NOBODY, Place
from moldau.balance.moves import Move


class Wish(Enum):
    """What somebody wants of a run. To pause lets moves end that are under way; to halt and to cancel call them off."""

    RUN = "run"
    PAUSE = "pause"
    HALT = "halt"
    CANCEL = "cancel"


class Status(Enum):
    """How far a move is. One is lost if its topic was deleted, or somebody else has moved the partition."""

    WAITING = "waiting"
    MOVING = "moving"
    ELECTING = "electing"
    DONE = "done"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition; `goal` are the replicas that a reassignment under way leads to."""

    replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    goal: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A cluster as a run sees it: live brokers, partitions, free bytes of brokers, and the bytes of replicas."""

    alive: frozenset[int]
    partitions: Mapping[Place, PartitionView]
    rooms: Mapping[int, int] = field(default_factory=dict[int, int])
    sizes: Mapping[tuple[Place, int], int] = field(default_factory=dict[tuple[Place, int], int])


@dataclass(frozen=True, slots=True)
class Pace:
    """How much happens at a time: moves in all and for each broker, changes of leaders, and the bytes that stay free
    on a disk."""

    moves: int = 50
    moves_each: int = 5
    leaders: int = 100
    keep_free: int = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now: begin moves, elect first replicas, call moves off, and restore the order of replicas, which a
    cluster does not keep when a move is called off. `end` is why the run is over, once nothing is under way: "done", or
    a sentence."""

    begin: tuple[Move, ...] = ()
    elect: tuple[Place, ...] = ()
    call_off: tuple[Move, ...] = ()
    restore: tuple[Move, ...] = ()
    trouble: tuple[str, ...] = ()
    end: str = ""


DONE, PAUSED, CANCELLED = "done", "paused", "cancelled"
ENDS = {Wish.RUN: DONE, Wish.PAUSE: PAUSED, Wish.HALT: PAUSED, Wish.CANCEL: CANCELLED}


def status(move: Move, view: View) -> Status:
    """Tell how far a move is."""
    now = view.partitions.get(move.place)
    if now is None:
        return Status.LOST
    if now.goal is not None:
        return Status.MOVING if set(now.goal) in (set(move.after), set(move.before)) else Status.LOST
    if now.replicas == move.after:
        wanted = move.after[0]
        return Status.ELECTING if now.leader != wanted and wanted in now.isr else Status.DONE
    if set(now.replicas) == set(move.before):
        return Status.WAITING
    both = {*move.before, *move.after}  # the broker that was asked has not heard yet that it has ended
    return Status.MOVING if set(now.replicas) == both else Status.LOST


def copied(move: Move, view: View) -> int:
    """Return how many bytes of a move have been copied."""
    match status(move, view):
        case Status.DONE | Status.ELECTING | Status.LOST:
            return move.bytes
        case Status.WAITING:
            return 0
        case Status.MOVING:
            return min(move.bytes, sum(view.sizes.get((move.place, id), 0) for id in move.adding))


def troubles(moves: Iterable[Move], view: View, away: frozenset[int], known: frozenset[int]) -> tuple[str, ...]:
    """Say what is wrong with a cluster, apart from what a run causes itself: replicas that it makes are not in sync
    yet. `away` are brokers that were away before, `known` those that were there."""
    making = {move.place: set(move.adding) for move in moves}
    found = [f"broker {id} is gone" for id in sorted(known - view.alive - away)]
    for place, one in sorted(view.partitions.items()):
        new = making.get(place, set()) if one.goal is not None else set()
        lacking = set(one.replicas) - set(one.isr) - away - new
        if one.leader == NOBODY:
            if set(one.replicas) - away:
                found.append(f"{place[0]}-{place[1]} has no leader")
        elif lacking:
            found.append(f"{place[0]}-{place[1]} is not in sync on {', '.join(map(str, sorted(lacking)))}")
    return tuple(found)


def decide(
    moves: Iterable[Move], wish: Wish, view: View, pace: Pace, away: frozenset[int], known: frozenset[int]
) -> Step:
    """Decide what to do next."""
    by_status: dict[Status, list[Move]] = {one: [] for one in Status}
    for move in moves:
        by_status[status(move, view)].append(move)
    moving, electing = by_status[Status.MOVING], by_status[Status.ELECTING]
    if wish is not Wish.RUN:
        if wish is Wish.PAUSE:
            return Step(end="" if moving else ENDS[wish])
        waiting = by_status[Status.WAITING]
        mixed = tuple(move for move in waiting if view.partitions[move.place].replicas != move.before)
        return Step(call_off=tuple(moving), restore=mixed, end="" if moving or mixed else ENDS[wish])
    elect = tuple(move.place for move in electing[: pace.leaders])
    trouble = troubles(moving, view, away, known)
    if trouble:
        return Step(trouble=trouble)
    waiting = by_status[Status.WAITING]
    begin = _next(waiting, moving, view, pace)
    end = ""
    if not moving and not electing and not begin:
        end = DONE if not waiting else "No broker has the room, or is there, for the moves that are left."
    return Step(begin, elect, end=end)


def _next(waiting: list[Move], moving: list[Move], view: View, pace: Pace) -> tuple[Move, ...]:
    """Choose moves that may begin: changes of order first, for they cost nothing; then as many as brokers can take."""
    free = [move for move in waiting if not move.adding][: pace.leaders]
    if free:
        return tuple(free)
    busy: Counter[int] = Counter()
    rooms = dict(view.rooms)
    chosen: list[Move] = []

    def take(move: Move) -> None:
        busy.update((*move.adding, view.partitions[move.place].leader))
        for id in move.adding:
            missing = max(0, move.size - view.sizes.get((move.place, id), 0))
            rooms[id] = rooms.get(id, missing + pace.keep_free) - missing

    for move in moving:
        take(move)
    for move in waiting:
        if len(moving) + len(chosen) >= pace.moves:
            break
        leader = view.partitions[move.place].leader
        able = all(
            id in view.alive and rooms.get(id, move.size + pace.keep_free) - move.size >= pace.keep_free
            for id in move.adding
        )
        if able and leader != NOBODY and all(busy[id] < pace.moves_each for id in (*move.adding, leader)):
            take(move)
            chosen.append(move)
    return tuple(chosen)
