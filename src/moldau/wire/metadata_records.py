"""How a metadata record stands in the value of a log record: a frame version, its key, its version, itself."""

from __future__ import annotations

from typing import Any

from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import WireError

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
FRAME_VERSION = 1


def decode(value: bytes) -> Any:
    """Return the record that Moldau's or Kafka's controller wrote."""
    if len(value) < 3 or value[0] != FRAME_VERSION:
        raise WireError("not a metadata record")
    try:
        cls = m.record_class(TOPIC, "metadata", value[1])
    except KeyError:
        raise WireError(f"unknown metadata record type {value[1]}") from None
    return codec.decode(cls, value[2], value, 3)
