"""A call of the REST Proxy: names in paths, links between resources, the body."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request

from moldau import http
from moldau.http import Endpoint, Host, HttpError, path_number, read_body, read_json
from moldau.rest.errors import NO_DATA, WRONG_PAYLOAD, not_found, refusal
from moldau.rest.schemas import DOCUMENTS

if TYPE_CHECKING:
    from moldau.rest.kafka import Kafka
    from moldau.rest.proxy import Proxies, Proxy

NUMBERS = ("broker_id", "partition_id")  # names in paths that stand for numbers


@dataclass(slots=True, kw_only=True)
class Call(http.Call):
    """A request to an endpoint of the proxy."""

    proxy: Proxy

    def __getitem__(self, name: str) -> Any:
        """Return what a name in the path stands for here."""
        value = self.path[name]
        if "\0" in value:
            raise HttpError(400, f"{name} has a character that no name has.")
        return path_number(value) if name in NUMBERS else value

    @property
    def kafka(self) -> Kafka:
        return self.proxy.kafka

    def url(self, *segments: Any) -> str:
        """Return the URL of a part of the cluster in version 3."""
        return "/".join([f"{self.base}/v3/clusters/{quoted(self.kafka.cluster_id)}", *map(quoted, segments)])

    def name(self, **parts: Any) -> str:
        """Return the name of a part of the cluster, whoever serves it."""
        authority = self.proxy.settings["confluent.resource.name.authority"]
        rows = [f"kafka={quoted(self.kafka.cluster_id)}"]
        rows += [
            f"{key.replace('_', '-')}{'' if value is None else '=' + quoted(value)}" for key, value in parts.items()
        ]
        return f"crn://{authority}/{'/'.join(rows)}"

    def link(self, *segments: Any) -> dict[str, str]:
        return {"related": self.url(*segments)}

    def resource(self, kind: str, where: tuple[Any, ...], names: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Return a part of the cluster as version 3 shows it."""
        metadata = {"self": self.url(*where), "resource_name": self.name(**names)}
        return {"kind": kind, "metadata": metadata, "cluster_id": self.kafka.cluster_id, **fields}

    def listing(self, kind: str, data: list[dict[str, Any]]) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"self": str(self.request.url), "next": None}, "data": data}


def quoted(value: Any) -> str:
    return quote(str(value), safe="-._~:*")


def host(proxies: Proxies) -> Host:
    """Return what the proxy brings to its endpoints."""

    async def open_call(endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
        call = Call(request, media_type, accepted, proxy=await proxies.of(request.state.caller))
        if endpoint.takes and not endpoint.unbounded:
            call.body = await _body(endpoint, request)
        if "{cluster_id}" in endpoint.path:
            await _check_cluster(call)
        return call

    return Host(open_call, proxies.own.kafka.run)


async def _check_cluster(call: Call) -> None:
    known = call.proxy.cluster_id or await call.kafka.run(lambda: call.kafka.cluster_id)
    call.proxy.cluster_id = known
    if call["cluster_id"] != known:
        raise not_found(f"Cluster {call['cluster_id']}")


async def _body(endpoint: Endpoint, request: Request) -> Any:
    body = await read_body(request)
    if not body.strip():
        if endpoint.body_needed:
            raise refusal(WRONG_PAYLOAD, NO_DATA)
        return None
    return checked(endpoint.takes or "", document(body))


def document(body: bytes, read: Callable[[bytes], Any] = read_json) -> Any:
    """Read JSON that can be written again: a lone half of a surrogate pair cannot."""
    try:
        found = read(body)
        if b"\\u" in body:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HttpError(400, "The document has half of a surrogate pair, which is not a character.") from None
    except ValueError as error:
        raise HttpError(400, f"Invalid JSON: {error}") from None
    return found


def checked(name: str, body: Any) -> Any:
    """Return the body, if it has the shape of a document."""
    if body is None:
        raise refusal(WRONG_PAYLOAD, NO_DATA)
    return DOCUMENTS.check(name, body)
