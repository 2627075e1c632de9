"""Typed keys and values: converts bytes of records to columns with the fields of their schema.

The schema is looked up once, when the query starts, and sent with the reader: later versions are read through it, so
the columns do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute

from moldau.serdes.arrow.batch import Converted, Slices
from moldau.serdes.arrow.converters import ArrowColumns, columns
from moldau.serdes.arrow.json import json_type, read_rows
from moldau.serdes.arrow.typed import TypedColumns
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import SCHEMA_HEADER
from moldau.serdes.registry import Registry, Schema
from moldau.spark.connections import registry_for
from moldau.spark.options import OptionError
from moldau.spark.source.spark_types import for_spark
from moldau.spark.source.typed_options import VARIANT, WITH_REGISTRY, Field

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Pinned:
    """A field with its schema: all that a worker needs to know."""

    field: Field
    registry: tuple[tuple[str, str], ...]
    schema: Schema | None

    @property
    def name(self) -> str:
        return self.field.name

    def arrow_type(self) -> pa.DataType:
        found = _converter(self).type(Context("", self.name))  # type: ignore[arg-type]
        return found if self.field.format == VARIANT else for_spark(found, self.name)

    def convert(self, raw: pa.Array, topic: str, headers: pa.Array | None) -> Converted:
        """Convert each row; wrong ones become null and have an entry in the errors."""
        context = Context(topic, self.name)  # type: ignore[arg-type]
        named = None if headers is None else header_named(headers, SCHEMA_HEADER[self.name])
        made = _converter(self).to_arrow(raw, context, named)
        return Converted(made.values.cast(self.arrow_type(), safe=False), made.errors)


@dataclass(frozen=True, slots=True)
class JsonText:
    """The conversion of JSON without a registry, by the user's JSON Schema."""

    schema: Schema

    def type(self, context: Context) -> pa.DataType:
        return json_type(self.schema)

    def to_arrow(self, values: pa.Array, context: Context, headers: pa.Array | None = None) -> Converted:
        return read_rows(Slices.of(values), json_type(self.schema))

    def from_arrow(self, values: pa.Array, context: Context) -> Converted:
        raise SerdeError("it is read only")


def pin(field: Field, registry: Mapping[str, str], topics: Iterable[str]) -> Pinned:
    """Choose the schema of a field: the given one, otherwise the latest of the topics' subjects."""
    settings = tuple(sorted(registry.items()))
    given = Schema("JSON", field.schema) if field.format == "json" and field.schema else None
    if field.format not in WITH_REGISTRY:
        return Pinned(field, settings, given)
    try:
        pinned = {topic: _pin(field, settings, topic) for topic in topics}
        types = {topic: one.arrow_type() for topic, one in pinned.items()}
    except SerdeError as error:
        raise OptionError(f"The {field.name} cannot be read as {field.format}: {error}.") from None
    if not pinned:
        raise OptionError(
            f"No topic is there yet whose {field.name} has a schema: create it, or set {field.name}.schema."
        )
    (first, type), *rest = types.items()
    for topic, other in rest:
        if other != type:
            raise OptionError(
                f"The topics {first} and {topic} have different schemas for the {field.name}: read them one by one, or "
                f"set {field.name}.schema to one that reads both, or {field.name}.format to variant."
            )
    return pinned[first]


def _pin(field: Field, settings: tuple[tuple[str, str], ...], topic: str) -> Pinned:
    """Look up the schema with a new registry client: a cached one may not know the latest version."""
    registry = Registry.connect(dict(settings))
    try:
        converter = _make(Pinned(field, settings, None), registry)
        assert isinstance(converter, TypedColumns)
        return Pinned(field, settings, converter.reader(Context(topic, field.name)))  # type: ignore[arg-type]
    finally:
        registry.close()


@lru_cache(maxsize=64)
def _converter(pinned: Pinned) -> ArrowColumns:
    typed = pinned.field.format in (*WITH_REGISTRY, VARIANT)
    return _make(pinned, registry_for(pinned.registry) if typed else None)


def _make(pinned: Pinned, registry: Registry | None) -> ArrowColumns:
    field = pinned.field
    if field.format == "json" and pinned.schema is not None:
        return JsonText(pinned.schema)
    if registry is None:
        return columns(field.format)
    if field.format == VARIANT:
        from moldau.spark.source.variant import Variants

        return Variants(registry)
    settings: dict[str, Any] = {"auto.register.schemas": False}
    if field.strategy:
        settings["subject.name.strategy"] = field.strategy
    return columns(field.format, registry, pinned.schema or field.schema, settings, field.message)


def header_named(headers: pa.Array, name: str) -> pa.Array | None:
    """Return the bytes of a header for each record, null where it has none; None if no record has it."""
    flat = headers.flatten()
    mine = pc.equal(flat.field("key"), name)
    if not pc.any(mine).as_py():
        return None
    rows = pc.list_parent_indices(headers).filter(mine)
    found: list[bytes | None] = [None] * len(headers)
    for row, value in zip(rows.to_pylist(), flat.field("value").filter(mine).to_pylist(), strict=True):
        found[row] = value
    return pa.array(found, pa.binary())
