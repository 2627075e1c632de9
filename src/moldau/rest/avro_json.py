"""Avro's own JSON: a branch of a union is named, `{"string": "x"}`, and bytes are characters up to U+00FF.

Logical types are left aside, as Avro's JSON does: a timestamp is its number.
"""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Any

from moldau.serdes.avro import WRONG_BYTES, Codec, codec, encode, reason
from moldau.serdes.context import SerdeError
from moldau.serdes.registry import Schema
from moldau.serdes.schemas import formatted, parse
from moldau.serdes.schemas.avro import MISSING, Array, Map, Named, Primitive, Union, name_of
from moldau.serdes.schemas.avro import Schema as Node

PYTHON = {"boolean": bool, "int": int, "long": int, "float": float, "double": float, "string": str, "bytes": bytes}
RANGES = {"int": 2**31, "long": 2**63}


@lru_cache(maxsize=1000)
def bare(schema: Schema) -> Codec:
    """Return the codec of a schema without its logical types."""
    if schema.type != "AVRO":
        raise SerdeError(f"the schema is {schema.type}, not AVRO")
    parsed = parse("AVRO", schema.text, schema.references, dict(schema.resolved))
    return codec(Schema("AVRO", json.dumps(_stripped(json.loads(formatted(parsed, "resolved"))))))


def _stripped(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _stripped(value) for key, value in document.items() if key != "logicalType"}
    return [_stripped(one) for one in document] if isinstance(document, list) else document


def to_bytes(schema: Schema, data: Any) -> bytes:
    to = bare(schema)
    try:
        return encode(to, to_value(to.node, data, ""))
    except RecursionError:
        raise SerdeError("the value nests too deeply") from None


def to_json(schema: Schema, payload: bytes) -> Any:
    of = bare(schema)
    if of.raw:
        return payload.decode("latin-1")
    if of.countless:
        raise SerdeError("the schema has an array whose items take no bytes: a few bytes could claim billions of them")
    try:
        return from_value(of.node, of.read(io.BytesIO(payload), of.parsed, None, return_named_type=True))
    except WRONG_BYTES as error:
        raise SerdeError(f"the bytes do not fit the schema {of.name or ''}: {reason(error)}") from None


def to_value(node: Node, data: Any, where: str, default: bool = False) -> Any:
    """Turn a JSON document into what fastavro writes; a branch of a union is a pair with its name.

    In a default a union is not named: it is of the first branch. fastavro would take a default of bytes for a string.
    """
    match node:
        case Primitive():
            return _primitive(node.kind, data, where)
        case Array():
            rows = _expected(data, list, "an array", where)
            return [to_value(node.items, one, f"{where}[{at}]", default) for at, one in enumerate(rows)]
        case Map():
            rows = _expected(data, dict, "a map", where)
            return {key: to_value(node.values, one, f"{where}.{key}", default) for key, one in rows.items()}
        case Union():
            return _first(node, data, where) if default else _branch(node, data, where)
        case Named():
            return _named(node, data, where, default)
    raise SerdeError(f"the schema refers to {node}, which is not there")


def _named(node: Named, data: Any, where: str, default: bool) -> Any:
    if node.kind == "enum":
        return _expected(data, str, f"a symbol of {node.full_name}", where)
    if node.kind == "fixed":
        return _latin(data, where)
    rows = _expected(data, dict, f"a record {node.full_name}", where)
    found = {}
    for field in node.fields:
        if field.name in rows:
            found[field.name] = to_value(field.type, rows[field.name], f"{where}.{field.name}", default)
        elif field.default is MISSING:
            raise SerdeError(f"{where or 'the value'} lacks the field {field.name}, which has no default")
        else:
            found[field.name] = to_value(field.type, field.default, f"{where}.{field.name}", True)
    return found


def _first(node: Union, data: Any, where: str) -> Any:
    branch = node.branches[0]
    return None if data is None else (name_of(branch), to_value(branch, data, where, True))


def _branch(node: Union, data: Any, where: str) -> Any:
    names = {name_of(branch): branch for branch in node.branches}
    if data is None and "null" in names:
        return None
    if isinstance(data, dict) and len(data) == 1:
        [(name, inner)] = data.items()
        if name in names and name != "null":
            return name, to_value(names[name], inner, where)
    wanted = ", ".join(f'{{"{name}": ...}}' if name != "null" else name for name in names)
    raise SerdeError(f"{where or 'the value'} is none of the union: {wanted}")


def _primitive(kind: str, data: Any, where: str) -> Any:
    if kind == "bytes":
        return _latin(data, where)
    if kind == "null":
        if data is not None:
            raise SerdeError(f"{where or 'the value'} is not null")
        return None
    if PYTHON[kind] is float and type(data) in (int, float):
        return float(data)
    if type(data) is not PYTHON[kind]:
        raise SerdeError(f"{where or 'the value'} is not of type {kind}")
    if kind in RANGES and not -RANGES[kind] <= data < RANGES[kind]:
        raise SerdeError(f"{where or 'the value'} is out of the range of {kind}")
    return data


def _latin(data: Any, where: str) -> bytes:
    try:
        return _expected(data, str, "a string that stands for bytes", where).encode("latin-1")
    except UnicodeEncodeError:
        raise SerdeError(f"{where or 'the value'} has a character beyond U+00FF, which is not a byte") from None


def _expected(data: Any, kind: type, what: str, where: str) -> Any:
    if not isinstance(data, kind):
        raise SerdeError(f"{where or 'the value'} is not {what}")
    return data


def from_value(node: Node, value: Any) -> Any:
    """Return the JSON of what fastavro has read."""
    match node:
        case Array():
            return [from_value(node.items, one) for one in value]
        case Map():
            return {key: from_value(node.values, one) for key, one in value.items()}
        case Union():
            return _read_branch(node, value)
        case Named(kind="record" | "error"):
            return {field.name: from_value(field.type, value[field.name]) for field in node.fields}
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _read_branch(node: Union, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        [name, value] = value
        branch = next(one for one in node.branches if name_of(one) == name)
    else:
        branch = next(one for one in node.branches if _fits(one, value))
    return {name_of(branch): from_value(branch, value)}


def _fits(node: Node, value: Any) -> bool:
    match node:
        case Primitive():
            limit = RANGES.get(node.kind)
            return type(value) is PYTHON.get(node.kind) and (limit is None or -limit <= value < limit)
        case Array():
            return isinstance(value, list)
        case Map():
            return isinstance(value, dict)
    return False
