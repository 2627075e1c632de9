"""What our stores hold at the end, as bytes, in the order of their iterators: rows as java/Contents.java makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.streams import TopologyTestDriver
from tests.streams.judge.case import Input, Row, Step


def contents(driver: TopologyTestDriver, steps: Sequence[Step]) -> dict[str, list[Row]]:
    found = {name: rows(store, steps) for name, store in driver.stores.items()}
    return {name: listed for name, listed in found.items() if listed is not None}


def rows(store: Any, steps: Sequence[Step]) -> list[Row] | None:
    """None of a store that Kafka does not show: a buffer."""
    match type(store).__name__:
        case "KeyValueStore" | "TimestampedKeyValueStore" | "LruStore":
            return list(store.bytes.range())
        case "WindowStore":
            return list(store.bytes.of_keys(None, None, 0, 2**63 - 1, False)) if store.bytes.window_size else None
        case "SessionStore":
            return list(store.layout.of_keys(None, None, store.visible_from(0), 2**63 - 1, False))
        case "VersionedStore":
            return versions(store, steps)
    return None


def versions(store: Any, steps: Sequence[Step]) -> list[Row]:
    records = [step for step in steps if isinstance(step, Input)]
    keys = sorted({record.key for record in records if record.key is not None})
    times = sorted({record.timestamp for record in records})
    return [(key, time, stamped(store.bytes.as_of(key, time))) for key in keys for time in times]


def stamped(version: Any) -> bytes | None:
    return None if version is None else version.timestamp.to_bytes(8, "big") + version.value
