"""Serdes without a schema, in the forms of Kafka's own serializers: text, bytes, numbers, UUID; and plain JSON."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from .context import Context, SerdeError


@dataclass(frozen=True, slots=True)
class Plain:
    """A serde made of two functions. What they raise about a value becomes a SerdeError with the format's name."""

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]

    def __reduce__(self) -> tuple[Any, ...]:
        """Send serdes of the table below by name, so that they are the same objects in another process."""
        if PLAIN.get(self.name) is self:
            return known, (self.name,)
        return Plain, (self.name, self.encode, self.decode)

    def to_bytes(self, value: Any, context: Context) -> bytes | None:
        if value is None:
            return None
        try:
            return self.encode(value)
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, struct.error) as error:
            raise SerdeError(f"{excerpt(value)} cannot be written as {self.name}: {error}") from None

    def from_bytes(self, data: bytes | None, context: Context) -> Any:
        if data is None:
            return None
        try:
            return self.decode(data)
        except (ValueError, RecursionError, struct.error) as error:
            raise SerdeError(f"{excerpt(data)} is not {self.name}: {error}") from None


def excerpt(value: Any) -> str:
    """Shorten a value for an error message, without writing out the whole of a long one first."""
    text = repr(value[:40] if isinstance(value, str | bytes) else value) if not nested(value) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def nested(value: Any) -> bool:
    return isinstance(value, dict | list | tuple | set)


def text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError("it is not a str")
    return value.encode()


def octets(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("it is not bytes")
    return bytes(value)


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def write_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def read_json(data: bytes) -> Any:
    return json.loads(data, parse_constant=no_constant)


def number(name: str, format: str) -> Plain:
    packer = struct.Struct(format)
    return Plain(name, packer.pack, lambda data: packer.unpack(data)[0])


STRING = Plain("string", text, bytes.decode)
BYTES = Plain("bytes", octets, bytes)
SHORT = number("short", ">h")
INTEGER = number("integer", ">i")
LONG = number("long", ">q")
FLOAT = number("float", ">f")
DOUBLE = number("double", ">d")
UUID_TEXT = Plain(
    "uuid",
    lambda value: str(value if isinstance(value, UUID) else UUID(value)).encode(),
    lambda data: UUID(data.decode()),
)
JSON = Plain("json", write_json, read_json)


def known(name: str) -> Plain:
    return PLAIN[name]


PLAIN = {serde.name: serde for serde in (STRING, BYTES, SHORT, INTEGER, LONG, FLOAT, DOUBLE, UUID_TEXT, JSON)}
