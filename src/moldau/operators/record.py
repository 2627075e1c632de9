"""What flows through a topology: records on the edges of streams, changes on the edges of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
new_tuple: Callable[..., Any] = tuple.__new__  # makes a named tuple in a third of the time


@dataclass(slots=True)
class Record:
    """A record. It is not changed once it is forwarded: all children of a node get the same one."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record:
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record:
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record:
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> Record:
        return Record(self.key, self.value, self.timestamp, headers)


@dataclass(slots=True)
class Change:
    """The value of a record on a table's edge. `old` is None if no node below needs old values; `latest` is false for a
    change that a versioned table takes in out of order.
    """

    new: Any
    old: Any
    latest: bool = True


class Stamped(NamedTuple):
    """A value of a table with the time of the record that made it."""

    value: Any
    timestamp: int


class Raw(NamedTuple):
    """A record as a topic has it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


class Produced(NamedTuple):
    """A record for a topic. Without a partition, the key decides, as for any producer."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
