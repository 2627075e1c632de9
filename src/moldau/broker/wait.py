"""Requests that cannot be answered yet: who waits for what, and until when."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

HEAP_SLACK = 64
NO_ANSWER = object()  # what a Wait returns whose request gets no answer


@dataclass(slots=True, eq=False)
class Wait:
    """A handler's way to say "not yet": a long poll, an acknowledgement that waits for a flush or for replicas.

    `attempt(expired)` returns the response, or None to wait on; it must answer when `expired` is true. It runs
    again whenever one of `watches` is signalled, and for the last time at the deadline. It may return another Wait,
    which takes the place of this one. `applied` says that the request has taken effect and only its answer waits: the
    requests after it need not. `release` frames the answer; the node fills it in.
    """

    deadline_ms: float
    attempt: Callable[[bool], Any]
    watches: tuple[object, ...] = ()
    applied: bool = False
    release: Callable[[Any], None] = field(init=False)
    done: bool = field(default=False, init=False)

    def note(self, watch: object) -> Wait:
        """Be tried again, whatever was signalled."""
        return self


class Watcher(Protocol):
    """Somebody who is told what was signalled: a request that waits, or somebody who stays for longer."""

    def note(self, watch: object) -> Wait | None:
        """Take note of a signal; returns the request that is to be tried again, if there is one."""
        ...


def finish(outcome: Any, change: Callable[[Any], Any]) -> Any:
    """Let `change` have the last word on a response, now or after a wait."""
    if outcome.__class__ is not Wait:
        return outcome if outcome is None or outcome is NO_ANSWER else change(outcome)
    attempt = outcome.attempt
    outcome.attempt = lambda expired: finish(attempt(expired), change)
    return outcome


class Waits:
    """Parks requests, and retries them when what they watch is signalled or their time is up."""

    def __init__(self) -> None:
        self.watched: dict[object, dict[Watcher, None]] = {}
        self.deadlines: list[tuple[float, int, Wait]] = []
        self.serial = 0
        self.live = 0

    def park(self, wait: Wait, release: Callable[[Any], None]) -> None:
        """Remember a request until it has an answer for `release`."""
        wait.release = release
        wait.watches = tuple(dict.fromkeys(wait.watches))  # a request may name a partition twice
        self.serial += 1
        self.live += 1
        heapq.heappush(self.deadlines, (wait.deadline_ms, self.serial, wait))
        for watch in wait.watches:
            self.watch(wait, watch)

    def watch(self, watcher: Watcher, watch: object) -> None:
        """Tell somebody of each signal from now on."""
        self.watched.setdefault(watch, {})[watcher] = None

    def unwatch(self, watcher: Watcher, watch: object) -> None:
        watchers = self.watched[watch]
        del watchers[watcher]
        if not watchers:
            del self.watched[watch]

    def signal(self, watch: object) -> None:
        """Something changed: try again every request that watches it."""
        watchers = self.watched.get(watch)
        if watchers:
            for watcher in tuple(watchers):
                wait = watcher.note(watch)
                if wait is not None:
                    self.attempt(wait, expired=False)

    def expire(self, now_ms: float) -> None:
        """Answer every request whose deadline has come."""
        while self.deadlines and self.deadlines[0][0] <= now_ms:
            deadline_ms, _, wait = heapq.heappop(self.deadlines)
            if deadline_ms == wait.deadline_ms:
                self.attempt(wait, expired=True)

    def attempt(self, wait: Wait, expired: bool) -> None:
        """Ask the handler again, and answer if it has an answer now."""
        if wait.done:
            return
        response = wait.attempt(expired)
        if wait.done:  # it was answered by a signal that the attempt itself gave
            return
        if response.__class__ is Wait:
            self.renew(wait, response)
        elif response is not None:
            self.forget(wait)
            wait.release(response)

    def renew(self, wait: Wait, following: Wait) -> None:
        """Let a request wait for something else. The object stays, since its connection knows it."""
        self.forget(wait)
        wait.deadline_ms, wait.attempt, wait.watches = following.deadline_ms, following.attempt, following.watches
        wait.done, wait.applied = False, following.applied
        self.park(wait, wait.release)

    def forget(self, wait: Wait) -> None:
        """Take a request out, answered or not. Its place in the heap goes when the heap is mostly such places."""
        wait.done = True
        self.live -= 1
        for watch in wait.watches:
            self.unwatch(wait, watch)
        if len(self.deadlines) > HEAP_SLACK + 2 * self.live:
            self.deadlines = [entry for entry in self.deadlines if not entry[2].done]
            heapq.heapify(self.deadlines)

    def next_deadline_ms(self) -> float | None:
        """Return when `expire` is next needed."""
        while self.deadlines and self.deadlines[0][2].done:
            heapq.heappop(self.deadlines)
        return self.deadlines[0][0] if self.deadlines else None
