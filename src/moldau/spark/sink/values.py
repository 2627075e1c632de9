"""Turns columns into the bytes of keys and values: as they are, as text or JSON, or with a schema of the registry.

The schema is given, or made from the columns (`schema.py`); it is registered at the first row of a topic, unless
`value.serde.auto.register.schemas` or `value.serde.use.latest.version` say otherwise.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from moldau.serdes.context import Context, SerdeError
from moldau.spark.sink.options import RAW, WITH_SCHEMA, SinkOptions
from moldau.spark.sink.schema import fitting, schema_of

if TYPE_CHECKING:
    from moldau.serdes.arrow.converters import ArrowColumns
    from moldau.serdes.registry import Registry

Part = Literal["key", "value"]


class Values:
    """The conversion of a column of keys or values into bytes."""

    def __init__(self, options: SinkOptions, part: Part, registry: Callable[[], Registry]) -> None:
        self._options = options
        self._part: Part = part
        self._format = options.formats[part]
        self._registry = registry
        self._columns: dict[tuple[str, pa.DataType], tuple[ArrowColumns, pa.DataType]] = {}

    def to_bytes(self, given: pa.Array, topic: str) -> pa.Array:
        """Return a binary array; SerdeError for a row that cannot be written."""
        if self._format == RAW:
            return given
        context = Context(topic, self._part)
        if self._format not in WITH_SCHEMA:
            return self._plain(given, context)
        converter, type = self._converter(given.type, topic)
        converted = converter.from_arrow(given if given.type == type else given.cast(type), context)
        for row, why in converted.errors.items():
            raise SerdeError(f"A {self._part} for topic {topic} cannot be written as {self._format}: {why} (row {row})")
        return converted.values

    def _plain(self, given: pa.Array, context: Context) -> pa.Array:
        if self._format == "json" and not pa.types.is_string(given.type):
            return json_rows(given)
        if pa.types.is_nested(given.type):
            raise SerdeError(f"A {self._part} of {given.type} is not written as {self._format}: say json, or avro.")
        from moldau.serdes.arrow.converters import columns

        return columns(self._format).from_arrow(given, context).values

    def _converter(self, type: pa.DataType, topic: str) -> tuple[ArrowColumns, pa.DataType]:
        from moldau.serdes.arrow.converters import columns

        if (topic, type) not in self._columns:
            schema, settings = self._options.schemas[self._part], self._options.serde[self._part]
            latest = any(name.startswith("use.") for name in settings)
            if schema is None and not latest:
                type_written = fitting(type, self._format)
                schema = schema_of(type_written, self._format, topic, self._part)
            else:
                type_written = type
            made = columns(self._format, self._registry(), schema, settings, self._options.messages[self._part])
            self._columns[topic, type] = made, type_written
        return self._columns[topic, type]


def json_rows(given: pa.Array) -> pa.Array:
    """Return values of any type as JSON; objects omit nulls, as with Spark's to_json."""
    return pa.array([None if one is None else _text(one, given.type) for one in given.to_pylist()], pa.binary())


def _text(value: Any, type: pa.DataType) -> bytes:
    return json.dumps(_plain(value, type), ensure_ascii=False, separators=(",", ":"), default=_other).encode()


def _plain(value: Any, type: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(type):
        return {one.name: _plain(value[one.name], one.type) for one in type if value[one.name] is not None}
    if pa.types.is_map(type):
        return {str(key): _plain(one, type.item_type) for key, one in value}
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return [_plain(one, type.value_type) for one in value]
    return value


def _other(value: Any) -> Any:
    """Convert what JSON lacks: bytes to base64, times to ISO 8601, decimals to text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
