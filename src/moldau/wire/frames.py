"""Frames: a length, a header and a message, in both directions.

A request carries header v1, in its flexible versions v2; a response v0, in its flexible versions v1. The response to
ApiVersions always has v0, because a client reads it before it knows what the broker speaks (KIP-511).
A frame to be read comes without its length.
"""

from __future__ import annotations

import struct
from typing import Any

from moldau.wire import schema
from moldau.wire.codec import NO_BOUND, encode_parts
from moldau.wire.codec_read import TOO_MANY, Buffer, skip_tags, uvarint
from moldau.wire.errors import UnsupportedRequest, WireError

API_VERSIONS = 18
NEVER = 1 << 16  # past any version

_request = struct.Struct(">hhih").unpack_from
_plain = struct.Struct(">ii").pack
_tagged = struct.Struct(">iix").pack
_requests: dict[int, tuple[int, int, int]] = {}
_responses: dict[int, int] = {}


def request_header(data: Buffer, max_elements: int = NO_BOUND) -> tuple[int, int, int, str | None, int]:
    """Return API key, version, correlation id and client id of a request, and where its body begins."""
    try:
        key, version, correlation_id, length = _request(data)
        low, high, flexible = _requests.get(key) or _known(key)
        if not low <= version <= high:
            raise UnsupportedRequest(key, version, correlation_id, _client_id(data, length))
        pos = 10
        client_id = None
        if length >= 0:
            pos += length
            if pos > len(data):
                raise WireError("the client id is longer than its request")
            client_id = str(data[10:pos], "utf-8")
        if version >= flexible:
            tags = data[pos]
            pos += 1
            if tags:
                pos = _skip_header_tags(data, pos - 1, max_elements)
    except (struct.error, IndexError, ValueError) as e:
        raise WireError(f"no request header in {len(data)} bytes: {e}") from e
    return key, version, correlation_id, client_id, pos


def response_frame(key: int, version: int, correlation_id: int, message: Any) -> list[Any]:
    """Encode a response in parts, the first with the length in front; see `codec.encode_parts`."""
    parts = encode_parts(message, version)
    size = sum(map(len, parts))
    if version >= _first_tagged_response(key):
        parts[0] = _tagged(size + 5, correlation_id) + parts[0]
    else:
        parts[0] = _plain(size + 4, correlation_id) + parts[0]
    return parts


def request_frame(message: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Encode a whole request with its length."""
    spec: schema.Message = message.SCHEMA
    name = (client_id or "").encode()
    head = struct.pack(">hhih", spec.key, version, correlation_id, -1 if client_id is None else len(name)) + name
    if spec.is_flexible(version):
        head += b"\0"
    body = b"".join([head, *encode_parts(message, version)])
    return struct.pack(">i", len(body)) + body


def response_header(key: int, version: int, data: Buffer) -> tuple[int, int]:
    """Return the correlation id of a response, and where its body begins."""
    try:
        (correlation_id,) = struct.unpack_from(">i", data)
        pos = 4
        if version >= _first_tagged_response(key):
            pos = _skip_header_tags(data, 4)
    except (struct.error, IndexError) as e:
        raise WireError(f"no response header in {len(data)} bytes: {e}") from e
    return correlation_id, pos


def _skip_header_tags(data: Buffer, pos: int, most: int = NO_BOUND) -> int:
    count, pos = uvarint(data, pos)
    if count > most:
        raise WireError(f"tagged fields of the header: {TOO_MANY}")
    return skip_tags(data, pos, len(data), count)


def _known(key: int) -> tuple[int, int, int]:
    """Return the first, last and first flexible version of a request; an empty range for an unknown one."""
    head = schema.by_key().get(("request", key))
    if head is None:
        return 0, -1, NEVER
    limits = _requests[key] = (*head.versions, NEVER if head.flexible is None else head.flexible)
    return limits


def _first_tagged_response(key: int) -> int:
    """Return the first version whose response header has tagged fields."""
    first = _responses.get(key)
    if first is None:
        flexible = schema.by_key()["response", key].flexible
        first = _responses[key] = NEVER if flexible is None or key == API_VERSIONS else flexible
    return first


def _client_id(data: Buffer, length: int) -> str | None:
    """Return the client id of a request that is refused anyway; None if it is not at its usual place."""
    return str(data[10 : 10 + length], "utf-8", "replace") if 0 <= length <= len(data) - 10 else None
