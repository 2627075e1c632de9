"""Statements on a real broker: servers agree on their order, and workers read from it what they are to run."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from moldau.client import Client
from moldau.flows import states
from moldau.flows.definition import Definition, Wanted
from moldau.flows.kinds import is_used
from moldau.flows.overview import WAITING, overviews
from moldau.flows.overview import query as query_overview
from moldau.flows.states import FlowState
from moldau.flows.topics import make
from moldau.sql.engine import Engine
from moldau.sql.persistent.kind import KIND, services
from moldau.sql.persistent.reader import QueryReader, give_serials
from moldau.sql.server.commands import Command, Executed
from moldau.sql.server.errors import ServerError
from moldau.sql.server.states import living
from moldau.testing import Broker, eventually
from tests.spark.sql_servers import Server, forget_service

WAIT_S = 120


class Place(NamedTuple):
    """A service of its own on the broker of all tests."""

    client: Client
    service_id: str
    stack: ExitStack

    def server(self) -> Server:
        return Server(self.client, self.service_id, self.stack)

    def topic(self, name: str) -> str:
        return f"{self.service_id}{name}"

    def pay(self) -> str:
        given = f"kafka_topic='{self.topic('pay')}', value_format='JSON', partitions=2"
        return f"CREATE STREAM pay (card STRING KEY, amount INT) WITH ({given});"

    def copy(self, name: str) -> str:
        return f"CREATE STREAM {name} WITH (kafka_topic='{self.topic(name)}') AS SELECT * FROM pay;"


def test_serial_numbers_are_never_used_again() -> None:
    engine, serials = Engine(), dict[str, int]()
    for statement in (
        "CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', value_format='JSON', partitions=2);",
        "CREATE STREAM a AS SELECT * FROM pay UNION ALL SELECT * FROM pay;",
        "TERMINATE ALL;",
        "CREATE STREAM b AS SELECT * FROM pay;",
        "CREATE OR REPLACE STREAM b AS SELECT * FROM pay WHERE amount > 1;",
    ):
        engine.execute_text(statement)
        give_serials(serials, engine)
    assert list(serials.values()) == [0, 1, 2] and list(engine.queries) == [list(serials)[2]]


@pytest.fixture
def place(kafka_shared: Broker) -> Iterator[Place]:
    service_id = f"r{uuid.uuid4().hex[:8]}_"
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as client:
        with ExitStack() as stack:
            yield Place(client, service_id, stack)
        forget_service(client, service_id)  # or workers of other tests would run its queries


def test_statements_to_two_servers_at_once_have_one_order(place: Place) -> None:
    one, two = place.server(), place.server()
    one.do(place.pay())
    answers: list[str] = []

    def send(server: Server, names: list[str]) -> None:
        for name in names:
            try:
                answers.append(server.query_id(place.copy(name)))
            except ServerError as error:
                answers.append(error.message.partition(":")[0])

    parts = [(one, ["a", "b", "both", "c"]), (two, ["both", "d", "e", "f"])]
    threads = [threading.Thread(target=send, args=part) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    late = place.server()
    one.do("SHOW QUERIES;")
    for server in (one, two):
        server.service.commands.catch_up()
    assert one.catalogue() == two.catalogue() == late.catalogue()
    made = sorted(query_id.rpartition("_")[0] for query_id in late.service.engine.queries)
    assert made == [f"CSAS_{name}" for name in ("A", "B", "BOTH", "C", "D", "E", "F")]
    assert sorted(answers) == sorted([*late.service.engine.queries, "Cannot add stream 'BOTH'"])


def meeting(servers: list[Server]) -> None:
    """Let the first command of each server wait until all have planned theirs: none has read the others' by then."""
    planned = threading.Barrier(len(servers), timeout=WAIT_S)

    def wait_first(commands: Any) -> None:
        submit, later = commands.submit, threading.Event()

        def submitted(command: Command) -> Executed:
            if not later.is_set():
                later.set()
                planned.wait()
            return submit(command)

        commands.submit = submitted

    for server in servers:
        wait_first(server.service.commands)


