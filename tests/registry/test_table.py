"""Every endpoint and every error code, once each over HTTP. A row that is missing here fails too."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from moldau import __version__
from moldau.client import Client, Member
from moldau.registry.app import ENDPOINTS
from moldau.registry.errors import MESSAGES
from moldau.testing import Broker, broker, eventually
from moldau.topicstore.election import Identity, assign
from tests.registry.running import BROKER, Running, body, record, running, unique


class World(NamedTuple):
    """A subject with one version, whose schema no other has, and a context of that name."""

    registry: Running
    subject: str
    schema: dict[str, Any]
    id: int
    guid: str

    @property
    def text(self) -> str:
        return json.dumps(self.schema, separators=(",", ":"))

    @property
    def version(self) -> dict[str, Any]:
        return {"subject": self.subject, "version": 1, "id": self.id, "guid": self.guid, "schema": self.text}

    def path(self, text: str) -> str:
        names = {"subject": self.subject, "version": "1", "id": self.id, "guid": self.guid, "context": self.subject}
        return text.format(**names)

    def ask(self, method: str, path: str, given: Any = None) -> Any:
        return self.registry.ask(method, self.path(path), given)

    def next(self) -> dict[str, Any]:
        """A schema that may follow."""
        return body({**self.schema, "fields": [*self.schema["fields"], {"name": "y", "type": "int", "default": 0}]})

    def tombstone(self) -> None:
        """The context has had a subject, and is empty."""
        self.registry.register(f":.{self.subject}:x", self.schema)
        for query in ("", "?permanent=true"):
            assert self.ask("DELETE", f"/subjects/:.{{subject}}:x{query}") == [1]


@pytest.fixture
def world(registry: Running, subject: str) -> World:
    schema = record("x:int", name=f"N{subject.replace('-', '_')}")
    made = registry.post(f"/subjects/{subject}/versions", body(schema))
    return World(registry, subject, schema, made["id"], made["guid"])


class Row(NamedTuple):
    """An endpoint and what it answers; of an object, what it answers among other things."""

    method: str
    path: str
    answer: Callable[[World], Any]
    query: str = ""
    given: Callable[[World], Any] = lambda world: None
    before: Callable[[World], Any] = lambda world: None


def same(world: World) -> Any:
    return body(world.schema)


def level(world: World) -> Any:
    return world.ask("PUT", "/config/{subject}", {"compatibility": "FULL"})


def mode(world: World) -> Any:
    return world.ask("PUT", "/mode/{subject}", {"mode": "READWRITE"})


def tagged(world: World) -> Any:
    entity = {"entityPath": world.schema["name"], "entityType": "sr_record"}
    return {"tagsToAdd": [{"schemaEntity": entity, "tags": ["PII"]}]}


ONE, ITS = "/subjects/{subject}/versions/{version}", "/schemas/ids/{id}"
CHECK = "/compatibility/subjects/{subject}/versions"
ROWS = (
    Row("GET", "/", lambda world: {}),
    Row("POST", "/", lambda world: {}, given=lambda world: {}),
    Row("GET", "/subjects", lambda world: [world.subject], query="?subjectPrefix={subject}"),
    Row("POST", "/subjects/{subject}", lambda world: world.version, given=same),
    Row("DELETE", "/subjects/{subject}", lambda world: [1]),
    Row("GET", "/subjects/{subject}/versions", lambda world: [1]),
    Row("POST", "/subjects/{subject}/versions", lambda world: {"version": 2}, given=World.next),
    Row("GET", ONE, lambda world: world.version),
    Row("DELETE", ONE, lambda world: 1),
    Row("GET", f"{ONE}/schema", lambda world: world.schema),
    Row("GET", f"{ONE}/referencedby", lambda world: []),
    Row("POST", f"{ONE}/tags", lambda world: {"version": 2}, given=tagged),
    Row("GET", "/subjects/{subject}/metadata", lambda world: (404, 40403), query="?key=a&value=b"),
    Row("GET", "/schemas", lambda world: [1], query="?subjectPrefix={subject}"),
    Row("GET", "/schemas/types", lambda world: ["JSON", "PROTOBUF", "AVRO"]),
    Row("GET", ITS, lambda world: {"schema": world.text, "guid": world.guid}),
    Row("GET", f"{ITS}/schema", lambda world: world.schema),
    Row("GET", f"{ITS}/subjects", lambda world: [world.subject]),
    Row("GET", f"{ITS}/versions", lambda world: [{"subject": world.subject, "version": 1}]),
    Row("GET", "/schemas/guids/{guid}", lambda world: {"schema": world.text}),
    Row("GET", "/schemas/guids/{guid}/ids", lambda world: [{"context": ".", "id": world.id}]),
    Row("POST", CHECK, lambda world: {"is_compatible": True}, given=World.next),
    Row("POST", f"{CHECK}/{{version}}", lambda world: {"is_compatible": True}, given=World.next),
    Row("GET", "/config", lambda world: {"compatibilityLevel": "BACKWARD"}),
    Row("PUT", "/config", lambda world: {"compatibility": "BACKWARD"}, given=lambda _: {"compatibility": "BACKWARD"}),
    Row("DELETE", "/config", lambda world: {"compatibilityLevel": "BACKWARD"}),
    Row("GET", "/config/{subject}", lambda world: {"compatibilityLevel": "FULL"}, before=level),
    Row("PUT", "/config/{subject}", lambda world: {"compatibility": "NONE"}, given=lambda _: {"compatibility": "none"}),
    Row("DELETE", "/config/{subject}", lambda world: {"compatibilityLevel": "FULL"}, before=level),
    Row("GET", "/mode", lambda world: {"mode": "READWRITE"}),
    Row("PUT", "/mode", lambda world: {"mode": "READWRITE"}, given=lambda _: {"mode": "READWRITE"}),
    Row("DELETE", "/mode", lambda world: {"mode": "READWRITE"}),
    Row("GET", "/mode/{subject}", lambda world: {"mode": "READWRITE"}, before=mode),
    Row("PUT", "/mode/{subject}", lambda world: {"mode": "READONLY"}, given=lambda _: {"mode": "READONLY"}),
    Row("DELETE", "/mode/{subject}", lambda world: {"mode": "READWRITE"}, before=mode),
    Row(
        "GET",
        "/contexts",
        lambda world: [f".{world.subject}"],
        query="?contextPrefix=.{subject}",
        before=World.tombstone,
    ),
    Row("DELETE", "/contexts/{context}", lambda world: None, before=World.tombstone),
    Row("GET", "/master_available", lambda world: {"master_available": True}),
    Row("GET", "/v1/metadata/id", lambda world: {"scope": world.registry.get("/v1/metadata/id")["scope"]}),
    Row("GET", "/v1/metadata/version", lambda world: {"version": __version__}),
    Row("GET", "/v1/metadata/deployment", lambda world: {"attributes": []}),
)


def test_every_endpoint_has_a_row() -> None:
    assert sorted((row.method, row.path) for row in ROWS) == sorted((row.method, row.path) for row in ENDPOINTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_an_endpoint_answers(world: World, row: Row) -> None:
    row.before(world)
    expected = row.answer(world)
    found = world.ask(row.method, row.path + row.query, row.given(world))
    if isinstance(expected, dict) and expected:
        found = {name: found[name] for name in expected}
    if row.path == "/schemas":
        found = [one["version"] for one in found]
    assert found == expected


def deleted_twice(path: str) -> Callable[[World], Any]:
    return lambda world: (world.ask("DELETE", path), world.ask("DELETE", path))[1]


def referenced(world: World) -> Any:
    name = world.schema["name"]
    reference = {"name": name, "subject": world.subject, "version": 1}
    world.registry.register(unique(), record(f"p:{name}", name="Outer"), references=[reference])
    return world.ask("DELETE", "/subjects/{subject}")


def context_in_use(world: World) -> Any:
    world.registry.register(f":.{world.subject}:x", world.schema)
    return world.ask("DELETE", "/contexts/{context}")


def register(**changes: Any) -> Callable[[World], Any]:
    return lambda world: world.ask("POST", "/subjects/{subject}/versions", {**same(world), **changes})


LARGE = json.dumps(record("x:int") | {"doc": "ä" * 600_000}, ensure_ascii=False)
REFUSALS: dict[int, Callable[[World], Any]] = {
    40401: lambda world: world.ask("GET", "/subjects/nobody/versions"),
    40402: lambda world: world.ask("GET", "/subjects/{subject}/versions/9"),
    40403: lambda world: world.ask("GET", "/schemas/ids/999999"),
    40404: deleted_twice("/subjects/{subject}"),
    40405: lambda world: world.ask("DELETE", "/subjects/{subject}?permanent=true"),
    40406: deleted_twice("/subjects/{subject}/versions/1"),
    40407: lambda world: world.ask("DELETE", "/subjects/{subject}/versions/1?permanent=true"),
    40408: lambda world: world.ask("GET", "/config/{subject}"),
    40409: lambda world: world.ask("GET", "/mode/{subject}"),
    40901: register(schema='"string"'),
    42201: register(schema="{"),
    42202: lambda world: world.ask("GET", "/subjects/{subject}/versions/0"),
    42203: lambda world: world.ask("PUT", "/config/{subject}", {"compatibility": "SIDEWAYS"}),
    42204: lambda world: world.ask("PUT", "/mode/{subject}", {"mode": "UPSIDEDOWN"}),
    42205: register(id=77),
    42206: referenced,
    42208: lambda world: world.ask("POST", "/subjects/%00/versions", same(world)),
    42209: lambda world: world.ask("POST", f"/subjects/{unique()}/versions", {"schema": LARGE}),
    42210: register(ruleSet={"domainRules": [{"name": "no type", "mode": "WRITE"}]}),
    42211: context_in_use,
}


@contextmanager
def standing_still(kafka: Broker) -> Any:
    """A broker that holds its connections and answers nothing."""
    assert kafka.pid
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(kafka.pid, signal.SIGCONT)


def without_the_store(method: str, path: str, given: Any) -> Callable[[Broker], Any]:
    """What is answered while the broker stands still; when it goes on, so does the registry."""

    def refused(_: Broker) -> Any:
        with broker(BROKER) as own, running(own.bootstrap_servers, "kafkastore.timeout.ms=2000") as registry:
            registry.register("a", record("x:int"))
            with standing_still(own):
                found = registry.ask(method, path, given)
                assert registry.get("/subjects") == ["a"]
            eventually(lambda: isinstance(registry.post("/subjects/b/versions", body('"int"')), dict))
        return found

    return refused


def without_a_leader(kafka: Broker) -> Any:
    name = unique("_none")
    given = (f"schema.registry.group.id={name}", "leader.eligibility=false", "kafkastore.timeout.ms=300")
    with running(kafka.bootstrap_servers, *given) as registry:
        return registry.post("/subjects/a/versions", body('"string"'))


def with_a_leader_that_is_not_there(kafka: Broker) -> Any:
    name = unique("_gone")
    with Client({"bootstrap.servers": kafka.bootstrap_servers, "session.timeout.ms": 6000}) as client:
        nobody = json.dumps(Identity("127.0.0.1", 1, leads=True).as_json()).encode()
        gone = Member(client, name, "sr", [("v0", nobody)], assign).start()
        with gone, running(kafka.bootstrap_servers, f"schema.registry.group.id={name}") as registry:
            return registry.post("/subjects/a/versions", body('"string"'))


OUTAGES: dict[int, Callable[[Broker], Any]] = {
    50001: without_the_store("PUT", "/config/a", {"compatibility": "NONE"}),
    50002: without_the_store("POST", "/subjects/a/versions", body(record("x:int", "y:int", y=0))),
    50003: with_a_leader_that_is_not_there,
    50004: without_a_leader,
}
# Codes of Confluent's registry that this one has no use for, and why.
LEFT_OUT = {
    **dict.fromkeys((40410, 40902, 40903, 40904, 40905, 40907, 40908, 42212), "associations"),
    42207: "Confluent's registry raises it no more: a content may have another id in IMPORT mode",
}


# Codes that other tests have.
ELSEWHERE = {40301: "tests/test_secured_platform.py"}


def test_every_error_code_has_a_row() -> None:
    assert sorted({**REFUSALS, **OUTAGES, **ELSEWHERE}) == sorted(MESSAGES)
    assert not set(LEFT_OUT) & set(MESSAGES)


@pytest.mark.parametrize("code", REFUSALS)
def test_a_request_is_refused_with_its_code(world: World, code: int) -> None:
    assert REFUSALS[code](world) == (code // 100, code)


@pytest.mark.parametrize("code", OUTAGES)
def test_an_outage_is_told_with_its_code(registry_broker: Broker, code: int) -> None:
    assert OUTAGES[code](registry_broker) == (500, code)


def test_a_content_may_have_another_id_where_ids_are_imported(world: World) -> None:
    other = unique()
    world.registry.put(f"/mode/{other}", {"mode": "IMPORT"})
    given = {**same(world), "id": world.id + 100_000, "version": 1}
    assert world.ask("POST", f"/subjects/{other}/versions", given)["id"] == world.id + 100_000
