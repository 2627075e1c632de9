"""Key-value stores, plain and with the time of each value; iteration goes by the bytes of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from moldau.serdes.context import Serde

from ..coders import Read, Write, reader, writer
from ..columns import Columns
from ..record import Record, Stamped, new_tuple
from .latest import Entry, Latest, can_take_columns
from .layers import STAMP, STAMP_SIZE, layered
from .ordered import OrderedBytes
from .spec import LATEST, Opening, StoreSpec

pack_stamp, unpack_stamp = STAMP.pack, STAMP.unpack_from

Listener = Callable[[Any, Stamped | None, Stamped | None, Record], None]


def coders(spec: StoreSpec, opening: Opening) -> tuple[Write, Read, Write, Read]:
    assert spec.key is not None and spec.value is not None, f"the store {spec.name} was opened without serdes"
    topic = opening.topic
    return (
        writer(spec.key, topic, "key"),
        reader(spec.key, topic, "key"),
        writer(spec.value, topic, "value"),
        reader(spec.value, topic, "value"),
    )


class KeyValueStore:
    """The plain store of processors."""

    versioned = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        self.name = spec.name
        self.bytes, self._cache = layered(opening, stamped=False)
        self.cached = self._cache is not None
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)

    def get(self, key: Any) -> Any:
        return self._read(self.bytes.get(self.raw_key(key)))

    def put(self, key: Any, value: Any) -> None:
        """None deletes."""
        self.bytes.put(self.raw_key(key), self._write(value))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """The value that was there, and stays; None if there was none."""
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """The value that was there."""
        found = self.get(key)
        self.put(key, None)
        return found

    def range(self, low: Any = None, high: Any = None, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Both bounds inclusive, None is open; in the order of the keys' bytes."""
        found = self.bytes.range(self.write_key(low), self.write_key(high), reverse)
        return ((self.read_key(key), self._read(value)) for key, value in found)

    def all(self, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        return self.range(None, None, reverse)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[tuple[Any, Any]]:
        """Keys whose bytes begin with those of the prefix, which the key's serde writes unless another is given."""
        write = writer(serde, self.name, "key") if serde else self.write_key
        start = write(prefix) or b""
        return ((self.read_key(key), self._read(value)) for key, value in prefixed(self.bytes, start))

    def approximate_count(self) -> int:
        return self.bytes.approximate_count()

    def flush(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def raw_key(self, key: Any) -> bytes:
        raw = self.write_key(key)
        if raw is None:
            raise ValueError(f"the key of an entry of the store {self.name} must not be None")
        return raw


class TimestampedKeyValueStore:
    """The store of tables: each value has the time of the record that made it. Layout as in Kafka: eight bytes of
    time before the value.
    """

    versioned = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        self.name = spec.name
        self.bytes, self._cache = layered(opening, stamped=True)
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)
        self._get, self._put = self.bytes.get, self.bytes.put
        self.cached = self._cache is not None
        self.in_columns = can_take_columns(spec, opening)
        self._write_bytes, self._tell_all, self._serdes = opening.bytes.put, opening.on_changes, (spec.key, spec.value)
        self.latest = Latest(self)
        self._key: str | None = None  # that was last looked for: most often the next to be put
        self._raw: bytes | None = None

    def get(self, key: Any) -> Stamped | None:
        raw_key = self.write_key(key)
        if type(key) is str:  # others may change while they are the same
            self._key, self._raw = key, raw_key
        raw = self._get(raw_key)  # pyright: ignore[reportArgumentType]
        if raw is None:
            return None
        return new_tuple(Stamped, (self._read(raw[STAMP_SIZE:]), unpack_stamp(raw)[0]))

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        """None deletes. The value is always the latest: this store does not look at times."""
        raw_key = self._raw if key is self._key else self.write_key(key)
        raw = self._write(value)
        if raw_key is None:
            raise ValueError(f"the key of an entry of the store {self.name} must not be None")
        self._put(raw_key, None if raw is None else pack_stamp(timestamp) + raw)
        return LATEST

    def put_if_absent(self, key: Any, value: Any, timestamp: int) -> Stamped | None:
        """The value that was there, and stays; None if there was none."""
        found = self.get(key)
        if found is None:
            self.put(key, value, timestamp)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any, int]]) -> None:
        """Keys, values and their times."""
        for key, value, timestamp in entries:
            self.put(key, value, timestamp)

    def write_all(self, entries: Sequence[Entry]) -> None:
        """Past cache and changelog."""
        put, write_key, write = self._write_bytes, self.write_key, self._write
        for entry in entries:
            raw = write(entry.value)
            put(write_key(entry.key) or b"", None if raw is None else pack_stamp(entry.time) + raw)

    def tell_all(self, columns: Columns) -> None:
        if self._tell_all is not None:
            self._tell_all(columns, *self._serdes)

    def delete(self, key: Any) -> Stamped | None:
        found = self.get(key)
        self.put(key, None, 0)
        return found

    def range(self, low: Any = None, high: Any = None, reverse: bool = False) -> Iterator[tuple[Any, Stamped]]:
        """Both bounds inclusive, None is open; in the order of the keys' bytes."""
        found = self.bytes.range(self.write_key(low), self.write_key(high), reverse)
        return ((self.read_key(key), self.stamped(raw)) for key, raw in found)

    def all(self, reverse: bool = False) -> Iterator[tuple[Any, Stamped]]:
        return self.range(None, None, reverse)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[tuple[Any, Stamped]]:
        """Keys whose bytes begin with those of the prefix, which the key's serde writes unless another is given."""
        write = writer(serde, self.name, "key") if serde else self.write_key
        return ((self.read_key(key), self.stamped(raw)) for key, raw in prefixed(self.bytes, write(prefix) or b""))

    def approximate_count(self) -> int:
        return self.bytes.approximate_count()

    def listen(self, listener: Listener, send_old: bool) -> None:
        """With a cache: who learns of changes when they are let go."""
        cache = self._cache
        assert cache is not None

        def flushed(key: bytes, new: bytes | None, old: bytes | None, record: Record) -> None:
            before = None if old is None else self.stamped(old)
            listener(self.read_key(key), None if new is None else self.stamped(new), before, record)

        cache.listener, cache.send_old = flushed, send_old

    def flush(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def stamped(self, raw: bytes) -> Stamped:
        return Stamped(self._read(raw[STAMP_SIZE:]), STAMP.unpack_from(raw)[0])


def prefixed(bytes: OrderedBytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    for key, value in bytes.range(prefix, None):
        if not key.startswith(prefix):
            return
        yield key, value


def key_value(name: str, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "key-value", KeyValueStore, key, value, **options)


def timestamped_key_value(name: str, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "timestamped-key-value", TimestampedKeyValueStore, key, value, **options)
