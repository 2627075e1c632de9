"""Joins with tables: of streams, of tables with each other, of streams with global tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.streams import Record, StreamsBuilder, TopologyError, TopologyTestDriver

DEFAULTS = {"default.key.serde": "string", "default.value.serde": "string", "statestore.cache.max.bytes": 0}


def pair(left: Any, right: Any) -> str:
    return f"{left}+{right}"


def test_a_stream_sees_what_the_table_has_at_the_time() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    builder.stream("s").join(builder.table("t"), pair).to("out")
    with TopologyTestDriver(builder) as driver:
        stream, table = driver.create_input_topic("s"), driver.create_input_topic("t")
        stream.pipe_input("k", "early")
        table.pipe_input("k", "1")
        stream.pipe_input("k", "then", timestamp=7)
        table.pipe_input("k", None)
        stream.pipe_input("k", "late")
        stream.pipe_input("k", None)
        assert driver.create_output_topic("out").read_records_to_list() == [Record("k", "then+1", 7)]


def test_a_left_join_of_a_stream_keeps_records_for_which_there_is_nothing_even_without_a_key() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    builder.stream("s").left_join(builder.table("t"), pair).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("s").pipe_key_value_list([("k", "a"), (None, "b"), ("k", None)])
        assert driver.create_output_topic("out").read_key_values_to_list() == [("k", "a+None"), (None, "b+None")]


def test_a_stream_with_a_new_key_is_repartitioned_before_it_is_joined() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    builder.stream("s").select_key(lambda key, value: value).join(builder.table("t"), pair).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("t").pipe_input("v", "1")
        driver.create_input_topic("s").pipe_input("k", "v")
        assert driver.create_output_topic("out").read_key_value() == ("v", "v+1")
        assert "app-KSTREAM-KEY-SELECT-0000000001-repartition" in driver.produced_topic_names


def test_a_table_without_a_store_is_looked_up_through_the_one_above() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    table = builder.table("t").filter(lambda key, value: value != "x").map_values(str.upper)
    builder.stream("s").left_join(table, lambda key, left, right: f"{key}:{left}+{right}").to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("t").pipe_key_value_list([("a", "y"), ("b", "x")])
        driver.create_input_topic("s").pipe_key_value_list([("a", "1"), ("b", "2")])
        assert driver.create_output_topic("out").read_values_to_list() == ["a:1+Y", "b:2+None"]


def test_a_global_table_is_looked_up_by_any_key() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    products = builder.global_table("products", store="products")
    builder.stream("orders").join(products, pair, key=lambda key, value: value).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("products").pipe_input("p1", "ball")
        driver.create_input_topic("orders").pipe_key_value_list([("o", "p1"), ("o", "p2")])
        assert driver.create_output_topic("out").read_key_values_to_list() == [("o", "p1+ball")]
        assert driver.store("products").get("p1").value == "ball"
        assert driver.produced_topic_names == {"out"}


def test_a_join_with_a_global_table_needs_a_function_for_the_key() -> None:
    builder = StreamsBuilder("app")
    with pytest.raises(TopologyError, match="KSTREAM-LEFTJOIN-0000000004 joins a global table: key= must be"):
        builder.stream("s").join(builder.global_table("g"), pair)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("join", ["a1+b1", "a2+b1", None, "a3+b1", None]),
        ("left_join", ["a1+None", "a1+b1", "a2+b1", None, "a3+b1", "a3+None"]),
        ("outer_join", ["a1+None", "a1+b1", "a2+b1", "None+b1", "a3+b1", "a3+None"]),
    ],
)
def test_tables_joined(kind: str, expected: list[str | None]) -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    getattr(builder.table("a"), kind)(builder.table("b"), pair).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        a, b = driver.create_input_topic("a"), driver.create_input_topic("b")
        for topic, value in ((a, "a1"), (b, "b1"), (a, "a2"), (a, None), (a, "a3"), (b, None)):
            topic.pipe_input("k", value)
        assert driver.create_output_topic("out").read_values_to_list() == expected


sides = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.none() | st.sampled_from("123")), max_size=20
)


@given(sides, st.sampled_from(["join", "left_join", "outer_join"]), st.booleans(), st.booleans())
@settings(deadline=None)
def test_a_join_of_tables_equals_a_naive_model(
    given: list[tuple[str, str, str | None]], kind: str, stored: bool, cache: bool
) -> None:
    settings = {**DEFAULTS, "statestore.cache.max.bytes": 10_000 if cache else 0}
    builder = StreamsBuilder("app", settings)
    options = {"store": "joined"} if stored else {}
    joined = getattr(builder.table("a"), kind)(builder.table("b"), pair, **options)
    joined.to_stream().to("out")
    tables: dict[str, dict[str, str]] = {"a": {}, "b": {}}
    with TopologyTestDriver(builder) as driver:
        topics = {name: driver.create_input_topic(name) for name in "ab"}
        for name, key, value in given:
            topics[name].pipe_input(key, value)
            tables[name].pop(key, None)
            if value is not None:
                tables[name][key] = value
        shown = driver.create_output_topic("out").read_key_values_to_map()
    a, b = tables["a"], tables["b"]
    keys = {"join": a.keys() & b.keys(), "left_join": a.keys(), "outer_join": a.keys() | b.keys()}[kind]
    assert {key: value for key, value in shown.items() if value is not None} == {
        key: pair(a.get(key), b.get(key)) for key in keys
    }


def test_tables_of_two_builders_are_not_joined() -> None:
    with pytest.raises(TopologyError, match="use one StreamsBuilder"):
        StreamsBuilder("a").table("t").join(StreamsBuilder("b").table("t"), pair)
