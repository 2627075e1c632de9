"""Which partition a key goes to, as Java's clients, librdkafka or nobody in particular would choose."""

from __future__ import annotations

import random
from binascii import crc32
from collections.abc import Callable

from moldau.wire.numbers import murmur2

Partitioner = Callable[[bytes], int]  # a number that is taken modulo the partitions


def anywhere(key: bytes) -> int:
    return random.getrandbits(31)


PARTITIONERS: dict[str, Partitioner] = {"murmur2": murmur2, "crc32": crc32, "random": anywhere}
