"""Session stores: aggregates by key, start and end, seen by the time of their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moldau.serdes.context import Serde

from ..record import Record, Stamped
from ..windowed import LAST_TIME, Windowed
from .key_value import coders, required_key
from .pending import Pending
from .segments import Segments
from .session_bytes import BOUNDS, Entry, SessionsByKey, SessionsByTime
from .spec import Opening, StoreSpec


class SessionStore:
    versioned = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        assert spec.retention_ms is not None
        self.name = spec.name
        order: str = spec.part("order")
        self.segments = segments = Segments(opening.bytes, spec.retention_ms, order == "memory")
        self.scalars = segments.scalars
        self.layout = (SessionsByKey if order == "key" else SessionsByTime)(opening.bytes, segments)
        self._tell, self._shard = opening.on_change, opening.shard
        self._listener: Callable[[Windowed, Any, Any, Record], None] | None = None
        cached = opening.cache_bytes > 0
        self.pending = Pending(opening.cache_bytes, opening.shard, self.release) if cached else None
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)
        self.raw_key = required_key(self.write_key, self.name)

    def put(self, session: Windowed, value: Any) -> None:
        """Put a session; None removes it."""
        key, raw = self.raw_key(session.key), self._write(value)
        if self.pending is None:
            self.observe(session.end)
        else:
            self.segments.latest = max(self.segments.latest, session.end)
        self.tell(key, session, raw)
        if self.segments.keeps(session.end):
            self.layout.put(key, session.start, session.end, raw)

    def observe(self, end: int) -> None:
        if self.segments.observe(end):
            self.layout.expire()

    def remove(self, session: Windowed) -> None:
        key = self.raw_key(session.key)
        self.tell(key, session, None)
        self.layout.put(key, session.start, session.end, None)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        if end <= self.segments.observed - self.segments.retention:
            return None
        return self._read(self.layout.get(self.raw_key(key), start, end))

    def get(self, session: Windowed) -> Stamped | None:
        """Return the value of a session for look-ups in the table; its time is its end."""
        found = self.fetch_session(session.key, session.start, session.end)
        return None if found is None else Stamped(found, session.end)

    def find_sessions(
        self, key: Any, earliest_end: int, latest_start: int, reverse: bool = False
    ) -> Iterator[tuple[Windowed, Any]]:
        """Return the sessions of a key that end and start within these bounds, in the order of their ends."""
        found = self.layout.of_key(self.raw_key(key), self.visible_from(earliest_end), latest_start, reverse)
        return self.decoded(found)

    def find_sessions_of_keys(
        self, low: Any, high: Any, earliest_end: int, latest_start: int, reverse: bool = False
    ) -> Iterator[tuple[Windowed, Any]]:
        first = self.visible_from(earliest_end)
        return self.decoded(
            self.layout.of_keys(self.write_key(low), self.write_key(high), first, latest_start, reverse)
        )

    def find_ended(self, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Return the sessions of all keys that ended between two times."""
        return self.decoded(self.layout.ended(first, last))

    def fetch(self, key: Any, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        """Return all sessions of a key."""
        return self.find_sessions(key, 0, LAST_TIME, reverse)

    def fetch_keys(self, low: Any = None, high: Any = None, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self.find_sessions_of_keys(low, high, 0, LAST_TIME, reverse)

    def all(self, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_keys(None, None, reverse)

    def approximate_count(self) -> int:
        return self.layout.content.approximate_count()

    @property
    def cached(self) -> bool:
        return self.pending is not None

    def listen(self, listener: Callable[[Windowed, Any, Any, Record], None]) -> None:
        """Set who learns of new and old values of sessions when the cache lets them go."""
        self._listener = listener

    def flush(self) -> None:
        if self.pending is not None:
            self.pending.flush()

    def visible_from(self, time: int) -> int:
        return max(0, time, self.segments.observed - self.segments.retention + 1)

    def decoded(self, found: Iterator[Entry]) -> Iterator[tuple[Windowed, Any]]:
        for key, start, end, value in found:
            yield Windowed(self.read_key(key), start, end), self._read(value)

    def tell(self, key: bytes, session: Windowed, raw: bytes | None) -> None:
        if self.pending is not None:
            old = self.layout.get(key, session.start, session.end)
            self.pending.add(key + BOUNDS.pack(session.end, session.start), old, raw)
        elif self._tell is not None:
            self._tell(key + BOUNDS.pack(session.end, session.start), raw, self._shard.record.timestamp)

    def release(self, place: bytes, new: bytes | None, old: bytes | None, cause: Record) -> None:
        """Pass on a change that was held back. Only now the store observes its time."""
        end, start = BOUNDS.unpack_from(place, len(place) - 16)
        self.observe(end)
        if not self.segments.keeps(end):
            self.layout.put(place[:-16], start, end, None)
        if self._tell is not None:
            self._tell(place, new, cause.timestamp)
        if self._listener is not None:
            session = Windowed(self.read_key(place[:-16]), start, end)
            self._listener(session, self._read(new), self._read(old), cause)


def session(
    name: str,
    retention_ms: int,
    key: Serde | None = None,
    value: Serde | None = None,
    *,
    final: bool = False,
    persistent: bool = True,
    **options: Any,
) -> StoreSpec:
    """Specify a session store: `final` if it emits sessions when they close."""
    order = ("time" if final else "key") if persistent else "memory"
    options |= {"persistent": persistent, "retention_ms": retention_ms, "parts": (("order", order),)}
    return StoreSpec(name, "session", SessionStore, key, value, **options)
