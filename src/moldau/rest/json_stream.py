"""JSON documents one behind the other, as they come in: where each ends is known from its brackets alone."""

from __future__ import annotations

import re
from itertools import takewhile

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
MOST_DEPTH = 500


class Broken(ValueError):
    """What follows is not a document; nothing after it can be read."""


class Splitter:
    """Bytes in, whole documents out. Only objects and lists are documents."""

    __slots__ = ("_depth", "_most_bytes", "_rest", "_scanned")

    def __init__(self, most_bytes: int) -> None:
        self._rest, self._scanned, self._depth, self._most_bytes = b"", 0, 0, most_bytes

    def feed(self, chunk: bytes) -> tuple[list[bytes], Broken | None]:
        """Return the documents that are complete now, and why there can be no more."""
        buffer = self._rest + chunk if self._rest else chunk
        found: list[bytes] = []
        start, position, depth = 0, self._scanned, self._depth
        broken: Broken | None = None
        for token in _TOKEN.finditer(buffer, position):
            first = buffer[token.start()]
            position = token.end()
            if depth == 0 and (first not in b"{[" or buffer[start : token.start()].strip()):
                broken = _no_document(buffer, start)
                break
            if first in b"{[":
                depth += 1
                if depth > MOST_DEPTH:
                    broken = Broken(f"a document is nested deeper than {MOST_DEPTH}")
                    break
            elif first in b"}]":
                depth -= 1
                if depth == 0:
                    found.append(buffer[start:position])
                    start = position
            elif token.end() - token.start() == 1:  # a string that does not end here
                position = token.start()
                break
        self._rest, self._scanned, self._depth = buffer[start:], position - start, depth
        if broken is None and depth == 0 and self._rest.strip():
            broken = _no_document(self._rest, 0)
        small = list(takewhile(lambda one: len(one) <= self._most_bytes, found))
        if len(small) < len(found) or len(self._rest) > self._most_bytes:
            broken = Broken(f"a document is larger than {self._most_bytes} bytes")
        return small, broken

    def end(self) -> Broken | None:
        """Return what is wrong if nothing follows."""
        return Broken("the last document has no end") if self._rest.strip() else None


def _no_document(buffer: bytes, start: int) -> Broken:
    return Broken(f"{bytes(buffer[start : start + 20]).strip()!r} does not begin an object")
