"""The records of a batch, taken by an aggregate at once, where a cache stands behind it.

Of several changes of a key in a batch a cache lets the last one go. So it makes no difference if the store is asked
once for each key and told once, in the order of last changes, with the record that made the last one. That is so for
keys and values that are themselves again when they were written and read: text, bytes and whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.serdes.context import Serde
from moldau.serdes.primitive import BYTES, INTEGER, LONG, SHORT, STRING

from .context import UNKNOWN_TIME, Context, Shard
from .record import Raw, Record
from .stores.layers import OVERHEAD
from .stores.spec import Opening, StoreSpec

THEMSELVES_AGAIN = tuple(map(id, (STRING, BYTES, SHORT, INTEGER, LONG)))
Held = tuple[Any, int, Record, Raw]  # an aggregate, its time, the record that changed it last and its source
NOTHING = None, UNKNOWN_TIME
Begin = Callable[[Any, Any], Any]  # key, value: the first aggregate
Go = Callable[[Any, Any, Any], Any]  # key, value, aggregate: the next one


def most_at_once(spec: StoreSpec, opening: Opening) -> int:
    """How many keys a store is told of at once: as many as its cache can hold; 0 if that would make a difference."""
    serdes: tuple[Serde | None, ...] = spec.key, spec.value
    return opening.cache_bytes // OVERHEAD if all(id(one) in THEMSELVES_AGAIN for one in serdes) else 0


def take_all(
    records: Iterable[tuple[Raw, Record]], shard: Shard, context: Context, store: Any, begin: Begin, go: Go
) -> None:
    """What one record after the other would do to the store."""
    changed: dict[Any, Held] = {}
    for raw, record in records:
        at_hand(shard, raw, record)
        key, value, timestamp = record.key, record.value, record.timestamp
        if key is None or value is None:
            context.dropped("null key or value")
            continue
        held = changed.pop(key, None) or store.get(key) or NOTHING
        old = held[0]
        if old is None:
            changed[key] = begin(key, value), timestamp, record, raw
        else:
            latest = held[1]
            changed[key] = go(key, value, old), timestamp if timestamp > latest else latest, record, raw
        if len(changed) >= store.at_once:
            put_all(changed, shard, store)
            changed = {}
    put_all(changed, shard, store)


def at_hand(shard: Shard, raw: Raw, record: Record) -> None:
    shard.source, shard.record = raw, record
    if record.timestamp > shard.stream_time:
        shard.stream_time = record.timestamp


def put_all(changed: dict[Any, Held], shard: Shard, store: Any) -> None:
    for key, (value, timestamp, record, raw) in changed.items():
        shard.record, shard.source = record, raw
        store.put(key, value, timestamp)
