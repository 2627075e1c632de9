"""A stream that waits for a versioned table: KStreamKTableJoin with a grace period.

A record waits until the stream's time is later than its own by the grace. It is then joined with what was valid in the
table at its time. Records that are due go in the order of timestamp and key. One that comes later than the grace does
not wait. The observed time is that of the records that waited.
"""

from __future__ import annotations

from .context import Context
from .record import Record
from .stores.waiting import GraceStore
from .stream_join import Joiner
from .views import View


class GraceJoin:
    def __init__(self, store: str, table: View, joiner: Joiner, left: bool) -> None:
        self.store_name, self.table, self.joiner, self.left = store, table, joiner, left

    def init(self, context: Context) -> None:
        self.context = context
        self.store: GraceStore = context.store(self.store_name)
        self.lookup = self.table.open(context)

    def process(self, record: Record) -> None:
        if record.value is None or (record.key is None and not self.left):
            self.context.dropped("null join key or value")
        elif record.key is None:
            self.join(record)
        elif self.store.put(record, self.context.source):
            for due, origin in self.store.due():
                with self.context.standing_at(origin.source()):
                    self.join(due)
        else:
            self.join(record)

    def join(self, record: Record) -> None:
        found = None if record.key is None else self.lookup.as_of(record.key, record.timestamp)
        if self.left or found is not None:
            value = None if found is None else found.value
            self.context.emit(record.with_value(self.joiner(record.key, record.value, value)))
