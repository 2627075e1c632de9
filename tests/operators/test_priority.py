"""The heap that decides among equals as Java's does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.operators.priority import PriorityQueue


@given(st.lists(st.integers(0, 5)))
@settings(deadline=None)
def test_it_gives_the_smallest_first(numbers: list[int]) -> None:
    queue: PriorityQueue[int] = PriorityQueue(lambda number: number)
    for number in numbers:
        queue.add(number)
    assert [queue.poll() for _ in numbers] == sorted(numbers)


def test_among_three_equals_the_last_comes_second_as_in_java() -> None:
    queue: PriorityQueue[str] = PriorityQueue(lambda name: 0)
    for name in "abc":
        queue.add(name)
    assert [queue.poll() for _ in range(3)] == ["a", "c", "b"]
