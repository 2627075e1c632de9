"""Joins of two streams by key and time: KStreamJoinWindow and KStreamKStreamJoin.

A record is joined with those of the other side whose timestamps are within the windows, in the order of their time, and
then kept for those that come later. The result has the later of both timestamps, and the headers of the current record.

In a left or outer join a record without a match waits in a store that both sides share until no match can come any
more: when the time of both streams together has passed its window and the grace. If its window is over when it comes,
it does not wait. The store is checked when a record is at the stream time or later, by these rules (Kafka 4.3):
- not before the earliest known waiting record could be due by the window of the current side;
- in the order of timestamps, then the right side first, then by key; it ends with the first record after both sides
  were seen to have open windows. That record counts as the earliest known from then on. So a record of a left join may
  wait a little longer than necessary, as in Kafka.
Kafka checks once a second (`__emit.interval.ms.kstreams.outer.join.spurious.results.fix`); here every record does, as
with that setting at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .context import Context
from .record import Record
from .stores.outer import OuterStore
from .stores.window import WindowStore
from .windows import JoinWindows

Joiner = Callable[[Any, Any, Any], Any]  # key, left value, right value


class StreamWindow:
    """Keeps the records of one side. The join comes first, so in a self-join a record does not find itself."""

    def __init__(self, store: str) -> None:
        self.store_name = store

    def init(self, context: Context) -> None:
        self.context = context
        self.store: WindowStore = context.store(self.store_name)

    def process(self, record: Record) -> None:
        self.context.emit(record)
        if record.key is not None:
            self.store.put(record.key, record.value, record.timestamp)


class StreamJoin:
    """One side of a join. `other` is the store of the other side's records, `waiting` the one that both sides share."""

    def __init__(
        self, other: str, windows: JoinWindows, joiner: Joiner, *, left: bool, outer: bool, waiting: str | None = None
    ) -> None:
        self.other_name, self.waiting_name = other, waiting
        self.joiner, self.left, self.outer = joiner, left, outer
        self.before, self.after = windows.before_ms, windows.after_ms
        if not left:
            self.before, self.after = self.after, self.before
        self.grace = windows.grace_ms
        # how long a waiting record of each side can still find a match
        self.look_ahead = {True: windows.after_ms + windows.grace_ms, False: windows.before_ms + windows.grace_ms}

    def init(self, context: Context) -> None:
        self.context = context
        self.other: WindowStore = context.store(self.other_name)
        self.waiting: OuterStore | None = None if self.waiting_name is None else context.store(self.waiting_name)

    def process(self, record: Record) -> None:
        key, value, timestamp = record.key, record.value, record.timestamp
        waiting = self.waiting
        if waiting is not None and timestamp > waiting.stream_time:
            waiting.advance(timestamp)
        if key is None or value is None:
            if self.outer and value is not None:
                self.emit_alone(record)
            else:
                self.context.dropped("null key or value")
            return
        if waiting is not None and timestamp == waiting.stream_time:
            self.emit_waiting(record, waiting)
        if not self.join(record, waiting) and self.outer:
            if waiting is None or max(0, timestamp + self.after) < waiting.stream_time:
                self.emit_alone(record)
            else:
                waiting.put(timestamp, self.left, key, value)

    def join(self, record: Record, waiting: OuterStore | None) -> bool:
        key, value, timestamp = record.key, record.value, record.timestamp
        joined = False
        first, last = max(0, timestamp - self.before), max(0, timestamp + self.after)
        for time, other in self.other.fetch_range(key, first, last):
            joined = True
            if waiting is not None:
                waiting.forget(time, not self.left, key)
            result = self.joiner(key, value, other) if self.left else self.joiner(key, other, value)
            self.context.emit(Record(key, result, max(timestamp, time), record.headers))
        return joined

    def emit_alone(self, record: Record) -> None:
        self.context.emit(record.with_value(self.lonely(self.left, record.key, record.value)))

    def lonely(self, left: bool, key: Any, value: Any) -> Any:
        return self.joiner(key, value, None) if left else self.joiner(key, None, value)

    def emit_waiting(self, record: Record, waiting: OuterStore) -> None:
        now = waiting.stream_time
        if waiting.earliest + self.after + self.grace >= now:
            return
        is_open = {True: False, False: False}
        earliest: int | None = None
        for entry in waiting.entries():
            earliest = entry.timestamp
            if is_open[True] and is_open[False]:
                break
            if entry.timestamp + self.look_ahead[entry.left] >= now:
                is_open[entry.left] = True
                continue
            for value in waiting.values(entry):
                result = self.lonely(entry.left, entry.key, value)
                self.context.emit(Record(entry.key, result, entry.timestamp, record.headers))
            waiting.remove(entry)
        waiting.expect(earliest)
