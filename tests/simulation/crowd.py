"""Clients that come and go: each has a seat, on which one life follows the other; sometimes two are there at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.copies.copier import Copier
from tests.simulation.groups.reader import Reader
from tests.simulation.groups.roster import Roster
from tests.simulation.shares.pool import Pool
from tests.simulation.shares.sharer import Sharer

if TYPE_CHECKING:
    from tests.simulation.world import World

Life = Reader | Copier | Sharer


@dataclass(slots=True, eq=False)
class Seat:
    """A client's place; `single` where two lives at once are against the rules."""

    name: str
    group: Roster | Pool
    begin: Callable[[str], Life]
    single: bool
    lives: list[Life] = field(default_factory=list)
    born: int = 0

    def spawn(self) -> None:
        self.born += 1
        self.lives.append(self.begin(f"{self.name}.{self.born}"))


class Crowd:
    """All seats of a world, and what happens to who sits there."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seats: list[Seat] = []
        self.pace_ms = world.plan.length_ms / world.plan.crowd_acts
        self.later()

    def later(self) -> None:
        self.world.events.after(self.world.random.uniform(0.1, 1.9) * self.pace_ms, self.act)

    def readers(self, roster: Roster, count: int, static: bool) -> None:
        for number in range(count):
            name = f"{roster.name}.{number}"
            instance = name if static else None
            self.seats.append(Seat(name, roster, lambda life, i=instance: Reader(self.world, roster, life, i), static))

    def copiers(self, roster: Roster, count: int) -> None:
        for number in range(count):
            name = f"{roster.name}.{number}"
            self.seats.append(Seat(name, roster, lambda life, n=name: Copier(self.world, roster, life, n), False))

    def sharers(self, pool: Pool, count: int) -> None:
        for number in range(count):
            name = f"{pool.name}.{number}"
            self.seats.append(Seat(name, pool, lambda life: Sharer(self.world, pool, life), False))

    def act(self) -> None:
        """Something happens to somebody; an empty seat is taken."""
        self.later()
        for seat in self.seats:
            seat.lives = [life for life in seat.lives if life.script.running]
        empty = [seat for seat in self.seats if not seat.lives]
        if self.world.draining:
            for seat in empty:
                seat.spawn()
        elif empty and self.world.random.random() < 0.6:
            self.world.random.choice(empty).spawn()
        elif self.seats and not self.world.ending:
            self.strike(self.world.random.choice(self.seats))

    def strike(self, seat: Seat) -> None:
        kind = self.world.random.choice(("die", "die", "stall", "leave", "second"))
        if kind == "second" and not seat.single and len(seat.lives) < 2:
            self.note("seconds", f"a second {seat.name}")
            seat.spawn()
        for life in seat.lives[:1]:
            if kind == "die":
                self.note("clients killed", f"{life.name} dies")
                life.die()
            elif kind in ("stall", "leave"):
                self.note(f"clients that {kind}", f"{life.name} will {kind}")
                life.script.wants = kind

    def note(self, count: str, text: str) -> None:
        self.world.counts[count] += 1
        self.world.events.note(text)

    def thin_out(self) -> None:
        """Some do not come back: what they left open must end without them."""
        for group in self.world.groups():
            seats = [seat for seat in self.seats if seat.group is group]
            for seat in self.world.random.sample(seats, self.world.random.randrange(len(seats))):
                self.empty(seat)
                self.seats.remove(seat)

    def empty(self, seat: Seat) -> None:
        for life in seat.lives:
            if life.script.running:
                life.die()

    def stop(self) -> None:
        """All clients are switched off."""
        for seat in self.seats:
            self.empty(seat)
        self.seats.clear()
