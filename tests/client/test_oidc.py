"""Tokens from an OAuth server of a few lines, on loopback."""

from __future__ import annotations

import json
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain, count, repeat
from typing import Any

import pytest

from moldau.client import ClientError
from moldau.client.config import Config
from moldau.client.oidc import fetch_token
from moldau.client.sasl import exchange
from moldau.settings import SettingError

CLIENTS = count(1)
PATIENCE_S = 10.0


@dataclass
class Tokens:
    """A server, what it was asked, and what it answers."""

    port: int = 0
    status: int = 200
    answer: Any = field(default_factory=lambda: {"access_token": "good.token", "expires_in": 300})
    asked: list[tuple[str, str]] = field(default_factory=list)

    def config(self, **more: str) -> Config:
        given = {
            "bootstrap.servers": "a",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": f"client-{next(CLIENTS)}",
            "sasl.oauthbearer.client.secret": "hidden",
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{self.port}/token",
            "sasl.oauthbearer.scope": "kafka",
        }
        return Config(given | {name.replace("_", "."): value for name, value in more.items()})


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    made = Tokens()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            user = b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            made.asked.append((user, body))
            data = made.answer if isinstance(made.answer, bytes) else json.dumps(made.answer).encode()
            self.send_response(made.status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def test_a_token_is_asked_for_once_while_it_is_good(tokens: Tokens) -> None:
    config = tokens.config(sasl_oauthbearer_extensions="a=1, b=2")
    for _ in range(3):
        assert next(exchange(config)) == b"n,,\x01auth=Bearer good.token\x01a=1\x01b=2\x01\x01"
    ((user, body),) = tokens.asked
    assert user.endswith(":hidden") and body == "grant_type=client_credentials&scope=kafka"


def test_a_token_without_a_life_is_used_once(tokens: Tokens) -> None:
    tokens.answer = {"access_token": "short"}
    config = tokens.config()
    assert [fetch_token(config) for _ in range(2)] == ["short", "short"] and len(tokens.asked) == 2


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (401, {}),
        (302, {}),
        (500, {}),
        (200, {}),
        (200, []),
        (200, b"<html>"),
        (200, {"access_token": 7}),
        (200, b" " * 70_000),
    ],
)
def test_a_server_that_gives_no_token_is_told_without_the_secret(tokens: Tokens, status: int, answer: Any) -> None:
    tokens.status, tokens.answer = status, answer
    with pytest.raises(ClientError, match="No token from") as caught:
        fetch_token(tokens.config())
    assert "hidden" not in str(caught.value) and caught.value.retriable is (status == 500)


def test_a_server_that_says_a_byte_now_and_then_is_given_up(tokens: Tokens) -> None:
    begin = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            sock, _ = listening.accept()
            said = chain((b"HTTP/1.1 200 OK\r\nX: ",), repeat(b"x"))
            with sock, suppress(OSError):
                while time.monotonic() < begin + PATIENCE_S:
                    sock.sendall(next(said))
                    time.sleep(0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/token"
        more = {"sasl.oauthbearer.token.endpoint.url": url, "socket.connection.setup.timeout.ms": "1000"}
        with pytest.raises(ClientError, match="it takes more than 1 s"):
            fetch_token(tokens.config(**more))
        assert time.monotonic() - begin < PATIENCE_S
        thread.join()


def test_a_secret_is_not_sent_as_it_is_to_others(tokens: Tokens) -> None:
    with pytest.raises(SettingError, match="https"):
        tokens.config(sasl_oauthbearer_token_endpoint_url="http://example.org/token")
    with pytest.raises(SettingError, match="needs it"):
        tokens.config(sasl_oauthbearer_client_secret="")
