"""Batches of delivery states: laid over each other they say of each offset what says most."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.share.batches import StateBatch, combine, rank

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


@st.composite
def batches(draw: st.DrawFn) -> list[StateBatch]:
    def one() -> StateBatch:
        first = draw(st.integers(0, 25))
        state = draw(st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]))
        return StateBatch(first, first + draw(st.integers(0, 9)), state, draw(st.integers(1, 3)))

    return [one() for _ in range(draw(st.integers(0, 6)))]


def by_offset(found: list[StateBatch], start: int) -> dict[int, tuple[int, int]]:
    """What a list says, offset by offset; the highest claim wins."""
    said: dict[int, tuple[int, int]] = {}
    for batch in found:
        for offset in range(max(batch.first, start), batch.last + 1):
            said[offset] = max(said.get(offset, (0, 0)), rank(batch))
    return said


@given(batches(), batches(), st.integers(-1, 30))
def test_each_offset_has_the_highest_claim(known: list[StateBatch], new: list[StateBatch], start: int) -> None:
    before = combine((), known, -1)
    after = combine(before, new, start)
    assert by_offset(after, start) == by_offset(known + new, start)
    assert sum(batch.last - batch.first + 1 for batch in after) == len(by_offset(after, start))


@given(batches())
def test_neighbours_differ_and_do_not_overlap(new: list[StateBatch]) -> None:
    found = combine((), new, -1)
    for one, two in pairwise(found):
        assert one.last < two.first
        assert one.last + 1 < two.first or rank(one) != rank(two)


@given(batches(), st.integers(-1, 30))
def test_what_is_said_twice_is_said_once(new: list[StateBatch], start: int) -> None:
    once = combine((), new, start)
    assert combine(once, new, start) == once
    assert combine((), reversed(new), start) == once
