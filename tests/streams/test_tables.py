"""Tables: from topics and streams, derived ones, regrouped ones; with stores and without."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.streams import KTable, Long, Record, StreamsBuilder, String, TopologyTestDriver

DEFAULTS = {"default.key.serde": "string", "default.value.serde": "string", "statestore.cache.max.bytes": 0}


def changes(define: Any, *pairs: tuple[Any, Any], value: Any = "string") -> list[tuple[Any, Any]]:
    """What a table of the topic becomes, change by change."""
    builder = StreamsBuilder("app", DEFAULTS)
    made: KTable[Any, Any] = define(builder.table("in"))
    made.to_stream().to("out", value=value)
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_key_value_list(pairs)
        return driver.create_output_topic("out").read_key_values_to_list()


def test_a_table_forwards_its_changes_and_drops_records_without_a_key() -> None:
    assert changes(lambda t: t, ("a", "1"), (None, "2"), ("a", None)) == [("a", "1"), ("a", None)]


def test_a_source_table_has_a_store_only_if_somebody_needs_it() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    builder.table("a").to_stream().to("out")
    kept = builder.table("b", store="b")
    assert kept.queryable_store_name == "b"
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("b").pipe_input("k", "v", timestamp=3)
        assert list(driver.stores) == ["b"]
        assert driver.store("b").get("k") == ("v", 3)
        assert driver.create_output_topic("app-b-changelog", String(), String()).read_record() == Record("k", "v", 3)


def test_filter_deletes_what_does_not_pass_any_more() -> None:
    given = [("a", "1"), ("a", "x"), ("b", "x"), ("a", None)]
    assert changes(lambda t: t.filter(lambda k, v: v == "1"), *given) == [
        ("a", "1"),
        ("a", None),
        ("b", None),
        ("a", None),
    ]
    stored = changes(lambda t: t.filter(lambda k, v: v == "1", store="f"), *given)
    assert stored == [("a", "1"), ("a", None), ("b", None), ("a", None)]
    assert changes(lambda t: t.filter_not(lambda k, v: v == "x"), *given)[0] == ("a", "1")


def test_map_values_never_sees_a_deleted_key() -> None:
    assert changes(lambda t: t.map_values(str.upper), ("a", "x"), ("a", None)) == [("a", "X"), ("a", None)]


def test_transform_values_sees_deleted_keys_too() -> None:
    class Shown:
        def transform(self, key: Any, value: Any) -> str:
            return f"{key}={value}"

    assert changes(lambda t: t.transform_values(Shown), ("a", "x"), ("a", None)) == [("a", "a=x"), ("a", "a=None")]


def test_to_stream_with_a_mapper_has_a_new_key() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    builder.table("in").to_stream(lambda key, value: value).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        assert driver.create_output_topic("out").read_key_value() == ("v", "v")


def test_to_table_keeps_the_latest_of_a_stream() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    builder.stream("in").select_key(lambda key, value: value[0]).to_table(store="latest", key=String())
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_value_list(["ab", "ac", "b"])
        assert {key: found.value for key, found in driver.store("latest").all()} == {"a": "ac", "b": "b"}


def test_a_grouped_table_takes_back_before_it_adds() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    regions = builder.table("users").group_by(lambda user, region: (region, user))
    regions.count(store="n").to_stream().to("counts")
    with TopologyTestDriver(builder) as driver:
        users = driver.create_input_topic("users")
        users.pipe_key_value_list([("ann", "asia"), ("bob", "asia"), ("ann", "europe"), ("bob", None)])
        counts = driver.create_output_topic("counts").read_key_values_to_list()
    assert counts == [("asia", 1), ("asia", 2), ("asia", 1), ("europe", 1), ("asia", 0)]


def test_a_change_within_a_group_is_one_change() -> None:
    builder = StreamsBuilder("app", DEFAULTS)
    total = builder.table("in", value=Long()).group_by(lambda key, value: ("all", value), key=String(), value=Long())
    total.reduce(lambda a, b: a + b, lambda a, b: a - b, store="sum").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", 1), ("b", 10), ("a", 3)])
        assert driver.create_output_topic("out").read_values_to_list() == [1, 11, 13]


rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 20), st.integers(0, 50), st.booleans()), max_size=25
)


@given(rows, st.booleans(), st.booleans())
@settings(deadline=None)
def test_a_sum_over_a_table_equals_a_naive_model(
    given: list[tuple[str, int | None, int, bool]], cache: bool, derived: bool
) -> None:
    """Whatever comes, each group's sum is that of the values which the table has."""
    builder = StreamsBuilder("app")
    table: KTable[Any, Any] = builder.table("in", key=String(), value=Long())
    if derived:
        table = table.map_values(lambda value: value + 1, value=Long()).filter(lambda key, value: value % 3)
    groups = table.group_by(lambda key, value: (str(value % 2), value), key=String(), value=Long())
    groups.aggregate(int, lambda k, v, total: total + v, lambda k, v, total: total - v, value=Long(), store="sums")
    with TopologyTestDriver(builder, {} if cache else {"statestore.cache.max.bytes": 0}) as driver:
        topic, model = driver.create_input_topic("in"), dict[str, int]()
        for key, value, timestamp, _ in given:
            topic.pipe_input(key, value, timestamp)
            shown = None if value is None else value + derived
            model.pop(key, None)
            if shown is not None and not (derived and shown % 3 == 0):
                model[key] = shown
        sums = {key: found.value for key, found in driver.store("sums").all()}
        for group in "01":
            assert sums.get(group, 0) == sum(value for value in model.values() if str(value % 2) == group)


def test_a_function_that_is_no_selector_is_refused() -> None:
    with pytest.raises(ValueError, match=r"KTABLE-SELECT-0000000003 needs a function of \(key, value\)"):
        StreamsBuilder("app").table("in").group_by(lambda value: value)  # type: ignore[misc,arg-type]
