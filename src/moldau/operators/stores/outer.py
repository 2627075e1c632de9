"""The records of both sides of a left or outer join that wait for a match, in the order of their timestamps.

Keys: `1, timestamp, side (right 0, left 1), key`; a value is the list of values with that key. Besides, the store keeps
the time of both streams together, and the timestamp of the earliest record that is known to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from moldau.serdes.context import Context, Serde, SerdeError

from ..coders import reader, writer
from ..windowed import LAST_TIME
from .ordered import OrderedBytes
from .scalars import Scalars
from .segments import DATA, INDEX, NO_TIME
from .spec import Opening, StoreSpec

PLACE = Struct(">cq?")  # what it is, timestamp, whether it is of the left side
LENGTH = Struct(">i")


class Waiting(NamedTuple):
    timestamp: int
    left: bool
    key: Any
    place: bytes
    values: bytes


@dataclass(frozen=True, slots=True)
class SidesSerde:
    """The serdes of both sides' values. Neither writes a value of the store as a whole."""

    left: Serde | None
    right: Serde | None

    def with_each(self, settled: Callable[[Serde | None], Serde]) -> SidesSerde:
        return SidesSerde(settled(self.left), settled(self.right))

    def to_bytes(self, value: Any, context: Context) -> bytes | None:
        raise SerdeError("a value of an outer join is written by the serde of its side")

    def from_bytes(self, data: bytes | None, context: Context) -> Any:
        raise SerdeError("a value of an outer join is read by the serde of its side")


class OuterStore:
    versioned = False
    cached = False

    def __init__(self, spec: StoreSpec, opening: Opening) -> None:
        assert spec.key is not None
        self.name = spec.name
        self.content: OrderedBytes = opening.bytes
        self.scalars = Scalars(opening.bytes)
        self.stream_time = self.scalars.get("stream time", NO_TIME)
        self.earliest = self.scalars.get("earliest", LAST_TIME)
        self.write_key = writer(spec.key, opening.topic, "key")
        self.read_key = reader(spec.key, opening.topic, "key")
        assert isinstance(spec.value, SidesSerde) and spec.value.left is not None and spec.value.right is not None
        sides = {True: spec.value.left, False: spec.value.right}
        self.write = {left: writer(serde, opening.topic, "value") for left, serde in sides.items()}
        self.read = {left: reader(serde, opening.topic, "value") for left, serde in sides.items()}
        self._tell, self._shard = opening.on_change, opening.shard

    def advance(self, time: int) -> None:
        self.stream_time = time
        self.scalars.put("stream time", time)

    def expect(self, earliest: int | None) -> None:
        """Set the time of the earliest record that waits, as far as is known; None if none does."""
        self.earliest = LAST_TIME if earliest is None else earliest
        self.scalars.put("earliest", self.earliest)

    def put(self, timestamp: int, left: bool, key: Any, value: Any) -> None:
        raw = self.write[left](value)
        if raw is None:
            return
        if timestamp < self.earliest:
            self.expect(timestamp)
        place = self.place(timestamp, left, key)
        self.store(place, (self.content.get(place) or b"") + LENGTH.pack(len(raw)) + raw)

    def forget(self, timestamp: int, left: bool, key: Any) -> None:
        """Remove the records with this time and key: they have found a match."""
        place = self.place(timestamp, left, key)
        if self.content.get(place) is not None:
            self.store(place, None)

    def remove(self, entry: Waiting) -> None:
        self.store(entry.place, None)

    def entries(self) -> Iterator[Waiting]:
        for place, values in self.content.range(DATA, INDEX):
            _, timestamp, left = PLACE.unpack_from(place)
            yield Waiting(timestamp, left, self.read_key(place[PLACE.size :]), place, values)

    def values(self, entry: Waiting) -> Iterator[Any]:
        at, read = 0, self.read[entry.left]
        while at < len(entry.values):
            end = at + 4 + LENGTH.unpack_from(entry.values, at)[0]
            yield read(entry.values[at + 4 : end])
            at = end

    def place(self, timestamp: int, left: bool, key: Any) -> bytes:
        return PLACE.pack(DATA, timestamp, left) + (self.write_key(key) or b"")

    def store(self, place: bytes, values: bytes | None) -> None:
        self.content.put(place, values)
        if self._tell is not None:
            self._tell(place[1:], values, self._shard.record.timestamp)


def outer(name: str, key: Serde | None, left: Serde | None, right: Serde | None, **options: Any) -> StoreSpec:
    return StoreSpec(name, "outer-join", OuterStore, key, SidesSerde(left, right), **options)
