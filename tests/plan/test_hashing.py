"""The hash of integers is Spark's; shards are spread evenly."""

from collections import Counter

import pytest

from moldau.plan.hashing import spark_hash, spread


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
