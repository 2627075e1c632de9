"""What a transform is: a row with settings and a function that makes it, for the key, the value or the whole record.

A transform is a function of a record that returns another one, several of them, or None to drop it. Those with `sides`
exist twice, as `Name$Key` and `Name$Value`; they see only a `Side` of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind
from moldau.connect.data import Field, Header, Record, Schema, Struct
from moldau.connect.errors import DataError

Transform = Callable[[Record], Record | Sequence[Record] | None]
Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """The key or the value of a record."""

    name: str

    def schema(self, record: Record) -> Schema | None:
        return record.key_schema if self.name == "Key" else record.value_schema

    def value(self, record: Record) -> Any:
        return record.key if self.name == "Key" else record.value

    def put(
        self, record: Record, schema: Schema | None, value: Any, headers: tuple[Header, ...] | None = None
    ) -> Record:
        headers = record.headers if headers is None else headers
        if self.name == "Key":
            return record.but(key_schema=schema, key=value, headers=headers)
        return record.but(value_schema=schema, value=value, headers=headers)


KEY, VALUE = Side("Key"), Side("Value")


@dataclass(frozen=True, slots=True)
class TransformClass:
    """A row of the table of transforms."""

    name: str
    doc: str
    settings: ConfigDef
    make: Callable[[Settings, Side], Transform]
    sides: bool = True
    package: str = "org.apache.kafka.connect.transforms"

    @property
    def class_names(self) -> list[str]:
        return [f"{self.package}.{self.name}{side}" for side in (("$Key", "$Value") if self.sides else ("",))]


# `replace.null.with.default`, which most transforms have.
NULLS = Key(
    "replace.null.with.default",
    Kind.BOOLEAN,
    True,
    Importance.MEDIUM,
    "Whether a field that is null and has a default gets the default. If false, it stays null.",
)
SCHEMAS_CACHED = 64


def per_schema(make: Callable[[Schema], Schema]) -> Callable[[Schema], Schema]:
    """Remember what a function makes of the schemas that it saw last."""
    return lru_cache(maxsize=SCHEMAS_CACHED)(make)


def basics(schema: Schema) -> dict[str, Any]:
    """Return name, version, doc and parameters: what a changed schema takes over."""
    return {"name": schema.name, "version": schema.version, "doc": schema.doc, "parameters": schema.parameters}


def require_map(value: Any, purpose: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        found = type(value).__qualname__ if value is not None else "null"
        raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {found}")
    return value


def require_struct(value: Any, purpose: str) -> Struct:
    if not isinstance(value, Struct):
        found = type(value).__qualname__ if value is not None else "null"
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {found}")
    return value


def carried(place: Field, value: Any, with_default: bool) -> Any:
    """Return a field's value for a new struct, with the default for null if wanted; null must be allowed there."""
    if value is None:
        if with_default and place.schema.default is not None:
            return place.schema.default
        if not place.schema.optional:
            data.validate(place.schema, None, place.name)
    return value


def typed_by(schema: Schema, value: Any) -> Any:
    """Give a value the class that Java's object would have, from its schema."""
    return value if schema.name in data.LOGICAL else data.typed(schema.type, value)
