"""Envelope (key 58), v0: a request that a broker forwards for a client, with the client's name and address (KIP-590).

The request is answered as if the client had sent it here, and its answer goes back as bytes. If another controller is
active by then, the envelope says so, and the broker asks that one.
Deviates: nothing known.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.forwarding import FORWARDED, PRINCIPAL_VERSION, is_of_former_controller
from moldau.broker.node import Node
from moldau.broker.wait import finish
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError


@api(58, versions=(0, 0))
def envelope(node: Node, connection: Connection, request: m.EnvelopeRequest, version: int) -> Answer:
    data = memoryview(bytes(request.request_data))
    try:
        client = sender(connection, request)
        key, inner_version, correlation_id, client.client_id, position = frames.request_header(data, node.max_elements)
        route = node.route(key, inner_version, of_controller=True) if key in FORWARDED else None
        if route is None:
            return m.EnvelopeResponse(error_code=Error.INVALID_REQUEST)
        inner, _ = codec.decode_from(route[1], inner_version, data, position, node.max_elements)
    except frames.UnsupportedRequest:
        return m.EnvelopeResponse(error_code=Error.UNSUPPORTED_VERSION)
    except (WireError, ValueError):
        return m.EnvelopeResponse(error_code=Error.INVALID_REQUEST)

    def wrapped(response: Any) -> Any:
        if is_of_former_controller(response):
            return m.EnvelopeResponse(error_code=Error.NOT_CONTROLLER)
        parts = frames.response_frame(key, inner_version, correlation_id, response)
        return m.EnvelopeResponse(response_data=b"".join(map(bytes, parts))[4:])

    outcome = route[0](node, client, inner, inner_version)
    return finish(outcome, wrapped)


def sender(connection: Connection, request: m.EnvelopeRequest) -> Connection:
    """Return the client as a connection: its principal and its host; raises WireError or ValueError."""
    raw = bytes(request.request_principal or b"")
    if int.from_bytes(raw[:2]) != PRINCIPAL_VERSION:
        raise WireError("the principal is of an unknown version")
    who = codec.decode(m.DefaultPrincipalData, PRINCIPAL_VERSION, raw, 2)
    client = Connection(connection.id, connection.listener, principal=f"{who.type}:{who.name}", is_controller=True)
    client.by_token = who.token_authenticated
    client.host = str(ip_address(bytes(request.client_host_address)))
    return client
