"""Forward requests to the process that leads, and return its answer unchanged."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

from moldau.http.endpoints import Answer
from moldau.settings import ServiceSettings

FORWARDED = "x-moldau-forwarded"  # marks such a request, so that it is never forwarded twice
POSITION = "x-moldau-position"  # in the answer to it: how far one must have read to see what it changed
PASSED_ON = ("content-type", "accept", "authorization")
PASSED_BACK = ("content-type", "location")


class Elected(Protocol):
    """A process that may lead."""

    @property
    def url(self) -> str: ...


class Election(Protocol):
    """Who leads, as far as this process knows."""

    @property
    def leads(self) -> bool: ...
    @property
    def leader(self) -> Elected | None: ...
    def wait(self, timeout_s: float) -> Elected | None: ...


class Replica(Protocol):
    """The state that the leader changes, as this process has it."""

    @property
    def position(self) -> int: ...
    def wait_for(self, position: int) -> bool: ...


@dataclass(slots=True)
class Forwarder:
    """Answers what only the leader may answer: here if this process leads, otherwise by forwarding it.

    `in_thread` runs what waits. `unreachable` and `no_leader` make the refusals for a leader that does not answer, and
    for an election that takes longer than `timeout_s`. The HTTP client is imported when something is forwarded.
    """

    settings: ServiceSettings
    election: Election
    replica: Replica
    in_thread: Callable[..., Awaitable[Any]]
    unreachable: Callable[[str], Exception]
    no_leader: Callable[[], Exception]
    timeout_s: float
    _client: Any = None

    async def answer(self, request: Request, status: int, here: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `here` returns, or the leader's answer once this process has read what it changed."""
        election, forwarded = self.election, FORWARDED in request.headers
        if not election.leads:
            leader = election.leader or await self.in_thread(election.wait, self.timeout_s)
            if leader is None or (not election.leads and forwarded):
                raise self.no_leader()
            if not election.leads:
                response, position = await self._send(leader.url, request)
                await self.in_thread(self.replica.wait_for, position)
                return response
        done = await here()
        if not forwarded:
            return done
        answer = done if isinstance(done, Answer) else Answer(status, done)
        return replace(answer, headers={**(answer.headers or {}), POSITION: str(self.replica.position)})

    def _open(self) -> Any:
        import httpx

        settings = self.settings
        timeout = httpx.Timeout(
            settings.seconds("leader.read.timeout.ms"), connect=settings.seconds("leader.connect.timeout.ms")
        )
        return httpx.AsyncClient(timeout=timeout, verify=_tls(settings), trust_env=False)

    async def _send(self, url: str, request: Request) -> tuple[Response, int]:
        """Return the leader's answer, and the position that it names (0 if it names none)."""
        import httpx

        self._client = self._client or self._open()
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        path = request.scope["raw_path"].decode("latin-1")
        query = request.scope["query_string"].decode("latin-1")
        target = httpx.URL(url).copy_with(raw_path=(f"{path}?{query}" if query else path).encode("latin-1"))
        body = getattr(request.state, "body", b"")
        try:
            found = await self._client.request(
                request.method, target, content=body, headers={**headers, FORWARDED: "true"}
            )
        except httpx.HTTPError as error:
            raise self.unreachable(f"{url}: {error or type(error).__name__}") from None
        kept = {name: found.headers[name] for name in PASSED_BACK if name in found.headers}
        return Response(found.content, found.status_code, kept), int(found.headers.get(POSITION, 0))


def _tls(settings: ServiceSettings) -> ssl.SSLContext | bool:
    trusted, own = settings["ssl.truststore.location"], settings["ssl.keystore.location"]
    if not trusted:
        return True
    made = ssl.create_default_context(cafile=trusted)
    if own:
        made.load_cert_chain(own, password=settings["ssl.key.password"] or "")
    return made
