"""The driver itself: times, topics, patterns, what comes back in, and durations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.operators.durations import milliseconds
from moldau.streams import Record, StreamsBuilder, TopologyTestDriver

TEXTS = {"default.key.serde": "string", "default.value.serde": "string"}


def copy(*topics: str, **options: Any) -> TopologyTestDriver:
    builder = StreamsBuilder("app", TEXTS)
    builder.stream(topics, **options).to("out")
    return TopologyTestDriver(builder)


def test_times_start_and_advance() -> None:
    with copy("in") as driver:
        topic = driver.create_input_topic("in", start=100, advance="10 ms")
        topic.pipe_input("a")
        topic.pipe_input("b")
        topic.advance_time(timedelta(seconds=1))
        topic.pipe_input("c")
        topic.pipe_value_list(["d", "e"], start=5, advance=2)
        topic.pipe_record_list([Record("k", "f", 9)])
        out = driver.create_output_topic("out").read_records_to_list()
    assert [record.timestamp for record in out] == [100, 110, 1120, 5, 7, 9]
    assert out[-1] == Record("k", "f", 9)


def test_an_unknown_topic_and_an_empty_one_are_said() -> None:
    with copy("in") as driver:
        with pytest.raises(LookupError, match="the topology does not read the topic 'other': it reads in"):
            driver.create_input_topic("other").pipe_input("v")
        with pytest.raises(LookupError, match="no record waits on the topic 'out'"):
            driver.create_output_topic("out").read_value()
        with pytest.raises(LookupError, match="the topology has no store 's': it has none"):
            driver.store("s")
        assert driver.create_output_topic("out").is_empty


def test_a_pattern_reads_all_topics_that_match() -> None:
    with copy(pattern="in-.*") as driver:
        driver.create_input_topic("in-1").pipe_input("a")
        driver.create_input_topic("in-2").pipe_input("b")
        assert driver.create_output_topic("out").read_values_to_list() == ["a", "b"]


def test_what_is_written_to_a_topic_that_is_read_comes_back() -> None:
    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").map_values(lambda value: value + "!").to("between")
    builder.stream("between").to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_input("a")
        assert driver.create_output_topic("between").read_value() == "a!"
        assert driver.create_output_topic("out").read_value() == "a!"


def test_the_last_value_of_each_key_as_a_map() -> None:
    with copy("in") as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", "1"), ("b", "2"), ("a", "3")])
        assert driver.create_output_topic("out").read_key_values_to_map() == {"a": "3", "b": "2"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5 minutes", 300_000), ("30s", 30_000), ("1h 30m", 5_400_000), ("250ms", 250), ("1.5 seconds", 1_500)],
)
def test_durations_as_people_write_them(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("wrong", ["", "five minutes", "5 parsecs", -1, True, None, timedelta(seconds=-1), "5"])
def test_what_is_no_duration_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="the window's size"):
        milliseconds(wrong, "the window's size")


@given(st.integers(0, 10**12))
@settings(deadline=None)
def test_milliseconds_and_timedelta_agree(count: int) -> None:
    assert milliseconds(count) == milliseconds(timedelta(milliseconds=count)) == milliseconds(f"{count} ms")
