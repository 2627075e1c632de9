"""Two hashes that others compute too: where Kafka's producers put a key, and where Spark puts a group."""

from __future__ import annotations

from functools import lru_cache

MASK = 0xFFFFFFFF
MURMUR2_SEED, MURMUR2_M = 0x9747B28C, 0x5BD1E995
SPARK_SEED = 42


@lru_cache(1 << 16)  # a stream has the same keys again and again
def murmur2(data: bytes) -> int:
    """The hash of Kafka's default partitioner, made positive as it does."""
    size = len(data)
    hashed = (MURMUR2_SEED ^ size) & MASK
    whole = size & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * MURMUR2_M & MASK
        k = (k ^ k >> 24) * MURMUR2_M & MASK
        hashed = (hashed * MURMUR2_M & MASK) ^ k
    if size > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * MURMUR2_M & MASK
    hashed = (hashed ^ hashed >> 13) * MURMUR2_M & MASK
    return (hashed ^ hashed >> 15) & 0x7FFFFFFF


def rotated(number: int, by: int) -> int:
    return (number << by | number >> 32 - by) & MASK


def spark_hash(number: int) -> int:
    """Spark's hash of one integer, by which rows are shared out to shuffle partitions; signed."""
    k = rotated((number & MASK) * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
    hashed = (rotated(SPARK_SEED ^ k, 13) * 5 + 0xE6546B64) & MASK
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & MASK
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


def spread(count: int, partitions: int) -> list[int]:
    """So many different numbers, of which Spark puts the first into its partition 0, the second into 1, and so on."""
    found: list[list[int]] = [[] for _ in range(partitions)]
    per_partition = -(-count // partitions)
    number = 0
    while any(len(some) < per_partition for some in found):
        some = found[spark_hash(number) % partitions]
        if len(some) < per_partition:
            some.append(number)
        number += 1
    return [found[place % partitions][place // partitions] for place in range(count)]
