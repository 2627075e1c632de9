"""The order of keys in a Java HashMap, in which some tools print."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from moldau.wire.numbers import WORD, hash_order, java_hash


def partition_hash(place: tuple[str, int]) -> int:
    """Compute TopicPartition.hashCode."""
    return (31 * (31 + place[1]) + java_hash(place[0])) & WORD


def names(keys: Iterable[str], capacity: int = 16) -> list[str]:
    return hash_order(keys, java_hash, capacity)


def copied_names(keys: Collection[str]) -> list[str]:
    """Return the order in a map that was made as a copy of another one: it has just room for its keys."""
    room = int(len(keys) / 0.75 + 1)
    return names(keys, 1 << (room - 1).bit_length())


def partitions(keys: Iterable[tuple[str, int]], capacity: int = 16) -> list[tuple[str, int]]:
    return hash_order(keys, partition_hash, capacity)
