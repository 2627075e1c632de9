"""What of an application's state survives a change of its topology."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from moldau.plan.hashing import spread
from moldau.plan.stateless_pass import passing_groups
from moldau.plan.topology_change import Shape, Survival, remembered, shape, survival
from moldau.streams import Json, KStream, Long, StreamsBuilder, String, TimeWindows

from .in_memory import Conveyor

Change = Callable[[KStream[str, str], StreamsBuilder], None]


def shape_of(*changes: Change) -> Shape:
    """Of an application that counts what it reads from a, and what it reads from b by another key; and more."""
    builder = StreamsBuilder("app", {"default.key.serde": String(), "default.value.serde": String()})
    stream = builder.stream("a")
    for change in changes:
        change(stream, builder)
    conveyed = Conveyor(builder, {"a": 2, "b": 2}, {}).conveyed
    keys = spread(len(conveyed.schedule.shards), 4)
    return json.loads(json.dumps(shape(conveyed.schedule, passing_groups(conveyed), keys)))


def counted(stream: KStream[str, str], builder: StreamsBuilder) -> None:
    stream.group_by_key().count(store="counts")


def counted_by_word(stream: KStream[str, str], builder: StreamsBuilder) -> None:
    stream.group_by(lambda key, value: value, key=String(), name="by-word").count(store="words")


def longest(stream: KStream[str, str], builder: StreamsBuilder) -> None:
    stream.group_by_key().reduce(max, store="longest")


def written(stream: KStream[str, str], builder: StreamsBuilder) -> None:
    stream.filter(lambda key, value: bool(value)).to("out")


def other(stream: KStream[str, str], builder: StreamsBuilder) -> None:
    builder.stream("b").group_by_key().count(store="others")


def joined(stream: KStream[str, str], builder: StreamsBuilder) -> None:
    stream.join(builder.table("b", store="others"), lambda one, two: one).to("out")


def test_steps_without_state_change_nothing() -> None:
    found = survival(shape_of(counted), shape_of(written, counted, written))
    assert found == Survival(survive=("counts",))
    assert not found.changed


def test_a_store_that_is_added_begins_empty_and_one_that_is_gone_is_left_behind() -> None:
    found = survival(shape_of(counted), shape_of(longest))
    assert found == Survival(empty=("longest",), left=("counts",))
    found = survival(shape_of(counted, longest), shape_of(longest))
    assert found.report() == (
        "state that survives: longest; "
        "stores that are gone, and whose state is not used: counts (one that was renamed is a new one)"
    )


def test_a_store_that_comes_back_has_what_it_held() -> None:
    first = shape_of(counted)
    second = remembered(first, shape_of(longest))
    found = survival(second, shape_of(counted))
    assert found == Survival(again=("counts",), left=("longest",))
    third = remembered(second, shape_of(counted))
    assert survival(third, shape_of(counted, longest)) == Survival(survive=("counts",), again=("longest",))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s, b: s.group_by_key().aggregate(list, lambda k, v, all: all, value=Json(), store="counts"), "value"),
        (lambda s, b: s.group_by_key().windowed_by(TimeWindows.of(5)).count(store="counts"), "kind"),
        (lambda s, b: s.group_by_key().count(store="counts", key=Long()), "key"),
    ],
)
def test_a_store_that_is_kept_in_another_way_is_refused(change: Change, why: str) -> None:
    found = survival(shape_of(counted), shape_of(change)).obstacle
    assert found is not None and found.startswith(f"the store counts was made with {why} ")


def test_windows_of_another_size_are_another_store() -> None:
    def windows(size: int) -> Change:
        return lambda s, b: s.group_by_key().windowed_by(TimeWindows.of(size)).count(store="counts", retention=100)  # type: ignore[return-value]

    found = survival(shape_of(windows(5)), shape_of(windows(6)))
    assert found.obstacle == "the store counts was made with window size ms 5, and now has 6"


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ((written,), (counted,), "it had 0 steps with state, and now has 1"),
        ((counted,), (counted, counted_by_word), "it had 1 steps with state, and now has 2"),
        ((counted, other), (counted, joined), "what is read from a was one sub-topology with state, and is no more"),
        ((other, counted), (written, counted, other), None),
        ((counted, other), (other, counted), None),
    ],
)
def test_where_the_steps_are_others_state_is_not_found(
    before: tuple[Change, ...], now: tuple[Change, ...], why: str | None
) -> None:
    assert survival(shape_of(*before), shape_of(*now)).obstacle == why


def test_a_sub_topology_that_has_moved_is_refused() -> None:

    def reading(first: str, second: str) -> Shape:
        builder = StreamsBuilder("app", {"default.key.serde": String(), "default.value.serde": String()})
        for topic in (first, second):
            builder.stream(topic).group_by_key().count(store=f"counts-{topic}")
        conveyed = Conveyor(builder, {"a": 2, "b": 2}, {}).conveyed
        return shape(conveyed.schedule, passing_groups(conveyed), spread(4, 4))

    assert survival(reading("a", "b"), reading("b", "a")).obstacle == "the sub-topology that reads a has moved"
