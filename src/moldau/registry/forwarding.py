"""Requests that change something go on to the registry that writes, and its answer comes back as it is."""

from __future__ import annotations

import ssl
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from moldau.registry.errors import refuse
from moldau.settings import ServiceSettings

FORWARDED = "x-moldau-forwarded"  # on such a request, so that it never goes round in a circle
PASSED_ON = ("content-type", "accept", "authorization")


class Forwarder:
    """Connections to the leader. Most registries never forward anything, so the client is imported when needed."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._client: Any = None

    def _open(self) -> Any:
        import httpx

        settings = self._settings
        timeout = httpx.Timeout(
            settings.seconds("leader.read.timeout.ms"), connect=settings.seconds("leader.connect.timeout.ms")
        )
        return httpx.AsyncClient(timeout=timeout, verify=_tls(settings), trust_env=False)

    async def send(self, url: str, request: Request) -> Response:
        """The leader's answer; 50003 if there is none."""
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
            raise refuse(50003, f"{url}: {error or type(error).__name__}") from None
        kept = {"content-type": found.headers["content-type"]} if "content-type" in found.headers else {}
        return Response(found.content, found.status_code, kept)


def _tls(settings: ServiceSettings) -> ssl.SSLContext | bool:
    trusted, own = settings["ssl.truststore.location"], settings["ssl.keystore.location"]
    if not trusted:
        return True
    made = ssl.create_default_context(cafile=trusted)
    if own:
        made.load_cert_chain(own, password=settings["ssl.key.password"] or "")
    return made
