"""Windows by their definitions: whatever the order in which records come, if none is late; and restarts in between."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from moldau.streams import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    String,
    TimeWindows,
    TopologyTestDriver,
)
from tests.streams.scenario_run import Scenario, run
from tests.streams.windowed_topologies import TOPOLOGIES

LONG = 1_000  # a grace in which nothing is late
RECORDS = some.lists(some.tuples(some.sampled_from(["a", "b", "aa"]), some.integers(10, 90)), max_size=14)


def counted(windows: Any, records: list[tuple[str, int]]) -> dict[tuple[str, int, int], int]:
    """What is in the store when all records have come."""
    builder = StreamsBuilder("models")
    builder.stream("in", key=String(), value=String()).group_by_key().windowed_by(windows).count(store="counts")
    with TopologyTestDriver(builder, {"statestore.cache.max.bytes": 0}) as driver:
        for key, time in records:
            driver.create_input_topic("in").pipe_input(key, "x", time)
        kept = driver.store("counts").all()
        return {tuple(window): getattr(count, "value", count) for window, count in kept}


@given(RECORDS, some.integers(1, 20), some.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_a_record_counts_in_each_window_around_it(records: list[tuple[str, int]], size: int, advance: int) -> None:
    advance = min(size, advance)
    expected: dict[tuple[str, int, int], int] = {}
    for key, time in records:
        for start in range(0, time + 1, advance):
            if start <= time < start + size:
                window = key, start, start + size
                expected[window] = expected.get(window, 0) + 1
    assert counted(TimeWindows.of(size, advance=advance, grace=LONG), records) == expected


@given(RECORDS)
@settings(max_examples=60, deadline=None)
def test_a_sliding_window_is_there_for_each_record_and_behind_it(records: list[tuple[str, int]]) -> None:
    expected: dict[tuple[str, int, int], int] = {}
    for key, time in records:
        for start in (time - 10, time + 1):
            held = [at for other, at in records if other == key and start <= at <= start + 10]
            if held:
                expected[key, start, start + 10] = len(held)
    assert counted(SlidingWindows.of(10, grace=LONG), records) == expected


@given(RECORDS, some.integers(1, 15))
@settings(max_examples=40, deadline=None)
def test_a_session_ends_where_nothing_follows_within_the_gap(records: list[tuple[str, int]], gap: int) -> None:
    expected: dict[tuple[str, int, int], int] = {}
    for key in {key for key, _ in records}:
        times = sorted(time for other, time in records if other == key)
        session = [times[0]]
        for time in [*times[1:], LONG * LONG]:
            if time - session[-1] <= gap:
                session.append(time)
            else:
                expected[key, session[0], session[-1]] = len(session)
                session = [time]
    assert counted(SessionWindows.of(gap, grace=LONG), records) == expected


SIDES = some.lists(
    some.tuples(some.sampled_from(["left", "right"]), some.sampled_from("ab"), some.integers(20, 80)), max_size=16
)


@given(SIDES, some.integers(-3, 12), some.integers(3, 12))
@settings(max_examples=50, deadline=None)
def test_each_pair_within_the_window_is_joined_once(
    records: list[tuple[str, str, int]], before: int, after: int
) -> None:
    builder = StreamsBuilder("models")
    left, right = (builder.stream(topic, key=String(), value=String()) for topic in ("left", "right"))
    window = JoinWindows.of(before=before, after=after, grace=LONG)
    left.join(right, lambda one, other: f"{one} {other}", window=window).to("out", key=String(), value=String())
    with TopologyTestDriver(builder) as driver:
        for number, (topic, key, time) in enumerate(records):
            driver.create_input_topic(topic).pipe_input(key, str(number), time)
        found = driver.create_output_topic("out").read_records_to_list()
    expected = [
        (f"{one} {other}", max(time, at))
        for one, (side, key, time) in enumerate(records)
        for other, (other_side, other_key, at) in enumerate(records)
        if (side, other_side, key) == ("left", "right", other_key) and time - before <= at <= time + after
    ]
    assert sorted((record.value, record.timestamp) for record in found) == sorted(expected)


INPUTS = some.lists(
    some.tuples(
        some.sampled_from(["in", "left", "right"]),
        some.sampled_from(["a", "b", None]),
        some.sampled_from(["x", "yy", "a/1", "b/2", "!", None]),
        some.integers(0, 80),
    ),
    max_size=12,
)


@given(some.sampled_from(sorted(TOPOLOGIES)), INPUTS)
@settings(max_examples=60, deadline=None)
def test_operators_that_are_made_anew_between_records_go_on_as_before(
    name: str, inputs: list[tuple[str, str | None, str | None, int]]
) -> None:
    read = {"ss_self": ["in"]}.get(name) or topics_of(name)
    scenario = Scenario(0, [record for record in inputs if record[0] in read])
    assert run(name, scenario, restart=True) == run(name, scenario)


def topics_of(name: str) -> set[str]:
    builder = StreamsBuilder("models")
    TOPOLOGIES[name](builder)
    return {topic for node in builder.build().freeze().nodes for topic in getattr(node, "topics", ())}
