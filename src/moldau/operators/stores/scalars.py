"""Small numbers that a store keeps beside its data: observed times, sequence numbers, sizes.

They are written at once, so that a store that is opened again continues where the last one stopped. In a store with
numbers, the first byte of a key says what it is: 0 for a number, anything else for data.
"""

from __future__ import annotations

from struct import Struct

from .ordered import OrderedBytes

NUMBER = b"\x00"
INT64 = Struct(">q")


class Scalars:
    __slots__ = ("_places", "content")

    def __init__(self, content: OrderedBytes) -> None:
        self.content = content
        self._places: dict[str, bytes] = {}

    def get(self, name: str, default: int) -> int:
        found = self.content.get(self.place(name))
        return default if found is None else INT64.unpack(found)[0]

    def put(self, name: str, value: int) -> None:
        self.content.put(self._places.get(name) or self.place(name), INT64.pack(value))

    def place(self, name: str) -> bytes:
        return self._places.setdefault(name, NUMBER + name.encode())


class Observed:
    """The time that an operator has observed: that of the newest record so far, kept in its store."""

    __slots__ = ("name", "scalars", "time")

    def __init__(self, scalars: Scalars, name: str) -> None:
        self.scalars, self.name = scalars, name
        self.time = scalars.get(name, -1)

    def see(self, timestamp: int) -> int:
        """Observe the time of a record; return the observed time."""
        if timestamp > self.time:
            self.time = timestamp
            self.scalars.put(self.name, timestamp)
        return self.time
