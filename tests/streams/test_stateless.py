"""Streams without state, through the driver."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.streams import Json, KStream, Long, Record, StreamsBuilder, String, TopologyError, TopologyTestDriver


def run(define: Any, *pairs: tuple[Any, Any], settings: dict[str, Any] | None = None) -> list[tuple[Any, Any]]:
    """What a stream of texts becomes; `define` makes a stream of texts out of the input."""
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string"})
    made: KStream[Any, Any] = define(builder.stream("in"))
    made.to("out")
    with TopologyTestDriver(builder, settings) as driver:
        driver.create_input_topic("in").pipe_key_value_list(pairs)
        return driver.create_output_topic("out").read_key_values_to_list()


def test_filter_keeps_what_passes() -> None:
    assert run(lambda s: s.filter(lambda key, value: value > "b"), ("k", "a"), ("k", "c")) == [("k", "c")]


def test_filter_not_keeps_the_rest() -> None:
    assert run(lambda s: s.filter_not(lambda key, value: value > "b"), ("k", "a"), ("k", "c")) == [("k", "a")]


def test_map_gives_a_new_key_and_value() -> None:
    assert run(lambda s: s.map(lambda key, value: (value, key)), ("k", "a")) == [("a", "k")]


def test_map_values_takes_functions_of_the_value_or_of_both() -> None:
    assert run(lambda s: s.map_values(str.upper), ("k", "a")) == [("k", "A")]
    assert run(lambda s: s.map_values(lambda key, value: key + value), ("k", "a")) == [("k", "ka")]


def test_flat_map_and_flat_map_values_give_any_number() -> None:
    assert run(lambda s: s.flat_map_values(str.split), ("k", "a b"), ("k", "")) == [("k", "a"), ("k", "b")]
    assert run(lambda s: s.flat_map(lambda k, v: [(v, k)] * 2), ("k", "a")) == [("a", "k"), ("a", "k")]


def test_peek_sees_each_record_on_its_way() -> None:
    seen = []
    assert run(lambda s: s.peek(lambda key, value: seen.append((key, value))), ("k", "a")) == seen == [("k", "a")]


def test_foreach_ends_a_stream_beside_others() -> None:
    seen = []

    def define(stream: KStream[Any, Any]) -> KStream[Any, Any]:
        stream.foreach(lambda key, value: seen.append(value))
        return stream

    assert run(define, ("k", "a")) == [("k", "a")]
    assert seen == ["a"]


def test_select_key_changes_the_key_alone() -> None:
    assert run(lambda s: s.select_key(lambda key, value: value), ("k", "a"), (None, None)) == [("a", "a"), (None, None)]


def test_timestamps_and_headers_go_along() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in", key=String(), value=String()).map_values(str.upper).to("out", value=String())
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_input("k", "a", timestamp=17, headers={"h": b"1"})
        assert driver.create_output_topic("out").read_record() == Record("k", "A", 17, (("h", b"1"),))


def test_the_topic_may_depend_on_the_record() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in", key=String(), value=String()).to(lambda key, value, record: f"out-{value}")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_value_list(["a", "b"])
        assert driver.produced_topic_names == {"out-a", "out-b"}


def test_a_function_of_the_wrong_shape_is_refused_with_the_name_of_its_node() -> None:
    stream = StreamsBuilder("app").stream("in")
    with pytest.raises(TopologyError, match=r"KSTREAM-FILTER-0000000001 needs a function of \(key, value\)"):
        stream.filter(lambda value: True)  # type: ignore[misc,arg-type]
    with pytest.raises(TopologyError, match=r"KSTREAM-MAPVALUES-0000000002 needs a function .* not 5"):
        stream.map_values(5)  # type: ignore[arg-type]


def test_a_missing_serde_is_named_with_its_node_and_topic() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in", key=String(), value=String()).map(lambda key, value: (key, value)).to("out")
    with pytest.raises(TopologyError, match="the key serde of KSTREAM-SINK-0000000002, which writes out is not known"):
        TopologyTestDriver(builder)


def test_reading_a_topic_twice_is_one_source() -> None:
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string"})
    builder.stream("in").to("a")
    builder.stream("in").to("b")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        assert driver.produced_topic_names == {"a", "b"}


def test_reading_a_topic_twice_in_two_ways_is_refused() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in", key=String(), value=String())
    builder.stream("in")
    builder.stream("in", value=String())
    with pytest.raises(TopologyError, match="in is read twice, with reset=None and with reset='latest'"):
        builder.stream("in", reset="latest")
    with pytest.raises(TopologyError, match="in is read twice, with value="):
        builder.stream("in", value=Json())


def test_a_string_is_an_expression() -> None:
    builder = StreamsBuilder("app", {"default.key.serde": "string"})
    orders = builder.stream("in", value=Json()).filter("value.amount > 3 and timestamp < 100")
    orders.select_key("value.who").map_values("value.amount * 2").filter_not("value = 8").to("out", value=Json())
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in")
        for amount, time in ((1, 0), (4, 0), (5, 200), (6, 0), (None, 0)):
            topic.pipe_input("k", {"amount": amount, "who": "ann"}, time)
        assert driver.create_output_topic("out").read_key_values_to_list() == [("ann", 12)]


def test_an_expression_that_is_not_valid_is_refused_at_once_with_its_node() -> None:
    with pytest.raises(TopologyError, match="the expression 'value >' of KSTREAM-FILTER-0000000001 is not valid SQL"):
        StreamsBuilder("app").stream("in").filter("value >")
    with pytest.raises(TopologyError, match="of KTABLE-FILTER-0000000003 is of a table, which has key and value alone"):
        StreamsBuilder("app").table("in").filter("timestamp > 3")


def test_an_expression_of_a_table() -> None:
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "json"})
    builder.table("in").filter("value > 3").map_values("value + 1").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", 4), ("a", 2)])
        assert driver.create_output_topic("out").read_values_to_list() == [5, None]


def test_streams_that_are_merged_keep_the_serdes_that_both_have() -> None:
    builder = StreamsBuilder("app")
    one, two = (builder.stream(topic, key=String(), value=value) for topic, value in (("a", Long()), ("b", Long())))
    one.merge(two).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("b").pipe_input("k", 5)
        assert driver.create_output_topic("out").read_key_value() == ("k", 5)
    one.merge(builder.stream("c", key=String(), value=String())).to("mixed")
    with pytest.raises(TopologyError, match=r"the value serde of KSTREAM-SINK-.*, which writes mixed is not known"):
        TopologyTestDriver(builder)
