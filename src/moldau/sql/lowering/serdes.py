"""Serdes of rows in the form that `streams/` wants them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from moldau.operators.coders import plain_reader, plain_writer
from moldau.operators.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.serdes.context import Context, SerdeError
from moldau.sql import formats
from moldau.sql.catalogue import Columns, Format, WindowInfo
from moldau.sql.formats import Row, RowSerde
from moldau.sql.formats.json import Json
from moldau.sql.formats.plain import Kafka
from moldau.sql.tree import StructType, Type
from moldau.sql.types import base

Failed = Callable[[bytes, BaseException], None]


@dataclass(frozen=True, slots=True)
class RowsSerde:
    """A serde of rows as a serde of `streams/`. `failed` is called for bytes that cannot be read."""

    rows: RowSerde
    failed: Failed | None = None
    keys_again: bool = False  # whether rows as keys are the same after writing and reading, and equal by their bytes
    values_again: bool = False

    @property
    def write_alone(self) -> Callable[[Row | None], bytes | None]:
        if isinstance(self.rows, Kafka):
            write = plain_writer(self.rows.serde)
            return lambda row: None if row is None else write(row[0])
        if isinstance(self.rows, Json) and not self.rows.alone:
            text = self.rows.write
            return lambda row: None if row is None else text(row).encode()
        return self.rows.dumps

    @property
    def read_alone(self) -> Callable[[bytes | None], Row | None] | None:
        """Read without a context; None if somebody wants to know of bytes that cannot be read."""
        if self.failed is not None:
            return None
        if isinstance(self.rows, Kafka):
            read = plain_reader(self.rows.serde)
            return lambda data: None if data is None else (read(data),)
        return self.rows.loads

    def to_bytes(self, value: Row | None, context: Context) -> bytes | None:
        return self.rows.dumps(value)

    def from_bytes(self, data: bytes | None, context: Context) -> Row | None:
        try:
            return self.rows.loads(data)
        except SerdeError as error:
            if self.failed is not None and data is not None:
                self.failed(data, error)
            raise


def key_serde(
    format_: Format,
    columns: Columns,
    window: WindowInfo | None,
    topic: str,
    name: str,
    registry: Any,
    failed: Failed | None = None,
) -> Any:
    """Return the serde of keys, which are windowed if `window` says so."""
    rows = formats.serde(format_, columns, key=True, topic=topic, name=name, registry=registry)
    inner = RowsSerde(rows, failed, keys_again=comes_again(format_, columns, KEYS_AGAIN))
    if window is None:
        return inner
    if window.kind == "SESSION":
        return SessionWindowedSerde(inner)
    assert window.size_ms is not None
    return TimeWindowedSerde(inner, window.size_ms)


def value_serde(
    format_: Format, columns: Columns, topic: str, name: str, registry: Any, failed: Failed | None = None
) -> RowsSerde:
    rows = formats.serde(format_, columns, key=False, topic=topic, name=name, registry=registry)
    return RowsSerde(rows, failed, values_again=comes_again(format_, columns, VALUES_AGAIN))


# What is the same after writing and reading. Lists and maps are not here, because aggregates change them in place; as
# a part of a key a double is not, because 0.0 and -0.0 are equal but have other bytes.
KEYS_AGAIN = {"BOOLEAN", "INTEGER", "BIGINT", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP"}
VALUES_AGAIN = KEYS_AGAIN | {"DOUBLE"}
EXACT = ("JSON", "KAFKA", "NONE")  # formats


def comes_again(format_: Format, columns: Columns, types: AbstractSet[str]) -> bool:
    return format_.name in EXACT and all(is_of(type, types) for _, type in columns)


def is_of(type: Type, types: AbstractSet[str]) -> bool:
    if isinstance(type, StructType):
        return all(is_of(field.type, types) for field in type.fields)
    return base(type) in types
