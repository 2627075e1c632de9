"""Messages to bytes and back. The function for a message and a version is compiled from the table on first use."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from moldau.wire.codec_read import Buffer, Read, reader
from moldau.wire.codec_write import writer
from moldau.wire.errors import WireError

T = TypeVar("T")
DAMAGED = (WireError, struct.error, IndexError, ValueError)  # what reading past the end, or no UTF-8, comes to

NO_BOUND = sys.maxsize

_readers: dict[tuple[type[Any], int], Read] = {}
_counting: dict[tuple[type[Any], int], Read] = {}
_writers: dict[tuple[type[Any], int], Callable[[Any], list[Any]]] = {}


def decode(cls: type[T], version: int, data: Buffer, pos: int = 0) -> T:
    """Decode the message that `data` holds from `pos` to its end; WireError if it does not."""
    message, end = decode_from(cls, version, data, pos)
    if end != len(data):
        raise WireError(f"{cls.__name__} v{version}: {len(data) - end} bytes left over")
    return message


def decode_from(cls: type[T], version: int, data: Buffer, pos: int, max_elements: int = NO_BOUND) -> tuple[T, int]:
    """Decode the message at `pos`, and return it with the position after it. WireError if there is none.

    WireError also if it has more than `max_elements` elements in all its arrays and tagged fields together.
    """
    size = len(data)
    if size - pos > max_elements:
        read = _counting.get((cls, version)) or _reader(cls, version, _counting)
    else:
        read = _readers.get((cls, version)) or _reader(cls, version, _readers)
    try:
        return read(data, pos, size, max_elements)
    except DAMAGED as e:
        raise WireError(f"{cls.__name__} v{version}: {e}") from e


def encode(message: Any, version: int) -> bytes:
    """Encode a message; Unwritable if something is set that the version cannot carry."""
    chunks = encode_parts(message, version)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def encode_parts(message: Any, version: int) -> list[Any]:
    """Encode a message in chunks; each `records` value is a chunk of its own, as it was given."""
    cls = message.__class__
    write = _writers.get((cls, version)) or _writer(cls, version)
    try:
        return write(message)
    except (struct.error, TypeError, AttributeError, ValueError) as e:
        e.add_note(f"while encoding {cls.__name__} v{version}")
        raise


def _reader(cls: type[Any], version: int, known: dict[tuple[type[Any], int], Read]) -> Read:
    _check(cls, version)
    read = known[cls, version] = reader(cls.SCHEMA, version, counts=known is _counting)
    return read


def _writer(cls: type[Any], version: int) -> Callable[[Any], list[Any]]:
    _check(cls, version)
    write = _writers[cls, version] = writer(cls.SCHEMA, version)
    return write


def _check(cls: type[Any], version: int) -> None:
    low, high = cls.SCHEMA.versions
    if not low <= version <= high:
        raise WireError(f"{cls.__name__} has no version {version}, only {low} to {high}")
