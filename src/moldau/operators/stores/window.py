"""Window stores, plain and with the time of each value, and with duplicates for joins.

A window is identified by its key and start; all windows of a store have one size. Which windows are visible depends on
the time that the store has observed (`segments.py`), and their order on its layout (`window_bytes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from moldau.serdes.context import Serde

from ..columns import Columns
from ..record import Record
from ..windowed import LAST_TIME, Windowed
from ..windowed_serdes import TimeWindowedSerde
from .key_value import coders, stamped_reader
from .latest import Entry, Latest, can_take_columns
from .layers import STAMP, STAMP_SIZE
from .pending import Pending
from .segments import Segments
from .spec import Opening, StoreSpec
from .window_bytes import SUFFIX, ByKey, ByTime

Listener = Callable[[bytes, int, bytes | None, bytes | None, Record], None]  # key, start, new, old, cause
Order = Literal["key", "time", "memory"]  # of a store on disk, of one that emits closed windows, of one in memory


class WindowBytes:
    """The part of a window store that knows only bytes."""

    __slots__ = (
        "_shard", "_stamped", "_tell", "duplicates", "layout", "listener", "logged", "order", "pending", "segments",
        "sequence", "slack", "window_size",
    )  # fmt: skip

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        assert spec.retention_ms is not None
        self.window_size: int = spec.part("window_size_ms")
        self.duplicates: bool = spec.part("duplicates")
        self.order: Order = spec.part("order")
        self.segments = Segments(opening.bytes, spec.retention_ms, self.order == "memory")
        indexed = self.order == "memory" or spec.part("indexed")
        by_key = self.order == "key"
        self.layout = ByKey(opening.bytes, self.segments) if by_key else ByTime(opening.bytes, self.segments, indexed)
        self.slack = 0 if self.order == "time" else 1
        self.sequence = self.segments.scalars.get("sequence", 0)  # of duplicates
        self.logged = self.segments.scalars.get("logged", 0)  # in the changelog, which counts those of None too
        self._tell, self._shard, self._stamped = opening.on_change, opening.shard, spec.part("stamped")
        self.listener: Listener | None = None
        cached = opening.cache_bytes and not self.duplicates
        self.pending = Pending(opening.cache_bytes, opening.shard, self.release) if cached else None

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        if self.duplicates:
            self.put_duplicate(key, value, start)
            return
        if self.pending is not None:
            self.segments.latest = max(self.segments.latest, start)
            self.pending.add(key + SUFFIX.pack(start, 0), self.get(key, start), value)
            self.layout.put(key, start, 0, value)
            return
        self.observe(start)
        if self._tell is not None:
            self.log(key + SUFFIX.pack(start, 0), value)
        if self.segments.keeps(start):
            self.layout.put(key, start, 0, value)

    def write_all(self, keys: Iterable[bytes], values: Iterable[bytes], starts: Sequence[int]) -> None:
        """Write past cache and changelog, into a store ordered by key."""
        layout, distinct = self.layout, set(starts)
        assert isinstance(layout, ByKey)
        self.observe(max(distinct))
        keeps, put = self.segments.keeps, layout.content.put
        around = {start: layout.around(start) for start in distinct if keeps(start)}
        for key, value, start in zip(keys, values, starts, strict=True):
            found = around.get(start)
            if found is not None:
                put(found[0] + key + found[1], value)

    def put_duplicate(self, key: bytes, value: bytes | None, start: int) -> None:
        """Add a value to a window; None adds nothing, but is logged."""
        if value is not None:
            self.sequence = (self.sequence + 1) & 0x7FFFFFFF
            self.segments.scalars.put("sequence", self.sequence)
        if value is not None or self.order == "memory":  # which has observed the time before it looks at the value
            self.observe(start)
        if value is not None and self.segments.keeps(start):
            self.layout.put(key, start, self.sequence, value)
        if self._tell is not None:
            self.logged = (self.logged + 1) & 0x7FFFFFFF
            self.segments.scalars.put("logged", self.logged)
            self.log(key + SUFFIX.pack(start, self.logged), value)

    def observe(self, start: int) -> None:
        if self.segments.observe(start):
            self.layout.expire()

    def release(self, place: bytes, new: bytes | None, old: bytes | None, cause: Record) -> None:
        """Pass on a change that was held back. Only now the store observes its time."""
        key, start = place[:-12], SUFFIX.unpack_from(place, len(place) - 12)[0]
        self.observe(start)
        if not self.segments.keeps(start):
            self.layout.put(key, start, 0, None)
        if self._tell is not None:
            self.log(place, new)
        if self.listener is not None:
            self.listener(key, start, new, old, cause)

    def log(self, place: bytes, value: bytes | None) -> None:
        assert self._tell is not None
        if value is None or not self._stamped:
            self._tell(place, value, self._shard.record.timestamp)
        else:
            self._tell(place, value[STAMP_SIZE:], STAMP.unpack_from(value)[0])

    def visible_from(self, time: int) -> int:
        return max(0, time, self.segments.observed - self.segments.retention + self.slack)

    def get(self, key: bytes, start: int) -> bytes | None:
        if start < self.segments.observed - self.segments.retention + self.slack:
            return None
        if self.duplicates and self.order == "memory":
            return None  # a window has many values
        return self.layout.content.get(self.layout.place(key, start, self.sequence))

    def of_key(self, key: bytes, first: int, last: int, reverse: bool) -> Iterator[tuple[int, bytes]]:
        first = self.visible_from(first)
        return self.layout.of_key(key, first, last, reverse) if first <= last else iter(())

    def of_keys(
        self, lowest: bytes | None, highest: bytes | None, first: int, last: int, reverse: bool
    ) -> Iterator[tuple[bytes, int, bytes]]:
        first = self.visible_from(first)
        return self.layout.of_keys(lowest, highest, first, last, reverse) if first <= last else iter(())


class WindowStore:
    """Values by key and start of window. A stamped store, as windowed tables have it, takes and returns `Stamped`
    values, with the time of the latest record in them: eight bytes before the value.
    """

    versioned = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        self.name = spec.name
        self.bytes = WindowBytes(spec, opening)
        self.scalars = self.bytes.segments.scalars
        self.stamped: bool = spec.part("stamped")
        self.in_columns = can_take_columns(spec, opening) and self.stamped and spec.part("order") == "key"
        self._tell_all, self._serdes = opening.on_changes, (TimeWindowedSerde(spec.key, 0, changelog=True), spec.value)
        self.latest = Latest(self)
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)
        self.unpack = stamped_reader(self._read) if self.stamped else self._read
        self._key: str | None = None  # that was last written: windows of one record have one key
        self._raw = b""

    def put(self, key: Any, value: Any, start: int) -> None:
        """Put a value; None deletes, or does nothing in a store with duplicates."""
        if self.stamped and value is not None:
            raw = self._write(value.value)
            self.bytes.put(self.raw_key(key), None if raw is None else STAMP.pack(value.timestamp) + raw, start)
        else:
            self.bytes.put(self.raw_key(key), self._write(value), start)

    def write_all(self, entries: Sequence[Entry]) -> None:
        """Write past cache and changelog."""
        if entries:
            keys = [self.raw_key(entry.key.key) for entry in entries]
            values = [STAMP.pack(entry.time) + (self._write(entry.value) or b"") for entry in entries]
            self.bytes.write_all(keys, values, [entry.key.start for entry in entries])

    def tell_all(self, columns: Columns) -> None:
        if self._tell_all is not None:
            self._tell_all(columns, *self._serdes)

    def fetch(self, key: Any, start: int) -> Any:
        """Return the value of the window that starts then."""
        if start > self.bytes.segments.latest:  # many windows are looked up when they begin
            return None
        return self.unpack(self.bytes.get(self.raw_key(key), start))

    def get(self, key: Windowed) -> Any:
        """Return the value of a windowed key, for look-ups in the table."""
        return self.fetch(key.key, key.start)

    def fetch_range(
        self, key: Any, first: int, last: int = LAST_TIME, reverse: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """Yield the windows of a key that start between two times, both inclusive, with their starts."""
        for start, value in self.bytes.of_key(self.raw_key(key), first, last, reverse):
            yield start, self.unpack(value)

    def fetch_keys(
        self, low: Any, high: Any, first: int, last: int = LAST_TIME, reverse: bool = False
    ) -> Iterator[tuple[Windowed, Any]]:
        """Yield the windows of the keys between two, both inclusive, None is open."""
        size = self.bytes.window_size
        for key, start, value in self.bytes.of_keys(self.write_key(low), self.write_key(high), first, last, reverse):
            yield Windowed(self.read_key(key), start, min(start + size, LAST_TIME)), self.unpack(value)

    def fetch_all(self, first: int, last: int = LAST_TIME, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_keys(None, None, first, last, reverse)

    def all(self, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_keys(None, None, 0, LAST_TIME, reverse)

    def approximate_count(self) -> int:
        return self.bytes.layout.content.approximate_count()

    @property
    def cached(self) -> bool:
        return self.bytes.pending is not None

    def listen(self, listener: Callable[[Windowed, Any, Any, Record], None]) -> None:
        """Set who learns of new and old values of windows when the cache lets them go."""
        size = self.bytes.window_size

        def released(key: bytes, start: int, new: bytes | None, old: bytes | None, cause: Record) -> None:
            place = Windowed(self.read_key(key), start, min(start + size, LAST_TIME))
            listener(place, self.unpack(new), self.unpack(old), cause)

        self.bytes.listener = released

    def flush(self) -> None:
        if self.bytes.pending is not None:
            self.bytes.pending.flush()

    def raw_key(self, key: Any) -> bytes:
        if key is self._key and key is not None:
            return self._raw
        raw = self.write_key(key)
        if raw is None:
            raise ValueError(f"the key of an entry of the store {self.name} must not be None")
        if type(key) is str:  # others may change while they are the same
            self._key, self._raw = key, raw
        return raw


def window(
    name: str,
    window_size_ms: int,
    retention_ms: int,
    key: Serde | None = None,
    value: Serde | None = None,
    *,
    duplicates: bool = False,
    stamped: bool = False,
    final: bool = False,
    indexed: bool = False,
    persistent: bool = True,
    **options: Any,
) -> StoreSpec:
    """Specify a window store: `final` if it emits closed windows, `indexed` if they are looked up by key too."""
    order: Order = ("time" if final else "key") if persistent else "memory"
    parts = {"window_size_ms": window_size_ms, "duplicates": duplicates, "order": order, "indexed": indexed}
    parts["stamped"] = stamped
    kind = "timestamped-window" if stamped else "window"
    options |= {"persistent": persistent, "retention_ms": retention_ms, "parts": tuple(parts.items())}
    return StoreSpec(name, kind, WindowStore, key, value, **options)