@pytest.mark.parametrize("query", [False, True], ids=["source", "query"])
def test_of_two_servers_that_plan_one_name_before_they_hear_of_each_other_one_creates_it(
    place: Place, query: bool
) -> None:
    one, two = place.server(), place.server()
    one.do(place.pay())
    two.service.commands.catch_up()
    meeting([one, two])
    both = place.copy("both") if query else place.pay().replace("STREAM pay", "STREAM both")
    texts = {one: both, two: both.replace("SELECT *", "SELECT card, amount + 1 AS more").replace("amount INT", "a INT")}
    answers: dict[Server, str] = {}

    def send(server: Server, text: str) -> None:
        try:
            answers[server] = server.do(text)[0]["commandStatus"]["status"]
        except ServerError as error:
            answers[server] = error.message

    threads = [threading.Thread(target=send, args=part) for part in texts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    refused = [server for server, answer in answers.items() if "already exists" in answer]
    assert len(refused) == 1, f"exactly one creates it, and the other is told so: {list(answers.values())}"
    (creator,) = answers.keys() - set(refused)
    third = place.server()
    for server in (one, two):
        server.service.commands.catch_up()
    assert one.catalogue() == two.catalogue() == third.catalogue()
    columns = [name for name, _ in third.service.engine.catalogue.sources["BOTH"].schema.value]
    other = ["MORE"] if query else ["A"]
    assert columns == (["AMOUNT"] if creator is one else other), "it is what its creator has said"
    assert len(third.service.engine.queries) == query


def test_worker_reads_what_is_wanted_and_removes_only_what_it_has(place: Place) -> None:
    server = place.server()
    server.do(place.pay())
    assert place.service_id in services(place.client) and KIND.is_used(place.client)
    assert is_used(place.client), "a worker that waits for something to do has it"
    reader = QueryReader(place.client.sibling)
    place.stack.callback(reader.close)
    kept, gone = (server.query_id(place.copy(name)) for name in ("kept", "gone"))
    names = server.groups()

    def wanted() -> dict[str, Definition]:
        return {name: flow for name, flow in reader.flows.items() if name in names.values()}

    eventually(lambda: len(wanted()) == 2, WAIT_S, "both queries")
    server.do(f"PAUSE {kept};")
    eventually(lambda: wanted()[names[kept]].wanted is Wanted.PAUSED, WAIT_S, "the pause")
    # A worker has said something of one of them, so that one must be cleared away.
    make(place.client, states.TOPIC)
    flow = wanted()[names[kept]]
    states.write(place.client, FlowState(flow.name, flow.serial, flow.revision, "paused", "desk", "lane", 1), flow.name)
    eventually(lambda: server.said(kept) == "paused", WAIT_S, "what the worker says")
    server.do(f"TERMINATE {kept};", f"TERMINATE {gone};")
    eventually(lambda: {f.wanted for f in wanted().values()} == {Wanted.REMOVED}, WAIT_S, "the end of both")
    eventually(lambda: list(wanted()) == [names[kept]], WAIT_S, "one that is to be cleared away")
    later = QueryReader(place.client.sibling)
    place.stack.callback(later.close)
    eventually(lambda: names[kept] in later.flows, WAIT_S, "another worker to know of it")
    assert names[gone] not in later.flows
    # What is cleared away is gone for all, and so is a service whose topic is deleted.
    reader.forget(wanted()[names[kept]])
    assert not wanted()
    states.write(place.client, None, flow.name)
    eventually(lambda: names[kept] not in later.flows, WAIT_S, "the other worker to forget it")
    server.query_id(place.copy("last"))
    eventually(lambda: any(name in later.flows for name in server.groups().values()), WAIT_S, "the last query")
    forget_service(place.client, place.service_id)
    eventually(lambda: not any(name in later.flows for name in server.groups().values()), WAIT_S, "its end")


def test_query_of_a_worker_that_has_died_is_unresponsive(place: Place) -> None:
    make(place.client, states.TOPIC)
    server = place.server()
    server.do(place.pay())
    query = server.query_id(place.copy("a"))
    name = server.groups()[query]
    states.write(place.client, FlowState(name, 1, 1, "running", place.service_id, "lane", 1), name)
    eventually(lambda: server.said(query) == "running", WAIT_S, "what the worker has said")
    assert server.states() == {query: "UNRESPONSIVE:1"}, "nobody of that name is in the group"
    (shown,) = server.do("SHOW QUERIES;")
    assert "No worker runs the query" in shown["warnings"][0]["message"]
    own = {one.name: one for one in overviews({}, place.client, with_queries=True)}[name]
    assert (own.kind, own.state, own.worker) == ("query", WAITING, None)
    alive = query_overview(FlowState(name, 1, 1, "paused", "desk", "lane", 1), {"desk": None})
    assert (alive.state, alive.wanted, alive.worker) == ("paused", "paused", "desk")
    assert name not in [one.name for one in overviews({}, place.client)]


def test_workers_that_agree_on_a_new_round_live() -> None:
    desk = (b'{"worker":"desk"}', b"")
    assert living([], frozenset({"desk"})) == frozenset()
    assert living([desk, (b'{"worker":"lap"}', b"")], None) == {"desk", "lap"}
    assert living([desk, (b"", b"")], frozenset({"lap"})) == {"lap"}
