"""The node's background thread: its jobs run some time later, and report some time after that.

In some worlds there are several threads, so that a job may overtake another; in some a sync fails now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from errno import EIO
from typing import TYPE_CHECKING, Any

from moldau.broker.rim.background import outcome
from moldau.log.flush import Flush

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass(slots=True, eq=False)
class Job:
    """Work on its way: it has run or not, and has reported or not."""

    work: Callable[[], Any]
    done: Callable[[Any], None]
    has_begun: bool = False
    has_run: bool = False
    result: Any = None


class SlowThread:
    """A job is lost with its process; between submission, work and report the node goes on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.jobs: list[Job] = []  # that have not reported
        self.gone = False

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append(Job(work, done))
        self.begin()

    def begin(self) -> None:
        """A sync covers what was written when it began, or a little more; it takes its time."""
        random = self.world.random
        waiting = [job for job in self.jobs if not job.has_begun]
        if waiting and len(self.jobs) - len(waiting) < self.world.plan.threads:
            job = waiting[0] if self.world.plan.threads == 1 else random.choice(waiting)
            job.has_begun = True
            took = random.uniform(0.05, self.world.plan.sync_ms)
            began = took * random.choice((0, 0.1, 0.9))
            self.world.events.after(began, lambda: self.run(job, took - began))

    def run(self, job: Job, rest_ms: float) -> None:
        if not self.gone and not job.has_run:
            self.work(job)
            self.world.events.after(rest_ms, lambda: self.report(job))

    def work(self, job: Job) -> None:
        job.has_run = True
        self.world.counts["background jobs"] += 1
        flush = getattr(job.work, "__self__", None)
        if isinstance(flush, Flush) and self.world.sync_fails(flush):
            job.result = OSError(EIO, "a sync failed")
        else:
            job.result = outcome(job.work)

    def report(self, job: Job) -> None:
        if not self.gone and job in self.jobs:
            self.jobs.remove(job)
            job.done(job.result)
            self.begin()
            self.world.settle()
            self.world.tempt_power(self.world.clock.now)

    def hurry(self) -> bool:
        """Do all that is submitted now, for an auditor that does not wait; returns whether there was any."""
        jobs = list(self.jobs)
        for job in jobs:
            job.has_begun = True
            if not job.has_run:
                self.work(job)
            self.report(job)
        return bool(jobs)

    def finish(self) -> None:
        """A clean stop waits for what was submitted; there is nobody left to report to."""
        self.gone = True
        for job in self.jobs:
            if not job.has_run:
                outcome(job.work)
