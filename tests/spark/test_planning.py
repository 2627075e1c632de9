"""Planning of micro-batches: pure, so it is tested without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.spark.source.planning import (
    FEW,
    Cut,
    ForeignOffset,
    Position,
    Range,
    at_most,
    carried,
    gathered,
    limited,
    losses,
    ranges,
    split,
    tasks,
    waiting,
)
from moldau.spark.source.reading import waves

PARTITIONS = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 10_000))


@given(OFFSETS, st.integers(1, 20_000))
def test_a_position_survives_its_json(offsets: dict[tuple[str, int], int], most: int) -> None:
    position = Position(offsets, {"a": "id"}, Cut(3, most))
    assert Position.of_json(position.to_json()) == position


def test_the_json_is_that_of_sparks_own_source_and_always_in_the_same_order() -> None:
    assert str(Position({("b", 10): 1, ("b", 9): 2, ("a", 0): 3}).to_json()) == str(
        {"a": {"0": 3}, "b": {"9": 2, "10": 1}}
    )
    assert Position.of_json({"a": {"0": 3}}) == Position({("a", 0): 3})


@pytest.mark.parametrize("document", [{"a": 5}, {"logOffset": {"x": 3}}, {"a": {"0": 1}, "@new": {}}, [1]])
def test_the_checkpoint_of_another_source_is_said_to_be_one(document: Any) -> None:
    with pytest.raises(ForeignOffset, match="give the query a checkpointLocation of its own"):
        Position.of_json(document)


@given(OFFSETS)
def test_few_records_are_read_by_few_tasks(offsets: dict[tuple[str, int], int]) -> None:
    start = Position({})
    end = gathered(start, Position(offsets))
    whole, cut = ranges(start, end), tasks(ranges(start, end), end.cut)
    assert sorted(one.name for task in cut for one in task) == sorted(one.name for one in whole)
    assert len(cut) == min(len(whole), -(-sum(offsets.values()) // FEW))


@pytest.mark.parametrize("cut", [Cut(min_partitions=4), Cut(max_records=3), Cut(max_partitions=2)])
def test_tasks_are_as_they_were_asked_for(cut: Cut) -> None:
    end = Position({("a", 0): 5, ("a", 1): 5, ("b", 0): 5}, cut=cut)
    assert gathered(Position({}), end) == end


def test_new_partitions_are_read_from_their_start() -> None:
    start, end = Position({("a", 0): 5}), Position({("a", 0): 7, ("a", 1): 3})
    assert ranges(start, end) == [Range("a", 0, 5, 7), Range("a", 1, 0, 3)]


def test_a_topic_that_was_made_anew_is_read_from_its_start() -> None:
    start, end = Position({("a", 0): 5}, {"a": "old"}), Position({("a", 0): 7}, {"a": "new"})
    assert losses(start, end) == ["The topic a was deleted and made anew: what was not read of the old one is lost."]
    assert ranges(start, end) == [Range("a", 0, 0, 7, "new")]


def test_checkpoints_without_ids_are_gone_on_with() -> None:
    assert ranges(Position({("a", 0): 5}), Position({("a", 0): 7}, {"a": "x"})) == [Range("a", 0, 5, 7, "x")]
    assert losses(Position({("a", 0): 5}), Position({("a", 0): 7}, {"a": "x"})) == []


def test_what_is_gone_is_told() -> None:
    start = Position({("a", 0): 5, ("a", 1): 9, ("b", 0): 1, ("c", 0): 1})
    latest = Position({("a", 0): 3, ("b", 0): 1})
    assert losses(start, latest) == [
        "The topic c is gone, or not subscribed to any more.",
        "Partition a-0 was read up to 5 and now ends at 3.",
        "Partition a-1 is gone, and with it what was not read yet.",
    ]


def test_a_topic_that_comes_back_is_gone_on_with() -> None:
    start = Position({("a", 0): 5, ("b", 0): 7}, {"a": "1", "b": "2"})
    away = carried(start, Position({("a", 0): 6}, {"a": "1"}))
    assert away == Position({("a", 0): 6, ("b", 0): 7}, {"a": "1", "b": "2"})
    assert ranges(away, Position({("b", 0): 9}, {"b": "2"})) == [Range("b", 0, 7, 9, "2")]


@given(OFFSETS, OFFSETS, st.integers(1, 10_000))
def test_a_limit_is_kept_but_no_partition_starves(
    begin: dict[tuple[str, int], int], more: dict[tuple[str, int], int], most: int
) -> None:
    start = Position(begin)
    latest = Position({one: begin.get(one, 0) + more.get(one, 0) for one in {*begin, *more}})
    end = limited(start, latest, most)
    taken, there = waiting(start, end), waiting(start, latest)
    assert set(taken) == set(there)
    assert sum(taken.values()) <= max(most, len(there))
    assert all(taken[one] <= there[one] for one in taken)
    assert sum(there.values()) > most or end == latest


def test_the_limit_is_shared_out_in_the_proportion_of_what_waits() -> None:
    latest = Position({("a", 0): 901, ("a", 1): 101})
    assert limited(Position({}), latest, 102).offsets == {("a", 0): 91, ("a", 1): 11}


def test_a_target_holds_back_what_came_later() -> None:
    target = Position({("a", 0): 5, ("b", 0): 2}, {"b": "old"})
    now = Position({("a", 0): 9, ("a", 1): 4, ("b", 0): 7}, {"b": "new"})
    assert at_most(now, target).offsets == {("a", 0): 5}


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 5000)), max_size=6),
    st.one_of(st.none(), st.integers(1, 40)),
    st.one_of(st.none(), st.integers(1, 3000)),
)
def test_splitting_loses_nothing_and_keeps_the_order(
    sizes: list[tuple[int, int]], at_least: int | None, most: int | None
) -> None:
    whole = [Range("a", number, start, start + size) for number, (start, size) in enumerate(sizes)]
    parts = split(whole, Cut(at_least, most))
    covered: list[Range] = []
    for part in parts:
        assert part.size > 0
        assert most is None or part.size <= most
        if covered and covered[-1].partition == part.partition:
            assert covered[-1].end == part.start
            covered[-1] = Range("a", part.partition, covered[-1].start, part.end)
        else:
            covered.append(part)
    assert covered == whole
    assert at_least is not None or most is not None or parts == whole


def test_large_partitions_are_split_more() -> None:
    parts = split([Range("a", 0, 0, 900), Range("a", 1, 0, 100)], Cut(min_partitions=10))
    assert [part.size for part in parts] == [100] * 10


@given(st.lists(st.integers(1, 5000), max_size=12), st.integers(1, 5))
def test_small_partitions_are_read_together(sizes: list[int], most: int) -> None:
    whole = [Range("a", number, 0, size) for number, size in enumerate(sizes)]
    found = tasks(whole, Cut(max_partitions=most))
    assert len(found) == min(most, len(whole))
    assert sorted((one for task in found for one in task), key=lambda one: one.partition) == whole
    loads = [sum(one.size for one in task) for task in found]
    assert not loads or max(loads) - min(loads) <= max(sizes)


def test_pieces_of_a_partition_are_not_read_at_the_same_time() -> None:
    one, two, other = Range("a", 0, 0, 5), Range("a", 0, 5, 9), Range("a", 1, 0, 3)
    assert waves([one, two, other]) == [[one, other], [two]]


def test_a_replayed_batch_is_cut_as_it_was_at_first() -> None:
    end = Position.of_json(Position({("a", 0): 100}, cut=Cut(4)).to_json())
    assert len(split(ranges(Position({}), end), end.cut)) == 4
