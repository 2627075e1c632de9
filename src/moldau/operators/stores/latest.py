"""The entries of a table's store while records come in columns: as objects, not as bytes, until the batch ends.

What was read or changed is kept here; at the end of the batch each changed key is written once. Without a cache every
change goes at once to the changelog and to the next node. With a cache the last change of each key goes at the end, in
the order of last changes: a batch is what Kafka Streams does between two commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Protocol

from moldau.serdes.primitive import BYTES, INTEGER, LONG, SHORT, STRING

from ..columns import Columns
from ..context import UNKNOWN_TIME
from ..record import Headers
from .spec import Opening, StoreSpec

THEMSELVES_AGAIN = tuple(map(id, (STRING, BYTES, SHORT, INTEGER, LONG)))
ABSENT = (None, UNKNOWN_TIME)
UNCHANGED = -1


class Entry:
    """A key with its value (None if it is absent), its time, and the number of its last change."""

    __slots__ = ("change", "key", "time", "value")

    def __init__(self, key: Any, value: Any, time: int, change: int = UNCHANGED) -> None:
        self.key, self.value, self.time, self.change = key, value, time, change


class TableStore(Protocol):
    """What a store must be able to do besides single changes."""

    @property
    def cached(self) -> bool: ...

    def get(self, key: Any, /) -> Any: ...

    def write_all(self, entries: Sequence[Entry], /) -> None:
        """Write entries without logging or forwarding them."""
        ...

    def tell_all(self, columns: Columns, /) -> None:
        """Write changes to the changelog."""
        ...


def can_take_columns(spec: StoreSpec, opening: Opening) -> bool:
    """Return whether keys and values are the same after writing and reading: text, bytes and whole numbers, and what
    other serdes say of theirs. Keys that are equal must have the same bytes.
    """
    is_told = opening.on_change is None or opening.on_changes is not None
    return is_told and comes_again(spec.key, "keys_again") and comes_again(spec.value, "values_again")


def comes_again(serde: Any, attribute: str) -> bool:
    return id(serde) in THEMSELVES_AGAIN or getattr(serde, attribute, False) is True


class Latest:
    """The entries by key. `parts` has them by the two parts of a key, for operators on windows. Operators number the
    changes of a batch from `changes` on.
    """

    __slots__ = ("_store", "changes", "headers", "now", "parts")

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self.now: dict[Any, Entry] = {}
        self.parts: dict[Any, dict[Any, Entry]] = {}
        self.changes = 0
        self.headers: dict[int, Headers] = {}  # of changes, by number; those that have any

    def get(self, key: Any) -> Entry:
        entry = self.now.get(key)
        if entry is None:
            value, time = self._store.get(key) or ABSENT
            entry = self.now[key] = Entry(key, value, time)
        return entry

    def tell(self, changes: Columns) -> Columns:
        """Take note of changes that are in `now` already; return those that are forwarded now."""
        if changes.headers is not None:
            self.headers.update((at, some) for at, some in enumerate(changes.headers, self.changes) if some)
        self.changes += len(changes)
        if self._store.cached:
            return NOTHING
        self._store.tell_all(changes)
        return changes

    def end(self) -> Columns:
        """Write what has changed; return what is forwarded now."""
        changed = sorted([entry for entry in self.now.values() if entry.change != UNCHANGED], key=by_change)
        told = self._released(changed) if self._store.cached else NOTHING
        self._store.write_all(changed)
        if told:
            self._store.tell_all(told)
        for one in (self.now, self.parts, self.headers):
            one.clear()
        return told

    def _released(self, changed: list[Entry]) -> Columns:
        """Return the changes to forward, without keys that came and went in between."""
        get = self._store.get
        told = [entry for entry in changed if entry.value is not None or get(entry.key) is not None]
        keys, values, times = ([getattr(entry, name) for entry in told] for name in ("key", "value", "time"))
        headers = [self.headers.get(entry.change, ()) for entry in told] if self.headers else None
        return Columns(keys, values, times, headers)


by_change = attrgetter("change")
NOTHING = Columns([], [], [])
