"""Which partition a key goes to, as Java's clients, librdkafka or nobody in particular would choose."""

from __future__ import annotations

import random
from binascii import crc32
from collections.abc import Callable
from functools import lru_cache

Partitioner = Callable[[bytes], int]  # a number that is taken modulo the partitions
SEED, FACTOR, SHIFT, WORD = 0x9747B28C, 0x5BD1E995, 24, 0xFFFFFFFF


@lru_cache(maxsize=100_000)
def murmur2(key: bytes) -> int:
    """As Java's producers and Kafka Streams: MurmurHash2 with their seed, its sign taken away."""
    length = len(key)
    hashed = SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * FACTOR & WORD
        hashed = hashed * FACTOR & WORD ^ (word ^ word >> SHIFT) * FACTOR & WORD
    if whole < length:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * FACTOR & WORD
    hashed = (hashed ^ hashed >> 13) * FACTOR & WORD
    return (hashed ^ hashed >> 15) & 0x7FFFFFFF


def anywhere(key: bytes) -> int:
    return random.getrandbits(31)


PARTITIONERS: dict[str, Partitioner] = {"murmur2": murmur2, "crc32": crc32, "random": anywhere}
