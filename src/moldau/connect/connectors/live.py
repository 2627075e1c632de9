"""Sources that keep a connection open: a thread takes what comes into a bounded buffer, from which the task polls."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from moldau.connect.errors import ConnectError, RetriableError

TICK_S = 0.2  # how soon a full buffer notices that the task ends
LONGEST_S = 0.5  # of a poll that has nothing to return


class Closed(Exception):
    """The end of a feed, seen by the thread that fills it."""


class Feed:
    """A buffer of at most so many things. `put` waits while it is full, so whoever sends has to wait too.

    `read`, if there is one, runs in a thread of its own, begins anew after errors that may pass, and ends with Closed.
    """

    def __init__(self, most: int, read: Callable[[Feed], None] | None = None, again_s: float = 1.0) -> None:
        self._things: queue.Queue[Any] = queue.Queue(most)
        self._read, self._again_s = read, again_s
        self._error: BaseException | None = None
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._live, name="connect feed", daemon=True)
        if read is not None:
            self._thread.start()

    def _live(self) -> None:
        assert self._read is not None
        while not self.closed.is_set():
            try:
                self._read(self)
            except Closed:
                return
            except RetriableError as error:
                self._error = error
            except Exception as error:  # of a connection; the task fails with it
                self._error = error
                return
            self.closed.wait(self._again_s)

    def put(self, thing: Any) -> None:
        while not self.offer(thing):
            continue

    def offer(self, thing: Any) -> bool:
        """Put a thing if there is room for it within a tick; return False otherwise."""
        if self.closed.is_set():
            raise Closed
        with suppress(queue.Full):
            self._things.put(thing, timeout=TICK_S)
            return True
        return False

    def take(self, most: int) -> list[Any]:
        """Return what has come, after waiting a little for the first; raise what the thread raised, after all that."""
        found: list[Any] = []
        end = time.monotonic() + LONGEST_S
        while len(found) < most:
            try:
                found.append(self._things.get(timeout=0 if found else max(0.0, end - time.monotonic())))
            except queue.Empty:
                break
        if not found and (error := self._error) is not None:
            self._error = None
            raise error if isinstance(error, ConnectError) else ConnectError(f"{error}") from error
        return found

    def close(self, wait_s: float = 5.0) -> None:
        self.closed.set()
        if self._thread.is_alive():
            self._thread.join(wait_s)
