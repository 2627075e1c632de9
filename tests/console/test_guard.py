"""Who comes in: hosts, origins, logins; for pages and for their websocket."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from moldau.console.accounts import Account, Sessions, hash_password
from moldau.console.guard import ACCOUNT, Guard, host_of, local
from moldau.console.process import hosts
from moldau.http import Listen

OURS = "http://127.0.0.1:9021"
SOCKET = "ws://127.0.0.1:9021/ws"
HTML = {"accept": "text/html"}


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that says who was let in."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        return
    account = scope.get(ACCOUNT)
    await PlainTextResponse(account.name if account else "anybody")(scope, receive, send)


def browser(sessions: Sessions | None = None, **options: Any) -> TestClient:
    known = hosts(Listen("127.0.0.1", 9021), ())
    return TestClient(Guard(behind, sessions, known), base_url=OURS, **options)


def test_a_name_that_is_not_ours_is_refused() -> None:
    assert browser().get("/").text == "anybody"
    assert browser().get("/", headers={"host": "localhost:9021"}).status_code == 200
    refused = browser().get("/", headers={"host": "evil.example"})
    assert refused.status_code == 421 and "--allow-host" in refused.text
    assert browser().get("/", headers={"host": "evil.example@127.0.0.1"}).status_code == 421


def test_what_acts_must_come_from_a_page_of_ours() -> None:
    assert browser().post("/").status_code == 200, "a program says nothing"
    assert browser().post("/", headers={"origin": OURS}).status_code == 200
    for stranger in ("http://evil.example", "http://127.0.0.1:9022", "null", ""):
        assert browser().post("/", headers={"origin": stranger}).status_code == 403
    assert browser().post("/", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_a_websocket_of_a_strangers_page_is_closed() -> None:
    with browser().websocket_connect(SOCKET, headers={"origin": OURS}):
        pass
    for headers in ({"origin": "http://evil.example"}, {"origin": OURS, "host": "evil.example"}):
        with pytest.raises(WebSocketDisconnect), browser().websocket_connect(SOCKET, headers=headers):
            pass


@pytest.fixture(scope="module")
def sessions() -> Sessions:
    return Sessions({"ada": Account("ada", hash_password("correct horse"))})


def test_without_a_login_nothing_is_there(sessions: Sessions) -> None:
    client = browser(sessions, follow_redirects=False)
    assert client.get("/topics", headers=HTML).headers["location"] == "/login?next=/topics"
    assert client.get("/_nicegui/script.js").status_code == 401
    assert client.post("/").status_code == 401
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(SOCKET, headers={"origin": OURS}):
        pass


def test_a_login_opens_pages_and_websocket_until_it_ends(sessions: Sessions) -> None:
    client = browser(sessions, follow_redirects=False)
    wrong = client.post("/login", data={"name": "<b>ada", "password": "x", "next": "/"})
    assert wrong.status_code == 401 and "&lt;b&gt;ada" in wrong.text and "<b>ada" not in wrong.text
    right = {"name": "ada", "password": "correct horse", "next": "/topics"}
    assert client.post("/login", data=right, headers={"origin": "http://evil.example"}).status_code == 403
    entered = client.post("/login", data=right)
    assert entered.status_code == 303 and entered.headers["location"] == "/topics"
    assert "HttpOnly" in entered.headers["set-cookie"] and "SameSite=lax" in entered.headers["set-cookie"]
    assert client.get("/").text == "ada"
    with client.websocket_connect(SOCKET, headers={"origin": OURS}):
        pass
    assert client.post("/logout").headers["location"] == "/login"
    assert client.get("/").status_code == 401


def test_a_form_that_is_too_large_is_refused(sessions: Sessions) -> None:
    assert browser(sessions).post("/login", content=b"x" * 100_000).status_code == 413


@pytest.mark.parametrize("onward", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", ""])
def test_a_login_never_leads_elsewhere(onward: str) -> None:
    assert local(onward) == "/"


def test_every_answer_says_what_a_browser_may_do_with_it() -> None:
    headers = browser().get("/").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_names_are_those_of_loopback_and_what_was_allowed() -> None:
    assert hosts(Listen("127.0.0.1", 1), ("Kafka.example",)) == {"127.0.0.1", "localhost", "::1", "kafka.example"}
    assert hosts(Listen("0.0.0.0", 1), ()) is None
    assert hosts(Listen("0.0.0.0", 1), ("a",)) == {"0.0.0.0", "127.0.0.1", "localhost", "::1", "a"}
    assert host_of("[::1]:9021") == "::1" and host_of("LOCALHOST") == "localhost" and host_of("") == ""
