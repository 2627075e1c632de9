"""A worker whose flows get stuck before Spark: each is held with a sentence, the others go on, and nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.admin import topics
from moldau.cli.worker import spark_session
from moldau.client import Client
from moldau.flows import code, figures, records
from moldau.flows.catalog import Catalog, opened
from moldau.flows.definition import Definition, Wanted
from moldau.flows.fairness import BACK_S, BATCHES
from moldau.flows.kinds import Place
from moldau.flows.lanes import STEPS, chosen_lane, lane_of
from moldau.flows.logs import path_of, tail
from moldau.flows.overview import Overview, members, overviews
from moldau.flows.worker import Carried, Worker
from moldau.testing import Broker, broker, eventually
from tests.flows.test_fairness import query, share

PATIENCE_S = 180
APP = """
from moldau.streams import StreamsBuilder, String
builder = StreamsBuilder("plain", {"default.key.serde": String(), "default.value.serde": String()})
builder.stream("lines").to("out")
"""


@pytest.fixture(scope="module")
def started() -> Iterator[Broker]:
    with broker(group_initial_rebalance_delay_ms=0) as one:  # each test begins with an empty group
        yield one


@pytest.fixture
def place(started: Broker, tmp_path: Path) -> Place:
    return Place({"bootstrap.servers": started.bootstrap_servers}, str(tmp_path / "state"), tmp_path / "code")


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as made:
        yield made


@contextmanager
def working(place: Place, name: str = "desk") -> Iterator[Worker]:
    """Run a worker in a thread; it must not end by itself."""
    worker, stopped = Worker(name, place, lambda: spark_session("local[1]", {})), threading.Event()
    failures = list[BaseException]()

    def run() -> None:
        try:
            worker.run(stopped.wait)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield worker
        assert thread.is_alive(), failures
    finally:
        stopped.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive() and not failures, failures


def seen(catalog: Catalog, client: Client, name: str) -> Overview:
    return next(one for one in overviews(catalog.known, client) if one.name == name)


def await_state(catalog: Catalog, client: Client, name: str, state: str) -> Overview:
    eventually(lambda: seen(catalog, client, name).state == state, PATIENCE_S, f"{name} to be {state}")
    return seen(catalog, client, name)


def application(client: Client, folder: Path, name: str, text: str = APP) -> Definition:
    (folder / "app.py").write_text(text)
    kept = code.put(client, code.pack(folder / "app.py"))
    return Definition(name, "streams", kept.version, {"file": "app.py", "size": kept.size, "at": kept.at})


def test_without_java_a_flow_is_held_with_a_sentence_that_says_what_to_do(
    place: Place, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with opened(place.settings) as catalog, working(place):
        catalog.deploy(application(client, tmp_path, "plain"))
        found = await_state(catalog, client, "plain", "failed")
        assert "JAVA_HOME is" in (found.error or "")
        lines = tail(path_of(place.logs, "plain"), 100)
        assert any("failed on desk" in line and "JAVA_HOME is" in line for line in lines)
        told = lambda: figures.read(client)["desk"].flows.get("plain")  # noqa: E731
        eventually(lambda: (told() or figures.Figures()).errors == 1, PATIENCE_S, "its error to be counted")
        catalog.want("plain", Wanted.REMOVED)
        eventually(lambda: "plain" not in catalog.known, PATIENCE_S, "the removal")
        assert not path_of(place.logs, "plain").exists()


def test_a_worker_whose_disk_cannot_be_written_holds_its_flows_and_goes_on(
    place: Place, client: Client, tmp_path: Path
) -> None:
    (tmp_path / "code").write_text("a file where folders should be")
    (tmp_path / "logs").write_text("here too")
    with opened(place.settings) as catalog, working(place):
        catalog.deploy(application(client, tmp_path, "homeless"))
        assert "exists" in (await_state(catalog, client, "homeless", "failed").error or "").lower()
        catalog.deploy(Definition("mystery", "unheard-of", "v1", {}))
        found = await_state(catalog, client, "mystery", "failed")
        assert found.error == "This worker knows no flows of the kind unheard-of, only streams, query."
        catalog.want("mystery", Wanted.STOPPED)
        await_state(catalog, client, "mystery", "stopped")


def test_a_version_that_fails_at_once_gives_way_to_the_one_before(place: Place, client: Client, tmp_path: Path) -> None:
    with opened(place.settings) as catalog, working(place):
        first = catalog.deploy(Definition("paused", "unheard-of", "v1", {}))
        catalog.want("paused", Wanted.PAUSED)
        await_state(catalog, client, "paused", "paused")
        catalog.deploy(replace(Definition("paused", "unheard-of", "v2", {}), rollback=True))
        eventually(lambda: catalog.flows["paused"].note is not None, PATIENCE_S, "the way back")
        flow = catalog.flows["paused"]
        assert (flow.version, flow.serial, flow.rollback) == ("v1", first.serial, False)
        assert (flow.note or "").startswith("Version v2 failed, so v1 runs again: This worker knows no flows")
        assert flow.previous == ("v2", {})
        found = await_state(catalog, client, "paused", "failed")  # without --rollback it stays
        assert found.version == "v1"


def test_a_worker_survives_the_loss_of_the_definitions(place: Place, client: Client, tmp_path: Path) -> None:
    """Nothing is cleared away for it: what was deployed may be deployed again."""
    with opened(place.settings) as catalog, working(place) as worker:
        catalog.deploy(Definition("lost", "unheard-of", "v1", {}))
        await_state(catalog, client, "lost", "failed")
        state = tmp_path / "state" / "lost-0"
        state.mkdir(parents=True)
        topics.delete(client, [records.TOPIC])
        eventually(lambda: records.TOPIC not in {one.name for one in topics.listed(client)}, PATIENCE_S, "the deletion")
        with opened(place.settings) as anew:
            eventually(lambda: not worker.carried, PATIENCE_S, "the worker to let go")
            anew.deploy(Definition("again", "unheard-of", "v1", {}))
            await_state(anew, client, "again", "failed")
        assert state.exists()


def test_a_clock_that_was_set_back_changes_nothing(
    place: Place, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns
    with opened(place.settings) as catalog, working(place):
        catalog.deploy(Definition("timeless", "unheard-of", "v1", {}))
        await_state(catalog, client, "timeless", "failed")
        monkeypatch.setattr(time, "time_ns", lambda: now() - 3600 * 10**9)
        made = catalog.want("timeless", Wanted.PAUSED)
        found = await_state(catalog, client, "timeless", "paused")
        assert made.revision == 2 and found.since_ms is not None and found.since_ms < now() // 1_000_000 - 3_000_000
        catalog.want("timeless", Wanted.STOPPED)
        await_state(catalog, client, "timeless", "stopped")


def test_a_worker_that_is_gone_is_not_believed(place: Place, client: Client) -> None:
    with opened(place.settings) as catalog:
        with working(place, "brief"):
            catalog.deploy(Definition("orphan", "unheard-of", "v1", {}))
            await_state(catalog, client, "orphan", "failed")
        eventually(lambda: not members(client), PATIENCE_S, "the worker to leave")
        assert seen(catalog, client, "orphan").state == "waiting for a worker"


def test_flow_that_crowds_others_out_gets_a_lane_and_comes_back(place: Place) -> None:
    worker = Worker("fair", place, lambda: spark_session("local[1]", {}))
    names = ["fair-large", "fair-small"]
    with opened(place.settings) as catalog:
        worker._catalog = catalog
        large, small = (catalog.deploy(Definition(name, "streams", "v1", {STEPS: 1})) for name in names)
        lane = lane_of(small)
        carried = {flow.name: Carried(flow, query=query()) for flow in (large, small)}
        worker.members[lane] = carried
        carried[large.name].share = share(BATCHES)
        worker._be_fair(0.0)
        worker._be_fair(0.0)  # the worker may not have heard of it yet
        going = catalog.flows[large.name]
        assert (going.apart, going.leaving, going.revision) == (True, lane, large.revision + 1)
        assert not catalog.flows[small.name].apart
        catalog.arrive(going, {})
        there = Carried(catalog.flows[large.name], query=query())
        worker.members, worker.carried = {}, {chosen_lane(there.flow): there}
        there.share.look(there.query, 0.0)
        worker._be_fair(BACK_S - 1)
        assert catalog.flows[large.name].apart
        worker._be_fair(BACK_S)
        back = catalog.flows[large.name]
        assert (back.apart, lane_of(back), chosen_lane(back)) == (False, chosen_lane(there.flow), lane)
        for name in names:
            catalog.forget(catalog.want(name, Wanted.REMOVED))
