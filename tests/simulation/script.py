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
    """A running script. When it is ended its client is dead: nothing reaches it any more."""

    def __init__(self, world: World, steps: Steps[None]) -> None:
        self.world = world
        self.steps = steps
        self.running = True
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

    def end(self) -> None:
        self.running = False
