"""The catalog on a real broker: changes of several at once, names that return, and what is shown of a flow."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from moldau.admin import topics
from moldau.client import Client, Record, build
from moldau.flows import catalog, states
from moldau.flows.catalog import opened
from moldau.flows.definition import Definition, Foreign, Wanted
from moldau.flows.figures import read_all
from moldau.flows.overview import LATER, WAITING, Overview, overview, overviews, workers
from moldau.flows.records import TOPIC
from moldau.flows.states import FlowState
from moldau.flows.topics import make
from moldau.testing import Broker
from moldau.testing import broker as broker_of
from moldau.topicstore import append


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with broker_of() as started:
        yield started


@pytest.fixture
def settings(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def flow(name: str, version: str = "v1") -> Definition:
    return Definition(name, "streams", version, {"file": "app.py"})


def test_looking_creates_nothing(settings: dict[str, str]) -> None:
    with Client(settings) as client:
        assert catalog.read(client) == {} and overviews({}, client) == [] and workers(client) == []
        assert not [topic.name for topic in topics.listed(client) if "moldau" in topic.name]


def test_everybody_sees_a_change_and_a_name_that_returns_has_another_serial_number(settings: dict[str, str]) -> None:
    with opened(settings) as first, opened(settings) as second, Client(settings) as client:
        made = first.deploy(flow("a"))
        assert second.want("a", Wanted.PAUSED).serial == made.serial
        assert catalog.read(client)["a"] == second.flows["a"]
        removed = second.want("a", Wanted.REMOVED)
        second.forget(removed)
        assert "a" not in second.known
        again = first.deploy(flow("a"))
        assert again.serial > made.serial and again.revision == 1
        second.forget(removed)  # late: it is about the flow before
        assert "a" in second.known


def test_changes_at_the_same_time_all_count(settings: dict[str, str]) -> None:
    def deploy(number: int) -> int:
        with opened(settings) as one:
            return one.deploy(flow("contested", f"v{number}")).revision

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(deploy, range(8)))
    with opened(settings) as one:
        assert one.flows["contested"].revision == 8


def test_what_others_write_is_left_alone_or_left_out(settings: dict[str, str]) -> None:
    with opened(settings) as one, Client(settings) as client:
        for key, value in ((b"later", b'{"format":9}'), (b"odd", b"nonsense"), (b"\xff", b"{}")):
            append(client, TOPIC, 0, build([Record(0, 0, key, value)]))
        one.deploy(flow("b"))
        assert one.known["later"] == Foreign("later", 9) and "odd" not in one.known
        assert "later" not in one.flows and "b" in one.flows
        assert overview(one.known["later"], None, {}).state == LATER


def test_states_come_back_as_they_were_said(settings: dict[str, str]) -> None:
    said = FlowState("c", 3, 1, "failed", "desk", "streams/c/3", 17, 2, "no weights", "Traceback ...")
    with Client(settings) as client:
        make(client, states.TOPIC)
        states.write(client, said, "c")
        states.write(client, said, "gone")
        states.write(client, None, "gone")
        assert read_all(client)[0] == {"c": said}


DEFINED = Definition("c", "streams", "v1", {}, serial=3, revision=2)
SAID = FlowState("c", 3, 2, "running", "desk", "streams/c/3", 17)


@pytest.mark.parametrize(
    ("said", "alive", "state"),
    [
        (SAID, {"desk"}, "running"),
        (SAID, set[str](), WAITING),  # its worker is gone
        (None, {"desk"}, WAITING),
        (FlowState("c", 3, 1, "running", "desk", "", 17), {"desk"}, WAITING),  # of an earlier revision
        (FlowState("c", 2, 2, "running", "desk", "", 17), {"desk"}, WAITING),  # of another flow of this name
    ],
)
def test_what_a_worker_said_counts_if_it_lives_and_if_it_is_about_this_revision(
    said: FlowState | None, alive: set[str], state: str
) -> None:
    seen = overview(DEFINED, said, dict.fromkeys(alive))
    assert isinstance(seen, Overview) and seen.state == state
