"""A binary heap whose order among equals is that of Java's PriorityQueue.

Kafka Streams feeds the input with the smallest timestamp first, and calls the punctuator that is due first. Among
equals the layout of this heap decides, and our output must be the same, record for record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    __slots__ = ("items", "rank")

    def __init__(self, rank: Callable[[T], int]) -> None:
        self.items: list[T] = []
        self.rank = rank

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: T) -> None:
        items, rank = self.items, self.rank
        items.append(item)
        place = len(items) - 1
        if place:
            mine = rank(item)
            while place > 0:
                above = (place - 1) >> 1
                if mine >= rank(items[above]):
                    break
                items[place] = items[above]
                place = above
            items[place] = item

    def poll(self) -> T:
        """Remove and return the first item; the queue must not be empty."""
        items = self.items
        first, last = items[0], items.pop()
        if items:
            self._sink(last)
        return first

    def _sink(self, item: T) -> None:
        items, rank = self.items, self.rank
        mine, place, size = rank(item), 0, len(items)
        while (child := 2 * place + 1) < size:
            if child + 1 < size and rank(items[child]) > rank(items[child + 1]):
                child += 1
            if mine <= rank(items[child]):
                break
            items[place] = items[child]
            place = child
        items[place] = item
