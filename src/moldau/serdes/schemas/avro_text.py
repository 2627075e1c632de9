"""Avro schemas as text: the canonical string (as Java's Schema.toString), all names resolved, and normalized.

A named type is written out where it stands first and by its name afterwards; what references define is written by
name from the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .avro import Array, Field, Map, Named, Primitive, Schema, Union
from .json_text import dumps, in_order, string

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
    return dumps(plain(schema, "", set(foreign)))


def plain(schema: Schema, namespace: str, known: set[str]) -> Any:
    """The schema as a JSON value; `namespace` is that of the enclosing type, `known` the names written already."""
    match schema:
        case Primitive():
            return {"type": schema.kind, **schema.props} if schema.props else schema.kind
        case Array():
            return {"type": "array", "items": plain(schema.items, namespace, known), **schema.props}
        case Map():
            return {"type": "map", "values": plain(schema.values, namespace, known), **schema.props}
        case Union():
            return [plain(branch, namespace, known) for branch in schema.branches]
        case Named():
            if schema.full_name in known:
                return relative(schema.full_name, namespace)
            known.add(schema.full_name)
            return plain_named(schema, namespace, known)
    raise AssertionError(schema)


def plain_named(schema: Named, enclosing: str, known: set[str]) -> dict[str, Any]:
    value: dict[str, Any] = {"type": schema.kind, "name": schema.name}
    if schema.namespace != enclosing:
        value["namespace"] = schema.namespace
    if schema.doc is not None:
        value["doc"] = schema.doc
    match schema.kind:
        case "enum":
            value["symbols"] = schema.symbols
            if schema.default is not None:
                value["default"] = schema.default
        case "fixed":
            value["size"] = schema.size
        case _:
            value["fields"] = [plain_field(entry, schema.namespace, known) for entry in schema.fields]
    value |= schema.props
    if schema.aliases:
        value["aliases"] = [relative(alias, schema.namespace) for alias in schema.aliases]
    return value


def plain_field(entry: Field, namespace: str, known: set[str]) -> dict[str, Any]:
    value: dict[str, Any] = {"name": entry.name, "type": plain(entry.type, namespace, known)}
    if entry.doc is not None:
        value["doc"] = entry.doc
    if entry.has_default:
        value["default"] = entry.default
    if entry.order != "ascending":
        value["order"] = entry.order
    if entry.aliases:
        value["aliases"] = entry.aliases
    return value | entry.props


def relative(full_name: str, namespace: str) -> str:
    space, _, name = full_name.rpartition(".")
    return name if space == namespace else full_name


def normalized(schema: Schema, foreign: Iterable[str] = ()) -> str:
    """Full names, properties in order of their names, attributes in one order: what means the same reads the same."""
    return write(schema, set(foreign))


def write(schema: Schema, known: set[str]) -> str:
    match schema:
        case Primitive():
            kind = string(schema.kind)
            return f'{{"type":{kind}{written_props(schema)}}}' if schema.props else kind
        case Array():
            return f'{{"type":"array","items":{write(schema.items, known)}{written_props(schema)}}}'
        case Map():
            return f'{{"type":"map","values":{write(schema.values, known)}{written_props(schema)}}}'
        case Union():
            return "[" + ",".join(write(branch, known) for branch in schema.branches) + "]"
        case Named():
            if schema.full_name in known:
                return string(schema.full_name)
            known.add(schema.full_name)
            return write_named(schema, known)
    raise AssertionError(schema)


def write_named(schema: Named, known: set[str]) -> str:
    kind = "record" if schema.is_record else schema.kind
    parts = [f'"name":{string(schema.full_name)},"type":{string(kind)}']
    match schema.kind:
        case "enum":
            parts.append(f'"symbols":{dumps(schema.symbols)}')
        case "fixed":
            parts.append(f'"size":{schema.size}')
        case _:
            parts.append('"fields":[' + ",".join(write_field(entry, known) for entry in schema.fields) + "]")
    rest: dict[str, Any] = {"doc": schema.doc} if schema.doc else {}
    if schema.aliases:
        rest["aliases"] = sorted(schema.aliases)
    if schema.default is not None:
        rest["default"] = schema.default
    logical = list_logical(schema)
    return "{" + ",".join(parts) + written(logical) + written(rest) + written_rest(schema.props, logical) + "}"


def write_field(entry: Field, known: set[str]) -> str:
    rest: dict[str, Any] = {"order": entry.order}
    if entry.doc is not None:
        rest["doc"] = entry.doc
    if entry.aliases:
        rest["aliases"] = sorted(entry.aliases)
    if entry.has_default:
        rest["default"] = in_order(typed(entry.type, entry.default))
    fixed = f'{{"name":{string(entry.name)},"type":{write(entry.type, known)}'
    return fixed + written(rest) + written_rest(entry.props, {}) + "}"


def written_props(schema: Primitive | Array | Map) -> str:
    logical = list_logical(schema)
    return written(logical) + written_rest(schema.props, logical)


def list_logical(schema: Primitive | Array | Map | Named) -> dict[str, Any]:
    """The properties of a logical type that Avro knows come first; one it does not know is a property like others."""
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


def written_rest(props: dict[str, Any], but: dict[str, Any]) -> str:
    return written({key: in_order(props[key]) for key in sorted(props) if key not in but})


def written(values: dict[str, Any]) -> str:
    return "".join(f",{string(key)}:{dumps(value)}" for key, value in values.items())


def typed(schema: Schema, value: Any) -> Any:
    """A default as a value of its type: 1 of a double is 1.0."""
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
