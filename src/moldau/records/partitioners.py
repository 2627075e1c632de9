"""Partitioners: those of Java's clients and librdkafka, and a random one."""

from __future__ import annotations

import random
from binascii import crc32
from collections.abc import Callable

from moldau.wire.numbers import murmur2

Partitioner = Callable[[bytes], int]  # a number that is taken modulo the partitions


def anywhere(key: bytes) -> int:
    return random.getrandbits(31)


PARTITIONERS: dict[str, Partitioner] = {"murmur2": murmur2, "crc32": crc32, "random": anywhere}
