"""Topologies on Spark do as the test driver does, through restarts: state in pages, outputs exactly once."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.client import Record
from moldau.operators.context import TopologyError
from moldau.plan.conveyor.background import Background
from moldau.plan.conveyor.beginning import has_lost_its_checkpoint
from moldau.plan.conveyor.folder import Folder
from moldau.plan.conveyor.start import Application, definition, scheduled
from moldau.streams import Context, JoinWindows, Long, StreamsBuilder, String, TopologyTestDriver
from moldau.streams import Record as StreamRecord
from moldau.streams.application import application, start
from moldau.streams.stores import persistent_key_value_store
from moldau.testing import eventually

from .conftest import Cluster, to_its_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_CHANGE = {"statestore.cache.max.bytes": 0, "default.key.serde": String(), "default.value.serde": String()}
Inputs = list[tuple[str, str, str, int]]  # topic, key, value, time


def topology(left: str, right: str, out: str, counts: str) -> StreamsBuilder:
    """A change of key, an aggregate, a join of streams in a window, and a join with a table."""
    builder = StreamsBuilder(f"app-{out}", EVERY_CHANGE)
    lines, table = builder.stream(left), builder.table(right)
    words = lines.flat_map_values(str.split).select_key(lambda key, word: word).repartition(name="words")
    words.group_by_key().count(store=counts).to_stream().map_values(lambda word, n: f"{word} {n}").to(out)
    lines.left_join(table, lambda line, level: f"{line}/{level}").to(out)
    other = lines.filter(lambda key, value: "b" in value)
    joined = lines.join(other, lambda one, two: f"{one}&{two}", window=JoinWindows.of(5))
    joined.to(out)
    return builder


NOW = time.time_ns() // 1_000_000  # what is older than its retention would go while a busy machine is at it
INPUTS: Inputs = [
    ("right", "k", "gold", NOW),
    ("left", "k", "a b a", NOW + 1),
    ("left", "j", "b", NOW + 2),
    ("right", "k", "silver", NOW + 3),
    ("left", "k", "a", NOW + 4),
    ("left", "j", "c b", NOW + 9),
    ("right", "j", "iron", NOW + 10),
    ("left", "j", "b b", NOW + 11),
]


class Running:
    """An application on two topics and one for what comes out."""

    def __init__(self, spark: SparkSession, cluster: Cluster, home: Path, partitions: int = 1) -> None:
        self.spark, self.cluster, self.home = spark, cluster, home
        self.topics = {name: cluster.topic(partitions) for name in ("left", "right", "out")}
        self.counts_store = "counts"

    def builder(self) -> StreamsBuilder:
        return topology(*(self.topics[name] for name in ("left", "right", "out")), self.counts_store)

    def application(self, **settings: Any) -> Application:
        own = {"bootstrap.servers": self.cluster.servers, "state.dir": f"file://{self.home}", **settings}
        return application(self.builder().build(), own)

    @property
    def counts(self) -> dict[str, int]:
        """The topics that are not the application's own."""
        return dict.fromkeys(self.topics.values(), 1)

    def put(self, inputs: Inputs) -> None:
        for topic, key, value, at in inputs:
            self.cluster.put(self.topics[topic], Record(timestamp=at, key=key.encode(), value=value.encode()))

    def drain(self, **settings: Any) -> None:
        """All that is there, in one start of the query."""
        to_its_end(lambda: definition(self.application(**settings), self.spark))

    def outputs(self, topic: str) -> list[tuple[bytes | None, bytes | None, int]]:
        return self.cluster.committed_rows(topic)

    def by_the_driver(self, inputs: Inputs) -> dict[str, list[tuple[bytes | None, bytes | None, int]]]:
        with TopologyTestDriver(self.builder()) as driver:
            for topic, key, value, at in inputs:
                driver.pipe(self.topics[topic], key.encode(), value.encode(), at)
            return {t: [(one.key, one.value, one.timestamp) for one in some] for t, some in driver.outputs.items()}


