"""Key-value stores, plain and with the time of each value. Entries are in the order of their keys' bytes."""

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


def stamped_reader(read: Read) -> Callable[[bytes | None], Stamped | None]:
    """Return the reader of values that have their time in front."""

    def unstamp(raw: bytes | None) -> Stamped | None:
        return None if raw is None else Stamped(read(raw[STAMP_SIZE:]), unpack_stamp(raw)[0])

    return unstamp


def required_key(write: Write, store: str) -> Callable[[Any], bytes]:
    """Return a writer of keys that refuses None."""

    def raw_key(key: Any) -> bytes:
        raw = write(key)
        if raw is None:
            raise ValueError(f"the key of an entry of the store {store} must not be None")
        return raw

    return raw_key


class Entries:
    """What both kinds of key-value stores share: layers, serdes, and walking over their entries."""

    versioned = False

    def __init__(self, spec: StoreSpec, opening: Opening, stamped: bool) -> None:
        self.name = spec.name
        self.bytes, self._cache = layered(opening, stamped=stamped)
        self.cached = self._cache is not None
        self.write_key, self.read_key, self._write, self._read = coders(spec, opening)
        self.unpack = stamped_reader(self._read) if stamped else self._read

    def range(self, low: Any = None, high: Any = None, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Return the entries between two keys, both inclusive, None is open; in the order of the keys' bytes."""
        found = self.bytes.range(self.write_key(low), self.write_key(high), reverse)
        return ((self.read_key(key), self.unpack(raw)) for key, raw in found)

    def all(self, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        return self.range(None, None, reverse)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[tuple[Any, Any]]:
        """Return the entries whose keys begin with the bytes of the prefix, written by the keys' serde or this one."""
        write = writer(serde, self.name, "key") if serde else self.write_key
        return ((self.read_key(key), self.unpack(raw)) for key, raw in prefixed(self.bytes, write(prefix) or b""))

    def approximate_count(self) -> int:
        return self.bytes.approximate_count()

    def flush(self) -> None:
        if self._cache is not None:
            self._cache.flush()


class KeyValueStore(Entries):
    """The plain store of processors."""

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        super().__init__(spec, opening, stamped=False)
        self.raw_key = required_key(self.write_key, self.name)

    def get(self, key: Any) -> Any:
        return self._read(self.bytes.get(self.raw_key(key)))

    def put(self, key: Any, value: Any) -> None:
        """Put a value; None deletes."""
        self.bytes.put(self.raw_key(key), self._write(value))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Put a value if there is none, and return the one that was there."""
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """Delete a value, and return it."""
        found = self.get(key)
        self.put(key, None)
        return found


class TimestampedKeyValueStore(Entries):
    """The store of tables: each value has the time of the record that made it. The layout is Kafka's: eight bytes of
    time before the value.
    """

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        super().__init__(spec, opening, stamped=True)
        self._get, self._put = self.bytes.get, self.bytes.put
        self.in_columns = can_take_columns(spec, opening)
        self._write_bytes, self._tell_all, self._serdes = opening.bytes.put, opening.on_changes, (spec.key, spec.value)
        self.latest = Latest(self)
        self._key: str | None = None  # that was last looked up: most often the next to be put
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
        """Put a value; None deletes. It is always the latest: this store does not compare times."""
        raw_key = self._raw if key is self._key else self.write_key(key)
        raw = self._write(value)
        if raw_key is None:
            raise ValueError(f"the key of an entry of the store {self.name} must not be None")
        self._put(raw_key, None if raw is None else pack_stamp(timestamp) + raw)
        return LATEST

    def put_if_absent(self, key: Any, value: Any, timestamp: int) -> Stamped | None:
        """Put a value if there is none, and return the one that was there."""
        found = self.get(key)
        if found is None:
            self.put(key, value, timestamp)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any, int]]) -> None:
        """Put keys, values and their times."""
        for key, value, timestamp in entries:
            self.put(key, value, timestamp)

    def write_all(self, entries: Sequence[Entry]) -> None:
        """Write past cache and changelog."""
        put, write_key, write = self._write_bytes, required_key(self.write_key, self.name), self._write
        for entry in entries:
            raw = write(entry.value)
            put(write_key(entry.key), None if raw is None else pack_stamp(entry.time) + raw)

    def tell_all(self, columns: Columns) -> None:
        if self._tell_all is not None:
            self._tell_all(columns, *self._serdes)

    def delete(self, key: Any) -> Stamped | None:
        """Delete a value, and return it."""
        found = self.get(key)
        self.put(key, None, 0)
        return found

    def listen(self, listener: Listener, send_old: bool) -> None:
        """Set who learns of changes when the cache lets them go."""
        cache = self._cache
        assert cache is not None

        def flushed(key: bytes, new: bytes | None, old: bytes | None, record: Record) -> None:
            listener(self.read_key(key), self.unpack(new), self.unpack(old), record)

        cache.listener, cache.send_old = flushed, send_old


def prefixed(bytes: OrderedBytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    for key, value in bytes.range(prefix, None):
        if not key.startswith(prefix):
            return
        yield key, value


def key_value(name: str, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "key-value", KeyValueStore, key, value, **options)


def timestamped_key_value(name: str, key: Serde | None = None, value: Serde | None = None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "timestamped-key-value", TimestampedKeyValueStore, key, value, **options)
