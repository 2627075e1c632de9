"""The records of a batch, taken by an aggregate at once, where a cache stands behind it.

Of several changes of a key in a batch a cache lets the last one go. So it makes no difference if the store is asked
once for each key and told once, in the order of last changes, with the record that made the last one. That is so for
keys and values that are themselves again when they were written and read: text, bytes and whole numbers.
"""

from __future__ import annotations

from typing import Any

from moldau.serdes.context import Serde
from moldau.serdes.primitive import BYTES, INTEGER, LONG, SHORT, STRING

from .context import UNKNOWN_TIME, Shard
from .record import Raw, Record
from .stores.layers import OVERHEAD
from .stores.spec import Opening, StoreSpec

THEMSELVES_AGAIN = tuple(map(id, (STRING, BYTES, SHORT, INTEGER, LONG)))
Held = tuple[Any, int, Record, Raw]  # an aggregate, its time, the record that changed it last and its source
NOTHING = None, UNKNOWN_TIME


def is_itself_again(spec: StoreSpec) -> bool:
    """Whether keys and values of a store are."""
    serdes: tuple[Serde | None, ...] = spec.key, spec.value
    return all(id(one) in THEMSELVES_AGAIN for one in serdes)


def most_at_once(spec: StoreSpec, opening: Opening) -> int:
    """How many keys a store is told of at once: as many as its cache can hold; 0 if that would make a difference."""
    return opening.cache_bytes // OVERHEAD if is_itself_again(spec) else 0


def at_hand(shard: Shard, raw: Raw, record: Record) -> None:
    shard.source, shard.record = raw, record
    if record.timestamp > shard.stream_time:
        shard.stream_time = record.timestamp
