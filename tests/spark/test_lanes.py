"""A lane on Spark: flows come, are held, fail, go on and go, in one query that is never restarted for it."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.client import Record
from moldau.plan.hashing import spark_hash
from moldau.plan.lane import driver
from moldau.plan.lane.driver import Lane
from moldau.plan.lane.failures import TOPIC as FAILURES
from moldau.plan.lane.failures import of_family
from moldau.plan.lane.wanted import HELD, REMOVED, RUNNING, Want
from moldau.spark.parcels import records_of
from moldau.spark.runner import Policy, Supervised, Supervisor
from moldau.spark.runner.failures import text_of
from moldau.spark.runner.status import QueryStatus
from moldau.streams import StreamsBuilder, String
from moldau.streams.application import application
from moldau.testing import eventually

from .conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_CHANGE = {"statestore.cache.max.bytes": 0, "default.key.serde": String(), "default.value.serde": String()}
PATIENCE_S = 240
NOW = time.time_ns() // 1_000_000
BASE = 7  # the first serial number of each lane: failures go by these and the family


def counting(name: str, source: str, target: str, broken: Path) -> StreamsBuilder:
    """Count words: a pass, and a level with state, which fails on poison while a file is there."""

    def counted(word: str, count: int) -> str:
        if word == "poison" and broken.exists():
            raise ValueError(f"{name} cannot take poison")
        return f"{word} {count}"

    builder = StreamsBuilder(name, EVERY_CHANGE)
    words = builder.stream(source).flat_map_values(str.split).select_key(lambda key, word: word)
    words.group_by_key().count(store="counts").to_stream().map_values(counted).to(target)
    return builder


def shouting(name: str, source: str, target: str, broken: Path) -> StreamsBuilder:
    """Change values: no state; it fails on poison while a file is there."""

    def shout(value: str) -> str:
        if value == "poison for the process" and broken.exists():
            os._exit(3)
        if "poison" in value and broken.exists():
            raise ValueError(f"{name} cannot take poison")
        return value.upper()

    builder = StreamsBuilder(name, EVERY_CHANGE)
    builder.stream(source).map_values(shout).to(target)
    return builder


class Carrying:
    """A lane under supervision, and what is wanted of its flows."""

    def __init__(self, spark: SparkSession, cluster: Cluster, folder: Path, name: str, steps: int) -> None:
        self.spark, self.cluster, self.folder = spark, cluster, folder
        self.name, self.steps = name, steps
        self.wants: dict[int, Want] = {}
        self.builders: dict[int, StreamsBuilder] = {}
        self.run_ids: set[str] = set()
        self.restarts = 0
        self.start()

    def start(self) -> None:
        client, state = {"bootstrap.servers": self.cluster.servers}, f"file://{self.folder}/state"
        self.lane = Lane(self.name, client, state, self.folder / "local", self.steps, self.name)
        self.lane.open(self.spark)
        self.query = Supervised(self.name, self.lane.definition, QueryStatus(self.name))
        self.supervisor = Supervisor(self.spark, [self.query], Policy(first_pause_s=0.1, most_pause_s=0.1, stop_s=60))
        for serial, builder in self.builders.items():
            self.load(serial, builder)
        self.lane.want(self.wants)

    def stop(self) -> None:
        self.supervisor.kill()

    def load(self, serial: int, builder: StreamsBuilder, **change: Any) -> None:
        own = {"bootstrap.servers": self.cluster.servers, "state.dir": f"file://{self.folder}/state"}
        made = application(builder.build(), own)
        loaded = self.lane.load(made, serial, made.id)
        assert loaded.keyed == self.steps
        before = self.wants.get(serial)
        attempt, state = (1, RUNNING) if before is None else (before.attempt, before.state)
        self.wants[serial] = Want(made.id, loaded.parcel, attempt, state, loaded.begin)
        self.builders[serial] = builder

    def want(self, serial: int, state: str, more: int = 0) -> None:
        one = self.wants[serial]
        self.wants[serial] = Want(one.name, one.parcel, one.attempt + more, state, one.begin)
        self.lane.want(self.wants)

    def step(self) -> None:
        self.supervisor.step(time.monotonic())
        if self.query.status.restarts != self.restarts:
            self.restarts = self.query.status.restarts
            assert self.query.query is not None
            self.lane.blame(text_of(self.query.query.exception() or RuntimeError()))
        self.supervisor.raise_failure()
        self.lane.observe(self.query.progress)
        if self.query.query is not None:
            self.run_ids.add(str(self.query.query.runId))

    def until(self, condition: Any, what: str) -> None:
        def met() -> Any:
            self.step()
            return condition()

        eventually(met, PATIENCE_S, what)

    def put(self, topic: str, *values: str) -> None:
        for value in values:
            self.cluster.put(topic, Record(timestamp=NOW, key=b"k", value=value.encode()))

    def values(self, topic: str) -> list[str]:
        return [(value or b"").decode() for _, value, _ in self.cluster.committed_rows(topic)]

    def await_values(self, topic: str, expected: list[str]) -> None:
        try:
            self.until(lambda: self.values(topic) == expected, f"{topic} to be {expected}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.values(topic)}, failures {self.lane.failures.found}") from None


def counts(*lines: str) -> list[str]:
    """What a count of words says in all, word by word."""
    seen: Counter[str] = Counter()
    found: list[str] = []
    for word in re.findall(r"\w+", " ".join(lines)):
        seen[word] += 1
        found.append(f"{word} {seen[word]}")
    return found


@pytest.fixture
def carrying(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[type[Carrying]]:
    made: list[Carrying] = []

    class Here(Carrying):
        def __init__(self, name: str, steps: int) -> None:
            made.append(self)
            super().__init__(spark, cluster, tmp_path, f"{name}-{tmp_path.name}", steps)

    yield Here
    for one in made:
        one.stop()


def test_the_hash_of_two_integers_is_sparks(spark: SparkSession) -> None:
    pairs = [(0, 0), (7, 3), (123456, 42)]
    found = spark.sql("select " + ", ".join(f"hash({one}, {two})" for one, two in pairs)).collect()[0]
    assert list(found) == [spark_hash(two, spark_hash(one)) for one, two in pairs]


@pytest.mark.timeout(1200)
def test_flows_with_state_share_a_query_in_which_each_is_alone(carrying: Any, cluster: Cluster, tmp_path: Path) -> None:
    lane, broken, base = carrying("counts", 1), tmp_path / "broken", BASE
    source, *outs = (cluster.topic(1) for _ in range(5))
    for serial, out in enumerate(outs[:2], base):
        lane.load(serial, counting(f"count-{serial}-{out}", source, out, broken))
    lane.lane.want(lane.wants)
    lane.put(source, "a b a")
    for out in outs[:2]:
        lane.await_values(out, counts("a b a"))
    # One that comes later reads from the start; one that is held stands still.
    lane.load(base + 2, counting(f"count-2-{outs[2]}", source, outs[2], tmp_path / "never"))
    lane.want(base, HELD)
    lane.until(lambda: base + 2 in lane.lane.last.flows, "a batch with both changes")
    lane.put(source, "b")
    for out in outs[1:3]:
        lane.await_values(out, counts("a b a", "b"))
    assert lane.values(outs[0]) == counts("a b a")
    lane.want(base, RUNNING)
    lane.await_values(outs[0], counts("a b a", "b"))
    # One that fails holds what it has not processed, and the others go on.
    broken.touch()
    lane.put(source, "c poison")
    lane.until(lambda: lane.lane.failures.has(base, 1) and lane.lane.failures.has(base + 1, 1), "both to fail")
    assert "cannot take poison" in lane.lane.failures.first(base, 1).error
    lane.put(source, "a d")
    lane.await_values(outs[2], counts("a b a", "b", "c poison", "a d"))
    broken.unlink()
    lane.want(base, RUNNING, more=1)
    lane.await_values(outs[0], counts("a b a", "b", "c poison", "a d"))
    assert lane.values(outs[1]) == counts("a b a", "b"), "it was not resumed"
    # What is removed forgets: the same under another number begins anew.
    lane.want(base + 1, REMOVED)
    lane.until(lambda: base + 1 not in lane.lane.last.flows, "the flow to be gone")
    assert len(lane.run_ids) == 1
    # The query is stopped and started again; then it goes on elsewhere; then it comes back to its old checkpoint.
    del lane.wants[base + 1], lane.builders[base + 1]
    lines = ["a b a", "b", "c poison", "a d"]
    for folder in (tmp_path, tmp_path / "elsewhere", tmp_path):
        lane.stop()
        lane.folder = folder
        lane.start()
        lane.put(source, "a")
        lines.append("a")
        for out in (outs[0], outs[2]):
            lane.await_values(out, counts(*lines))
    # A number that is another's now, as after the definitions were deleted, begins anew.
    del lane.wants[base + 2], lane.builders[base + 2]
    lane.load(base + 2, counting(f"count-3-{outs[3]}", source, outs[3], tmp_path / "never"))
    lane.lane.want(lane.wants)
    lane.await_values(outs[3], counts(*lines))


@pytest.mark.timeout(1200)
def test_flows_without_state_share_a_query_in_which_each_is_alone(
    carrying: Any, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, broken, base = carrying("shouts", 0), tmp_path / "broken", BASE
    source, *outs = (cluster.topic(1) for _ in range(3))
    for serial, out in enumerate(outs, base):
        lane.load(
            serial, shouting(f"shout-{serial}-{out}", source, out, broken if serial > base else tmp_path / "never")
        )
    lane.lane.want(lane.wants)
    broken.touch()
    lane.put(source, "a", "b")
    for out in outs:
        lane.await_values(out, ["A", "B"])
    lane.put(source, "c", "poison", "d")
    lane.await_values(outs[0], ["A", "B", "C", "POISON", "D"])
    lane.until(lambda: lane.lane.failures.has(base + 1, 1), "the flow to fail")
    lane.put(source, "e")
    lane.await_values(outs[0], ["A", "B", "C", "POISON", "D", "E"])
    broken.unlink()
    lane.want(base + 1, RUNNING, more=1)
    lane.await_values(outs[1], ["A", "B", "C", "POISON", "D", "E"])
    # A topic that is deleted under a flow stops this flow alone.
    gone, silent = (cluster.topic(1) for _ in range(2))
    lane.load(base + 3, shouting(f"shout-{base + 3}-{silent}", gone, silent, tmp_path / "never"))
    lane.lane.want(lane.wants)
    lane.put(gone, "a")
    lane.await_values(silent, ["A"])
    cluster.delete(gone)
    lane.until(lambda: lane.lane.failures.has(base + 3, 1), "the flow to fail")
    assert gone in lane.lane.failures.first(base + 3, 1).error
    lane.put(source, "poison is over")
    for out in outs:
        lane.await_values(out, ["A", "B", "C", "POISON", "D", "E", "POISON IS OVER"])
    lane.want(base + 3, REMOVED)
    lane.until(lambda: base + 3 not in lane.lane.last.flows, "the flow to be gone")
    del lane.wants[base + 3], lane.builders[base + 3]
    assert len(lane.run_ids) == 1
    # Code that ends its process ends the query; the batch is then done without the flow, which goes on there later.
    monkeypatch.setattr(driver, "AGAIN", 2)
    broken.touch()
    lane.put(source, "f", "poison for the process")
    rows = ["A", "B", "C", "POISON", "D", "E", "POISON IS OVER", "F", "POISON FOR THE PROCESS"]
    lane.await_values(outs[0], rows)
    assert "ended 2 times" in lane.lane.failures.first(base + 1, 2).error
    known = of_family(lane.name, records_of(cluster.client, FAILURES))
    assert [one.at is not None for one in known if one.serial == base + 1] == [False, True], "for other workers"
    broken.unlink()
    lane.want(base + 1, RUNNING, more=1)
    lane.await_values(outs[1], rows)
