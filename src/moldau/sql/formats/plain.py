"""KAFKA and NONE: a single column in the form of Kafka's own serializers, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.serdes.context import Context, SerdeError
from moldau.serdes.primitive import BYTES, DOUBLE, INTEGER, LONG, STRING, Plain

from ..types import Columns, base
from .rows import Row

SERDES: dict[str, Plain] = {"INTEGER": INTEGER, "BIGINT": LONG, "DOUBLE": DOUBLE, "STRING": STRING, "BYTES": BYTES}
_NOWHERE = Context("")


@dataclass(frozen=True, slots=True)
class Kafka:
    """One column as Kafka's serializers write it."""

    serde: Plain

    @classmethod
    def of(cls, columns: Columns) -> Kafka | Nothing:
        return cls(SERDES[base(columns[0][1])]) if columns else Nothing()

    def dumps(self, row: Row | None) -> bytes | None:
        return None if row is None else self.serde.to_bytes(row[0], _NOWHERE)

    def loads(self, data: bytes | None) -> Row | None:
        return None if data is None else (self.serde.from_bytes(data, _NOWHERE),)


@dataclass(frozen=True, slots=True)
class Nothing:
    """No columns: always null."""

    def dumps(self, row: Row | None) -> bytes | None:
        if row:
            raise SerdeError("The 'NONE' format has no columns")
        return None

    def loads(self, data: bytes | None) -> Row | None:
        return None


def case_value(columns: Columns, node: Any) -> Row | None:
    """Return the row of a node of a test case."""
    if node is None or not columns:
        return None
    kind = base(columns[0][1])
    convert = {"STRING": str, "DOUBLE": float}.get(kind)
    return (convert(node) if convert else node,)
