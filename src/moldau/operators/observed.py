"""The time that an operator has observed: that of the newest record it has seen, kept with its store."""

from __future__ import annotations

from .stores.scalars import Scalars


class Observed:
    __slots__ = ("name", "scalars", "time")

    def __init__(self, scalars: Scalars, name: str) -> None:
        self.scalars, self.name = scalars, name
        self.time = scalars.get(name, -1)

    def see(self, timestamp: int) -> int:
        """A record came; the time after it."""
        if timestamp > self.time:
            self.time = timestamp
            self.scalars.put(self.name, timestamp)
        return self.time
