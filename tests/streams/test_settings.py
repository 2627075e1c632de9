"""Settings under Kafka's names: used, without meaning here, or mistaken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from moldau.operators.stores.key_value import key_value
from moldau.operators.stores.versioned import versioned
from moldau.operators.stores.window import window
from moldau.plan.conveyor.start import Application
from moldau.plan.conveyor.topics import Own, changelog_settings, check_resets, starting
from moldau.streams import StreamsBuilder, TopologyError, TopologyTestDriver
from moldau.streams.application import application
from moldau.streams.serving import server_of
from moldau.streams.tuning import INERT, USED, check, warn
from tests.plan.in_memory import Conveyor

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text()
VALUES = {"dsl.store.format": "default", "topology.optimization": "all"}
KAFKAS = Path(__file__).with_name("settings.txt")


def test_a_setting_that_means_nothing_here_is_said_once() -> None:
    warn.cache_clear()
    with pytest.warns(UserWarning, match=r"num\.standby\.replicas has no effect here: state is in Spark") as warned:
        StreamsBuilder("app", {"num.standby.replicas": 1}).build()
        StreamsBuilder("app", {"num.standby.replicas": 1}).build()
    assert len(warned) == 1


def test_a_mistaken_setting_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(TopologyError, match=r"'comit\.interval\.ms' is not known: did you mean commit\.interval\.ms"):
        StreamsBuilder("app", {"comit.interval.ms": 1})
    with pytest.raises(TopologyError, match=r"topology\.optimization is 'most'"):
        StreamsBuilder("app", {"topology.optimization": "most"})


def test_settings_of_clients_and_of_spark_pass() -> None:
    warn.cache_clear()
    StreamsBuilder("app", {"producer.compression.type": "zstd", "spark.master": "local[2]", "ssl.ca.location": "x"})
    with pytest.warns(UserWarning, match=r"consumer\.max\.poll\.records has no effect here: topics are read by Spark"):
        StreamsBuilder("app", {"consumer.max.poll.records": 5})


@pytest.mark.filterwarnings("ignore:.* has no effect here")
def test_every_setting_of_kafka_streams_is_known_and_on_the_page() -> None:
    told = PAGE[PAGE.index("## Settings") :]
    names = [line for line in KAFKAS.read_text().splitlines() if line[0] != "#"]
    assert len(names) > 70
    for name in names:
        check(
            {name: "default" if name == "dsl.store.format" else "all" if name == "topology.optimization" else "rocksDB"}
        )
    prefixes = tuple(name[:-1] for name in re.findall(r"`([a-z.]+\.\*)`", told))
    missing = [name for name in {*names, *USED, *INERT} if f"`{name}`" not in told and not name.startswith(prefixes)]
    assert missing == []


def test_the_page_says_why_a_setting_means_nothing_as_the_warning_does() -> None:
    rows = dict(re.findall(r"^\| (`.+`) \| ([^|]+) \|$", PAGE[PAGE.index("These are accepted but") :], re.M))
    told = {name: why for names, why in rows.items() for name in re.findall(r"`([^`]+)`", names)}
    assert told == INERT


def test_internal_names_that_were_made_up_are_refused_where_that_is_asked_for() -> None:
    settings = {"ensure.explicit.internal.resource.naming": "true", "default.key.serde": "string"}
    builder = StreamsBuilder("app", {**settings, "default.value.serde": "string"})
    named = builder.stream("in").group_by(lambda key, value: value, name="by-value")
    named.count(store="counts")
    builder.build().plan()
    named.count()
    with pytest.raises(TopologyError, match=r"made up: the store KSTREAM-AGGREGATE-STATE-STORE-\d+\. Give store= and"):
        builder.build().plan()


def test_stores_with_headers_are_refused() -> None:
    with pytest.raises(TopologyError, match=r"dsl\.store\.format must be 'default'"):
        StreamsBuilder("app", {"dsl.store.format": "HEADERS"})


def copied(settings: dict[str, Any]) -> Application:
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string"})
    builder.stream("in").to("out")
    return application(builder.build(), settings)


def test_topics_that_are_made_are_made_as_settings_say() -> None:
    said = {"replication.factor": 3, "topic.segment.bytes": 1000, "windowstore.changelog.additional.retention.ms": 7}
    own = copied(said).own
    assert own == Own(3, {"segment.bytes": "1000"}, 7)
    spec = window("w", 10, 20, changelog_settings=(("segment.bytes", "5"),))
    assert changelog_settings(spec, own) == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "27",
        "segment.bytes": "5",
    }
    assert changelog_settings(key_value("kv"), own) == {"cleanup.policy": "compact", "segment.bytes": "1000"}
    versions = changelog_settings(versioned("v", 10), own)  # a day more, whatever windows have
    assert versions == {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400010", "segment.bytes": "1000"}
    assert copied({"replication.factor": "-1"}).own == Own()
    with pytest.raises(TopologyError, match=r"replication\.factor is 'many'"):
        copied({"replication.factor": "many"})


def test_clients_and_the_sink_are_told_what_is_theirs() -> None:
    said = {"request.timeout.ms": 5000, "receive.buffer.bytes": 4096, "producer.compression.type": "zstd"}
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    made = copied({**said, "compression.type": "gzip", "auto.offset.reset": "latest", "sasl.jaas.config": login})
    assert made.client == {
        "bootstrap.servers": "localhost:9092",
        "request.timeout.ms": "5000",
        "socket.receive.buffer.bytes": "4096",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    assert made.producer == {"compression.type": "zstd"}
    assert made.reset == "latest"
    assert copied({"ssl.truststore.location": "x.jks"}).client["ssl.truststore.location"] == "x.jks"


def test_sources_say_for_themselves_where_they_begin() -> None:
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string"})
    builder.stream("a", reset="latest").to("out")
    builder.stream("b").group_by(lambda key, value: value).count()
    schedule = Conveyor(builder, {"a": 2, "b": 1}, {}).conveyed.schedule
    assert json.loads(starting(schedule, "earliest")) == {"a": {"0": -1, "1": -1}, "b": {"0": -2}}
    builder.stream("c", reset="none").to("out")
    with pytest.raises(TopologyError, match="the topic c is read with reset='none', and the application has not"):
        check_resets(builder.build().plan())


def test_where_all_sources_begin_alike_one_word_says_it() -> None:
    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string"})
    builder.stream("a").to("out")
    assert starting(Conveyor(builder, {"a": 2}, {}).conveyed.schedule, "latest") == "latest"


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


@pytest.mark.parametrize("server", ["nonsense", "127.0.0.1:99999", ":7070", "host:"])
def test_where_stores_are_served_must_be_an_address(server: str) -> None:
    builder = StreamsBuilder("app", {"application.server": server})
    with pytest.raises(TopologyError, match=f"application.server is '{server}': it must be HOST:PORT"):
        server_of(builder.build())
