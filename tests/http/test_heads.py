"""Clients that send no request, or no end of one: each is closed, in time and at a bounded cost."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from moldau.http.heads import MOST_HEAD
from tests.http.test_service import serving

HEAD = b"GET /things/x HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a path": (b"GET /", b"x" * 65536),
    "a header": (HEAD + b"Authorization: Bearer ", b"x" * 65536),
    "headers": (HEAD, b"A: b\r\n" * 10_000),
    "the size of a chunk": (CHUNKED + b"1;", b"x" * 65536),
    "trailers": (CHUNKED + b"1\r\n1\r\n0\r\n", b"A: b\r\n" * 10_000),
}
IDLE_S, PATIENCE_S = 1, 20.0
MOST_KB, MOST_SENT = 32 * 1024, 64 << 20


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(f"idle.timeout.ms={1000 * IDLE_S}") as started:
        yield started


def connect(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def last_words(sock: socket.socket) -> bytes:
    said = b""
    with suppress(ConnectionError):
        while part := sock.recv(65536):
            said += part
    return said


@pytest.mark.parametrize("name", ENDLESS)
def test_what_has_no_end_is_cut_off(url: str, name: str) -> None:
    head, piece = ENDLESS[name]
    before, sent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    with connect(url) as sock:
        with suppress(ConnectionError):
            sock.sendall(head)
            while sent < MOST_SENT:
                sock.sendall(piece)
                sent += len(piece)
        last_words(sock)
    assert sent < MOST_SENT
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KB


def test_a_head_that_is_too_large_is_told(url: str) -> None:
    with connect(url) as sock:
        sock.sendall(HEAD + b"A: " + b"x" * (MOST_HEAD + 1))
        assert last_words(sock).startswith(b"HTTP/1.1 431 ")
    headers = {"authorization": f"Bearer {'x' * (1 << 20)}"}  # a token of a megabyte
    with suppress(httpx.TransportError):
        assert httpx.get(f"{url}/things/x", headers=headers).status_code == 431
    assert httpx.get(f"{url}/things/x", headers={"authorization": "x" * (MOST_HEAD // 2)}).status_code == 200


@pytest.mark.parametrize("said", [b"", b"G", HEAD, b"GET /things/x HTTP/1.1\r\nHost: x\r\n\r\n" + HEAD])
@pytest.mark.parametrize("by_bytes", [False, True], ids=["silent", "a byte now and then"])
def test_who_does_not_end_a_head_is_closed(url: str, said: bytes, by_bytes: bool) -> None:
    begin = time.monotonic()
    with connect(url) as sock, suppress(ConnectionError):
        sock.sendall(said)
        while by_bytes and time.monotonic() < begin + PATIENCE_S:
            sock.sendall(b"x")
            time.sleep(0.05)
        last_words(sock)
    assert time.monotonic() - begin < PATIENCE_S


def test_a_large_body_and_many_requests_are_served(url: str) -> None:
    with httpx.Client(base_url=url) as client:
        text = "x" * (4 * MOST_HEAD)
        for _ in range(3):
            assert client.post("/echo", json=text).json() == text
            assert client.post("/echo", content=iter([b'"', *[b"x" * 1000] * 500, b'"'])).json() == "x" * 500_000
