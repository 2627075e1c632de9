"""The guard in front of every page and of its websocket: it checks host, origin and user of a request.

A foreign page in the same browser can send requests here and open a websocket, but it cannot choose their Origin. So
whatever may change something must come from one of our pages. A foreign name that leads to this machine (DNS
rebinding) is not one of ours, and is refused.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Collection
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moldau.client import ClientError
from moldau.console.accounts import SESSION_S, Account, Sessions
from moldau.http import audit

COOKIE = "moldau_console"
ACCOUNT, TOKEN = "moldau.account", "moldau.token"  # in the scope, for the pages
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE = ("GET", "HEAD", "OPTIONS")
LARGEST_FORM = 16 << 10
LOGIN = Template((Path(__file__).parent / "login.html").read_text())
OPEN = ("/login", "/favicon.ico")
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws: wss:; "
        b"frame-ancestors 'none'; form-action 'self'; base-uri 'self'; object-src 'none'",
    ),
)


def host_of(text: str) -> str:
    """Return `localhost` for `localhost:9021`."""
    return (urlsplit(f"//{text}").hostname or "").lower() if "@" not in text else ""


def is_ours(headers: Headers, hosts: Collection[str] | None) -> bool:
    """Say whether the Host is one of these; None allows any."""
    return hosts is None or host_of(headers.get("host", "")) in hosts


def is_same_origin(headers: Headers) -> bool:
    """Say whether the request comes from a page of this server. Programs send no Origin and are trusted."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


class Guard:
    """An application for users who have logged in. Without `sessions` it is open to everybody.

    `prepare` is called at a login, with the user; ClientError keeps the user out.
    """

    def __init__(
        self,
        app: ASGIApp,
        sessions: Sessions | None,
        hosts: Collection[str] | None,
        prepare: Callable[[Account | None], Any] = lambda _: None,
    ) -> None:
        self.app, self._sessions, self._hosts, self._prepare = app, sessions, hosts, prepare

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            if refusal or not self._admit(scope):
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.app(scope, receive, send)
            return
        answer = refusal or await self._answer(Request(scope, receive), scope)
        await (answer or self.app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not is_ours(headers, self._hosts):
            words = "This console does not answer to that host name. `moldau console --allow-host NAME` allows it.\n"
            return PlainTextResponse(words, 421)
        acts = scope["type"] == "websocket" or scope["method"] not in SAFE
        if acts and not is_same_origin(headers):
            return PlainTextResponse("This request came from another site and is refused.\n", 403)
        return None

    def _admit(self, scope: Scope) -> bool:
        if self._sessions is None:
            return True
        token = cookie(Headers(scope=scope), COOKIE)
        scope[ACCOUNT], scope[TOKEN] = self._sessions.find(token), token
        return scope[ACCOUNT] is not None

    async def _answer(self, request: Request, scope: Scope) -> Response | None:
        """Answer what the guard itself answers; None leaves it to the application."""
        if self._sessions is None:
            return None
        path = scope["path"]
        if path == "/login":
            return await self._login(request, self._sessions)
        admitted = self._admit(scope)
        if path == "/logout" and request.method == "POST":
            self._sessions.leave(scope[TOKEN])
            answer = RedirectResponse("/login", 303)
            answer.delete_cookie(COOKIE)
            return answer
        if admitted or path in OPEN:
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(f"/login?next={quote(_whole(scope))}", 303)
        return PlainTextResponse("Log in first.\n", 401)

    async def _login(self, request: Request, sessions: Sessions) -> Response:
        if request.method != "POST":
            return HTMLResponse(form(request.query_params.get("next", "/")))
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_FORM:
                return PlainTextResponse("The form is too large.\n", 413)
        fields = {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}
        name, onward = fields.get("name", ""), fields.get("next", "/")
        if sessions.is_held(name):
            return HTMLResponse(form(onward, name, "Too many wrong passwords. Wait five minutes."), 429)
        token = await asyncio.to_thread(sessions.enter, name, fields.get("password", ""))
        if token is None:
            audit.refused(request, None, f"a wrong password for {name!r}")
            return HTMLResponse(form(onward, name, "Name or password is wrong."), 401)
        try:
            await asyncio.to_thread(self._prepare, sessions.find(token))
        except ClientError as error:
            sessions.leave(token)
            return HTMLResponse(form(onward, name, f"Kafka does not let you in: {error}"), 503)
        answer = RedirectResponse(local(onward), 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, token, max_age=int(SESSION_S), httponly=True, samesite="lax", secure=secure)
        return answer


def cookie(headers: Headers, name: str) -> str | None:
    """Return a cookie of a request."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found else None


def local(onward: str) -> str:
    """Return where to go after the login: one of our paths, never another site."""
    return onward if onward.startswith("/") and not onward.startswith(("//", "/\\")) else "/"


def _whole(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return scope["path"] + (f"?{query}" if query else "")


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sent


def form(onward: str, name: str = "", problem: str = "") -> str:
    """Return the page that asks for name and password."""
    alert = f'<p role="alert">{html.escape(problem)}</p>' if problem else ""
    return LOGIN.substitute(next=html.escape(local(onward)), name=html.escape(name), alert=alert)
