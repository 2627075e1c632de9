"""A table's store while records come in columns: its values as they are, not as bytes, until the batch ends.

What was read or changed stands here; at the end of the batch each key that changed is written once. Without a cache
every change is told at once, to the changelog and to the next node; with one, the last change of each key is told at
the end, in the order of last changes: a batch is what Kafka Streams does between two commits.
"""

from __future__ import annotations

from typing import Any, Protocol

from moldau.serdes.primitive import BYTES, INTEGER, LONG, SHORT, STRING

from ..columns import Columns
from ..context import UNKNOWN_TIME
from ..record import Headers
from .spec import Opening, StoreSpec

THEMSELVES_AGAIN = tuple(map(id, (STRING, BYTES, SHORT, INTEGER, LONG)))
Value = tuple[Any, int]  # and its time; None for one that is not there
ABSENT: Value = (None, UNKNOWN_TIME)


class TableStore(Protocol):
    """What a store must be able to do beside single changes."""

    @property
    def cached(self) -> bool: ...

    def get(self, key: Any, /) -> Any: ...

    def write(self, key: Any, value: Any, timestamp: int, /) -> None:
        """Without telling anybody."""
        ...

    def tell_all(self, columns: Columns, /) -> None:
        """To the changelog."""
        ...


def can_take_columns(spec: StoreSpec, opening: Opening) -> bool:
    """Where keys and values are themselves again when they were written and read: text, bytes and whole numbers."""
    is_told = opening.on_change is None or opening.on_changes is not None
    return is_told and id(spec.key) in THEMSELVES_AGAIN and id(spec.value) in THEMSELVES_AGAIN


class Latest:
    __slots__ = ("_headers", "_store", "now")

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self.now: dict[Any, Value] = {}
        self._headers: dict[Any, Headers] = {}  # of the record of the last change, of keys that changed: in that order

    def get(self, key: Any) -> Value:
        found = self.now.get(key)
        if found is None:
            found = self.now[key] = self._store.get(key) or ABSENT
        return found

    def change(self, columns: Columns) -> Columns:
        """Takes changes that stand in `now` already; those that are told now."""
        last = {key: at for at, key in enumerate(columns.keys)}
        changed, headers = self._headers, columns.headers
        for key, at in sorted(last.items(), key=place):
            changed.pop(key, None)
            changed[key] = () if headers is None else headers[at]
        if self._store.cached:
            return NOTHING
        self._store.tell_all(columns)
        return columns

    def end(self) -> Columns:
        """Writes what has changed; what is told now."""
        changed, store, now = self._headers, self._store, self.now
        told = self._released() if store.cached else NOTHING
        for key in changed:
            store.write(key, *now[key])
        if told:
            store.tell_all(told)
        changed.clear()
        return told

    def _released(self) -> Columns:
        """A key that came and went in between is not mentioned."""
        keys = [key for key in self._headers if self.now[key][0] is not None or self._store.get(key) is not None]
        headers = [self._headers[key] for key in keys]
        values, times = [self.now[key][0] for key in keys], [self.now[key][1] for key in keys]
        return Columns(keys, values, times, headers if any(headers) else None)


def place(item: tuple[Any, int]) -> int:
    return item[1]


NOTHING = Columns([], [], [])
