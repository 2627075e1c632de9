"""Serdes of rows in the form that `streams/` wants them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.operators.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.serdes.context import Context, SerdeError
from moldau.sql import formats
from moldau.sql.catalogue import Columns, Format, WindowInfo
from moldau.sql.formats import Row, RowSerde

Failed = Callable[[bytes, BaseException], None]


@dataclass(frozen=True, slots=True)
class RowsSerde:
    """A serde of rows as a serde of `streams/`. `failed` is called for bytes that cannot be read."""

    rows: RowSerde
    failed: Failed | None = None

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
    inner = RowsSerde(formats.serde(format_, columns, key=True, topic=topic, name=name, registry=registry), failed)
    if window is None:
        return inner
    if window.kind == "SESSION":
        return SessionWindowedSerde(inner)
    assert window.size_ms is not None
    return TimeWindowedSerde(inner, window.size_ms)


def value_serde(
    format_: Format, columns: Columns, topic: str, name: str, registry: Any, failed: Failed | None = None
) -> RowsSerde:
    return RowsSerde(formats.serde(format_, columns, key=False, topic=topic, name=name, registry=registry), failed)
