"""Avro schemas as text: the canonical string (as Java's Schema.toString), all names resolved, and normalized.

A named type is written out where it stands first and by its name afterwards; what references define is written by
name from the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .avro import Array, Field, Map, Named, Primitive, Schema, Union
from .json_text import dumps, in_order

# Logical types of Avro and the kind each annotates; decimal, duration and uuid have more to fulfil.
LOGICAL = {
    "big-decimal": "bytes",
    "date": "int",
    "duration": "fixed",
    "local-timestamp-micros": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-nanos": "long",
    "time-micros": "long",
    "time-millis": "int",
    "timestamp-micros": "long",
    "timestamp-millis": "long",
    "timestamp-nanos": "long",
    "uuid": "string",
}


def canonical(schema: Schema, foreign: Iterable[str] = ()) -> str:
    return dumps(Writer(set(foreign)).write(schema, ""))


def normalized(schema: Schema, foreign: Iterable[str] = ()) -> str:
    """Write full names, and properties and attributes in one order, so that what means the same reads the same."""
    return dumps(Writer(set(foreign), is_normal=True).write(schema, ""))


@dataclass(slots=True)
class Writer:
    """Turns schemas into JSON values, canonical or normal; `known` are the names that were written already."""

    known: set[str]
    is_normal: bool = False

    def write(self, schema: Schema, namespace: str) -> Any:
        """Return the JSON value of a schema inside a type of that namespace."""
        match schema:
            case Primitive():
                return {"type": schema.kind, **self.props(schema)} if schema.props else schema.kind
            case Array():
                return {"type": "array", "items": self.write(schema.items, namespace), **self.props(schema)}
            case Map():
                return {"type": "map", "values": self.write(schema.values, namespace), **self.props(schema)}
            case Union():
                return [self.write(branch, namespace) for branch in schema.branches]
            case Named():
                if schema.full_name in self.known:
                    return schema.full_name if self.is_normal else relative(schema.full_name, namespace)
                self.known.add(schema.full_name)
                return self.normal_named(schema) if self.is_normal else self.canonical_named(schema, namespace)
        raise AssertionError(schema)

    def props(self, schema: Primitive | Array | Map) -> dict[str, Any]:
        if not self.is_normal:
            return schema.props
        logical = list_logical(schema)
        return logical | ordered(schema.props, logical)

    def canonical_named(self, schema: Named, enclosing: str) -> dict[str, Any]:
        value: dict[str, Any] = {"type": schema.kind, "name": schema.name}
        if schema.namespace != enclosing:
            value["namespace"] = schema.namespace
        value |= given(doc=schema.doc) | self.content(schema)
        if schema.kind == "enum":
            value |= given(default=schema.default)
        value |= schema.props
        if schema.aliases:
            value["aliases"] = [relative(alias, schema.namespace) for alias in schema.aliases]
        return value

    def normal_named(self, schema: Named) -> dict[str, Any]:
        value = {"name": schema.full_name, "type": "record" if schema.is_record else schema.kind}
        logical = list_logical(schema)
        value |= self.content(schema) | logical
        value |= given(doc=schema.doc or None, aliases=sorted(schema.aliases) or None, default=schema.default)
        return value | ordered(schema.props, logical)

    def content(self, schema: Named) -> dict[str, Any]:
        match schema.kind:
            case "enum":
                return {"symbols": schema.symbols}
            case "fixed":
                return {"size": schema.size}
        write = self.normal_field if self.is_normal else self.canonical_field
        return {"fields": [write(entry, schema.namespace) for entry in schema.fields]}

    def canonical_field(self, entry: Field, namespace: str) -> dict[str, Any]:
        value = {"name": entry.name, "type": self.write(entry.type, namespace)} | given(doc=entry.doc)
        if entry.has_default:
            value["default"] = entry.default
        if entry.order != "ascending":
            value["order"] = entry.order
        return value | given(aliases=entry.aliases or None) | entry.props

    def normal_field(self, entry: Field, namespace: str) -> dict[str, Any]:
        value = {"name": entry.name, "type": self.write(entry.type, namespace), "order": entry.order}
        value |= given(doc=entry.doc, aliases=sorted(entry.aliases) or None)
        if entry.has_default:
            value["default"] = in_order(typed(entry.type, entry.default))
        return value | ordered(entry.props)


def given(**attributes: Any) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def ordered(props: dict[str, Any], but: Iterable[str] = ()) -> dict[str, Any]:
    return {key: in_order(props[key]) for key in sorted(props) if key not in but}


def relative(full_name: str, namespace: str) -> str:
    space, _, name = full_name.rpartition(".")
    return name if space == namespace else full_name


def list_logical(schema: Primitive | Array | Map | Named) -> dict[str, Any]:
    """Return the properties of a logical type that Avro knows, which come first. Others are ordinary properties."""
    if not is_logical(schema):
        return {}
    keys = ("logicalType", "precision", "scale") if schema.props["logicalType"] == "decimal" else ("logicalType",)
    return {key: schema.props[key] for key in keys if schema.props.get(key)}


def is_logical(schema: Primitive | Array | Map | Named) -> bool:
    name = schema.props.get("logicalType")
    if name == "decimal":
        return schema.kind in ("bytes", "fixed") and decimal_fits(schema)
    if name in ("uuid", "duration") and isinstance(schema, Named):
        return schema.size == {"uuid": 16, "duration": 12}[name]
    return isinstance(name, str) and LOGICAL.get(name) == schema.kind


def decimal_fits(schema: Primitive | Array | Map | Named) -> bool:
    precision, scale = schema.props.get("precision"), schema.props.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision == 0:
        return False
    return not isinstance(schema, Named) or 10**precision <= 1 << (8 * schema.size - 1) if precision < 10_000 else False


def typed(schema: Schema, value: Any) -> Any:
    """Return a default as a value of its type: 1 of a double is 1.0."""
    match schema, value:
        case Union(branches=[first, *_]), _:
            return typed(first, value)
        case Primitive(kind="float" | "double"), int() if not isinstance(value, bool):
            return float(value)
        case Array(), list():
            return [typed(schema.items, item) for item in value]
        case Map(), dict():
            return {key: typed(schema.values, item) for key, item in value.items()}
        case Named(), dict():
            types = {entry.name: entry.type for entry in schema.fields}
            return {key: typed(types[key], item) if key in types else item for key, item in value.items()}
    return value
