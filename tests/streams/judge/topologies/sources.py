"""Where topologies begin: streams and tables of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams import KStream, KTable, Long, StreamsBuilder, String

Build = Callable[[StreamsBuilder], Any]
TEXT = String()
NUMBER = Long()


def stream(builder: StreamsBuilder, topic: str = "in") -> KStream:
    return builder.stream(topic, key=TEXT, value=TEXT)


def left(builder: StreamsBuilder) -> KStream:
    return stream(builder, "left")


def right(builder: StreamsBuilder) -> KStream:
    return stream(builder, "right")


def table(builder: StreamsBuilder, topic: str = "in") -> KTable:
    return builder.table(topic, key=TEXT, value=TEXT)
