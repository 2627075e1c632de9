"""From a changelog back into a store: the bytes of a record's key, value and time put where the store keeps them.

The formats of keys are Kafka's, kind by kind: `key`; `key, start, sequence` of a window; `key, end, start` of a
session.
"""

from __future__ import annotations

from typing import Any

from .key_value import KeyValueStore
from .layers import STAMP
from .session_bytes import BOUNDS
from .spec import OnChange, Opening, StoreSpec
from .window_bytes import SUFFIX

LRU = "lru"


def opened(spec: StoreSpec, opening: Opening) -> Any:
    """The store, for those who fill it from its changelog and look things up; `opening` tells nobody of changes. What a
    store of a limited number of entries forgot, its changelog says; so here it needs no limit.
    """
    assert opening.on_change is None and not opening.cache_bytes
    return KeyValueStore(spec, opening) if spec.kind == LRU else spec.open(spec, opening)


def restorer(spec: StoreSpec, store: Any) -> OnChange | None:
    """What takes in a record of the changelog; None for a store of a kind that is not for look-ups."""
    made = MADE.get(spec.kind)
    return None if made is None else made(spec, store)


def plain(spec: StoreSpec, store: Any) -> OnChange:
    put = store.bytes.put
    return lambda key, value, timestamp: put(key, value)


def stamped(spec: StoreSpec, store: Any) -> OnChange:
    put, pack = store.bytes.put, STAMP.pack
    return lambda key, value, timestamp: put(key, None if value is None else pack(timestamp) + value)


def windowed(spec: StoreSpec, store: Any) -> OnChange:
    put, with_time = store.bytes.put, spec.part("stamped")

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        if len(key) < SUFFIX.size:
            return  # nothing that a window store wrote
        if with_time and value is not None:
            value = STAMP.pack(timestamp) + value
        put(key[: -SUFFIX.size], value, SUFFIX.unpack_from(key, len(key) - SUFFIX.size)[0])

    return restore


def sessions(spec: StoreSpec, store: Any) -> OnChange:
    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        if len(key) < BOUNDS.size:
            return
        end, start = BOUNDS.unpack_from(key, len(key) - BOUNDS.size)
        store.observe(end)
        if value is None or store.is_kept(end):
            store.layout.put(key[: -BOUNDS.size], start, end, value)

    return restore


def versions(spec: StoreSpec, store: Any) -> OnChange:
    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        store.bytes.put(key, value, timestamp)

    return restore


MADE = {
    "key-value": plain,
    LRU: plain,
    "timestamped-key-value": stamped,
    "window": windowed,
    "timestamped-window": windowed,
    "session": sessions,
    "versioned-key-value": versions,
}
