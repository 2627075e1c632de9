"""Schemas, values and records as JSON, in the form of `java/Coding.java`: a value is [tag, content]."""

from __future__ import annotations

import base64
import json
import math
import struct
from decimal import Decimal
from typing import Any

from moldau.connect import data
from moldau.connect.data import Instant, Record, Schema, Struct, Type

TAGS = {
    Type.INT8: "b",
    Type.INT16: "s",
    Type.INT32: "i",
    Type.INT64: "l",
    Type.FLOAT32: "f",
    Type.FLOAT64: "d",
    Type.BOOLEAN: "z",
    Type.STRING: "t",
    Type.BYTES: "y",
    Type.ARRAY: "a",
    Type.MAP: "m",
}


def schema(found: Schema | None) -> Any:
    if found is None:
        return None
    return {
        "type": found.type.name,
        "optional": found.optional,
        "default": value(found, found.default),
        "name": found.name,
        "version": found.version,
        "doc": found.doc,
        "parameters": dict(sorted(found.parameters.items())) if found.parameters is not None else None,
        "fields": [[each.name, schema(each.schema)] for each in found.fields],
        "key": schema(found.key_schema),
        "value": schema(found.value_schema),
    }


def value(of: Schema | None, found: Any) -> Any:
    """Code a value with the class that its object has in Java: that of its own, or else that of the schema."""
    match found:
        case None:
            return None
        case Decimal():
            whole, scale = data.unscaled(found)
            return ["D", str(whole), scale]
        case Instant():
            return ["I", str(int(found))]
        case data.BigInt():
            return ["B", str(int(found))]
        case Struct():
            values = [value(place.schema, each) for place, each in found]
            return ["r", schema(found.schema), values]
    own = data.type_of(found)
    assert own is not None, found
    kind = of.type if type(found) in (int, float) and of and of.type in (*data.BITS, Type.FLOAT32) else own
    return [TAGS[kind], _content(kind, of, found)]


def _content(kind: Type, of: Schema | None, found: Any) -> Any:
    inner = of.value_schema if of and of.type in (Type.ARRAY, Type.MAP) else None
    match kind:
        case Type.INT64:
            return str(int(found))
        case Type.INT8 | Type.INT16 | Type.INT32:
            return int(found)
        case Type.FLOAT32:
            return str(struct.unpack(">i", struct.pack(">f", found if found == found else math.nan))[0])
        case Type.FLOAT64:
            return str(struct.unpack(">q", struct.pack(">d", found if found == found else math.nan))[0])
        case Type.BYTES:
            return base64.b64encode(found).decode()
        case Type.ARRAY:
            return [value(inner, each) for each in found]
        case Type.MAP:
            keys = of.key_schema if of and of.type is Type.MAP else None
            return [[value(keys, key), value(inner, each)] for key, each in found.items()]
        case _:
            return found


def record(found: Record) -> dict[str, Any]:
    return {
        "topic": found.topic,
        "partition": found.partition,
        "keySchema": schema(found.key_schema),
        "key": value(found.key_schema, found.key),
        "valueSchema": schema(found.value_schema),
        "value": value(found.value_schema, found.value),
        "timestamp": None if found.timestamp is None else str(found.timestamp),
        "offset": None if found.offset is None else str(found.offset),
        "headers": [[each.name, schema(each.schema), value(each.schema, each.value)] for each in found.headers],
    }


def in_order(found: Any) -> Any:
    """Sort the entries of maps, whose order means nothing."""
    if isinstance(found, dict):
        return {name: in_order(each) for name, each in found.items()}
    if not isinstance(found, list):
        return found
    made = [in_order(each) for each in found]
    if len(made) == 2 and made[0] == "m" and isinstance(made[1], list):
        made[1] = sorted(made[1], key=json.dumps)
    return made
