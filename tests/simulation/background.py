"""The node's background thread: its jobs run one after the other, some time later, and report some time after that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.broker.rim.background import outcome

if TYPE_CHECKING:
    from tests.simulation.world import World


class SlowThread:
    """A job is lost with its process; between submission, work and report the node goes on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.jobs: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self.busy = False
        self.gone = False

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((work, done))
        self.begin()

    def begin(self) -> None:
        """A sync covers what was written when it began, or a little more; it takes its time."""
        if self.jobs and not self.busy:
            self.busy = True
            took = self.world.random.uniform(0.05, self.world.plan.sync_ms)
            began = took * self.world.random.choice((0, 0.1, 0.9))
            self.world.events.after(began, lambda: self.run(took - began))

    def run(self, rest_ms: float) -> None:
        if self.gone:
            return
        work, done = self.jobs.popleft()
        result = outcome(work)
        self.world.counts["background jobs"] += 1
        self.world.events.after(rest_ms, lambda: self.report(done, result))

    def report(self, done: Callable[[Any], None], result: Any) -> None:
        if not self.gone:
            self.busy = False
            done(result)
            self.begin()
            self.world.settle()

    def finish(self) -> None:
        """A clean stop waits for what was submitted; there is nobody left to report to."""
        self.gone = True
        while self.jobs:
            outcome(self.jobs.popleft()[0])
