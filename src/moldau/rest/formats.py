"""Embedded formats: what stands for a key or value in JSON, and its bytes in Kafka. One row a format."""

from __future__ import annotations

import binascii
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import Message

from moldau.http import HttpError
from moldau.rest.errors import CANNOT_DESERIALIZE


class Format(NamedTuple):
    """A format without schema. None is a null on both sides."""

    name: str
    to_bytes: Callable[[Any], bytes]
    to_json: Callable[[bytes], Any]


class Encoded(NamedTuple):
    """A key or value as it is written, and what the answer says of it."""

    data: bytes | None
    type: str | None = None
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None

    def as_json(self) -> dict[str, Any] | None:
        if self.type is None:
            return None
        names = ("subject", "schema_id", "schema_version") if self.schema_id is not None else ()
        return {"type": self.type, **{name: getattr(self, name) for name in names}, "size": len(self.data or b"")}


def from_base64(data: Any) -> bytes:
    if isinstance(data, str):
        try:
            return binascii.a2b_base64(data.encode(), strict_mode=True) if data else b""
        except (binascii.Error, UnicodeEncodeError):
            pass
    raise HttpError(400, f"This should be base64: {excerpt(data)}")


def from_string(data: Any) -> bytes:
    if not isinstance(data, str):
        raise HttpError(400, f"Bad Request: data={excerpt(data)} is not a string.")
    try:
        return data.encode()
    except UnicodeEncodeError:
        raise HttpError(400, "Bad Request: data has half of a surrogate pair, which is not a character.") from None


def write_json(data: Any) -> bytes:
    try:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (UnicodeEncodeError, ValueError):
        raise HttpError(400, "Bad Request: data cannot be written as JSON.") from None


def excerpt(data: Any) -> str:
    text = data if isinstance(data, str) else json.dumps(data)[:60]
    return text if len(text) <= 50 else f"{text[:47]}..."


PLAIN = {
    "BINARY": Format("BINARY", from_base64, lambda data: b64encode(data).decode()),
    "JSON": Format("JSON", write_json, json.loads),
    "STRING": Format("STRING", from_string, bytes.decode),
}


Decoder = Callable[[bytes | None, str, Message], Any]


def plain_decoder(format: Format) -> Decoder:
    """Return what turns bytes of a record into JSON; what cannot be read is 40801, as with a schema that is unknown."""

    def decode(data: bytes | None, field: str, message: Message) -> Any:
        try:
            return None if data is None else format.to_json(data)
        except (ValueError, RecursionError):
            where = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
            raise HttpError(CANNOT_DESERIALIZE, f"The {field} of the record in {where} is not {format.name}.") from None

    return decode
