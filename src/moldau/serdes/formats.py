"""Serdes by the name of a format, as the command line and settings have it: `serde("avro", registry)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .context import Serde
from .primitive import PLAIN
from .registry import Registry, Schema

TYPED = ("avro", "json-schema", "protobuf")
FORMATS = (*PLAIN, *TYPED)


def serde(
    format: str,
    registry: Registry | None = None,
    schema: Schema | str | None = None,
    settings: Mapping[str, Any] | None = None,
    message: str | None = None,
) -> Serde:
    """Return a serde. Formats with a schema are imported on demand, since each brings a library along."""
    if format in PLAIN:
        return PLAIN[format]
    match format, needed(format, registry):
        case "avro", known:
            from .avro import Avro

            return Avro.of(known, schema, settings)
        case "json-schema", known:
            from .json_schema import JsonSchema

            return JsonSchema.of(known, schema, settings)
        case _, known:
            from .protobuf import Protobuf

            return Protobuf.of(known, None, schema, message, settings)


def needed(format: str, registry: Registry | None) -> Registry:
    if format not in FORMATS:
        raise ValueError(f"format {format!r} is not known: use one of {', '.join(FORMATS)}")
    if registry is None:
        raise ValueError(f"the format {format} needs a schema registry: set schema.registry.url")
    return registry
