"""A shard whose operators have failed: it keeps what arrived, and its stores are as they were before.

A batch of a shard writes no page before all its records are processed, so nothing is to be undone. What is held is fed
first when the shard runs again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moldau.operators.stores.pages import PagedBytes

from . import blobs
from .blobs import Blob
from .levels import ShardId
from .restoring import logged
from .routing import routed
from .shard_state import BOOK, GOING_ON, Book, PagesOf
from .shards import Conveyed


def hold(conveyed: Conveyed, shard: ShardId, pages: PagesOf, arrived: Iterable[Blob], attempt: int) -> list[Blob]:
    """Keep what arrived for the next attempt; return what is to be logged of it."""
    schedule, own = conveyed.schedule, pages(BOOK)
    book = Book.of_bytes(own.get(GOING_ON))
    book.failed = attempt
    free = max((number for _, number in book.held), default=GOING_ON) + 1
    added: dict[int, bytes | None] = {}
    for blob in sorted(arrived, key=lambda one: one.origin):
        first = book.offsets.get(blob.topic, 0) if blob.topic in schedule.internal else None
        raws = list(blobs.raw_records(blob, first))
        if first is not None and blob.topic not in schedule.mirrors:
            book.offsets[blob.topic] = first + len(raws)
        for data in blobs.of_raw(raws):
            book.held.append((blob.topic, free))
            added[free] = data
            own.put(free, data)
            free += 1
    stores = {name: PagedBytes(pages(name), is_new=False) for name in book.stores}
    records = logged(schedule.plan, shard, book, stores, added.items()) if conveyed.logged else ()
    out: list[Blob] = []
    for blob in routed(schedule, shard, records, incomplete=True):
        out.append(replace(blob, sequence=book.sequence))
        book.sequence += 1
    own.put(GOING_ON, book.to_bytes())
    return out
