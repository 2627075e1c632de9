"""The order in which a Java HashMap gives its keys: some tools print in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
_WORD = 0xFFFFFFFF


def string_hash(text: str) -> int:
    """String.hashCode, as an unsigned number."""
    found = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        found = (31 * found + (units[at] << 8 | units[at + 1])) & _WORD
    return found


def partition_hash(place: tuple[str, int]) -> int:
    """TopicPartition.hashCode."""
    return (31 * (31 + place[1]) + string_hash(place[0])) & _WORD


def hash_order(keys: Iterable[T], hash_of: Callable[[T], int], capacity: int = 16) -> list[T]:
    """The keys, put into a map in the order given, in the order in which the map gives them."""
    wanted = list(dict.fromkeys(keys))
    size = 1
    while size < capacity:
        size *= 2
    while len(wanted) > size * 0.75:
        size *= 2

    def bucket(key: T) -> int:
        code = hash_of(key)
        return (code ^ code >> 16) & size - 1

    return sorted(wanted, key=bucket)


def names(keys: Iterable[str], capacity: int = 16) -> list[str]:
    return hash_order(keys, string_hash, capacity)


def partitions(keys: Iterable[tuple[str, int]], capacity: int = 16) -> list[tuple[str, int]]:
    return hash_order(keys, partition_hash, capacity)
