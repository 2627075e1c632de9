"""Work that must not hold up the node: an fdatasync, the removal of a large file.

The node hands out a job; what it returned (or raised) comes back on the node's own thread. `Worker` runs the jobs of
a real broker, one after the other in one thread, so that waiting syncs of one file collapse by themselves. `Inline`
runs them at once: for tests and for the simulator, where nothing may depend on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

Work = Callable[[], Any]
Done = Callable[[Any], None]


def outcome(work: Work) -> Any:
    """Return the result of the work, or its exception, which the caller has to judge."""
    try:
        return work()
    except Exception as error:
        return error


class Inline:
    """Runs each job at once, on the caller's thread."""

    __slots__ = ()
    pending = 0

    def submit(self, work: Work, done: Done) -> None:
        done(outcome(work))

    def close(self) -> None:
        pass


class Worker:
    """One thread, started by the first job. `post` brings a call to the node's thread."""

    __slots__ = ("_jobs", "_name", "_post", "_thread", "pending")

    def __init__(self, post: Callable[[Callable[[], None]], object], name: str = "moldau-background") -> None:
        self._name = name
        self.pending = 0
        self._post = post
        self._jobs: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, work: Work, done: Done) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self.pending += 1
        self._jobs.put((work, done))

    def close(self) -> None:
        """Finish what was submitted; nothing may be submitted afterwards."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, done = job
            result = outcome(work)
            self._post(lambda done=done, result=result: self._report(done, result))

    def _report(self, done: Done, result: Any) -> None:
        self.pending -= 1
        done(result)
