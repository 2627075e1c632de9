"""AVRO: rows as records of a schema that the columns decide, in Confluent's frame.

A field is a union of null and its type with null as default; a map is an array of records of key and value, because
ksqlDB's keys of maps may be null. What others wrote is read by the names of fields, in upper case if need be.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from moldau.serdes.avro import codec, decode, encode
from moldau.serdes.context import SerdeError
from moldau.serdes.framing import frame, unframe
from moldau.serdes.registry import Schema
from moldau.serdes.typed import Subjects

from ..casts import exact_decimal
from ..catalogue import Format
from ..errors import SqlError
from ..tree import ArrayType, DecimalType, Field, MapType, Primitive, StructType, Type
from ..types import Columns, base
from .registered import Place
from .rows import Row

NAMESPACE = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME = f"{NAMESPACE}.KsqlDataSourceSchema"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
PRIMITIVES: dict[str, Any] = {
    "BOOLEAN": "boolean",
    "INTEGER": "int",
    "BIGINT": "long",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
    "DATE": {
        "type": "int",
        "connect.version": 1,
        "connect.name": "org.apache.kafka.connect.data.Date",
        "logicalType": "date",
    },
    "TIME": {
        "type": "int",
        "connect.version": 1,
        "connect.name": "org.apache.kafka.connect.data.Time",
        "logicalType": "time-millis",
    },
    "TIMESTAMP": {
        "type": "long",
        "connect.version": 1,
        "connect.name": "org.apache.kafka.connect.data.Timestamp",
        "logicalType": "timestamp-millis",
    },
}


def schema_node(type: Type, name: str) -> Any:
    """Return the Avro schema of a type; `name` is that of a record."""
    match type:
        case DecimalType(precision, scale):
            return {
                "type": "bytes",
                "scale": scale,
                "precision": precision,
                "connect.version": 1,
                "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "logicalType": "decimal",
            }
        case ArrayType(item):
            return {"type": "array", "items": ["null", schema_node(item, name)]}
        case MapType(key, value):
            entry = record(name, [("key", key), ("value", value)])
            return {"type": "array", "items": entry | {"connect.internal.type": "MapEntry"}}
        case StructType(fields):
            return record(name, [(each.name, each.type) for each in fields])
        case _:
            return PRIMITIVES[base(type)]


def record(name: str, columns: Columns) -> dict[str, Any]:
    space, _, short = name.rpartition(".")
    fields = [
        {"name": each, "type": ["null", schema_node(type, f"{name}_{each}")], "default": None} for each, type in columns
    ]
    made: dict[str, Any] = {"type": "record", "name": short}
    if space:
        made["namespace"] = space
    return made | {"fields": fields, "connect.name": name}


def schema_of(format: Format, columns: Columns, alone: bool, place: Place) -> Schema:
    """Return the schema that ksqlDB would register for columns."""
    name = format.property("fullSchemaName") or DEFAULT_NAME
    node = schema_node(columns[0][1], name) if alone else record(name, columns)
    return Schema("AVRO", json.dumps(node, separators=(",", ":")))


Read = Callable[[Any], Any]


def _moment(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return round((value - EPOCH) / datetime.timedelta(milliseconds=1))
    return _int(value)


def _day(value: Any) -> int:
    return value.toordinal() - FIRST_DAY if isinstance(value, datetime.date) else _int(value)


def _clock(value: Any) -> int:
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return _int(value)


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SerdeError(f"{value!r} is not an integer")
    return value


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SerdeError(f"{value!r} is not a number")
    return float(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise SerdeError(f"{value!r} is not a text")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise SerdeError(f"{value!r} is not a boolean")
    return value


READERS: dict[str, Read] = {
    "BOOLEAN": _boolean,
    "INTEGER": _int,
    "BIGINT": _int,
    "DOUBLE": _double,
    "STRING": _text,
    "BYTES": bytes,
    "DATE": _day,
    "TIME": _clock,
    "TIMESTAMP": _moment,
}


def reader(type: Type) -> Read:
    """Return a function that makes a value of what fastavro read."""
    match type:
        case DecimalType():
            read: Read = lambda value: exact_decimal(Decimal(value), type)  # noqa: E731
        case ArrayType(item):
            of_item = reader(item)
            read = lambda value: [of_item(each) for each in value]  # noqa: E731
        case MapType(key, value_type):
            of_key, of_value = reader(key), reader(value_type)
            read = lambda value: {of_key(k): of_value(v) for k, v in pairs(value)}  # noqa: E731
        case StructType(fields):
            read = record_reader(fields)
        case _:
            read = READERS[base(type)]
    return lambda value: None if value is None else read(value)


def pairs(value: Any) -> Any:
    """Return the entries of a map, which may be an array of records."""
    return value.items() if isinstance(value, dict) else ((each["key"], each["value"]) for each in value)


def record_reader(fields: tuple[Field, ...]) -> Read:
    parts = [(each.name, reader(each.type)) for each in fields]

    def read(value: Any) -> Row:
        if not isinstance(value, dict):
            raise SerdeError(f"{value!r} is not a record")
        upper = {key.upper(): each for key, each in value.items()}
        return tuple(one(value[name] if name in value else upper.get(name.upper())) for name, one in parts)

    return read


def writer(type: Type) -> Callable[[Any], Any]:
    """Return a function that makes what fastavro writes of a value."""
    match type:
        case ArrayType(item):
            of_item = writer(item)
            write: Read = lambda value: [of_item(each) for each in value]  # noqa: E731
        case MapType(key, value_type):
            of_key, of_value = writer(key), writer(value_type)
            write = lambda value: [{"key": of_key(k), "value": of_value(v)} for k, v in value.items()]  # noqa: E731
        case StructType(fields):
            parts = [(each.name, writer(each.type)) for each in fields]
            write = lambda value: {  # noqa: E731
                name: one(each) for (name, one), each in zip(parts, value, strict=True)
            }
        case _:
            return lambda value: value
    return lambda value: None if value is None else write(value)


@dataclass(frozen=True, slots=True)
class Avro:
    place: Place
    subjects: Subjects
    read: Read
    write: Read
    alone: bool

    @classmethod
    def of(cls, format: Format, columns: Columns, alone: bool, place: Place) -> Avro:
        own = schema_of(format, columns, alone, place)
        type = columns[0][1] if alone else StructType(tuple(Field(name, each) for name, each in columns))
        return cls(place, place.subjects(own, format.property("schemaId")), reader(type), writer(type), alone)

    def dumps(self, row: Row | None) -> bytes | None:
        value = None if row is None else row[0] if self.alone else row
        if value is None:
            return None
        written = self.subjects.to_write(self.place.context)
        to = codec(written.schema)
        return frame(
            written.ref,
            encode(to, shaped(self.write(value), json.loads(written.schema.text))),
            self.place.context,
            in_header=False,
        )

    def loads(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        ref, payload = unframe(data, self.place.context)
        found = decode(payload, codec(self.subjects.writer(ref, self.place.context)), None)
        value = self.read(found)
        return (value,) if self.alone else value


def shaped(value: Any, schema: Any, names: dict[str, Any] | None = None) -> Any:
    """Fit a datum or a node of a test case to a schema: maps in both forms, names without regard to case."""
    names = {} if names is None else names
    if isinstance(schema, list):
        return _in_union(value, schema, names)
    if isinstance(schema, str):
        return shaped(value, names[schema], names) if schema in names else _primitive(value, schema)
    kind = schema["type"]
    if kind == "record":
        return _record(value, schema, names)
    if kind == "array":
        if isinstance(value, dict):
            value = [{"key": key, "value": each} for key, each in value.items()]
        return [shaped(each, schema["items"], names) for each in value]
    if kind == "map":
        return {key: shaped(each, schema["values"], names) for key, each in pairs(value)}
    if kind in ("enum", "fixed"):
        names[schema["name"]] = schema
        return value
    if schema.get("logicalType") == "decimal":
        return value if value is None else Decimal(value)
    return shaped(value, kind, names) if not isinstance(kind, str) else _primitive(value, kind)


def _in_union(value: Any, union: list[Any], names: dict[str, Any]) -> Any:
    for each in union:
        if isinstance(each, dict) and "name" in each:
            names.setdefault(each["name"], each)
    if value is None:
        return None
    others = [each for each in union if each != "null"]
    return shaped(value, others[0], names) if len(others) == 1 else value


def _record(value: Any, schema: Any, names: dict[str, Any]) -> dict[str, Any]:
    names[schema["name"]] = schema
    if "namespace" in schema:
        names[f"{schema['namespace']}.{schema['name']}"] = schema
    if not isinstance(value, dict):
        raise SerdeError(f"{value!r} is not a record")
    upper = {key.upper(): each for key, each in value.items()}
    made = {}
    for each in schema["fields"]:
        name = each["name"]
        if name in value or name.upper() in upper:
            made[name] = shaped(value[name] if name in value else upper[name.upper()], each["type"], names)
        elif "default" not in each:
            made[name] = shaped(None, each["type"], names)
    return made


def _primitive(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "bytes" and isinstance(value, str):
        return base64.b64decode(value)
    if kind in ("float", "double"):
        return float(value)
    return int(value) if kind in ("int", "long") and isinstance(value, Decimal | str) else value


def node_of(value: Any) -> Any:
    """Return what fastavro read as a node of a test case."""
    match value:
        case dict():
            return {key: node_of(each) for key, each in value.items()}
        case list():
            if value and all(isinstance(each, dict) and set(each) == {"key", "value"} for each in value):
                return {each["key"]: node_of(each["value"]) for each in value}
            return [node_of(each) for each in value]
        case datetime.datetime():
            return _moment(value)
        case datetime.date():
            return _day(value)
        case datetime.time():
            return _clock(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value


def columns_of(schema: Any, upper: bool, names: dict[str, Type] | None = None) -> Type:
    """Return the SQL type of an Avro schema that others registered. `names` are the types that it has named so far."""
    names = {} if names is None else names
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) == 1:
            return columns_of(others[0], upper, names)
        return StructType(tuple(Field(_union_name(each, upper), columns_of(each, upper, names)) for each in others))
    if isinstance(schema, str):
        return names.get(schema) or _named(schema)
    found = _complex(schema, upper, names)
    if "name" in schema:
        names[schema["name"]] = names[f"{schema.get('namespace', '')}.{schema['name']}"] = found
    return found


def _complex(schema: Any, upper: bool, names: dict[str, Type]) -> Type:
    match schema["type"]:
        case "record":
            return StructType(
                tuple(
                    Field(each["name"].upper() if upper else each["name"], columns_of(each["type"], upper, names))
                    for each in schema["fields"]
                )
            )
        case "array":
            items = schema["items"]
            if isinstance(items, dict) and items.get("connect.internal.type") == "MapEntry":
                key, value = (columns_of(each["type"], upper, names) for each in items["fields"])
                return MapType(key, value)
            return ArrayType(columns_of(items, upper, names))
        case "map":
            return MapType(Primitive("STRING"), columns_of(schema["values"], upper, names))
        case "enum":
            return Primitive("STRING")
        case "fixed":
            return _logical(schema) or Primitive("BYTES")
        case kind:
            return _logical(schema) or columns_of(kind, upper, names)


def _union_name(schema: Any, upper: bool) -> str:
    name = schema if isinstance(schema, str) else schema.get("name", schema["type"])
    return name.upper() if upper else name


def _logical(schema: Any) -> Type | None:
    match schema.get("logicalType"):
        case "decimal":
            return DecimalType(schema["precision"], schema.get("scale", 0))
        case "date":
            return Primitive("DATE")
        case "time-millis":
            return Primitive("TIME")
        case "timestamp-millis":
            return Primitive("TIMESTAMP")
        case _:
            return None


def _named(kind: str) -> Type:
    known = {"boolean": "BOOLEAN", "int": "INTEGER", "long": "BIGINT", "float": "DOUBLE", "double": "DOUBLE"}
    known |= {"string": "STRING", "bytes": "BYTES"}
    if kind not in known:
        raise SqlError(f"The Avro type {kind} is not supported")
    return Primitive(known[kind])
