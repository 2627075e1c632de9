"""Clients as scripts: a generator yields what it waits for, a call or a time, and is told what came of it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tests.simulation.network import Peer

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")


class Call(NamedTuple):
    """A request to be sent; the script goes on with its answer, or with None when it is lost."""

    peer: Peer
    request: Any
    version: int


Steps = Generator[Call | float, Any, T]
"""What a script is made of: it yields calls and milliseconds, and returns T."""


class Script:
    """A running script. When it is ended its client is dead: nothing reaches it any more.

    What its client is to do next, `wants`, the script heeds when it comes to it.
    """

    def __init__(self, world: World, steps: Steps[None]) -> None:
        self.world = world
        self.steps = steps
        self.running = True
        self.wants: str | None = None
        world.events.after(0.01, lambda: self.go_on(None))

    def go_on(self, outcome: Any) -> None:
        if not self.running:
            return
        try:
            wanted = self.steps.send(outcome)
        except StopIteration:
            self.running = False
            return
        if isinstance(wanted, Call):
            wanted.peer.call(wanted.request, wanted.version, self.go_on, lambda: self.go_on(None))
        else:
            self.world.events.after(wanted, lambda: self.go_on(None))

    @property
    def goes_on(self) -> bool:
        return self.wants != "leave"

    def is_to_stall(self, ready: bool, chance: float) -> bool:
        """Whether it was asked to stall, and is ready to; now and then it is not ready, and stalls all the same."""
        stalls = self.wants == "stall" and (ready or self.world.random.random() < chance)
        if stalls:
            self.wants = None
        return stalls

    def pause(self) -> float:
        """Between two things that a client of a group does."""
        return self.world.random.uniform(0.1, 1.9) * self.world.plan.pause_ms

    def end(self) -> None:
        self.running = False
