"""Offsets that somebody sets: what is refused, in Connect's words."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect.offsets import _sink_pair
from moldau.http import HttpError

PLACE = {"kafka_topic": "t", "kafka_partition": 0}
LACK = "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"


def cannot_parse(what: str, value: str) -> str:
    return (
        f"Failed to parse the following Kafka {what} value in the provided offsets: '{value}'. "
        f"{what.capitalize()} values for sink connectors need to be integers."
    )


@pytest.mark.parametrize(
    ("partition", "offset", "expected"),
    [
        (None, {"kafka_offset": 1}, "The partition for a sink connector offset cannot be null or missing"),
        ({}, None, LACK),
        ({"kafka_topic": "t"}, None, LACK),
        (
            {"kafka_topic": None, "kafka_partition": 0},
            None,
            "Kafka topic names must be valid strings and may not be null",
        ),
        (
            {"kafka_topic": "t", "kafka_partition": None},
            None,
            "Kafka partitions must be valid numbers and may not be null",
        ),
        ({"kafka_topic": "t", "kafka_partition": 1.5}, None, cannot_parse("partition", "1.5")),
        (PLACE, {}, "The offset for a sink connector should either be null or contain the key 'kafka_offset'"),
        (PLACE, {"kafka_offset": "x"}, cannot_parse("offset", "x")),
        (PLACE, {"kafka_offset": -1}, "The offset -1 is negative."),
        (PLACE | {"kafka_partition": -1}, None, "The partition -1 is negative."),
        (PLACE | {"kafka_partition": -1}, {"kafka_offset": "x"}, cannot_parse("offset", "x")),
    ],
)
def test_offsets_of_sinks_that_are_none_are_refused(partition: Any, offset: Any, expected: str) -> None:
    with pytest.raises(HttpError) as caught:
        _sink_pair({"partition": partition, "offset": offset})
    assert (caught.value.code, str(caught.value)) == (400, expected)


@pytest.mark.parametrize(("number", "offset"), [(3, 5), ("3", "5")])
def test_numbers_may_be_texts(number: Any, offset: Any) -> None:
    pair = {"partition": PLACE | {"kafka_partition": number}, "offset": {"kafka_offset": offset}}
    assert _sink_pair(pair) == (("t", 3), 5)
