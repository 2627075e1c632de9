"""Serdes as plain functions, made once for each edge.

Serdes without a schema do not need a context, so none is made for them: those of their own kind have `read_alone` and
`write_alone`. Text and numbers are converted directly; what
fails there is left to the serde, which says why.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any, Literal

from moldau.serdes.context import Context, Serde
from moldau.serdes.primitive import DOUBLE, FLOAT, INTEGER, LONG, SHORT, STRING, Plain

from .record import Headers

Field = Literal["key", "value"]
Write = Callable[[Any], bytes | None]
Read = Callable[[bytes | None], Any]
NUMBERS = {id(SHORT): ">h", id(INTEGER): ">i", id(LONG): ">q", id(FLOAT): ">f", id(DOUBLE): ">d"}
ANYWHERE = Context("")


def writer(serde: Serde, topic: str, field: Field) -> Write:
    """Return a writer for stores, whose values have no headers."""
    return short_writer(serde) or (lambda value: serde.to_bytes(value, Context(topic, field)))


def reader(serde: Serde, topic: str, field: Field) -> Read:
    if isinstance(serde, Plain):
        return plain_reader(serde)
    alone: Read | None = getattr(serde, "read_alone", None)
    return alone or (lambda data: serde.from_bytes(data, Context(topic, field)))


def topic_writer(serde: Serde, topic: str, field: Field) -> Callable[[Any, Headers], tuple[bytes | None, Headers]]:
    """Return a writer for topics, where a serde may add headers to those of the record."""
    short = short_writer(serde)
    if short is not None:
        return lambda value, headers: (short(value), headers)

    def write(value: Any, headers: Headers) -> tuple[bytes | None, Headers]:
        context = Context(topic, field, list(headers))
        return serde.to_bytes(value, context), tuple(context.headers)

    return write


def topic_reader(serde: Serde, topic: str, field: Field) -> Callable[[bytes | None, Headers], Any]:
    if isinstance(serde, Plain):
        plain = plain_reader(serde)
        return lambda data, headers: plain(data)
    alone: Read | None = getattr(serde, "read_alone", None)
    if alone is not None:
        return lambda data, headers: alone(data)
    return lambda data, headers: serde.from_bytes(data, Context(topic, field, list(headers)))


def short_writer(serde: Serde) -> Write | None:
    """Return the writer of a serde that needs no context; None for others. A serde around another one returns its
    writer by `short`, from the writer of the inner one; any other has it as `write_alone`.
    """
    if isinstance(serde, Plain):
        return plain_writer(serde)
    short, inner = getattr(serde, "short", None), getattr(serde, "inner", None)
    if short is None or inner is None:
        return getattr(serde, "write_alone", None)
    write = short_writer(inner)
    return None if write is None else short(write)


def plain_writer(serde: Plain) -> Write:
    slow = serde.to_bytes
    if serde is STRING:
        return lambda value: value.encode() if value.__class__ is str else slow(value, ANYWHERE)
    if id(serde) not in NUMBERS:
        return lambda value: slow(value, ANYWHERE)
    pack = Struct(NUMBERS[id(serde)]).pack

    def write(value: Any) -> bytes | None:
        try:
            return pack(value)
        except StructError:
            return slow(value, ANYWHERE)

    return write


def plain_reader(serde: Plain) -> Read:
    slow = serde.from_bytes
    if serde is STRING:

        def read_text(data: bytes | None) -> Any:
            try:
                return None if data is None else data.decode()
            except ValueError:
                return slow(data, ANYWHERE)

        return read_text
    if id(serde) not in NUMBERS:
        return lambda data: slow(data, ANYWHERE)
    unpack = Struct(NUMBERS[id(serde)]).unpack

    def read_number(data: bytes | None) -> Any:
        try:
            return None if data is None else unpack(data)[0]
        except StructError:
            return slow(data, ANYWHERE)

    return read_number
