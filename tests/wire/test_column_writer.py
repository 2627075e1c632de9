"""Keys go to the partition that Kafka's Java producer would choose."""

from __future__ import annotations

import numpy as np
import pytest

from moldau.wire.records.column_writer import murmur2

# Hashes as Java's Utils.murmur2 gives them, signed.
KNOWN = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("key", "expected"), KNOWN)
def test_the_hash_of_a_key_is_that_of_javas_producer(key: bytes, expected: int) -> None:
    data = np.frombuffer(b"xx" + key + b"yy", np.uint8)
    assert murmur2(data, 2, 2 + len(key)) == expected & 0xFFFFFFFF
