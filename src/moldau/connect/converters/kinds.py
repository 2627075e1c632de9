"""What a converter is: two functions between Connect's data and bytes, and a row with its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, one_of
from moldau.connect.data import Schema, SchemaAndValue


@dataclass(frozen=True, slots=True)
class Converter:
    """Writes values as bytes and reads them back. None is the tombstone on both sides."""

    write: Callable[[str, Schema | None, Any], bytes | None]  # topic, schema, value
    read: Callable[[str, bytes | None], SchemaAndValue]  # topic, bytes


@dataclass(frozen=True, slots=True)
class ConverterClass:
    """A row of the table of converters. All can convert headers; some convert nothing else."""

    class_name: str
    doc: str
    settings: ConfigDef
    make: Callable[[Mapping[str, Any]], Converter]
    only_headers: bool = False


TYPE = Key(
    "converter.type",
    importance=Importance.LOW,
    validator=one_of("key", "value", "header"),
    doc="Whether the converter is for keys, for values or for headers.",
)
