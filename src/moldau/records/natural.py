"""Avro values as plain JSON: decimals are numbers as text, times ISO, bytes characters up to U+00FF; and back.

A value of a union needs no name in front: the first branch that it fits is taken. `{"string": "x"}`, as Avro's own JSON
has it, is understood too.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from moldau.serdes.avro import Avro, codec
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.schemas.avro import Array, Map, Named, Primitive, Union
from moldau.serdes.schemas.avro import Schema as Node

WHOLE = {"int": 2**31, "long": 2**63}
DEEPEST = 200


def to_document(value: Any) -> Any:
    """Convert a decoded value to what JSON has."""
    match value:
        case dict():
            return {str(key): to_document(inner) for key, inner in value.items()}
        case list() | tuple():
            return [to_document(inner) for inner in value]
        case bytes() | bytearray():
            return bytes(value).decode("latin-1")
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
    return value


def of_document(serde: Avro, document: Any, context: Context) -> Any:
    """Convert a JSON document to the value that the schema wants."""
    return fitted(codec(serde.subjects.to_write(context).schema).node, document, "the value")


def fitted(node: Node, data: Any, where: str, depth: int = 0) -> Any:
    """Convert data to a value of the node; SerdeError says where it does not fit."""
    if depth > DEEPEST:
        raise SerdeError(f"{where} nests deeper than {DEEPEST} levels")
    match node:
        case Union():
            return _branch(node, data, where, depth)
        case Array() if isinstance(data, list):
            return [fitted(node.items, inner, f"{where}[{at}]", depth + 1) for at, inner in enumerate(data)]
        case Map() if isinstance(data, dict):
            return {key: fitted(node.values, inner, f"{where}.{key}", depth + 1) for key, inner in data.items()}
        case Named(kind="record" | "error") if isinstance(data, dict):
            return _record(node, data, where, depth)
        case Named(kind="enum") if data in node.symbols:
            return data
        case Named(kind="fixed"):
            return _octets(node, data, where)
        case Primitive():
            return _primitive(node, data, where)
    raise wrong(node, data, where)


def wrong(node: Node, data: Any, where: str) -> SerdeError:
    name = node.full_name if isinstance(node, Named) else node.kind
    return SerdeError(f"{where} is {data!r:.40}, not {name}")


def _record(node: Named, data: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
    unknown = set(data) - {field.name for field in node.fields}
    if unknown:
        raise SerdeError(f"{where} has {', '.join(sorted(unknown))}, which {node.full_name} has not")
    missing = [field.name for field in node.fields if field.name not in data and not field.has_default]
    if missing:
        raise SerdeError(f"{where} lacks {', '.join(missing)}")
    return {
        field.name: fitted(field.type, data[field.name], f"{where}.{field.name}", depth + 1)
        for field in node.fields
        if field.name in data
    }


def _branch(node: Union, data: Any, where: str, depth: int) -> Any:
    if isinstance(data, dict) and len(data) == 1:
        [(name, inner)] = data.items()
        for branch in node.branches:
            if name in _names(branch):
                return fitted(branch, inner, where, depth + 1)
    problems = []
    for branch in node.branches:
        try:
            return fitted(branch, data, where, depth + 1)
        except SerdeError as error:
            problems.append(str(error))
    raise SerdeError(problems[-1] if len(node.branches) <= 2 else f"{where} is {data!r:.40}, no branch of its union")


def _names(branch: Node) -> tuple[str, ...]:
    return (branch.full_name, branch.name) if isinstance(branch, Named) else (branch.kind,)


def _primitive(node: Primitive, data: Any, where: str) -> Any:
    logical = node.props.get("logicalType")
    match node.kind:
        case "null" if data is None:
            return None
        case "boolean" if isinstance(data, bool):
            return data
        case "string" if isinstance(data, str):
            return data
        case "bytes":
            return _octets(node, data, where)
        case "float" | "double" if isinstance(data, int | float) and not isinstance(data, bool):
            return float(data)
        case "int" | "long":
            if isinstance(data, str) and logical:
                return _time(logical, data, where)
            if isinstance(data, int) and not isinstance(data, bool) and -WHOLE[node.kind] <= data < WHOLE[node.kind]:
                return data
    raise wrong(node, data, where)


def _octets(node: Primitive | Named, data: Any, where: str) -> Any:
    if node.props.get("logicalType") == "decimal":
        try:
            return Decimal(str(data))
        except InvalidOperation:
            raise SerdeError(f"{where} is {data!r:.40}, no decimal number") from None
    if not isinstance(data, str):
        raise wrong(node, data, where)
    try:
        return data.encode("latin-1")
    except UnicodeEncodeError:
        raise SerdeError(f"{where} has characters that are no bytes: bytes are characters up to U+00FF") from None


def _time(logical: str, text: str, where: str) -> Any:
    """Parse a date, a time of day or a timestamp in ISO form."""
    try:
        if logical == "date":
            return dt.date.fromisoformat(text)
        if logical.startswith("time-"):
            return dt.time.fromisoformat(text)
        return dt.datetime.fromisoformat(text)
    except ValueError:
        raise SerdeError(f"{where} is {text!r:.40}, no {logical}: write it in ISO's form, or as a number") from None
