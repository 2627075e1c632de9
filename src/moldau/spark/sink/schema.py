"""Makes an Avro, JSON Schema or Protobuf schema from the Arrow type of columns that have none.

Every field may be null, as in Spark. A name that the format does not allow is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from moldau.serdes.context import SerdeError

NAMESPACE = "moldau.spark"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

TYPES: tuple[tuple[pa.DataType, Any, str | None, str | None], ...] = (  # Arrow, Avro, JSON Schema, Protobuf
    (pa.null(), "null", None, None),
    (pa.bool_(), "boolean", "boolean", "bool"),
    (pa.int8(), "int", "integer", "int32"),
    (pa.int16(), "int", "integer", "int32"),
    (pa.int32(), "int", "integer", "int32"),
    (pa.int64(), "long", "integer", "int64"),
    (pa.float32(), "float", "number", "float"),
    (pa.float64(), "double", "number", "double"),
    (pa.string(), "string", "string", "string"),
    (pa.large_string(), "string", "string", "string"),
    (pa.binary(), "bytes", None, "bytes"),
    (pa.large_binary(), "bytes", None, "bytes"),
    (pa.date32(), {"type": "int", "logicalType": "date"}, None, None),
    (pa.timestamp("us", "UTC"), {"type": "long", "logicalType": "timestamp-micros"}, None, "google.protobuf.Timestamp"),
    (pa.timestamp("us"), {"type": "long", "logicalType": "local-timestamp-micros"}, None, None),
)
AVRO = {row[0]: row[1] for row in TYPES}
JSON = {row[0]: row[2] for row in TYPES if row[2]}
PROTOBUF = {row[0]: row[3] for row in TYPES if row[3]}
NARROW = {pa.int8(): pa.int32(), pa.int16(): pa.int32(), pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def schema_of(type: pa.DataType, format: str, topic: str, part: str) -> str:
    """Return the text of a schema for values of this type."""
    name = record_name(topic, part)
    match format:
        case "avro":
            return json.dumps(avro_schema(type, name, nullable=False))
        case "json-schema":
            return json.dumps({"title": name, **json_schema(type)})
        case _:
            return protobuf_schema(type, name)


def fitting(type: pa.DataType, format: str) -> pa.DataType:
    """Return the type to which values are cast before they are written: no format has small integers."""
    if pa.types.is_struct(type):
        return pa.struct([pa.field(one.name, fitting(one.type, format), one.nullable) for one in type])
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(fitting(type.value_type, format))
    if pa.types.is_map(type):
        return pa.map_(type.key_type, fitting(type.item_type, format))
    if format == "json-schema" and pa.types.is_integer(type):
        return pa.int64()
    if format == "json-schema" and pa.types.is_floating(type):
        return pa.float64()
    return NARROW.get(type, type)


def record_name(topic: str, part: str) -> str:
    """Return a name that every format allows: values of `orders-eu` are OrdersEuValue."""
    words = re.findall(r"[A-Za-z0-9]+", topic)
    made = "".join(word[0].upper() + word[1:] for word in words) + part.capitalize()
    return made if made[0].isalpha() else f"T{made}"


def checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SerdeError(f"the column {name!r} has a name that schemas do not allow: rename it, or give value.schema")
    return name


def refused(type: pa.DataType, format: str) -> SerdeError:
    return SerdeError(f"there is no {format} schema for a column of {type}: cast it, or give value.schema")


def avro_schema(type: pa.DataType, name: str, nullable: bool = True) -> Any:
    if pa.types.is_struct(type):
        fields = [
            {"name": checked(one.name), "type": avro_schema(one.type, f"{name}_{one.name}"), "default": None}
            for one in type
        ]
        made: Any = {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}
    elif pa.types.is_list(type):
        made = {"type": "array", "items": avro_schema(type.value_type, f"{name}_item")}
    elif pa.types.is_map(type) and pa.types.is_string(type.key_type):
        made = {"type": "map", "values": avro_schema(type.item_type, f"{name}_value")}
    elif pa.types.is_decimal(type):
        made = {"type": "bytes", "logicalType": "decimal", "precision": type.precision, "scale": type.scale}
    elif type in AVRO:
        made = AVRO[type]
    else:
        raise refused(type, "Avro")
    return ["null", made] if nullable and made != "null" else made


def json_schema(type: pa.DataType) -> dict[str, Any]:
    if pa.types.is_struct(type):
        return {"type": "object", "properties": {one.name: json_schema(one.type) for one in type}}
    if pa.types.is_list(type):
        return {"type": "array", "items": json_schema(type.value_type)}
    if pa.types.is_map(type) and pa.types.is_string(type.key_type):
        return {"type": "object", "additionalProperties": json_schema(type.item_type)}
    if type in JSON:
        return {"type": JSON[type]}
    raise refused(type, "JSON")


def protobuf_schema(type: pa.DataType, name: str) -> str:
    if not pa.types.is_struct(type):
        raise SerdeError(f"Protobuf has messages alone, and the column is {type}: make a struct of it")
    body = protobuf_message(type, name, "")
    known = "google.protobuf.Timestamp" in body
    imports = 'import "google/protobuf/timestamp.proto";\n' if known else ""
    return f'syntax = "proto3";\npackage {NAMESPACE};\n{imports}{body}'


def protobuf_message(type: pa.DataType, name: str, indent: str) -> str:
    lines = [f"{indent}message {name} {{\n"]
    for number, one in enumerate(type, 1):
        kind, inner = protobuf_field(one.type, f"{checked(one.name).capitalize()}Message", f"{indent}  ")
        lines += [inner, f"{indent}  {kind} {one.name} = {number};\n"]
    return "".join([*lines, f"{indent}}}\n"])


def protobuf_field(type: pa.DataType, name: str, indent: str) -> tuple[str, str]:
    """Return the declaration of a field, and the message that it needs."""
    if pa.types.is_struct(type):
        return f"optional {name}", protobuf_message(type, name, indent)
    is_map = pa.types.is_map(type) and PROTOBUF.get(type.key_type) in ("string", "int32", "int64", "bool")
    if is_map or pa.types.is_list(type):
        kind, inner = protobuf_field(type.item_type if is_map else type.value_type, name, indent)
        if not kind.startswith("optional "):
            raise refused(type, "Protobuf")
        kind = kind.removeprefix("optional ")
        return f"map<{PROTOBUF[type.key_type]}, {kind}>" if is_map else f"repeated {kind}", inner
    if type in PROTOBUF:
        return f"optional {PROTOBUF[type]}", ""
    raise refused(type, "Protobuf")
