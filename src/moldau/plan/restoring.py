"""Restoring a shard from its changelogs, if Spark's checkpoint is lost.

Stores have changelogs of their own. The rest of a shard's state (its book, the numbers of its stores and the records
that it holds back) is in another compacted topic of the application, the log of its shards: the state under the
shard's name, and each blob that it holds back under the name and a number. All of it is written in the transactions of
a batch, so the committed records are the state after the last batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from moldau.operators.context import TopologyError
from moldau.operators.record import Produced, Raw
from moldau.operators.stores.ordered import OrderedBytes
from moldau.operators.stores.pages import PagedBytes
from moldau.operators.stores.restoring import numbers, put_numbers, rebuilder
from moldau.plan.page_cache import Version, VersionedPages
from moldau.plan.shard_state import BOOK, GOING_ON, Book, PagesOf

from . import blobs
from .blobs import Blob
from .levels import Schedule, ShardId, stores_of
from .plan import Plan

FORMAT = 1
LOG = "-moldau.shards-changelog"  # how the name of the topic ends; no store has this name


def log_of(plan: Plan) -> str:
    return f"{plan.application_id}{LOG}"


def logged(
    plan: Plan,
    shard: ShardId,
    book: Book,
    contents: Mapping[str, OrderedBytes],
    held: Iterable[tuple[int, bytes | None]],
) -> Iterator[Produced]:
    """Yield the log's records of a shard after a batch. `held` has the pages of blobs that are held back, None for
    those that are gone.
    """
    topic, name = log_of(plan), str(shard)
    specs = [spec for spec in stores_of(plan, shard.group) if spec.name in contents]
    known = {"format": FORMAT, "book": asdict(book), "numbers": {s.name: numbers(s, contents[s.name]) for s in specs}}
    time = max(0, book.stream_time)
    yield Produced(topic, 0, name.encode(), json.dumps(known, sort_keys=True).encode(), time)
    for number, data in held:
        yield Produced(topic, 0, f"{name} {number}".encode(), data, time)


def shard_named(key: bytes | None) -> str:
    """Return the name of the shard that a record of the log is about."""
    return (key or b"").decode().partition(" ")[0]


def restore(schedule: Schedule, shard: ShardId, pages: PagesOf, found: Iterable[Blob]) -> list[Produced]:
    """Write the pages of a shard from blobs of its changelogs and of the log of shards. Return the changes for mirrors
    of its stores.
    """
    plan, changes = schedule.plan, list[Produced]()
    records: dict[str, list[Raw]] = {}
    for blob in sorted(found, key=lambda blob: blob.origin):
        records.setdefault(blob.topic, []).extend(blobs.raw_records(blob))
    book, known, held = remembered(records.pop(log_of(plan), ()), shard)
    first_held = {topic: next(iter(blobs.rows(data)))[4] for topic, data in reversed(held)}
    version = Version("")
    book.stores = []
    for spec in stores_of(plan, shard.group):
        content = PagedBytes(VersionedPages(pages(spec.name), spec.name, version), is_new=True)
        topic = plan.changelog(spec)
        take, own = rebuilder(spec, content), spec.changelog is None
        for raw in records.get(topic, ()):
            if raw.key is not None and (own or raw.offset < first_held.get(topic, raw.offset + 1)):
                take(raw.key, raw.value, raw.timestamp)
                changes += [
                    Produced(mirror, shard.partition, raw.key, raw.value, raw.timestamp)
                    for mirror, (store, _) in schedule.mirrors.items()
                    if store == spec.name
                ]
        put_numbers(content, known.get(spec.name, {}))
        if content.write():
            book.stores.append(spec.name)
    book.version = version.text
    for number, (_, data) in enumerate(held, GOING_ON + 1):
        pages(BOOK).put(number, data)
    pages(BOOK).put(GOING_ON, book.to_bytes())
    return changes


def remembered(log: Iterable[Raw], shard: ShardId) -> tuple[Book, dict[str, dict[str, int]], list[tuple[str, bytes]]]:
    """Return the book of a shard, the numbers of its stores, and what it held back: topic and blob."""
    latest = {raw.key: raw.value for raw in log}
    found = latest.get(str(shard).encode())
    if found is None:
        return Book(), {}, []
    known = json.loads(found)
    if known["format"] != FORMAT:
        raise TopologyError(f"the log of shards has the format {known['format']}, and this version reads {FORMAT}")
    book = Book(**known["book"])
    held = [(topic, latest.get(f"{shard} {number}".encode())) for topic, number in book.held]
    assert all(data is not None for _, data in held), f"the log has lost what the shard {shard} held back"
    book.held = [(topic, number) for number, (topic, _) in enumerate(held, GOING_ON + 1)]
    return book, known["numbers"], [(topic, data) for topic, data in held if data is not None]
