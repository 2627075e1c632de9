"""What all formats share: rows, and the protocol of a serde of rows."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]


class RowSerde(Protocol):
    """Rows to bytes and back; None is a null of the record. What cannot be converted is a SerdeError."""

    def dumps(self, row: Row | None) -> bytes | None: ...

    def loads(self, data: bytes | None) -> Row | None: ...
