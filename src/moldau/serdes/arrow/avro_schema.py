"""The Arrow columns of an Avro schema.

A union with null is a nullable column. A union of several types is a struct with one nullable field for each, named
after the type, of which one is set. Recursive schemas have no columns: they are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ..context import SerdeError
from ..schemas.avro import Array, Map, Named, Primitive, Schema, Union, name_of
from .columns import ROWS, Column, Layout, listed, mapped, structured

UTC = "UTC"
PRIMITIVES = {  # kind -> kind of column, Arrow type, width
    "null": ("null", pa.null(), 0),
    "boolean": ("bool", pa.bool_(), 1),
    "int": ("fixed", pa.int32(), 4),
    "long": ("fixed", pa.int64(), 8),
    "float": ("fixed", pa.float32(), 4),
    "double": ("fixed", pa.float64(), 8),
    "bytes": ("text", pa.binary(), 0),
    "string": ("text", pa.string(), 0),
}
LOGICAL = {  # (kind, logical type) -> Arrow type of the same width
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", UTC),
    ("long", "timestamp-micros"): pa.timestamp("us", UTC),
    ("long", "timestamp-nanos"): pa.timestamp("ns", UTC),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
MAX_PRECISION = 76


@dataclass(slots=True)
class Columns:
    """Makes the columns of schemas in one layout; `dictionaries` leaves enums encoded."""

    dictionaries: bool = False
    watchful: bool = False  # all columns can hold nulls, to find those that may not
    layout: Layout = field(default_factory=Layout)

    def root(self, node: Schema) -> Column:
        return self.layout.optional(self.of(node, ROWS, ()), ROWS)

    def of(self, node: Schema, level: int, above: tuple[Schema, ...]) -> Column:
        made = self.made(node, level, above)
        if self.watchful and made.kind != "null" and made.validity < 0:
            made.validity = self.layout.buffer(level, 1)
        return made

    def made(self, node: Schema, level: int, above: tuple[Schema, ...]) -> Column:
        if any(node is other for other in above):
            raise SerdeError(f"{name_of(node)} contains itself, and columns cannot: read it value by value")
        above = (*above, node)
        match node:
            case Union():
                return self.union(node, level, above)
            case Array():
                made = self.layout.column("list", pa.null(), level)
                made.children = [self.of(node.items, made.counter, above)]
                made.type = listed(made.field_of_item)
                return made
            case Map():
                return self.map(node, level, above)
            case Named(kind="record" | "error"):
                return self.struct(
                    [entry.name for entry in node.fields],
                    [self.of(entry.type, level, above) for entry in node.fields],
                    level,
                )
        return self.leaf(node, level)

    def struct(self, names: list[str], children: list[Column], level: int) -> Column:
        made = self.layout.column("struct", structured(names, children), level)
        made.names, made.children = names, children
        return made

    def map(self, node: Map, level: int, above: tuple[Schema, ...]) -> Column:
        made = self.layout.column("map", pa.null(), level)
        key = self.layout.column("text", pa.string(), made.counter)
        value = self.of(node.values, made.counter, above)
        made.children = [self.struct(["key", "value"], [key, value], made.counter)]
        made.type = mapped(value)
        return made

    def union(self, node: Union, level: int, above: tuple[Schema, ...]) -> Column:
        members = members_of(node)
        if not members:
            return self.layout.column("null", pa.null(), level)
        columns = [self.of(member, level, above) for member in members]
        if len(members) == 1:
            made = columns[0]
        else:
            made = self.struct(
                branch_names(members), [self.layout.optional(column, level) for column in columns], level
            )
            made.type = structured(made.names, made.children)
        return self.layout.optional(made, level) if len(members) < len(node.branches) else made

    def leaf(self, node: Schema, level: int) -> Column:
        match node:
            case Named(kind="enum"):
                type = pa.dictionary(pa.int32(), pa.string()) if self.dictionaries else pa.string()
                return self.layout.column("enum", type, level, symbols=node.symbols)
            case Named(kind="fixed") | Primitive(kind="bytes") if is_decimal(node):
                precision, scale = decimal_of(node)
                if precision <= 38:
                    return self.layout.column("fixed", pa.decimal128(precision, scale), level, 16)
                return self.layout.column("fixed", pa.decimal256(precision, scale), level, 32)
            case Named(kind="fixed") if logical(node) == "duration" and node.size == 12:
                return self.layout.column("fixed", pa.month_day_nano_interval(), level, 16)
            case Named(kind="fixed") if logical(node) == "uuid" and node.size == 16:
                return self.layout.column("text", pa.string(), level)
            case Named(kind="fixed"):
                return self.layout.column("fixed", pa.binary(node.size), level, node.size)
            case Primitive():
                kind, type, width = PRIMITIVES[node.kind]
                return self.layout.column(kind, LOGICAL.get((node.kind, logical(node)), type), level, width)  # type: ignore[arg-type]
        raise AssertionError(node)


def members_of(node: Union) -> list[Schema]:
    return [branch for branch in node.branches if branch.kind != "null"]


def logical(node: Schema) -> str:
    props = node.props if isinstance(node, Primitive | Named) else {}
    found = props.get("logicalType")
    return found if isinstance(found, str) else ""


def decimal_of(node: Primitive | Named) -> tuple[int, int]:
    return node.props.get("precision", 0), node.props.get("scale", 0)


def is_decimal(node: Primitive | Named) -> bool:
    """Say whether it is a decimal that Arrow can hold; as Avro has it, one that is not valid is plain bytes."""
    precision, scale = decimal_of(node)
    numbers = isinstance(precision, int) and isinstance(scale, int)
    return logical(node) == "decimal" and numbers and 0 < precision <= MAX_PRECISION and 0 <= scale <= precision


def branch_names(members: Sequence[Schema]) -> list[str]:
    """Return simple names where they differ, otherwise full ones."""
    names = [member.name if isinstance(member, Named) else member.kind for member in members]
    if len(set(names)) == len(names):
        return names
    return [name_of(member) for member in members]
