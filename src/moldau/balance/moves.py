"""A plan: the moves of partitions, and the cluster before and after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from moldau.balance.model import Load, Model, Place, loads


@dataclass(frozen=True, slots=True)
class Move:
    """A partition, its replicas before and after, its leader before and its size. The first replica leads then."""

    topic: str
    number: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    leader: int
    size: int

    @property
    def place(self) -> Place:
        return self.topic, self.number

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(id for id in self.after if id not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(id for id in self.before if id not in self.after)

    @property
    def bytes(self) -> int:
        """The bytes that are copied."""
        return self.size * len(self.adding)


@dataclass(frozen=True, slots=True)
class Plan:
    """Moves, the model before and after them, and which hard goals cannot be reached."""

    moves: tuple[Move, ...]
    before: Model
    after: Model
    problems: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(move.bytes for move in self.moves)

    @property
    def leaders(self) -> int:
        """Count the moves that copy nothing: they change who leads."""
        return sum(not move.adding for move in self.moves)

    def loads(self) -> dict[int, tuple[Load, Load]]:
        """Return what each broker carries before and after."""
        now, then = loads(self.before), loads(self.after)
        return {id: (now[id], then[id]) for id in sorted(now)}

    def seconds(self, throttle: int) -> float:
        """Estimate how long it takes if each broker sends and receives so many bytes a second: the busiest decides."""
        busy: Counter[tuple[str, int]] = Counter()
        for move in self.moves:
            for id in move.adding:
                busy["in", id] += move.size
                busy["out", move.leader] += move.size
        return max(busy.values(), default=0) / throttle


def summary(made: Plan, rate: int, size: Callable[[int], str]) -> str:
    """Say in a sentence what a plan does; `size` writes bytes for people."""
    if not made.moves:
        return "The cluster is balanced: nothing to do." if not made.problems else "Nothing can be done."
    copies = len(made.moves) - made.leaders
    parts = [f"{_count(copies, 'partition moves', 'partitions move')} ({size(made.bytes)})"] if copies else []
    parts += [_count(made.leaders, "partition only changes its leader", "partitions only change their leaders")] * (
        made.leaders > 0
    )
    pace = f", about {_time(made.seconds(rate))} at {size(rate)}/s" if rate and made.bytes else ""
    return f"{'; '.join(parts)}{pace}."


def _count(number: int, single: str, several: str) -> str:
    return f"{number} {single if number == 1 else several}"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
