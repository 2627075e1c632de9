"""Settings under Kafka's names: used, without meaning here, or mistaken."""

from __future__ import annotations

import pytest

from moldau.streams import StreamsBuilder, TopologyError, TopologyTestDriver
from moldau.streams.tuning import warn


def test_a_setting_that_means_nothing_here_is_said_once() -> None:
    warn.cache_clear()
    with pytest.warns(UserWarning, match=r"num\.standby\.replicas means nothing here: state is in Spark") as warned:
        StreamsBuilder("app", {"num.standby.replicas": 1}).build()
        StreamsBuilder("app", {"num.standby.replicas": 1}).build()
    assert len(warned) == 1


def test_a_mistaken_setting_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(TopologyError, match=r"'comit\.interval\.ms' is not known: did you mean commit\.interval\.ms"):
        StreamsBuilder("app", {"comit.interval.ms": 1})
    with pytest.raises(TopologyError, match=r"topology\.optimization is 'most'"):
        StreamsBuilder("app", {"topology.optimization": "most"})


def test_settings_of_clients_and_of_spark_pass() -> None:
    StreamsBuilder("app", {"consumer.max.poll.records": 5, "spark.master": "local[2]", "ssl.ca.location": "x"})


def test_the_topic_of_a_table_may_serve_as_its_changelog() -> None:
    texts = {"default.key.serde": "string", "default.value.serde": "string"}
    builder = StreamsBuilder("app", {**texts, "topology.optimization": "reuse.ktable.source.topics"})
    builder.table("in", store="s")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        assert driver.produced_topic_names == set()
        assert driver.store("s").get("k").value == "v"


@pytest.mark.parametrize(
    ("settings", "persistent"),
    [
        ({}, True),
        ({"default.dsl.store": "in_memory"}, False),
        (
            {
                "dsl.store.suppliers.class": "org.apache.kafka.streams.state."
                "BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"
            },
            False,
        ),
    ],
)
def test_what_stores_are_unless_it_is_said(settings: dict[str, str], persistent: bool) -> None:
    builder = StreamsBuilder("app", settings)
    grouped = builder.stream("in").group_by_key()
    grouped.count(store="plain")
    grouped.count(store="said", store_type="persistent")
    assert {spec.name: spec.persistent for spec in builder.build().freeze().stores} == {
        "plain": persistent,
        "said": True,
    }
