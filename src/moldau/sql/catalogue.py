"""The catalogue: the sources, types and topics that statements can name, as they are after the statements so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from moldau.sql.errors import SqlError
from moldau.sql.printer import quoted, schema_text
from moldau.sql.tree import ArrayType, DecimalType, Field, MapType, NamedType, Primitive, Query, StructType, Type

Columns: TypeAlias = tuple[tuple[str, Type], ...]
Kind: TypeAlias = Literal["STREAM", "TABLE"]

# The columns that every row has without being declared, with what a windowed key adds.
PSEUDO: Columns = (
    ("ROWTIME", Primitive("BIGINT")),
    ("ROWPARTITION", Primitive("INTEGER")),
    ("ROWOFFSET", Primitive("BIGINT")),
)
BOUNDS: Columns = (("WINDOWSTART", Primitive("BIGINT")), ("WINDOWEND", Primitive("BIGINT")))
SYSTEM_NAMES = frozenset(name for name, _ in PSEUDO + BOUNDS)
HEADERS_TYPE = ArrayType(StructType((Field("KEY", Primitive("STRING")), Field("VALUE", Primitive("BYTES")))))


@dataclass(frozen=True, slots=True)
class Format:
    """How keys or values are written. Features are WRAP_SINGLES and UNWRAP_SINGLES."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()
    features: frozenset[str] = frozenset()

    def property(self, name: str) -> str | None:
        return dict(self.properties).get(name)


@dataclass(frozen=True, slots=True)
class WindowInfo:
    """The windows of a source's keys; sessions have no size."""

    kind: Literal["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of keys and of values."""

    key: Columns
    value: Columns

    def text(self, key_suffix: str = " KEY") -> str:
        columns = [(n, t, key_suffix) for n, t in self.key] + [(n, t, "") for n, t in self.value]
        return schema_text(columns)

    def find(self, name: str) -> Type | None:
        return next((t for n, t in (*self.key, *self.value) if n == name), None)


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or a table of a topic. `headers` are the columns of headers: (column, header or None for all)."""

    name: str
    kind: Kind
    schema: Schema
    topic: str
    key_format: Format
    value_format: Format
    headers: tuple[tuple[str, str | None], ...] = ()
    timestamp: str | None = None
    timestamp_format: str | None = None
    window: WindowInfo | None = None
    read_only: bool = False
    by_query: bool = False
    text: str = ""
    history_ms: int | None = None  # for how long a table knows its earlier values

    @property
    def stored_value(self) -> Columns:
        """The columns of the records' values: without those of headers."""
        names = {column for column, _ in self.headers}
        return tuple((name, kind) for name, kind in self.schema.value if name not in names)


@dataclass(frozen=True, slots=True)
class Topic:
    partitions: int = 1
    replicas: int = 1


@dataclass(slots=True)
class Catalogue:
    """The names that statements use. It is changed only by `engine.py`."""

    sources: dict[str, Source] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    readers: dict[str, set[str]] = field(default_factory=dict)  # source -> queries that read it
    writers: dict[str, set[str]] = field(default_factory=dict)
    views: dict[str, Query] = field(default_factory=dict)
    strict: bool = False  # whether only what ksqlDB has is allowed

    def source(self, name: str) -> Source:
        """Return a source, or say that there is none, and which name comes close."""
        found = self.sources.get(name)
        if found is None:
            raise SqlError(f"{name} does not exist.{self.hint(name)}")
        return found

    def hint(self, name: str) -> str:
        """Name a source that differs only in its case."""
        near = [known for known in self.sources if known.upper() == name.upper() and known != name]
        if not near:
            return ""
        return f'\nDid you mean "{near[0]}"? Hint: wrap the source name in double quotes to make it case-sensitive.'

    def resolve(self, kind: Type) -> Type:
        """Replace the custom types in a type."""
        match kind:
            case NamedType():
                found = self.types.get(kind.name)
                if found is None:
                    raise SqlError(f"Cannot resolve unknown type: {kind.name}")
                return found
            case ArrayType():
                return ArrayType(self.resolve(kind.item))
            case MapType():
                return MapType(self.resolve(kind.key), self.resolve(kind.value))
            case StructType():
                return StructType(tuple(replace(f, type=self.resolve(f.type)) for f in kind.fields))
            case Primitive() | DecimalType():
                return kind


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a statement under ksqlDB's names, with or without the prefix `ksql.streams.`."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str, default: str | None = None) -> str | None:
        value = self.values.get(name, default)
        return None if value is None else str(value)

    def flag(self, name: str, default: bool) -> bool:
        return str(self.values.get(name, default)).lower() == "true"


def quoted_columns(columns: Columns, suffix: str = "") -> str:
    """Print columns in the form of error messages: `A` INTEGER, `B` STRING."""
    return schema_text([(name, kind, suffix) for name, kind in columns])


def quoted_list(names: list[str]) -> str:
    return ", ".join(map(quoted, names))
