"""What pull queries look into: the rows of a table, read from the topic that holds its changes.

The topic of a table is its changelog, whoever writes it; so every server can answer, and a view is up to date when it
has read to the end of the topic.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from moldau.operators.record import Raw
from moldau.serdes.context import Context, SerdeError
from moldau.sql.catalogue import Source
from moldau.sql.lowering import rows
from moldau.sql.lowering.serdes import key_serde, value_serde
from moldau.sql.server.topics import Positions, Topics, place_of_key

MUCH = 10_000  # records that take a while to read
MOST_CHANGES = 1_000  # keys, or an eighth of a partition's: then columns are made anew


@dataclass(slots=True)
class View:
    """The present rows of a table, partition by partition."""

    source: Source
    registry: Any
    partitions: dict[int, dict[bytes, tuple[Any, ...]]] = field(default_factory=dict)
    positions: Positions = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)  # of whoever reads rows, or reads on
    is_slow: bool = False  # whether its lock is held for long
    windows: dict[int, dict[bytes, set[bytes]]] = field(default_factory=dict)  # the keys of each key without its window
    columns: Any = None  # Arrow columns of the rows (columns.py)
    changed: dict[tuple[int, bytes], None] | None = None  # the keys that have changed since; None if they are too many
    is_told: bool = False  # whether the columns have these changes
    key: Any = field(init=False)
    inner: Any = field(init=False)  # of keys without their window
    value: Any = field(init=False)

    def __post_init__(self) -> None:
        source = self.source
        named = source.topic, source.name, self.registry
        self.key = key_serde(source.key_format, source.schema.key, source.window, *named)
        self.inner = key_serde(source.key_format, source.schema.key, None, *named)
        self.value = value_serde(source.value_format, source.stored_value, source.topic, source.name, self.registry)

    def lags(self, ends: Positions) -> Positions:
        """Return how many records of each partition are still to be read."""
        return {partition: end - self.positions.get(partition, 0) for partition, end in ends.items()}

    def catch_up(self, topics: Topics, ends: Positions) -> None:
        """Read to the end that the topic has, or had just now."""
        self.is_slow = any(lag > MUCH for lag in self.lags(ends).values())
        try:
            while any(self.positions.get(partition, 0) < end for partition, end in ends.items()):
                if not self.read_on(topics):
                    return  # the topic was deleted, or made anew
        finally:
            self.is_slow = False

    def read_on(self, topics: Topics) -> bool:
        """Read some records; tell whether there were any."""
        before = dict(self.positions)
        for raw in topics.read(self.source.topic, self.positions):
            self.apply(raw)
        return self.positions != before

    def apply(self, raw: Raw) -> None:
        self.positions[raw.partition] = raw.offset + 1
        if raw.key is None:
            return
        kept = self.partitions.setdefault(raw.partition, {})
        row = self._row(raw)
        if row is None:
            kept.pop(raw.key, None)
        else:
            kept[raw.key] = row
        if self.changed is not None:
            self._note_change((raw.partition, raw.key), len(kept))
        if self.source.window is not None:
            self._note_window(raw.partition, raw.key, row is not None)

    def _note_change(self, key: tuple[int, bytes], count: int) -> None:
        assert self.changed is not None
        self.changed[key] = None
        self.is_told = False
        if len(self.changed) > max(MOST_CHANGES, count // 8):
            self.changed = self.columns = None

    def _note_window(self, partition: int, key: bytes, is_there: bool) -> None:
        windows = self.windows.setdefault(partition, {})
        known = windows.setdefault(self._inner(key), set())
        if is_there:
            known.add(key)
        else:
            known.discard(key)

    def _row(self, raw: Raw) -> tuple[Any, ...] | None:
        topic = self.source.topic
        if raw.value is None:
            return None
        try:
            key = self.key.from_bytes(raw.key, Context(topic, "key"))
            value = self.value.from_bytes(raw.value, Context(topic, "value"))
        except SerdeError:
            return None  # what cannot be read is no row of the table
        if value is None:
            return None
        headers = rows.header_columns(self.source, raw.headers) if self.source.headers else ()
        position = (raw.timestamp, raw.partition, raw.offset)
        return (*value, *headers, *position, *rows.key_columns(key), *rows.bounds(key))

    def _inner(self, key: bytes) -> bytes:
        """Return the key without its window."""
        window = self.source.window
        assert window is not None
        return key[:-16] if window.kind == "SESSION" else key[:-8]

    def count(self) -> int:
        """Return how many rows there are."""
        return sum(map(len, self.partitions.values()))

    def scan(self) -> Iterator[tuple[Any, ...]]:
        """Yield all rows: partition by partition, in the order of the keys' bytes."""
        for partition in sorted(self.partitions):
            kept = self.partitions[partition]
            for key in sorted(kept):
                yield kept[key]

    def find(self, keys: Iterable[tuple[Any, ...]], topics: Topics) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of keys: partition by partition, all windows of a key."""
        count = max(1, topics.partitions(self.source.topic))
        context = Context(self.source.topic, "key")
        by_partition: dict[int, list[bytes]] = {}
        for key in dict.fromkeys(self.inner.to_bytes(key, context) for key in keys):
            by_partition.setdefault(place_of_key(key, count), []).append(key)
        for partition in sorted(by_partition):
            kept, windows = self.partitions.get(partition, {}), self.windows.get(partition, {})
            for inner in by_partition[partition]:
                found = [inner] if self.source.window is None else sorted(windows.get(inner, ()))
                for key in found:
                    if key in kept:
                        yield kept[key]
