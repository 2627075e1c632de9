"""What all serdes share: where a value stands, the protocol of a serde, and its one error."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Headers = list[tuple[str, bytes | None]]


class SerdeError(ValueError):
    """A value or bytes that cannot be converted: one sentence that says what is wrong."""


@dataclass(slots=True)
class Context:
    """Where a value stands. `headers` are those of its record: read, and added to by a serializer that uses them."""

    topic: str
    field: Literal["key", "value"] = "value"
    headers: Headers = dataclasses.field(default_factory=list)

    def header(self, name: str) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)


class Serde(Protocol):
    """None is a null of the record, a tombstone: every serde hands it through both ways."""

    def to_bytes(self, value: Any, context: Context) -> bytes | None: ...

    def from_bytes(self, data: bytes | None, context: Context) -> Any: ...
