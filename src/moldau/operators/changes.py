"""Changes as bytes, for the repartition topic of a grouped table: Kafka's format, with the flag last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.serdes.context import Context, Serde, SerdeError
from moldau.serdes.framing import read_zigzag
from moldau.wire.numbers import zigzag

from .record import Change

OLD, NEW, BOTH = 0, 1, 2


@dataclass(frozen=True, slots=True)
class ChangeSerde:
    """The serde of changes. `inner` writes the values."""

    inner: Any

    def with_inner(self, inner: Serde) -> ChangeSerde:
        return ChangeSerde(inner)

    def to_bytes(self, value: Change | None, context: Context) -> bytes | None:
        if value is None:
            return None
        new, old = self.inner.to_bytes(value.new, context), self.inner.to_bytes(value.old, context)
        if new is not None and old is not None:
            return zigzag(len(new)) + new + old + bytes((BOTH,))
        if new is not None:
            return new + bytes((NEW,))
        if old is not None:
            return old + bytes((OLD,))
        raise SerdeError("a change from nothing to nothing cannot be written")

    def from_bytes(self, data: bytes | None, context: Context) -> Change | None:
        if data is None:
            return None
        read, flag = self.inner.from_bytes, data[-1]
        if flag == BOTH:
            size, start = read_zigzag(data, 0)
            end = start + size
            return Change(read(data[start:end], context), read(data[end:-1], context))
        if flag == NEW:
            return Change(read(data[:-1], context), None)
        if flag == OLD:
            return Change(None, read(data[:-1], context))
        raise SerdeError(f"a change with the flag {flag} is not known")
