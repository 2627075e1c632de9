"""The time that an operator has observed: that of the newest record so far, kept in its store."""

from __future__ import annotations

from .stores.scalars import Scalars


class Observed:
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
