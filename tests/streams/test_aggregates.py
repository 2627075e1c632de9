"""Aggregates of grouped streams, with every change emitted and with the cache."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.streams import Json, Long, Record, StreamsBuilder, String, TopologyTestDriver

EVERY_CHANGE = {"statestore.cache.max.bytes": 0}


def word_count() -> StreamsBuilder:
    builder = StreamsBuilder("words")
    lines = builder.stream("lines", key=String(), value=String())
    words = lines.flat_map_values(str.split).group_by(lambda key, word: word, key=String(), value=String())
    words.count(store="counts").to_stream().to("counts")
    return builder


def test_every_change_of_a_count_is_emitted_without_a_cache() -> None:
    with TopologyTestDriver(word_count(), EVERY_CHANGE) as driver:
        driver.create_input_topic("lines").pipe_input("k", "a b a", timestamp=3)
        assert driver.create_output_topic("counts").read_key_values_to_list() == [("a", 1), ("b", 1), ("a", 2)]
        assert {key: found.value for key, found in driver.store("counts").all()} == {"a": 2, "b": 1}
        assert driver.produced_topic_names == {"counts", "words-counts-changelog", "words-counts-repartition"}


def test_the_cache_emits_the_last_change_of_each_key() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("in", key=String(), value=String()).flat_map_values(str.split)
    stream.group_by_key(value=String()).count(store="counts").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_input("k", "a b c")
        assert driver.create_output_topic("out").read_key_values_to_list() == [("k", 3)]
    with TopologyTestDriver(builder, EVERY_CHANGE) as driver:
        driver.create_input_topic("in").pipe_input("k", "a b c")
        assert driver.create_output_topic("out").read_values_to_list() == [1, 2, 3]


def test_records_without_key_or_value_are_dropped_and_counted() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in", key=String(), value=String()).group_by_key().count(store="n").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_key_value_list([(None, "v"), ("k", None), ("k", "v")])
        assert driver.create_output_topic("out").read_key_values_to_list() == [("k", 1)]
        assert driver.dropped == {("KSTREAM-AGGREGATE-0000000001", "null key or value"): 2}


records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 5), st.integers(0, 50)), max_size=30)


@given(records, st.booleans())
@settings(deadline=None)
def test_an_aggregate_equals_a_naive_model(given: list[tuple[str, int, int]], cache: bool) -> None:
    builder = StreamsBuilder("app")
    grouped = builder.stream("in", key=String(), value=Long()).group_by_key()
    grouped.aggregate(list, lambda key, value, seen: [*seen, value], value=Json(), store="all").to_stream().to("all")
    grouped.reduce(max, store="max").to_stream().to("max")
    with TopologyTestDriver(builder, {} if cache else EVERY_CHANGE) as driver:
        topic = driver.create_input_topic("in")
        seen: dict[str, list[int]] = {}
        times: dict[str, int] = {}
        expected: list[Record] = []
        for key, value, timestamp in given:
            topic.pipe_input(key, value, timestamp)
            seen[key] = [*seen.get(key, []), value]
            times[key] = max(times.get(key, 0), timestamp)
            expected.append(Record(key, seen[key], times[key]))
        assert driver.create_output_topic("all").read_records_to_list() == expected
        maxima: list[Any] = [Record(found.key, max(found.value), found.timestamp) for found in expected]
        assert driver.create_output_topic("max").read_records_to_list() == maxima
