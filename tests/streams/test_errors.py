"""Records that fail: handlers, dead letters, and messages that name the node and the record."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.operators.record import Produced
from moldau.streams import (
    Bytes,
    Failure,
    Json,
    Long,
    Record,
    Response,
    StreamsBuilder,
    StreamsError,
    String,
    TopologyError,
    TopologyTestDriver,
)

DEAD = {"errors.dead.letter.queue.topic.name": "dead"}


def numbers(settings: dict[str, Any]) -> TopologyTestDriver:
    builder = StreamsBuilder("app", settings)
    stream = builder.stream("in", key=String(), value=Json())
    stream.map_values(lambda value: 10 // value, name="divide").to("out", value=Long())
    return TopologyTestDriver(builder)


def fed(driver: TopologyTestDriver, *values: bytes) -> list[Any]:
    topic = driver.create_input_topic("in", value=Bytes())
    for value in values:
        topic.pipe_input("k", value, timestamp=4, headers={"h": b"1"})
    return driver.create_output_topic("out").read_values_to_list()


def test_by_default_a_record_that_cannot_be_read_ends_the_application() -> None:
    with pytest.raises(
        StreamsError, match=r"deserialization failed in KSTREAM-SOURCE-0000000000 at in-0 offset 1: .* is not json"
    ):
        fed(numbers({}), b"5", b"{")


def test_by_default_a_function_that_raises_ends_the_application_and_its_node_is_named() -> None:
    with pytest.raises(StreamsError, match="processing failed in divide at in-0 offset 0: integer division") as caught:
        fed(numbers({}), b"0")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_by_default_a_value_that_cannot_be_written_ends_the_application() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in", key=String(), value=String()).to("out", value=Long())
    with pytest.raises(
        StreamsError, match="production failed in KSTREAM-SINK-0000000001 at in-0 offset 0: 'v' cannot be"
    ):
        TopologyTestDriver(builder).create_input_topic("in").pipe_input("k", "v")


@pytest.mark.parametrize(
    ("setting", "kafka", "value", "why"),
    [
        ("deserialization.exception.handler", "LogAndContinueExceptionHandler", b"{", "deserialization failed"),
        ("default.deserialization.exception.handler", "LogAndContinueExceptionHandler", b"{", "deserialization failed"),
        ("processing.exception.handler", "LogAndContinueProcessingExceptionHandler", b"0", "processing failed"),
        ("production.exception.handler", "continue", b"1e-30", "not written"),
    ],
)
def test_a_handler_may_go_on_without_the_record(setting: str, kafka: str, value: bytes, why: str) -> None:
    with numbers({setting: f"org.apache.kafka.streams.errors.{kafka}" if kafka != "continue" else kafka}) as driver:
        assert fed(driver, b"5", value, b"2") == [2, 5]
        assert [reason for _, reason in driver.dropped] == [why]


def test_a_dead_letter_has_the_record_as_it_was_read_and_says_what_happened() -> None:
    with numbers({"processing.exception.handler": "continue", **DEAD}) as driver:
        assert fed(driver, b"0", b"10") == [1]
        letter = driver.create_output_topic("dead", String(), Bytes()).read_record()
    headers = dict(letter.headers)
    assert (letter.key, letter.value, letter.timestamp) == ("k", b"0", 4)
    assert headers["h"] == b"1"
    assert headers["__streams.errors.exception"] == b"builtins.ZeroDivisionError"
    assert headers["__streams.errors.topic"] == b"in"
    assert (headers["__streams.errors.partition"], headers["__streams.errors.offset"]) == (b"0", b"0")
    assert b"integer division" in (headers["__streams.errors.message"] or b"")
    assert b"Traceback" in (headers["__streams.errors.stacktrace"] or b"")


def test_a_failing_application_leaves_a_dead_letter_too() -> None:
    with numbers(DEAD) as driver:
        with pytest.raises(StreamsError):
            fed(driver, b"{")
        driver.advance_wall_clock_time(1)
        assert driver.create_output_topic("dead", String(), Bytes()).queue_size == 1


def test_a_handler_of_ones_own_is_told_all_and_decides() -> None:
    failures: list[Failure] = []

    def handle(failure: Failure) -> Response:
        failures.append(failure)
        return Response("continue", (Produced("mine", None, b"k", str(failure.error).encode(), 0),))

    with numbers({"processing.exception.handler": handle}) as driver:
        assert fed(driver, b"0", b"5") == [2]
        assert driver.create_output_topic("mine", Bytes(), Bytes()).queue_size == 1
    assert [(f.stage, f.node, f.record) for f in failures] == [
        ("processing", "divide", Record("k", 0, 4, (("h", b"1"),)))
    ]
    assert failures[0].source is not None and failures[0].source.value == b"0"


def test_only_the_record_that_fails_is_lost_of_several_that_one_became() -> None:
    settings = {"processing.exception.handler": "continue", "default.key.serde": "string"}
    builder = StreamsBuilder("app", settings)
    stream = builder.stream("in", value=Json()).flat_map_values(lambda values: values)
    stream.map_values(lambda value: 10 // value).to("out", value=Long())
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_input("k", [5, 0, 2])
        assert driver.create_output_topic("out").read_values_to_list() == [2, 5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"processing.exception.handler": "Sometimes"}, "must be a function, 'fail' or 'continue'"),
        ({"statestore.cache.max.bytes": "much"}, "is 'much': it must be a whole number, 0 or more"),
        ({"default.key.serde": "yaml"}, "is 'yaml', which is not known: use one of string"),
        ({"default.key.serde": 5}, "is 5, which is not a serde"),
        ({"default.key.serde": "avro"}, "needs a schema registry: set schema.registry.url"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence(settings: dict[str, Any], message: str) -> None:
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string", **settings})
    builder.stream("in").to("out")
    with pytest.raises(TopologyError, match=message):
        TopologyTestDriver(builder)


def test_times_that_are_not_valid_go_by_the_extractor() -> None:
    def run(extractor: Any, *times: int) -> list[int]:
        builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string"})
        builder.stream("in", timestamp=extractor).to("out")
        with TopologyTestDriver(builder, initial_wall_clock_ms=99) as driver:
            for time in times:
                driver.create_input_topic("in").pipe_input("k", "7", timestamp=time)
            return [record.timestamp for record in driver.create_output_topic("out").read_records_to_list()]

    assert run("LogAndSkipOnInvalidTimestamp", 3, -1, 5) == [3, 5]
    assert run("UsePartitionTimeOnInvalidTimestamp", 8, 3, -1) == [8, 3, 8]
    assert run("WallclockTimestampExtractor", 3, -1) == [99, 99]
    assert run(lambda record, partition_time: int(record.value), 3) == [7]
    with pytest.raises(StreamsError, match="negative timestamp -1: set another timestamp extractor"):
        run(None, -1)


@pytest.mark.parametrize(
    ("define", "sentence"),
    [
        (
            lambda b: b.stream("in", timestamp=lambda record, time: 5.5).to("out"),
            "KSTREAM-SOURCE-0000000000 at in-0 offset 0: the timestamp extractor returned 5.5, which is not a number",
        ),
        (
            lambda b: b.stream("in", timestamp=lambda record, time: record.value["at"]).to("out"),
            "KSTREAM-SOURCE-0000000000 at in-0 offset 0: the timestamp extractor failed: TypeError",
        ),
        (
            lambda b: b.stream("in").to(lambda key, value: None),
            "KSTREAM-SINK-0000000001: the function that names topics returned None, which is not a name",
        ),
        (
            lambda b: b.stream("in").to("out", partitioner=lambda topic, key, value, count: "first"),
            "KSTREAM-SINK-0000000001: the partitioner returned 'first': it must return a partition, several, or None",
        ),
    ],
)
def test_functions_that_answer_wrongly_end_the_application_with_a_sentence(define: Any, sentence: str) -> None:
    """Whatever the handlers say, as in Kafka."""
    settings = {f"{stage}.exception.handler": "continue" for stage in ("deserialization", "production")}
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string", **settings})
    define(builder)
    with TopologyTestDriver(builder) as driver, pytest.raises(StreamsError, match=sentence):
        driver.create_input_topic("in").pipe_input("k", "v")
