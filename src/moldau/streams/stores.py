"""Stores for processors (`add_state_store`) and for tables (`store=`): Kafka's Stores.

Serdes that are not given here are those of the place where the store is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from moldau.operators.context import TopologyError
from moldau.operators.durations import Duration, milliseconds
from moldau.operators.stores import key_value, lru, session, versioned, window
from moldau.operators.stores.spec import StoreSpec

from .materialized import logging
from .serdes import SerdeLike


class StoreDetails(TypedDict, total=False):
    key: SerdeLike
    value: SerdeLike
    logging: bool | Mapping[str, str]


def persistent_key_value_store(name: str, **details: Unpack[StoreDetails]) -> StoreSpec:
    return key_value.key_value(name, **options(details))


def in_memory_key_value_store(name: str, **details: Unpack[StoreDetails]) -> StoreSpec:
    return key_value.key_value(name, **options(details), persistent=False)


def lru_map(name: str, max_entries: int, **details: Unpack[StoreDetails]) -> StoreSpec:
    """Make a store that keeps so many entries, and drops the least recently used one first."""
    if max_entries < 1:
        raise TopologyError(f"max_entries of the store {name} must be at least 1, not {max_entries}")
    return lru.lru(name, max_entries, **options(details), persistent=False)


def persistent_timestamped_key_value_store(name: str, **details: Unpack[StoreDetails]) -> StoreSpec:
    return key_value.timestamped_key_value(name, **options(details))


def persistent_versioned_key_value_store(
    name: str,
    history_retention: Duration,
    segment_interval: Duration | None = None,
    **details: Unpack[StoreDetails],
) -> StoreSpec:
    """Make a store of values with the times from which they are valid, kept for `history_retention`."""
    retention = milliseconds(history_retention, f"history_retention of {name}")
    interval = None if segment_interval is None else milliseconds(segment_interval, f"segment_interval of {name}")
    if interval is not None and interval < 1:
        raise TopologyError(f"segment_interval of {name} cannot be zero or negative")
    return versioned.versioned(name, retention, segment_interval_ms=interval, **options(details))


class WindowStores:
    """The function that makes window stores of one kind."""

    def __init__(self, **kind: bool) -> None:
        self.kind: Any = kind

    def __call__(
        self,
        name: str,
        retention: Duration,
        window_size: Duration,
        *,
        retain_duplicates: bool = False,
        **details: Unpack[StoreDetails],
    ) -> StoreSpec:
        size = milliseconds(window_size, f"window_size of {name}")
        kept = milliseconds(retention, f"retention of {name}")
        if kept < size:
            raise TopologyError(
                f"the retention of the window store {name}, {kept} ms, is less than its window size, {size} ms"
            )
        return window.window(name, size, kept, duplicates=retain_duplicates, **self.kind, **options(details))


persistent_window_store = WindowStores()
persistent_timestamped_window_store = WindowStores(stamped=True)
in_memory_window_store = WindowStores(persistent=False)


def persistent_session_store(name: str, retention: Duration, **details: Unpack[StoreDetails]) -> StoreSpec:
    return session.session(name, milliseconds(retention, f"retention of {name}"), **options(details))


def in_memory_session_store(name: str, retention: Duration, **details: Unpack[StoreDetails]) -> StoreSpec:
    kept = milliseconds(retention, f"retention of {name}")
    return session.session(name, kept, persistent=False, **options(details))


def options(details: StoreDetails) -> dict[str, Any]:
    """Return serdes and settings of the changelog as options of a store's spec."""
    return {"key": details.get("key"), "value": details.get("value"), **logging(details.get("logging", True))}
