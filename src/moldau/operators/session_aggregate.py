"""Aggregates by session: KStreamSessionWindowAggregate.

A session has all records of a key between which no gap is longer than the windows' gap. A record begins a session, and
merges the sessions of its key that it touches: they are removed (each with a change to None), merged in the order of
their ends, and the record is added last. A record is late if the merged session ends before the observed time less
grace and gap. The timestamp of a change is the end of its session; it has no headers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .context import Context
from .record import Change, Record
from .stores.scalars import Observed
from .stores.session import SessionStore
from .window_aggregate import Aggregator, Initializer
from .windowed import Windowed
from .windows import SessionWindows

NEVER = -1

Merger = Callable[[Any, Any, Any], Any]  # key, one aggregate, the other


class SessionAggregate:
    def __init__(
        self,
        store: str,
        windows: SessionWindows,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
        *,
        final: bool = False,
        send_old: bool = False,
    ) -> None:
        self.store_name, self.final, self.send_old = store, final, send_old
        self.gap, self.linger = windows.gap_ms, windows.gap_ms + windows.grace_ms
        self.initializer, self.aggregator, self.merger = initializer, aggregator, merger

    def init(self, context: Context) -> None:
        self.context = context
        self.store: SessionStore = context.store(self.store_name)
        self.observed = Observed(self.store.scalars, f"{context.name} observed")
        self.closed_name = f"{context.name} closed"
        self.closed = self.store.scalars.get(self.closed_name, NEVER)
        if self.store.cached and not self.final:
            self.store.listen(self.released)

    def process(self, record: Record) -> None:
        if record.key is None:
            self.context.dropped("null key")
            return
        close = self.observed.see(record.timestamp) - self.linger
        self.aggregate(record, close)
        if self.final:
            self.emit_final(record, close)

    def aggregate(self, record: Record, close: int) -> None:
        key, start = record.key, record.timestamp
        end = start
        merged: list[tuple[Windowed, Any]] = []
        aggregate = self.initializer()
        for session, value in self.store.find_sessions(key, start - self.gap, start + self.gap):
            merged.append((session, value))
            aggregate = self.merger(key, aggregate, value)
            start, end = min(start, session.start), max(end, session.end)
        if end < close:
            self.context.dropped("late")
            return
        if (start, end) != (record.timestamp, record.timestamp):
            for session, value in merged:
                self.store.remove(session)
                self.emit(session, value, None)
        aggregate = self.aggregator(key, record.value, aggregate)
        session = Windowed(key, start, end)
        self.store.put(session, aggregate)
        self.emit(session, None, aggregate)

    def emit(self, session: Windowed, old: Any, new: Any) -> None:
        if not self.final and not self.store.cached:
            change = Change(new, old if self.send_old else None)
            self.context.emit(Record(session, change, session.end))

    def released(self, session: Windowed, new: Any, old: Any, cause: Record) -> None:
        change = Change(new, old if self.send_old else None)
        self.context.emit(Record(session, change, session.end, cause.headers))

    def emit_final(self, record: Record, close: int) -> None:
        first, last = max(0, self.closed), close - 1
        if (self.closed != NEVER and self.closed >= close) or last < first:
            return
        for session, value in self.store.find_ended(first, last):
            self.context.emit(Record(session, Change(value, None), session.end, record.headers))
        self.closed = close
        self.store.scalars.put(self.closed_name, close)
