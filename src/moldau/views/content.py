"""What one partition of a view holds: ordered bytes with one writer and many readers, and the changes that were made
last, so that one can look at it as it was.

Readers never wait for the writer: a look-up is one look into a dict, and a range takes the lock only while the keys are
chosen. A look at the past is a layer over the present that is told what changes beneath it.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from moldau.operators.stores.ordered import MemoryBytes

OVERHEAD = 200  # bytes that Python takes for an entry besides key and value, roughly


class Undo(NamedTuple):
    """A change: the offset of the record that made it, and what was there before."""

    offset: int
    key: bytes
    old: bytes | None


class Content:
    """`offset` is set by the writer before it puts what a record says. `floor` is the earliest position that can be
    looked at again: changes before it are forgotten."""

    def __init__(self, history: int) -> None:
        self.lock = threading.Lock()
        self._inner = MemoryBytes()
        self._undo: deque[Undo] = deque()
        self._history = history
        self._pasts: list[weakref.ref[Past]] = []
        self.get = self._inner.get
        self.approximate_count = self._inner.approximate_count
        self.offset = 0
        self.floor = 0
        self.size = 0

    def put(self, key: bytes, value: bytes | None, /) -> None:
        old = self.get(key)
        if old is None and value is None:
            return
        with self.lock:
            for seen in self._pasts:
                past = seen()
                if past is not None:
                    past.overlay.setdefault(key, old)
            self._inner.put(key, value)
            self._undo.append(Undo(self.offset, key, old))
            if len(self._undo) > self._history:
                self.floor = max(self.floor, self._undo.popleft().offset + 1)
        self.size += weight(key, value) - weight(key, old)

    def forget_before(self, offset: int) -> None:
        """Forget the past before an offset: the log has lost records there, so it is not known any more."""
        self.floor = max(self.floor, offset)

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        with self.lock:
            return self._inner.range(low, high, reverse)

    def before(self, offset: int) -> Past | None:
        """Return the content as it was when all records before the offset had been read; None if that is forgotten."""
        with self.lock:
            if offset < self.floor:
                return None
            past = Past(self, {})
            for change in reversed(self._undo):
                if change.offset < offset:
                    break
                past.overlay[change.key] = change.old
            self._pasts = [seen for seen in self._pasts if seen() is not None]
            self._pasts.append(weakref.ref(past))
        return past


class Past:
    """Ordered bytes as they were. Nobody puts anything here."""

    def __init__(self, content: Content, overlay: dict[bytes, bytes | None]) -> None:
        self._content = content
        self.overlay = overlay

    def get(self, key: bytes, /) -> bytes | None:
        found = self._content.get(key)  # first: what changes after this is in the overlay
        return self.overlay.get(key, found)

    def put(self, key: bytes, value: bytes | None, /) -> None:
        raise AssertionError("the past does not change")

    def range(
        self, low: bytes | None = None, high: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        chosen = self._content.range(low, high)
        with self._content.lock:
            found: dict[bytes, bytes | None] = {**dict(chosen), **self.overlay}
        for key in sorted(found, reverse=reverse):
            value = found[key]
            if value is not None and (low is None or low <= key) and (high is None or key <= high):
                yield key, value

    def approximate_count(self) -> int:
        return self._content.approximate_count()


def weight(key: bytes, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value) + OVERHEAD