@pytest.fixture
def running(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Running:
    return Running(spark, cluster, tmp_path)


@pytest.mark.timeout(1500)
def test_an_application_does_as_the_driver_does_through_restarts_and_the_loss_of_its_checkpoint(
    running: Running,
) -> None:
    """Nothing is written twice: not by the first batch, replayed as if its driver had died, nor after the loss."""
    checkpoint = running.home / running.application().id / "checkpoint"
    running.put(INPUTS[:3])
    running.drain()
    for done in (checkpoint / "commits").iterdir():
        done.unlink()
    running.put(INPUTS[3:5])
    running.drain()
    shutil.rmtree(checkpoint)
    made = running.application()
    with pytest.raises(TopologyError, match=f"changelog is gone.*moldau streams reset {made.id}"):
        folder = Folder(running.spark, made.home)
        has_lost_its_checkpoint(folder, made, scheduled(made, running.counts), running.cluster.client, running.counts)
    running.put(INPUTS[5:])
    running.drain()
    expected = running.by_the_driver(INPUTS)
    out = running.topics["out"]
    assert sorted(running.outputs(out)) == sorted(expected[out])
    shown = f"app-{out}-words-repartition"
    assert running.outputs(shown) == expected[shown]
    changelog = f"app-{out}-counts-changelog"
    latest = {key: value for key, value, _ in running.outputs(changelog)}  # it may be compacted already
    assert latest == {key: value for key, value, _ in expected[changelog]}
    assert running.cluster.committed(f"app-{out}") == {
        (running.topics["left"], 0): 5,
        (running.topics["right"], 0): 3,
    }


@pytest.mark.timeout(900)
def test_what_survives_a_changed_topology_is_told_and_changed_partitions_are_refused(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    running.put(INPUTS[:2])
    running.drain()
    assert not caplog.records
    running.counts_store = "words"
    running.put(INPUTS[2:3])
    running.drain()
    told = [one.getMessage() for one in caplog.records if "has changed" in one.getMessage()]
    assert len(told) == 1
    assert re.search(r"survives: KSTREAM-.*; stores that are new, and empty: words; .* not used: counts \(", told[0])
    out = [value for _, value, _ in running.outputs(running.topics["out"])]
    assert b"b 1" in out[len(out) // 2 :] and b"b/None" in out  # counted from none again, joined with what there was
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


class Ticks:
    """Counts the ticks of the clock that come through, over all batches."""

    def init(self, context: Context) -> None:
        self.context, self.store = context, context.store("ticks")
        context.schedule(100, "wall_clock", self.tick)

    def process(self, record: StreamRecord) -> None:
        """Nothing is read."""

    def tick(self, now: int) -> None:
        count = (self.store.get("ticks") or 0) + 1
        self.store.put("ticks", count)
        self.context.forward(StreamRecord("ticks", count, now))


@pytest.mark.timeout(900)
def test_the_clock_ticks_through_batches_without_records(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    source, out = cluster.topic(), cluster.topic()
    builder = StreamsBuilder(f"app-{out}", EVERY_CHANGE)
    builder.add_state_store(persistent_key_value_store("ticks", key=String(), value=Long()))
    builder.stream(source).process(Ticks, stores=["ticks"]).to(out, key=String(), value=Long())
    settings = {"bootstrap.servers": cluster.servers, "state.dir": str(tmp_path)}
    query = Background(application(builder.build(), settings), spark, lambda state: None)
    try:
        eventually(lambda: len(cluster.committed_rows(out)) >= 3 or query.failure, 240, "three ticks")
    finally:
        assert query.stop(240)
    assert query.failure is None
    rows = cluster.committed_rows(out)
    assert [int.from_bytes(value or b"", "big") for _, value, _ in rows] == list(range(1, len(rows) + 1))
    times = [at for _, _, at in rows]
    assert times == sorted(set(times))


@pytest.mark.timeout(900)
def test_a_foreign_key_join_goes_there_and_back_in_one_query_and_outlives_its_checkpoint(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """After the loss an order finds an owner of before, and an owner finds an order of before, in two partitions."""
    orders, owners, out = (cluster.topic(partitions) for partitions in (2, 1, 1))
    builder = StreamsBuilder(f"app-{out}", EVERY_CHANGE)
    joined = builder.table(orders).left_join(
        builder.table(owners), lambda order, owner: f"{order}/{owner}", foreign_key=lambda order: order[0]
    )
    joined.to_stream().to(out)

    def put(topic: str, at: int, **rows: str) -> None:
        for key, value in rows.items():
            row = Record(timestamp=NOW + at, key=key[-1:].encode(), value=value.encode())
            cluster.put(topic, row, partition=ord(key[-1]) % 2 if topic == orders else 0)

    put(orders, 0, no1="ann's", no2="bob's", no3="cat's")
    put(owners, 0, a="Ann", b="Bob")
    made = application(builder.build(), {"bootstrap.servers": cluster.servers, "state.dir": str(tmp_path)})
    to_its_end(lambda: definition(made, spark))
    before = cluster.committed_rows(out)
    latest = {key: value for key, value, _ in before}
    assert latest == {b"1": b"ann's/Ann", b"2": b"bob's/Bob", b"3": b"cat's/None"}
    shutil.rmtree(made.checkpoint)
    put(orders, 1, no1="bob's too")
    put(owners, 1, c="Cat")
    to_its_end(lambda: definition(made, spark))
    assert cluster.committed_rows(out)[: len(before)] == before
    later = [(key, value) for key, value, _ in cluster.committed_rows(out)[len(before) :]]
    assert sorted(later) == [(b"1", b"bob's too/Bob"), (b"3", b"cat's/Cat")]


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
