"""The journal of the balancer: a compacted topic that says which plan is carried out, and which throttles are set.

A key and a JSON document make a record. The moves of a run are written before the run itself, so a run whose submission
was cut short does not exist. `decode(encode(row))` is the row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from moldau.balance.model import Place
from moldau.balance.moves import Move
from moldau.balance.progress import CANCELLED, DONE, PAUSED, Wish
from moldau.balance.throttles import Throttle
from moldau.client import Record
from moldau.topicstore import Codec

TOPIC = "_moldau_balancer"
RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Run:
    """A plan that is carried out. `state` is RUNNING, PAUSED, or why it ended; `away` and `known` are the brokers that
    were gone and there when it was planned."""

    id: str
    purpose: str
    state: str = RUNNING
    throttle: int = 0
    begun_ms: int = 0
    away: tuple[int, ...] = ()
    known: tuple[int, ...] = ()

    @property
    def is_over(self) -> bool:
        """Tell whether nothing of it can be resumed."""
        return self.state in (DONE, CANCELLED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants of a run."""

    run: str
    wish: Wish


@dataclass(frozen=True, slots=True)
class Planned:
    """A move of a run."""

    run: str
    move: Move


@dataclass(frozen=True, slots=True)
class Away:
    """A broker that is gone, since when."""

    broker: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A key that means nothing any more."""

    key: str


Row = Run | Wanted | Planned | Throttle | Away | Forgotten
NOOP = Forgotten("noop")


def key_of(row: Row) -> str:
    match row:
        case Run():
            return "run"
        case Wanted():
            return "wish"
        case Planned():
            return f"move/{row.move.topic}/{row.move.number}"
        case Throttle():
            return f"throttle/{row.key}"
        case Away():
            return f"away/{row.broker}"
        case Forgotten():
            return row.key


def encode(row: Row) -> tuple[bytes, bytes | None]:
    if isinstance(row, Forgotten):
        return row.key.encode(), None
    fields = asdict(row)
    if isinstance(row, Wanted):
        fields["wish"] = row.wish.value
    return key_of(row).encode(), json.dumps(fields, separators=(",", ":")).encode()


def decode(record: Record) -> Row:
    """Read a record; ValueError, KeyError or TypeError where it is none of ours."""
    key = bytes(record.key or b"").decode()
    if record.value is None:
        return Forgotten(key)
    fields: dict[str, Any] = json.loads(bytes(record.value))
    match key.partition("/")[0]:
        case "run":
            return Run(**{**fields, "away": tuple(fields["away"]), "known": tuple(fields["known"])})
        case "wish":
            return Wanted(fields["run"], Wish(fields["wish"]))
        case "move":
            move = fields["move"]
            return Planned(
                fields["run"], Move(**{**move, "before": tuple(move["before"]), "after": tuple(move["after"])})
            )
        case "throttle":
            return Throttle(**fields)
        case "away":
            return Away(**fields)
        case _:
            raise ValueError(f"{key} is not a key of the balancer")


CODEC = Codec[Row](encode, decode)


@dataclass(slots=True)
class Journal:
    """What the records say. `replay` is the only writer."""

    run: Run | None = None
    wanted: Wanted | None = None
    planned: dict[Place, Planned] = field(default_factory=dict[Place, Planned])
    throttles: dict[str, Throttle] = field(default_factory=dict[str, Throttle])
    away: dict[int, int] = field(default_factory=dict[int, int])

    def replay(self, row: Row) -> None:
        match row:
            case Run():
                self.run = row
            case Wanted():
                self.wanted = row
            case Planned():
                self.planned[row.move.place] = row
            case Throttle():
                self.throttles[row.key] = row
            case Away():
                self.away[row.broker] = row.since_ms
            case Forgotten():
                self._forget(row.key)

    def _forget(self, key: str) -> None:
        kind, _, rest = key.partition("/")
        if kind == "move":
            topic, _, number = rest.rpartition("/")
            self.planned.pop((topic, int(number)), None)
        elif kind == "throttle":
            self.throttles.pop(rest, None)
        elif kind == "away":
            self.away.pop(int(rest), None)

    def reset(self) -> None:
        self.run = self.wanted = None
        for rows in (self.planned, self.throttles, self.away):
            rows.clear()

    def moves(self) -> list[Move]:
        """Return the moves of the run, in the order of the plan."""
        return [one.move for one in self.planned.values() if self.run is not None and one.run == self.run.id]

    def wish(self) -> Wish:
        """Return what is wanted of the run now."""
        mine = self.run is not None and self.wanted is not None and self.wanted.run == self.run.id
        return self.wanted.wish if mine and self.wanted is not None else Wish.RUN


def submission(journal: Journal, run: Run, moves: Iterable[Move]) -> list[Row]:
    """Return the records that begin a run, and forget the moves of the one before."""
    planned = [Planned(run.id, move) for move in moves]
    new = {one.move.place for one in planned}
    old = [Forgotten(key_of(one)) for place, one in journal.planned.items() if place not in new]
    return [*old, *planned, run]


def ending(journal: Journal, run: Run, state: str) -> list[Row]:
    """Return the records that end a run; the moves of one that may be resumed stay."""
    over = replace(run, state=state)
    return [over, *(Forgotten(key_of(one)) for one in journal.planned.values())] if over.is_over else [over]


def resumption(run: Run) -> list[Row]:
    """Return the records that let a run go on."""
    return [Wanted(run.id, Wish.RUN), replace(run, state=RUNNING)]


__all__ = ["CODEC", "NOOP", "PAUSED", "RUNNING", "TOPIC", "Away", "Forgotten", "Journal", "Planned", "Row", "Run"]
__all__ += ["Wanted", "ending", "resumption", "submission"]
