"""Deadlines of a machine: by name, each with what is to happen; nothing here looks at a clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf

from moldau.machines.effects import Effects

Action = Callable[[int], Effects]  # takes now_ms

HEAP_SLACK = 64


@dataclass(slots=True, eq=False)
class Timer:
    """Runs `action` at `deadline_ms`. Putting it off leaves the heap alone: it is looked at when it falls due."""

    deadline_ms: float
    action: Action


class Timers:
    """A heap in which cancelled and postponed timers stay until their first deadline comes."""

    def __init__(self) -> None:
        self.by_name: dict[Hashable, Timer] = {}
        self.heap: list[tuple[float, int, Hashable, Timer]] = []
        self.serial = 0

    def set(self, name: Hashable, deadline_ms: float, action: Action) -> None:
        """Start a timer, in place of one of the same name."""
        timer = self.by_name[name] = Timer(deadline_ms, action)
        self.push(name, timer)

    def postpone(self, name: Hashable, deadline_ms: float) -> bool:
        """Put a timer off to a later deadline, cheaply; False if there is none, or if it is to come earlier."""
        timer = self.by_name.get(name)
        if timer is None or deadline_ms < timer.deadline_ms:
            return False
        timer.deadline_ms = deadline_ms
        return True

    def renew(self, name: Hashable, deadline_ms: float, action: Action) -> None:
        """Put a timer off, or start it."""
        if not self.postpone(name, deadline_ms):
            self.set(name, deadline_ms, action)

    def is_set(self, name: Hashable) -> bool:
        return name in self.by_name

    def cancel(self, name: Hashable) -> None:
        self.by_name.pop(name, None)

    def push(self, name: Hashable, timer: Timer) -> None:
        self.serial += 1
        heapq.heappush(self.heap, (timer.deadline_ms, self.serial, name, timer))
        if len(self.heap) > HEAP_SLACK + 2 * len(self.by_name):
            live = ((name, timer) for _, _, name, timer in self.heap if self.by_name.get(name) is timer)
            self.heap = [(timer.deadline_ms, n, name, timer) for n, (name, timer) in enumerate(live)]
            heapq.heapify(self.heap)

    def next_deadline_ms(self) -> float:
        """When the next timer is due; those that were cancelled or put off are sorted out on the way."""
        while self.heap:
            deadline, _, name, timer = self.heap[0]
            if self.by_name.get(name) is timer and timer.deadline_ms <= deadline:
                return deadline
            heapq.heappop(self.heap)
            if self.by_name.get(name) is timer:
                self.push(name, timer)
        return inf

    def take(self, now_ms: int) -> Action | None:
        """Return the action of one timer that is due, which is then gone."""
        if self.next_deadline_ms() > now_ms:
            return None
        _, _, name, timer = heapq.heappop(self.heap)
        del self.by_name[name]
        return timer.action
