"""Random input: few keys, time that goes back and forth by the spans of the topologies' windows, nulls, headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st

from tests.streams.judge.case import Advance, Case, Input, Step

KEYS = ("a", "b", "c", None)
VALUES = ("a", "b", "ab", "", "cab", "bc", "x1", None)
# From the latest time so far. Windows are of 10 s with 5 s of grace, hops of 4 s; stores keep 2 or 3 minutes, and
# stores on disk drop whole segments of at least one.
AHEAD = (0, 0, 1, 1000, 1000, 2000, 4000, 5000, 5001, 9999, 10_000, 10_001, 15_000, 15_001, 20_000)
BEHIND = (-1, -1000, -2000, -4000, -5000, -5001, -9999, -10_000, -10_001, -15_000, -15_001, -20_000, -50_000)
FAR = (60_000, 130_000, 190_000, 400_000, -61_000, -119_999, -120_000, -121_000, -180_000, -200_000)
HEADERS = st.lists(st.tuples(st.sampled_from("hk"), st.sampled_from((b"1", b"", None))), max_size=2).map(tuple)
STEPS = 24

# A move is what is drawn; a time becomes absolute when the moves before it are known. So a move can be left out or
# made smaller and the rest still means the same, which is how the smallest failing input is found.
Move = tuple[str, str | None, str | None, int, tuple[Any, ...]] | int


def cases(
    topology: str, topics: Sequence[str], settings: Sequence[Mapping[str, str]], clock: bool = False
) -> st.SearchStrategy[Case]:
    """Cases of a topology that reads these topics; `clock` where wall-clock time matters to it."""
    time = st.sampled_from(AHEAD * 3 + BEHIND * 2 + FAR)
    headers = st.one_of(st.just(()), st.just(()), HEADERS)
    record = st.tuples(st.sampled_from(topics), st.sampled_from(KEYS), st.sampled_from(VALUES), time, headers)
    advance = st.sampled_from((1, 1000, 9999, 10_000, 30_000))
    moves = st.lists(st.one_of(record, advance) if clock else record, max_size=STEPS)
    return st.builds(partial(_case, topology), moves, st.sampled_from(settings))


def _case(topology: str, moves: Sequence[Move], settings: Mapping[str, str]) -> Case:
    latest, steps = 0, list[Step]()
    for move in moves:
        if isinstance(move, int):
            steps.append(Advance(move))
            continue
        topic, key, value, time, headers = move
        timestamp = max(0, latest + time)
        latest = max(latest, timestamp)
        steps.append(Input(topic, _text(key), _text(value), timestamp, headers))
    return Case(topology, steps, settings)


def _text(value: str | None) -> bytes | None:
    return None if value is None else value.encode()
