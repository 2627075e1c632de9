"""Endpoints as rows: where each kind runs, what is negotiated, who answers for the leader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from moldau.http import (
    LEADER,
    READ,
    Answer,
    Call,
    Documents,
    Endpoint,
    Host,
    HttpError,
    OpenApi,
    Service,
    Types,
    read_body,
    read_json,
    routes,
)
from moldau.http.forwarding import FORWARDED, POSITION, Forwarder
from moldau.http.media import ANY
from moldau.settings import HTTP, REGISTRY, ServiceSettings

DOCUMENTS = Documents({"Pair": "name:string count?:int32|null"}, {"Nothing": "", "Error": "message:string"})


def where(call: Call) -> str:
    return threading.current_thread().name


async def awaited(call: Call) -> str:
    return "awaited"


def pair(call: Call) -> Answer:
    return Answer(201, call.body, {"x-type": call.media_type})


ROWS = (
    Endpoint("GET", "/read", where, kind=READ, heavy=frozenset({"much"})),
    Endpoint("GET", "/thread", where),
    Endpoint("GET", "/awaited", awaited),
    Endpoint("GET", "/empty", lambda call: None, status=204),
    Endpoint("PUT", "/pair", pair, "Keep a pair.", takes="Pair", accepts=Types(("a/one", "a/two"), ("a/any",))),
    Endpoint("GET", "/anything", where, produces=ANY),
    Endpoint("POST", "/write", where, kind=LEADER, status=202),
)


async def open_call(endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
    body = DOCUMENTS.check(endpoint.takes, read_json(await read_body(request))) if endpoint.takes else None
    return Call(request, media_type, accepted, body)


async def by_leader(endpoint: Endpoint, call: Call) -> str:
    return "leader"


def ask(method: str, path: str, leader: Callable[[Endpoint, Call], Awaitable[Any]] = by_leader, **more: Any) -> Any:
    async def run() -> httpx.Response:
        host = Host(open_call, asyncio.to_thread, leader)
        service = Service(routes(ROWS, host), ServiceSettings([HTTP]), "application/json")
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path, **more)

    return asyncio.run(run())


def test_a_read_runs_on_the_loop_and_what_may_wait_in_a_thread() -> None:
    here = threading.current_thread().name
    assert ask("GET", "/read").json() == here
    assert ask("GET", "/read?much=1").json() != here
    assert ask("GET", "/thread").json() != here
    assert ask("GET", "/awaited").json() == "awaited"
    assert ask("POST", "/write").json() == "leader"


def test_an_answer_has_the_status_of_its_row_or_its_own() -> None:
    empty = ask("GET", "/empty")
    assert (empty.status_code, empty.content) == (204, b"")
    assert ask("PUT", "/pair", json={"name": "x"}, headers={"content-type": "a/any"}).status_code == 201


@pytest.mark.parametrize(
    ("sent", "accept", "status", "taken"),
    [
        ("a/two; charset=utf-8", "*/*", 201, "a/two"),
        ("a/any", "application/json;q=0.1", 201, "a/one"),
        ("text/plain", "*/*", 415, None),
        ("a/one", "text/html", 406, None),
        ("a/one", "text/html;q=1, application/*;q=0.2", 201, "a/one"),
        ("a/one", "application/json;q=0", 406, None),
    ],
)
def test_media_types_are_negotiated(sent: str, accept: str, status: int, taken: str | None) -> None:
    answer = ask("PUT", "/pair", content=b'{"name": "x"}', headers={"content-type": sent, "accept": accept})
    assert (answer.status_code, answer.headers.get("x-type")) == (status, taken)


def test_a_row_may_take_and_give_its_type_whatever_a_client_says() -> None:
    answer = ask("GET", "/anything", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert ANY.content("text/plain") == "application/json"


@pytest.mark.parametrize(
    ("body", "status"), [({"name": "x", "count": 1}, 201), ({}, 422), ({"name": "x", "y": 1}, 422), ({"name": 1}, 400)]
)
def test_a_body_is_checked_against_its_row(body: Any, status: int) -> None:
    assert ask("PUT", "/pair", json=body, headers={"content-type": "a/one"}).status_code == status


def test_the_document_is_made_from_the_rows() -> None:
    described = OpenApi("Test", DOCUMENTS).document(ROWS)
    operation = described["paths"]["/pair"]["put"]
    assert operation["summary"] == "Keep a pair."
    assert operation["requestBody"]["content"] == {
        name: {"schema": {"$ref": "#/components/schemas/Pair"}} for name in ("a/one", "a/two")
    }
    assert described["components"]["schemas"]["Pair"]["required"] == ["name"]


@dataclass
class Leader:
    url: str = "http://127.0.0.1:1"


@dataclass
class World:
    """An election and a replica that say what a test wants."""

    leads: bool = False
    leader: Leader | None = None
    position: int = 7
    waited: list[float] = field(default_factory=list)

    def wait(self, timeout_s: float) -> Leader | None:
        self.waited.append(timeout_s)
        return self.leader

    def wait_for(self, position: int) -> bool:
        self.waited.append(position)
        return True

    def post(self, **headers: str) -> Any:
        forwarder = Forwarder(
            ServiceSettings([HTTP, REGISTRY]),
            self,
            self,
            asyncio.to_thread,
            unreachable=lambda text: HttpError(50003, text),
            no_leader=lambda: HttpError(50004, "nobody"),
            timeout_s=0.5,
        )

        async def here() -> str:
            return "done"

        return ask(
            "POST", "/write", lambda row, call: forwarder.answer(call.request, row.status, here), headers=headers
        )


def test_a_leader_answers_and_tells_who_forwarded_how_far_to_read() -> None:
    answer = World(leads=True).post()
    assert (answer.status_code, answer.json(), POSITION in answer.headers) == (202, "done", False)
    forwarded = World(leads=True).post(**{FORWARDED: "true"})
    assert (forwarded.status_code, forwarded.json(), forwarded.headers[POSITION]) == (202, "done", "7")


def test_without_a_leader_the_election_is_waited_for_and_then_refused() -> None:
    world = World()
    assert world.post().json()["error_code"] == 50004
    assert world.waited == [0.5]


def test_what_was_forwarded_is_not_forwarded_again() -> None:
    assert World(leader=Leader()).post(**{FORWARDED: "true"}).json()["error_code"] == 50004


def test_a_leader_that_does_not_answer_is_named() -> None:
    refused = World(leader=Leader()).post().json()
    assert refused["error_code"] == 50003 and "http://127.0.0.1:1" in refused["message"]
