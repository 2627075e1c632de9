"""HTTP/2 beside HTTP/1.1 on one port: by prior knowledge, over TLS, with limits and passwords; websockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvloop
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket

from moldau.http import Route, Routes, Server, Service, json_response, parse_listen
from moldau.http.serve import bind
from moldau.http.service import read_body
from moldau.settings import HTTP, ServiceSettings
from tests.certificates import Certificates

JSON = "application/json"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


async def size(request: Request) -> Response:
    return json_response([request.scope["http_version"], len(await read_body(request))], JSON)


async def echo(request: Request) -> Response:
    """Answer each part of the body when it comes, while more of it comes."""
    return StreamingResponse(request.stream(), media_type="text/plain")


async def talk(opened: WebSocket) -> None:
    await opened.accept()
    await opened.send_text(f"hello {await opened.receive_text()}")
    await opened.close()


@contextlib.contextmanager
def serving(*given: str) -> Iterator[str]:
    settings = ServiceSettings([HTTP], given)
    bound, listen = bind(parse_listen("127.0.0.1:0", settings))
    bound.listen()
    rows = (Route("POST", "/size", size), Route("POST", "/echo", echo))
    service = Service(Routes(rows), settings, JSON, sockets={"/talk": talk})
    server = Server(service, listen, settings, http2=True)
    thread = threading.Thread(target=lambda: uvloop.run(server.serve(sockets=[bound])))
    thread.start()
    try:
        yield listen.url
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as started:
        yield started


@pytest.fixture
def two() -> Iterator[httpx.Client]:
    with httpx.Client(http1=False, http2=True, timeout=60, trust_env=False) as client:
        yield client


def test_both_versions_are_served_on_one_port(url: str, two: httpx.Client) -> None:
    for content in (b"", b"x", b"y" * 200_000):  # the last one needs more than a window of HTTP/2
        answer = two.post(f"{url}/size", content=content)
        assert (answer.http_version, answer.json()) == ("HTTP/2", ["2", len(content)])
        answer = httpx.post(f"{url}/size", content=content, timeout=60, trust_env=False)
        assert (answer.http_version, answer.json()) == ("HTTP/1.1", ["1.1", len(content)])


def test_limits_hold_for_both(two: httpx.Client) -> None:
    with serving("size.limit.filter.max.request.body.size=1000") as url:
        assert two.post(f"{url}/size", content=b"x" * 1_001).status_code == 413
        assert two.get(f"{url}/nothing").status_code == 404


def test_requests_share_a_connection(url: str) -> None:
    async def many() -> list[int]:
        async with httpx.AsyncClient(http1=False, http2=True, timeout=60, trust_env=False) as client:
            answers = await asyncio.gather(*(client.post(f"{url}/size", content=b"x" * n) for n in range(40)))
        return [answer.json()[1] for answer in answers]

    assert asyncio.run(many()) == list(range(40))


@pytest.mark.parametrize("cut", [1, 3, 23])
def test_preface_may_come_in_pieces(url: str, cut: int) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        raw.sendall(PREFACE[:cut])
        raw.sendall(PREFACE[cut:] + b"\0\0\0\4\0\0\0\0\0")  # an empty SETTINGS frame
        frame = raw.recv(9)
        assert frame[3] == 4, "the server's SETTINGS"


def test_what_begins_like_the_preface_is_read_as_http1(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        raw.sendall(b"P")
        raw.sendall(b"OST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nconnection: close\r\n\r\nab")
        received = b""
        while part := raw.recv(1000):
            received += part
        assert received.startswith(b"HTTP/1.1 200") and received.endswith(b'["1.1",2]')


def test_password_is_asked_for(tmp_path: Path, two: httpx.Client) -> None:
    (tmp_path / "users").write_text("ann: secret,admin\n", "utf-8")
    file = f"authentication.users.file={tmp_path / 'users'}"
    with serving("authentication.method=BASIC", "authentication.roles=admin", file) as url:
        assert two.post(f"{url}/size", content=b"x" * 10_000).status_code == 401
        assert two.post(f"{url}/size", auth=("ann", "secret")).json() == ["2", 0]
        with pytest.raises(Exception, match="403"):
            said(url, "bob")


def said(url: str, name: str, context: ssl.SSLContext | None = None) -> str:
    from websockets.sync.client import connect

    with connect(url.replace("http", "ws", 1) + "/talk", open_timeout=60, proxy=None, ssl=context) as opened:
        opened.send(name)
        return str(opened.recv(60))


def test_websocket_is_served(url: str) -> None:
    assert said(url, "ann") == "hello ann"
    with pytest.raises(Exception, match="403"):
        said(f"{url}/other", "ann")


def test_http2_is_negotiated_over_tls(tmp_path: Path) -> None:
    certificates = Certificates.within(tmp_path)
    (tmp_path / "users").write_text("c: !,admin\n", "utf-8")
    given = ("authentication.method=CERTIFICATE", f"authentication.users.file={tmp_path / 'users'}")
    rule = r"ssl.principal.mapping.rules=RULE:^(?:.*,)?OU=Testing cert.*$/c/"
    with serving(*certificates.settings, *given, rule) as url:
        context = certificates.trusting(certificates.client)
        with httpx.Client(http2=True, verify=context, timeout=60, trust_env=False) as client:
            answer = client.post(f"{url}/size", content=b"abc")
            assert (answer.http_version, answer.json()) == ("HTTP/2", ["2", 3])
        with httpx.Client(verify=context, timeout=60, trust_env=False) as client:
            assert client.post(f"{url}/size", content=b"abc").json() == ["1.1", 3]
        assert said(url, "ann", context) == "hello ann"


def test_server_stops_although_a_connection_is_open() -> None:
    client = httpx.Client(http1=False, http2=True, timeout=60, trust_env=False)
    with serving() as url:
        assert client.post(f"{url}/size").status_code == 200
    client.close()


@pytest.mark.parametrize("said", [b"", PREFACE[:5], b"POST"])
def test_who_does_not_say_which_version_it_is_is_closed(said: bytes) -> None:
    with serving("idle.timeout.ms=1000") as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), 20) as sock:
            sock.sendall(said)
            assert sock.recv(1) == b""
