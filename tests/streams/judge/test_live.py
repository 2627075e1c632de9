"""The third judge sees what it is to see: uneven partitions, keys with two homes, records out of place or order."""

from __future__ import annotations

import pytest

from tests.streams.judge.live import PARTITIONS, RECORDS, How, Place, Row, difference, input_records, several_homes
from tests.streams.judge.topologies import TOPOLOGIES


def test_input_is_uneven_and_has_keys_with_two_homes_and_none() -> None:
    given = input_records(["left", "right"], seed=1)
    sizes = [sum(len(given[topic, number]) for topic in ("left", "right")) for number in range(PARTITIONS)]
    assert sum(sizes) == RECORDS
    assert max(sizes) > 2 * min(sizes)
    assert 0 < len(several_homes(given)) < 12
    assert any(row.key is None for rows in given.values() for row in rows)
    left, right = ({row.timestamp for n in range(PARTITIONS) for row in given[t, n]} for t in ("left", "right"))
    assert not left & right
    assert input_records(["left", "right"], seed=1) == given


def outcome(*rows: tuple[int, Row]) -> dict[Place, list[Row]]:
    return {("out", number): [row for place, row in rows if place == number] for number in range(PARTITIONS)}


ONE, TWO, LATER = Row(b"k", b"1", 5), Row(b"k", b"2", 6), Row(b"k", b"1", 7)
NOBODY = Row(None, b"x", 1)


@pytest.mark.parametrize(
    ("how", "kafka", "ours", "same"),
    [
        ("ordered", [(0, ONE), (0, TWO)], [(0, ONE), (0, TWO)], True),
        ("ordered", [(0, ONE), (0, TWO)], [(0, TWO), (0, ONE)], False),
        ("ordered", [(0, ONE)], [(1, ONE)], False),
        ("ordered", [(0, ONE)], [(0, LATER)], False),
        ("ordered", [(0, NOBODY)], [(3, NOBODY)], True),
        ("set", [(0, ONE), (0, TWO)], [(0, TWO), (0, LATER)], True),
        ("set", [(0, ONE)], [(0, ONE), (0, ONE)], False),
        ("latest", [(0, TWO), (0, ONE)], [(0, ONE)], True),
        ("latest", [(0, ONE)], [(0, TWO)], False),
    ],
)
def test_differences_are_seen(how: How, kafka: list[tuple[int, Row]], ours: list[tuple[int, Row]], same: bool) -> None:
    assert (difference(how, set(), outcome(*kafka), outcome(*ours)) == "") is same


def test_all_trials_are_topologies_of_the_table() -> None:
    from tests.streams.judge.live import TRIALS

    assert TRIALS.keys() <= TOPOLOGIES.keys()
    assert len(TRIALS) >= 10
