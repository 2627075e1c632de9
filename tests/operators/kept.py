"""Pages of a store in memory."""

from __future__ import annotations


class Kept:
    """Counts what was done."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self.reads = self.writes = 0

    def get(self, number: int) -> bytes | None:
        self.reads += 1
        return self.pages.get(number)

    def put(self, number: int, page: bytes) -> None:
        self.writes += 1
        self.pages[number] = page

    def remove(self, number: int) -> None:
        self.pages.pop(number, None)
