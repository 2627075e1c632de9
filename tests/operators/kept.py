"""Pages of a store in memory."""

from __future__ import annotations

from collections.abc import Mapping


class Kept:
    """Counts what was done."""

    def __init__(self, pages: Mapping[int, bytes] | None = None) -> None:
        self.pages: dict[int, bytes] = dict(pages or {})
        self.reads = self.writes = 0

    def get(self, number: int) -> bytes | None:
        self.reads += 1
        return self.pages.get(number)

    def put(self, number: int, page: bytes) -> None:
        self.writes += 1
        self.pages[number] = page

    def remove(self, number: int) -> None:
        self.pages.pop(number, None)
