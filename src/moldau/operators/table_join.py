"""Joins of tables by key. Each side looks up the other one; the results meet in one node, the table of the join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from .columns import Columns
from .context import UNKNOWN_TIME, Context
from .record import Change, Record, Stamped
from .table import Stored, store_all
from .views import Lookup, View, latest_of

Joiner = Callable[[Any, Any, Any], Any]  # key, this side's value, the other's
Side = Literal["inner", "left", "right", "outer"]


class TableJoin:
    """One side of a join. In an inner join both sides are "inner", in a left join they are "left" and "right", in an
    outer join both are "outer". The joiner gets this side first.
    """

    def __init__(self, side: Side, other: View, joiner: Joiner, send_old: bool, versioned: bool) -> None:
        self.other, self.joiner, self.send_old, self.versioned = other, joiner, send_old, versioned
        self.alone = side in ("left", "outer")  # a value of this side counts without one of the other
        self.without = side in ("right", "outer")  # and the other's counts without one of this side

    def init(self, context: Context) -> None:
        self.context = context
        self.lookup = self.other.open(context)
        self.latest = None if self.send_old or self.versioned else latest_of(self.lookup)
        self.in_columns = self.latest is not None

    def process_all(self, columns: Columns) -> Columns:
        """Join without old values, which are not needed where columns are used."""
        assert self.latest is not None
        found = list(map(self.latest.get, columns.keys))
        pairs = enumerate(zip(columns.values, found, strict=True))
        alone = self.alone
        chosen = [at for at, (mine, other) in pairs if other.value is not None or (alone and mine is not None)]
        columns, found = columns.where(chosen), [found[at] for at in chosen]
        values = list(map(self.joined, columns.keys, columns.values, [other.value for other in found]))
        both = zip(columns.timestamps, found, strict=True)
        times = [other.time if other.value is not None and other.time > time else time for time, other in both]
        return Columns(columns.keys, values, times, columns.headers)

    def process(self, record: Record) -> None:
        key, change = record.key, record.value
        if key is None:
            self.context.dropped("null key")
            return
        if self.versioned and not change.latest:
            self.context.dropped("out-of-order record of a versioned table")
            return
        found = self.lookup.get(key)
        other = None if found is None else found.value
        if other is None and (not self.alone or (change.new is None and change.old is None)):
            return
        timestamp = max(record.timestamp, UNKNOWN_TIME if found is None else found.timestamp)
        new = self.joined(key, change.new, other)
        old = self.joined(key, change.old, other) if self.send_old else None
        self.context.emit(Record(key, Change(new, old, change.latest), timestamp, record.headers))

    def joined(self, key: Any, mine: Any, other: Any) -> Any:
        if mine is not None or (self.without and other is not None):
            return self.joiner(key, mine, other)
        return None


class JoinedTable:
    """The node where both sides of a join meet. It stores the result if it has a store."""

    keeps = True

    def __init__(self, store: str | None, send_old: bool) -> None:
        self.stored = Stored(store, send_old)

    def init(self, context: Context) -> None:
        self.stored.init(context)
        self.store, self.in_columns = self.stored.store, self.stored.in_columns

    def process_all(self, columns: Columns) -> Columns:
        return store_all(self.store, columns)

    def process(self, record: Record) -> None:
        change = record.value
        self.stored.take(record, change.new, change.old if self.stored.send_old else None)


class JoinLookup:
    """A look-up in a join without a store: both sides are looked up and joined."""

    versioned = False

    def __init__(self, side: Side, left: Lookup, right: Lookup, joiner: Joiner) -> None:
        self.side, self.left, self.right, self.joiner = side, left, right, joiner

    def get(self, key: Any) -> Stamped | None:
        left, right = self.left.get(key), self.right.get(key)
        mine, other = (None if found is None else found.value for found in (left, right))
        if (mine is None and self.side != "outer") or (other is None and self.side == "inner"):
            return None
        if mine is None and other is None:
            return None
        value = self.joiner(key, mine, other)
        times = (found.timestamp for found in (left, right) if found is not None)
        return None if value is None else Stamped(value, max(times))

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        raise AssertionError("a join is not versioned")


def join_view(side: Side, left: View, right: View, joiner: Joiner) -> View:
    stores = tuple(dict.fromkeys((*left.stores, *right.stores)))
    return View(stores, lambda context: JoinLookup(side, left.open(context), right.open(context), joiner))
