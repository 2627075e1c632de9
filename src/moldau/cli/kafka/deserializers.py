"""The deserializers of Kafka's Java clients by their class names: functions from bytes to printed text."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

from moldau.cli.kafka.java_text import bytes_text, double_text, float_text

PACKAGE = "org.apache.kafka.common.serialization."
Deserializer = Callable[[bytes], bytes]


class Undecodable(ValueError):
    """An error for bytes that are not of the type."""


def deserializer(name: str) -> Deserializer | None:
    """Return the function for a class; None if the class is unknown."""
    return KNOWN.get(name.removeprefix(PACKAGE).removesuffix("Deserializer"))


def _number(kind: str, format: str, text: Callable[[float], str] = str) -> Deserializer:
    packer = struct.Struct(format)

    def decode(data: bytes) -> bytes:
        if len(data) != packer.size:
            raise Undecodable(f"Size of data received by {kind}Deserializer is not {packer.size}")
        return text(packer.unpack(data)[0]).encode()

    return decode


def _boolean(data: bytes) -> bytes:
    if data not in (b"\x00", b"\x01"):
        raise Undecodable("Unexpected byte received by BooleanDeserializer")
    return b"true" if data == b"\x01" else b"false"


def _text(data: bytes) -> bytes:
    return data if data.isascii() else data.decode(errors="replace").encode()


def _uuid(data: bytes) -> bytes:
    try:
        return str(UUID(data.decode())).encode()
    except ValueError:
        raise Undecodable("Error parsing data into UUID") from None


KNOWN: dict[str, Deserializer] = {
    "String": _text,
    "Boolean": _boolean,
    "Short": _number("Short", ">h"),
    "Integer": _number("Integer", ">i"),
    "Long": _number("Long", ">q"),
    "Float": _number("Float", ">f", float_text),
    "Double": _number("Double", ">d", double_text),
    "Bytes": lambda data: bytes_text(data).encode(),
    "ByteArray": bytes,  # Java prints the address of an array, which is of no use
    "UUID": _uuid,
}
