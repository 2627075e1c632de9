"""Punctuators: functions that are called when their time has come, in the order of Kafka Streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .priority import PriorityQueue


@dataclass(slots=True, eq=False)
class Cancellable:
    """A scheduled punctuator, which can be cancelled."""

    at: int
    interval: int
    node: str
    callback: Callable[[int], None]
    serial: int = 0  # how many were scheduled before it
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass(slots=True)
class Punctuators:
    queue: PriorityQueue[Cancellable] = field(default_factory=lambda: PriorityQueue(lambda scheduled: scheduled.at))
    count: int = 0

    def add(self, at: int, interval: int, node: str, callback: Callable[[int], None]) -> Cancellable:
        scheduled = Cancellable(at, interval, node, callback, self.count)
        self.count += 1
        self.queue.add(scheduled)
        return scheduled

    def run(self, now: int, call: Callable[[Cancellable, int], None]) -> bool:
        """Call all that are due, each once however many intervals have passed; return whether any was due."""
        any_due = False
        queue = self.queue
        while queue.items and queue.items[0].at <= now:
            due = queue.poll()
            if due.cancelled:
                continue
            call(due, now)
            any_due = True
            if not due.cancelled:
                due.at += max((now - due.at) // due.interval + 1, 1) * due.interval
                queue.add(due)
        return any_due
