"""Batches, right and wrong, and rows for the requests that carry or ask for them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from moldau.wire.records import Record, build, seal
from tests.conformance.differential.case import LONG_MS, NOW, Case, topic_id

# Where the fields of a batch's header are, and how they are written.
LENGTH, MAGIC, ATTRIBUTES, LAST_DELTA = (8, ">i"), (16, ">b"), (21, ">h"), (23, ">i")
BASE_OFFSET, BASE_TIME, MAX_TIME, COUNT = (0, ">q"), (27, ">q"), (35, ">q"), (57, ">i")


def batch(*values: bytes | None, time: int = NOW, key: bytes | None = None, **options: Any) -> bytes:
    """A batch of records with these values, or of one record."""
    return bytes(build([Record(0, time, key, value) for value in values or (b"v",)], **options))


def timed(*times: int, **options: Any) -> bytes:
    """A batch with a record for each time."""
    return bytes(build([Record(0, time, None, b"v") for time in times], **options))


def changed(*changes: tuple[tuple[int, str], int], of: bytes = b"", sealed: bool = True) -> bytes:
    """A batch with other values in its header; if sealed, its checksum is right."""
    data = bytearray(of or batch())
    for (place, how), value in changes:
        struct.pack_into(how, data, place, value)
    if sealed:
        seal(memoryview(data))
    return bytes(data)


def produce(
    name: str,
    topic: str,
    data: bytes | None,
    versions: int | Iterable[int] = 9,
    *,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
    **options: Any,
) -> Case:
    topics = [{"name": topic, "topic_id": topic_id(topic), "partition_data": [(partition, data)]}]
    return Case(name, "Produce", versions, (transactional_id, acks, LONG_MS, topics), **options)


def wanted(partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20, epoch: int = -1, last: int = -1) -> Any:
    """A partition of a Fetch request."""
    return {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": max_bytes,
        "current_leader_epoch": epoch,
        "last_fetched_epoch": last,
    }


def fetch(
    name: str,
    partitions: Sequence[Any],
    versions: int | Iterable[int] = 16,
    topic: str = "f",
    forget: Sequence[int] = (),
    **fields: Any,
) -> Case:
    """A row of Fetch; the other fields of the request have what a consumer would send."""
    named = {"topic": topic, "topic_id": topic_id(topic)}
    options = {key: fields.pop(key) for key in ("keep", "patience_s") if key in fields}
    body = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": [{**named, "partitions": partitions}] if partitions else [],
        "forgotten_topics_data": [{**named, "partitions": forget}] if forget else [],
        **fields,
    }
    return Case(name, "Fetch", versions, body, **options)
