"""A worker on Spark: what is deployed runs, changes, fails alone and goes without a trace."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.admin import groups, topics
from moldau.flows import code
from moldau.flows.catalog import Catalog, opened
from moldau.flows.definition import Definition, Wanted
from moldau.flows.kinds import Place
from moldau.flows.lanes import LANE, OWN, STEPS, chosen_lane, lane_of
from moldau.flows.lanes import SHARED as SHARED_LANE
from moldau.flows.overview import Overview, overviews, workers
from moldau.flows.packages import FOLDER
from moldau.flows.streams_kind import AT, FILE, SIZE
from moldau.flows.worker import Worker
from moldau.testing import eventually

from .conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = """
from moldau.streams import StreamsBuilder, String
from shared import mark

settings = {{"default.key.serde": String(), "default.value.serde": String(), "statestore.cache.max.bytes": 0}}
builder = StreamsBuilder({name!r}, settings)
(
    builder.stream({source!r})
    .group_by(lambda key, value: value)
    .count(store="counts")
    .to_stream()
    .map(lambda key, count: (key, mark(key, count)))
    .to({target!r}, key=String(), value=String())
)
"""
SHARED = """
def mark(key, count):
    if key == "poison":
        raise ValueError("this is poison")
    return "{mark}%d" % count
"""
PATIENCE_S = 600


class Deployed:
    """A cluster, its catalog, and applications that count words."""

    def __init__(self, cluster: Cluster, catalog: Catalog, folder: Path, **settings: str) -> None:
        self.cluster, self.catalog, self.folder, self.settings = cluster, catalog, folder, settings

    def deploy(self, name: str, source: str, target: str, mark: str = "", packages: bool = False) -> Definition:
        """Deploy an application with a module beside its file, or in packages that it brings along."""
        folder = self.folder / f"{name}{mark}"
        brought = folder / FOLDER
        brought.mkdir(parents=True, exist_ok=True)
        (folder / "app.py").write_text(APP.format(name=name, source=source, target=target))
        beside = (brought if packages else folder) / "shared.py"
        beside.write_text(SHARED.replace("{mark}", mark))
        data = code.pack(folder / "app.py", packages=brought) if packages else code.pack(folder / "app.py", [beside])
        kept = code.put(self.cluster.client, data)
        what = {FILE: "app.py", SIZE: kept.size, AT: kept.at, STEPS: None if packages else 1}
        return self.catalog.deploy(Definition(name, "streams", kept.version, what, self.settings))

    def seen(self, name: str) -> Overview:
        return next(one for one in overviews(self.catalog.known, self.cluster.client) if one.name == name)

    def is_in(self, name: str, lane: str, worker: str = "second") -> bool:
        seen = self.seen(name)
        return (seen.state, seen.lane, seen.worker) == ("running", lane, worker)

    def await_state(self, name: str, state: str) -> None:
        eventually(lambda: self.seen(name).state == state, PATIENCE_S, f"{name} to be {state}")

    def await_rows(self, topic: str, *rows: str) -> None:
        try:
            eventually(lambda: self.rows(topic) == list(rows), PATIENCE_S, f"{topic} to be {rows}")
        except AssertionError as error:
            known = overviews(self.catalog.known, self.cluster.client)
            raise AssertionError(f"{error}; it is {self.rows(topic)}, and flows are {known}") from None

    def rows(self, topic: str) -> list[str]:
        found = self.cluster.committed_rows(topic)
        return [f"{(key or b'').decode()} {(value or b'').decode()}" for key, value, _ in found]


@contextmanager
def working(name: str, cluster: Cluster, folder: Path, spark: SparkSession) -> Iterator[Worker]:
    """Run a worker in a thread."""
    place = Place({"bootstrap.servers": cluster.servers}, str(folder / "state"), folder / f"code-{name}")
    worker, stopped, failures = Worker(name, place, lambda: spark), threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            worker.run(stopped.wait)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield worker
    finally:
        stopped.set()
        thread.join(120)
        assert not thread.is_alive() and not failures, failures


@pytest.mark.timeout(2400)
def test_flows_run_change_fail_alone_and_go(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    one, two, three = (cluster.topic() for _ in range(3))
    lines, more = (cluster.topic() for _ in range(2))
    first, second, third, unmade = f"flow-{one}", f"flow-{two}", f"flow-{three}", f"unmade-{three}"
    settings = {"bootstrap.servers": cluster.servers}
    with opened(settings) as catalog, working("desk", cluster, tmp_path, spark):
        deployed = Deployed(cluster, catalog, tmp_path)
        cluster.put(lines, "a", "b", "a")
        deployed.deploy(first, lines, one)
        deployed.await_rows(one, "a 1", "b 1", "a 2")
        # A flow that fails is held with its reason, and the other does not notice.
        deployed.deploy(second, more, two)
        cluster.put(more, "x")
        deployed.await_rows(two, "x 1")
        cluster.put(more, "poison")
        deployed.await_state(second, "failed")
        failed = deployed.seen(second)
        assert "this is poison" in (failed.error or "") and "Traceback" in (failed.trace or "")
        cluster.put(lines, "b")
        deployed.await_rows(one, "a 1", "b 1", "a 2", "b 2")
        # One whose topic is missing is held with its name, and runs when it is resumed after the topic was made.
        deployed.deploy(third, unmade, three)
        deployed.await_state(third, "failed")
        assert unmade in (deployed.seen(third).error or "")
        cluster.topic(name=unmade)
        cluster.put(unmade, "y")
        catalog.want(third, Wanted.RUNNING, anew=True)
        deployed.await_rows(three, "y 1")
        # An upgrade goes on where the version before was, with its own code.
        deployed.deploy(first, lines, one, mark="new ")
        deployed.await_state(first, "running")
        cluster.put(lines, "a")
        deployed.await_rows(one, "a 1", "b 1", "a 2", "b 2", "a new 3")
        # What is paused does nothing until it is resumed.
        catalog.want(first, Wanted.PAUSED)
        deployed.await_state(first, "paused")
        cluster.put(lines, "c")
        catalog.want(first, Wanted.RUNNING)
        deployed.await_rows(one, "a 1", "b 1", "a 2", "b 2", "a new 3", "c new 1")
        # What is removed leaves nothing behind, whether it ran or had failed.
        assert [worker.name for worker in workers(cluster.client)] == ["desk"]
        names = first, second, third
        for name in names:
            catalog.want(name, Wanted.REMOVED)
        eventually(lambda: not {*names} & set(catalog.known), PATIENCE_S, "the removal")
    own = tuple(f"{name}-" for name in names)
    assert not [topic.name for topic in topics.listed(cluster.client) if topic.name.startswith(own)]
    assert not [group.id for group in groups.listed(cluster.client) if group.id in names]
    there = [path.name for path in (tmp_path / "state").iterdir()]
    assert [name for name in there if name.startswith((*names, "shared"))] == ["shared-streams-1"], "the lane's"


@pytest.mark.timeout(2400)
def test_a_second_worker_takes_over_half_and_then_all(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    targets = [cluster.topic() for _ in range(2)]
    source = cluster.topic()
    names = [f"flow-{target}" for target in targets]
    with opened({"bootstrap.servers": cluster.servers}) as catalog:
        deployed = Deployed(cluster, catalog, tmp_path, **{LANE: OWN})
        cluster.put(source, "a")
        with working("second", cluster, tmp_path, spark) as second:
            with working("first", cluster, tmp_path, spark) as first:
                flows = [
                    deployed.deploy(name, source, target, mark=f"{number} ", packages=number == 1)
                    for number, (name, target) in enumerate(zip(names, targets, strict=True))
                ]
                for number, target in enumerate(targets):
                    deployed.await_rows(target, f"a {number} 1")
                eventually(lambda: len(first.carried) == len(second.carried) == 1, PATIENCE_S, "one flow for each")
                assert "shared" not in sys.modules, "only Python workers of the flow import its packages"
                # A lane goes to the worker that it is wanted on.
                lane = lane_of(flows[0])
                there, other = (first, "second") if lane in first.carried else (second, "first")
                catalog.move(names[0], None, other)
                eventually(
                    lambda: lane not in there.carried and deployed.is_in(names[0], lane, other), PATIENCE_S, other
                )
            eventually(lambda: len(second.carried) == 2, PATIENCE_S, "the second worker to have both")
            cluster.put(source, "a")
            for number, target in enumerate(targets):
                deployed.await_rows(target, *(f"a {number} {count}" for count in (1, 2)))
            # A flow moves with its state to a lane that others share, and back.
            for count, lane in enumerate((SHARED_LANE, OWN), 3):
                made = catalog.move(names[0], lane, None)
                cluster.put(source, "a")
                deployed.await_rows(targets[0], *(f"a 0 {n}" for n in range(1, count + 1)))
                eventually(lambda made=made: deployed.is_in(names[0], chosen_lane(made)), PATIENCE_S, f"a lane: {lane}")
            deployed.await_rows(targets[1], *(f"a 1 {n}" for n in range(1, 5)))
            for name in names:
                catalog.want(name, Wanted.REMOVED)
            eventually(lambda: not second.carried, PATIENCE_S, "the removal")
