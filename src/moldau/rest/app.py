"""The application: the endpoints of both versions and their description, around one proxy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from moldau.http import HttpError, OpenApi, Service, routes
from moldau.http.service import needs
from moldau.rest.endpoints import NUMBERS, host
from moldau.rest.errors import AUTHORIZATION
from moldau.rest.proxy import Proxies
from moldau.rest.schemas import ACL_WORDS, DOCUMENTS
from moldau.rest.v2 import ENDPOINTS as V2
from moldau.rest.v3 import ENDPOINTS as V3
from moldau.settings import ServiceSettings

QUERY: dict[str, dict[str, Any]] = {
    "timeout": {"type": "integer", "minimum": -1, "maximum": 2**31 - 1},
    "max_bytes": {"type": "integer", "minimum": -1, "maximum": 2**31 - 1},
    "async": {"type": "boolean"},
    "include_authorized_operations": {"type": "boolean"},
    "offset_type": {"type": "string", "enum": ["earliest", "latest"]},
    **{field: {"type": "string", "enum": list(words)} for field, words in ACL_WORDS.items()},
}
OPENAPI = OpenApi("Moldau REST Proxy", DOCUMENTS, QUERY, NUMBERS)


@contextlib.contextmanager
def application(settings: ServiceSettings) -> Iterator[ASGIApp]:
    """Open the proxy, for as long as the context is open."""
    proxies = Proxies(settings)
    wanted = {"api.v2.enable": V2, "api.v3.enable": V3}
    rows = OPENAPI.documented([row for name, version in wanted.items() if settings[name] for row in version])
    service = Service(
        routes(rows, host(proxies)),
        settings,
        "application/json",
        timed_out=lambda: HttpError(50003, "Kafka did not answer in time."),
        denied=lambda caller, role: HttpError(AUTHORIZATION, needs(caller, role)),
    )
    try:
        yield Expiring(service, proxies)
    finally:
        proxies.close()


class Expiring:
    """The service, with the task that closes consumer instances which nobody uses any more."""

    __slots__ = ("_proxies", "_service", "_task")

    def __init__(self, service: Service, proxies: Proxies) -> None:
        self._service, self._proxies = service, proxies
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._proxies.expire())
        await self._service(scope, receive, send)
