"""Serdes as plain functions, made once for each edge: no context is made for serdes that do not look at it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from moldau.serdes.context import Context, Serde
from moldau.serdes.primitive import Plain

from .record import Headers

Field = Literal["key", "value"]
Write = Callable[[Any], bytes | None]
Read = Callable[[bytes | None], Any]


def writer(serde: Serde, topic: str, field: Field) -> Write:
    """For stores, whose values have no headers."""
    if isinstance(serde, Plain):
        return partial(serde.to_bytes, context=Context(topic, field))
    return lambda value: serde.to_bytes(value, Context(topic, field))


def reader(serde: Serde, topic: str, field: Field) -> Read:
    if isinstance(serde, Plain):
        return partial(serde.from_bytes, context=Context(topic, field))
    return lambda data: serde.from_bytes(data, Context(topic, field))


def topic_writer(serde: Serde, topic: str, field: Field) -> Callable[[Any, Headers], tuple[bytes | None, Headers]]:
    """For topics: a serde may add headers to those of the record."""
    if isinstance(serde, Plain):
        plain = partial(serde.to_bytes, context=Context(topic, field))
        return lambda value, headers: (plain(value), headers)

    def write(value: Any, headers: Headers) -> tuple[bytes | None, Headers]:
        context = Context(topic, field, list(headers))
        return serde.to_bytes(value, context), tuple(context.headers)

    return write


def topic_reader(serde: Serde, topic: str, field: Field) -> Callable[[bytes | None, Headers], Any]:
    if isinstance(serde, Plain):
        plain = partial(serde.from_bytes, context=Context(topic, field))
        return lambda data, headers: plain(data)
    return lambda data, headers: serde.from_bytes(data, Context(topic, field, list(headers)))
