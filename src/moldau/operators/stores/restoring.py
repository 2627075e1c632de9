"""Restoring a store from its changelog: the key, value and time of each record are put where the store keeps them.

The formats of keys are Kafka's: `key`; `key, start, sequence` of a window; `key, end, start` of a session. `restorer`
is enough for look-ups. A shard that has lost its state needs `rebuilder`, which also restores the buffers that hold
records back, and the numbers that stores keep beside their data, which are not in changelogs (`scalars.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..context import Shard, TopologyError
from .key_value import KeyValueStore
from .layers import STAMP
from .ordered import OrderedBytes
from .scalars import INT64, NUMBER
from .segments import DATA, INDEX
from .session_bytes import BOUNDS
from .spec import OnChange, Opening, StoreSpec
from .window_bytes import SUFFIX

LRU = "lru"
TIME_BYTES = 8
WITHOUT_NUMBERS = frozenset({"key-value", "timestamped-key-value", LRU})


def opened(spec: StoreSpec, opening: Opening) -> Any:
    """Open a store that is filled from its changelog for look-ups; `opening` reports no changes. An LRU store needs no
    limit here: its changelog says what was removed.
    """
    assert opening.on_change is None and not opening.cache_bytes
    return KeyValueStore(spec, opening) if spec.kind == LRU else spec.open(spec, opening)


def restorer(spec: StoreSpec, store: Any) -> OnChange | None:
    """Return what takes in a record of the changelog; None for a kind of store that has no look-ups."""
    make = RESTORERS.get(spec.kind)
    return None if make is None else make(spec, store)


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
        if value is None or store.segments.keeps(end):
            store.layout.put(key[: -BOUNDS.size], start, end, value)

    return restore


def versions(spec: StoreSpec, store: Any) -> OnChange:
    return store.bytes.put


RESTORERS = {
    "key-value": plain,
    LRU: plain,
    "timestamped-key-value": stamped,
    "window": windowed,
    "timestamped-window": windowed,
    "session": sessions,
    "versioned-key-value": versions,
}


def rebuilder(spec: StoreSpec, content: OrderedBytes) -> OnChange:
    """Return what takes in all records of the changelog, in their order, for a store that will be used again."""
    if spec.kind in BUFFERS:
        return BUFFERS[spec.kind](content)
    made = restorer(spec, spec.open(spec, Opening("", content, None, Shard())))
    if made is None:
        raise TopologyError(f"the store {spec.name} is of a kind that cannot be restored ({spec.kind})")
    return made


def held_back(content: OrderedBytes) -> OnChange:
    """Restore the store of suppress: a value is the change, followed by the time since which it is held back."""

    def restore(key: bytes, value: bytes | None, timestamp: int) -> None:
        before = content.get(INDEX + key)
        if before is not None:
            content.put(DATA + before + key, None)
        since = None if value is None else value[-TIME_BYTES:]
        content.put(INDEX + key, since)
        if value is not None and since is not None:
            content.put(DATA + since + key, value[:-TIME_BYTES])

    return restore


def in_order_of_time(content: OrderedBytes) -> OnChange:
    """Restore a buffer whose changelog has the places of its entries as keys."""
    return lambda key, value, timestamp: content.put(DATA + key, value)


BUFFERS = {"suppress": held_back, "grace": in_order_of_time, "outer-join": in_order_of_time}


def numbers(spec: StoreSpec, content: OrderedBytes) -> dict[str, int]:
    """Return the numbers that a store keeps beside its data."""
    if spec.kind in WITHOUT_NUMBERS:
        return {}
    return {key[1:].decode(): INT64.unpack(value)[0] for key, value in content.range(NUMBER, DATA)}


def put_numbers(content: OrderedBytes, found: Mapping[str, int]) -> None:
    """Put the numbers of a store. The next duplicate of a window comes after those that were logged."""
    sequence = {"sequence": found["logged"]} if "logged" in found else {}
    for name, number in {**found, **sequence}.items():
        content.put(NUMBER + name.encode(), INT64.pack(number))
