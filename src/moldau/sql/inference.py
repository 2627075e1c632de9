"""Columns that a registry knows: a statement without columns takes those of its topic's schema."""

from __future__ import annotations

from typing import Any

from moldau.serdes.framing import SchemaRef
from moldau.serdes.registry import RegistryError, Schema
from moldau.sql import formats
from moldau.sql.catalogue import Columns, Format
from moldau.sql.errors import SqlError
from moldau.sql.sources import Inference
from moldau.sql.tree import StructType

ALONE = {True: "ROWKEY", False: "ROWVAL"}  # the name of a column that has none of its own


def inferring(registry: Any) -> Inference:
    """Return the function that asks a registry."""

    def infer(topic: str, key: bool, format_: Format, alone: bool) -> Columns | None:
        schema_id = format_.property("schemaId")
        found = _schema(registry, f"{topic}-{'key' if key else 'value'}", schema_id, key, topic)
        if found is None:
            return None
        kind = formats.columns_of(found, format_.property("fullSchemaName"), schema_id is None)
        if isinstance(kind, StructType) and not alone:
            return tuple((f.name, f.type) for f in kind.fields)
        return ((ALONE[key], kind),)

    return infer


def _schema(registry: Any, subject: str, schema_id: str | None, key: bool, topic: str) -> Schema | None:
    try:
        if schema_id is not None:
            return registry.schema(SchemaRef(int(schema_id)), subject)
        return registry.latest(subject).schema
    except RegistryError as error:
        by_id = "" if schema_id is None else f"Schema Id: {schema_id}\n"
        raise SqlError(
            f"Schema for message {'keys' if key else 'values'} on topic '{topic}' does not exist in the Schema "
            f"Registry.\nSubject: {subject}\n{by_id}{error}"
        ) from None
