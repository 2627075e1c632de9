"""A stream joined with a table: each record is joined with the current value, or in a versioned table with that of its
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .columns import Columns
from .context import Context
from .record import Record
from .views import View, value_finder

Joiner = Callable[[Any, Any, Any], Any]  # key, the stream's value, the table's


class StreamTableJoin:
    """The join of a stream with a table. For global tables `key_of` returns the key to look up."""

    def __init__(
        self, table: View, joiner: Joiner, left: bool, key_of: Callable[[Any, Any], Any] | None = None
    ) -> None:
        self.table, self.joiner, self.left, self.key_of = table, joiner, left, key_of

    def init(self, context: Context) -> None:
        self.context = context
        self.emit = context.emit
        self.lookup = self.table.open(context)
        self.find = self.lookup.get
        self.find_value = None if self.key_of is not None else value_finder(self.lookup)
        self.in_columns = self.find_value is not None

    def process_all(self, columns: Columns) -> Columns:
        assert self.find_value is not None
        columns = self.complete(columns)
        find = self.find_value
        found = [None if key is None else find(key) for key in columns.keys]
        if not self.left and None in found:
            chosen = [at for at, value in enumerate(found) if value is not None]
            columns, found = columns.where(chosen), [found[at] for at in chosen]
        values = list(map(self.joiner, columns.keys, columns.values, found))
        return Columns(columns.keys, values, columns.timestamps, columns.headers)

    def complete(self, columns: Columns) -> Columns:
        if None not in columns.keys and None not in columns.values:
            return columns
        pairs = enumerate(zip(columns.keys, columns.values, strict=True))
        chosen = [at for at, (key, value) in pairs if value is not None and (key is not None or self.left)]
        return columns.keep(chosen, self.context, "null key or value")

    def process(self, record: Record) -> None:
        value = record.value
        key = record.key if self.key_of is None else self.key_of(record.key, value)
        if value is None or (key is None and not self.left):
            self.context.dropped("null key or value")
            return
        self.join(record, key)

    def join(self, record: Record, key: Any) -> None:
        found = None
        if key is not None:
            found = self.lookup.as_of(key, record.timestamp) if self.lookup.versioned else self.find(key)
        if found is not None or self.left:
            joined = self.joiner(record.key, record.value, None if found is None else found.value)
            self.emit(Record(record.key, joined, record.timestamp, record.headers))
