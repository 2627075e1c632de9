"""Which partition a key goes to, as Java's clients, librdkafka or nobody in particular would choose."""

from __future__ import annotations

import random
from binascii import crc32
from collections.abc import Callable
from functools import lru_cache

from moldau.plan import hashing

Partitioner = Callable[[bytes], int]  # a number that is taken modulo the partitions
murmur2 = lru_cache(maxsize=100_000)(hashing.murmur2)  # keys come again


def anywhere(key: bytes) -> int:
    return random.getrandbits(31)


PARTITIONERS: dict[str, Partitioner] = {"murmur2": murmur2, "crc32": crc32, "random": anywhere}
