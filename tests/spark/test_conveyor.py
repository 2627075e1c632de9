"""Topologies on Spark do as the test driver does, through restarts: state in pages, outputs exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.client import Fetcher, Record, records
from moldau.operators.context import TopologyError
from moldau.plan.conveyor.start import Application, definition
from moldau.streams import JoinWindows, Long, StreamsBuilder, String, TopologyTestDriver
from moldau.streams.application import application, start

from .conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_CHANGE = {"statestore.cache.max.bytes": 0, "default.key.serde": String(), "default.value.serde": String()}
Inputs = list[tuple[str, str, str, int]]  # topic, key, value, time


def topology(left: str, right: str, out: str) -> StreamsBuilder:
    """A change of key, an aggregate, a join of streams in a window, and a join with a table."""
    builder = StreamsBuilder(f"app-{out}", EVERY_CHANGE)
    lines, table = builder.stream(left), builder.table(right)
    words = lines.flat_map_values(str.split).group_by(lambda key, word: word)
    words.count(store="counts").to_stream().map_values(lambda word, n: f"{word} {n}").to(out)
    lines.left_join(table, lambda line, level: f"{line}/{level}").to(out)
    other = lines.filter(lambda key, value: "b" in value)
    joined = lines.join(other, lambda one, two: f"{one}&{two}", window=JoinWindows.of(5))
    joined.to(out)
    return builder


INPUTS: Inputs = [
    ("right", "k", "gold", 0),
    ("left", "k", "a b a", 1),
    ("left", "j", "b", 2),
    ("right", "k", "silver", 3),
    ("left", "k", "a", 4),
    ("left", "j", "c b", 9),
    ("right", "j", "iron", 10),
    ("left", "j", "b b", 11),
]


class Running:
    """An application on two topics and one for what comes out."""

    def __init__(self, spark: SparkSession, cluster: Cluster, home: Path, partitions: int = 1) -> None:
        self.spark, self.cluster, self.home = spark, cluster, home
        self.topics = {name: cluster.topic(partitions) for name in ("left", "right", "out")}

    def builder(self) -> StreamsBuilder:
        return topology(*(self.topics[name] for name in ("left", "right", "out")))

    def application(self, **settings: Any) -> Application:
        own = {"bootstrap.servers": self.cluster.servers, "state.dir": str(self.home), **settings}
        return application(self.builder().build(), own)

    def put(self, inputs: Inputs) -> None:
        for topic, key, value, time in inputs:
            self.cluster.put(self.topics[topic], Record(timestamp=time, key=key.encode(), value=value.encode()))

    def drain(self, **settings: Any) -> None:
        """All that is there, in one start of the query."""
        query = definition(self.application(**settings), self.spark).trigger(availableNow=True).start()
        assert query.awaitTermination(100), "the query does not come to its end"

    def outputs(self, topic: str) -> list[tuple[bytes | None, bytes | None, int]]:
        """All there is: markers have today's time, so each begins a segment, and a fetch ends with a segment."""
        fetcher, offset, rows = Fetcher(self.cluster.client, isolation_level="read_committed"), 0, []
        while True:
            found = fetcher.fetch({(topic, 0): offset})[topic, 0]
            rows += [(one.key, one.value, one.timestamp) for batch in found.committed() for one in records(batch)]
            offset = found.next_offset(offset)
            if offset >= found.last_stable_offset:
                return rows

    def by_the_driver(self, inputs: Inputs) -> dict[str, list[tuple[bytes | None, bytes | None, int]]]:
        with TopologyTestDriver(self.builder()) as driver:
            for topic, key, value, time in inputs:
                driver.pipe(self.topics[topic], key.encode(), value.encode(), time)
            return {t: [(one.key, one.value, one.timestamp) for one in some] for t, some in driver.outputs.items()}


@pytest.fixture
def running(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Running:
    return Running(spark, cluster, tmp_path)


def test_an_application_does_as_the_driver_does_through_restarts_and_writes_nothing_twice(running: Running) -> None:
    for first, last in ((0, 3), (3, 5), (5, 8)):
        running.put(INPUTS[first:last])
        running.drain()
    expected = running.by_the_driver(INPUTS)
    out = running.topics["out"]
    assert sorted(running.outputs(out)) == sorted(expected[out])
    changelog = f"app-{out}-counts-changelog"
    latest = {key: value for key, value, _ in running.outputs(changelog)}  # it may be compacted already
    assert latest == {key: value for key, value, _ in expected[changelog]}
    assert running.cluster.committed(f"app-{out}") == {
        (running.topics["left"], 0): 5,
        (running.topics["right"], 0): 3,
    }


def test_a_changed_number_of_partitions_is_refused_with_a_sentence(running: Running) -> None:
    running.put(INPUTS[:1])
    running.drain()
    for name in ("left", "right"):
        running.cluster.more_partitions(running.topics[name], 2)
    with pytest.raises(TopologyError, match=r"moldau streams reset"):
        definition(running.application(), running.spark)


def test_a_topic_that_does_not_exist_is_told_before_anything_runs(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    builder = StreamsBuilder("nowhere", EVERY_CHANGE)
    builder.stream("is-not-there").to("out")
    with pytest.raises(TopologyError, match="reads the topic is-not-there, which does not exist: create it first"):
        start(builder.build(), {"bootstrap.servers": cluster.servers, "state.dir": str(tmp_path)}, spark)


Build = Callable[[], StreamsBuilder]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"processing.guarantee": "never"}, "must be exactly_once_v2 or at_least_once"),
        ({"commit.interval.ms": "soon"}, "commit.interval.ms is 'soon': it must be a whole number"),
        ({"consumer.auto.offset.reset": "middle"}, "must be earliest or latest"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    builder = StreamsBuilder("app", EVERY_CHANGE)
    builder.stream("in").to("out")
    with pytest.raises(TopologyError, match=sentence):
        application(builder.build(), settings)


def test_an_application_without_an_id_is_refused() -> None:
    builder = StreamsBuilder(settings=EVERY_CHANGE)
    builder.stream("in", value=Long()).to("out", value=Long())
    with pytest.raises(TopologyError, match="needs an id"):
        application(builder.build())
