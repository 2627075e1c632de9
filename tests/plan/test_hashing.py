"""The hashes agree with those who compute them too; shards are spread evenly."""

from collections import Counter

import pytest

from moldau.plan.hashing import murmur2, spark_hash, spread

KAFKAS = {  # Utils.toPositive(Utils.murmur2(...)) of Kafka
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("data", KAFKAS, ids=lambda data: data.decode())
def test_murmur2_is_kafkas(data: bytes) -> None:
    assert murmur2(data) == KAFKAS[data] & 0x7FFFFFFF


def test_the_hash_of_integers_is_sparks() -> None:
    assert [spark_hash(number) for number in (0, 1, 2, 42, -1)] == [
        933211791,
        -559580957,
        1765031574,
        29417773,
        -1604776387,
    ]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 16, 200])
@pytest.mark.parametrize("count", [1, 2, 5, 16, 200])
def test_shards_are_spread_evenly(count: int, partitions: int) -> None:
    numbers = spread(count, partitions)
    assert len(set(numbers)) == count
    places = Counter(spark_hash(number) % partitions for number in numbers)
    assert max(places.values()) == -(-count // partitions)
