"""Spark's hash of integers, by which it assigns groups to partitions."""

from __future__ import annotations

MASK = 0xFFFFFFFF
SPARK_SEED = 42


def rotated(number: int, by: int) -> int:
    return (number << by | number >> 32 - by) & MASK


def spark_hash(number: int, seed: int = SPARK_SEED) -> int:
    """Return Spark's signed hash of an integer, by which rows are assigned to shuffle partitions. The hash of several
    integers is that of the last with the hash of those before it as seed.
    """
    k = rotated((number & MASK) * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
    hashed = (rotated((seed & MASK) ^ k, 13) * 5 + 0xE6546B64) & MASK
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & MASK
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


def spread(count: int, partitions: int, seed: int = SPARK_SEED) -> list[int]:
    """Return so many numbers, of which Spark puts the first into partition 0, the second into 1, and so on. `seed`: the
    hash of what rows are grouped by before the number.
    """
    found: list[list[int]] = [[] for _ in range(partitions)]
    per_partition = -(-count // partitions)
    number = 0
    while any(len(some) < per_partition for some in found):
        some = found[spark_hash(number, seed) % partitions]
        if len(some) < per_partition:
            some.append(number)
        number += 1
    return [found[place % partitions][place // partitions] for place in range(count)]
