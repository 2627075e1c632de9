"""Parcels: what Python workers need and rows of Spark can only name, because it changes while a query runs.

A parcel is data in records of one compacted topic. Its reference has the offsets of the records, so a worker on any
machine reads exactly these, once, and keeps them.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator

from moldau.client import Client, ClientError, Error, Fetcher, Record, build, records
from moldau.spark.admin import make_topic
from moldau.spark.connections import client_for
from moldau.spark.source.options import EARLIEST, LATEST
from moldau.spark.source.planning import Range
from moldau.spark.source.topics import list_offsets
from moldau.topicstore import append

TOPIC = "__moldau_parcels"
SETTINGS = {"cleanup.policy": "compact"}
PIECE = 500_000  # bytes of a record
MOST = 256  # parcels that a process keeps
PATIENCE_MS = 60_000
WAIT_MS = 500  # for a fetch: a parcel is there before anybody knows its reference


def put(client: Client, data: bytes) -> str:
    """Write a parcel, and return its reference."""
    make_topic(client, TOPIC, 1, SETTINGS)
    name = hashlib.sha256(data).hexdigest()[:16]
    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
    found = [write(client, TOPIC, key_of(name, number), one) for number, one in enumerate(pieces)]
    return f"{name}@{','.join(map(str, found))}"


def get(settings: tuple[tuple[str, str], ...], reference: str) -> bytes:
    """Return a parcel; the settings are those of a client."""
    name, _, offsets = reference.partition("@")
    fetcher = Fetcher(client_for(dict(settings)), isolation_level="read_uncommitted")
    pieces = [_piece(fetcher, int(offset)) for offset in offsets.split(",")]
    data = b"".join(pieces)
    if hashlib.sha256(data).hexdigest()[:16] != name:
        raise ClientError(Error.CORRUPT_MESSAGE, f"The parcel {reference} is not in {TOPIC} any more.")
    return data


def _piece(fetcher: Fetcher, offset: int) -> bytes:
    """Return the value of a record; nothing if it is not there any more. It is read record by record, because the
    compiled code of `source.reading` takes seconds to load in a process that reads nothing else.
    """
    place, until = (TOPIC, 0), time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < until:
        found = fetcher.fetch({place: offset}, max_wait_ms=WAIT_MS, timeout_s=until - time.monotonic())[place]
        if found.error and not found.error.retriable:
            raise ClientError(found.error, f"{TOPIC} cannot be read at offset {offset}: {found.error.message}")
        for batch in found.batches():
            for record in records(batch):
                if record.offset >= offset:
                    return (record.value or b"") if record.offset == offset else b""
    raise ClientError(Error.REQUEST_TIMED_OUT, f"{TOPIC} gives nothing at offset {offset} for {PATIENCE_MS} ms.")


def forget(client: Client, reference: str) -> None:
    """Let go of a parcel that nobody names any more."""
    name, _, offsets = reference.partition("@")
    for number in range(len(offsets.split(","))):
        write(client, TOPIC, key_of(name, number), None)


def write(client: Client, topic: str, key: bytes, value: bytes | None) -> int:
    """Let a compacted topic with one partition keep a value, or with None forget it; return the offset."""
    return append(client, topic, 0, build([Record(0, 0, key, value)]))[0]


def records_of(client: Client, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yield keys and values of all committed records of a topic with one partition."""
    from moldau.spark.source.reading import read

    place = (topic, 0)
    first = list_offsets(client, {place: EARLIEST}, committed=True)[place]
    end = list_offsets(client, {place: LATEST}, committed=True)[place]
    if first < end:
        wanted = Range(topic, 0, first, end)
        for _, chunk in read(
            client, [wanted], isolation="read_committed", fail_on_data_loss=False, patience_ms=PATIENCE_MS
        ):
            yield from zip(chunk.keys.to_pylist(), chunk.values.to_pylist(), strict=True)


def key_of(name: str, piece: int) -> bytes:
    return f"{name}/{piece}".encode()
