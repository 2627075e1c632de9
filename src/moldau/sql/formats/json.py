"""JSON: an object of all columns, or a single column alone. Values are coerced as ksqlDB's reader does."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

from moldau.java.numbers import double_text, parse_double, parse_int, plain_text, wrap
from moldau.java.times import MS_PER_DAY
from moldau.serdes.context import SerdeError

from ..casts import double_to_int, exact_decimal
from ..maps import items
from ..tree import ArrayType, DecimalType, Field, MapType, StructType, Type
from ..types import Columns, base, text
from . import json_rows
from .json_rows import row_reader
from .rows import Row

Read = Callable[[Any], Any]
Write = Callable[[Any], str]


class Mismatch(ValueError):
    """A value that cannot be read as the type of its column."""


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder: Any = json.JSONDecoder(parse_float=Decimal, parse_constant=_constant)
_decode, _scan = _decoder.decode, _decoder.scan_once


def parse(data: bytes) -> Any:
    """Read a document; numbers with a point stay exact."""
    text = data.decode()
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return _decode(text)
    return value if end == len(text) else _decode(text)  # with blanks around it, or something else


def _fail(value: Any, type: Type | str) -> Mismatch:
    shown = type if isinstance(type, str) else text(type)
    return Mismatch(f"Can't convert type. sourceType: {_kind(value)}, requiredType: {shown}")


def _kind(value: Any) -> str:
    kinds = {bool: "BooleanNode", str: "TextNode", dict: "ObjectNode", list: "ArrayNode", int: "IntNode"}
    return kinds.get(type(value), "DecimalNode")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _fail(value, "BOOLEAN")
    return value


def _integer(name: str, bits: int) -> Read:
    def read(value: Any) -> int:
        if isinstance(value, bool):
            raise _fail(value, name)
        if isinstance(value, int):
            return wrap(value, bits)
        if isinstance(value, Decimal):
            return double_to_int(float(value), bits)
        if isinstance(value, str):
            return parse_int(value, bits)
        raise _fail(value, name)

    return read


def _double(value: Any) -> float:
    if isinstance(value, bool):
        raise _fail(value, "DOUBLE")
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, str):
        return parse_double(value)
    raise _fail(value, "DOUBLE")


def number_text(value: Decimal) -> str:
    """Write a number as Jackson's node does."""
    return str(value).replace("E+", "E")


def string(value: Any) -> str | None:
    """Take anything as a text: objects as JSON, arrays as a list of texts."""
    match value:
        case str():
            return value
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case dict():
            return document(value)
        case list():
            return "[" + ", ".join("null" if each is None else string(each) or "" for each in value) + "]"
        case Decimal():
            return number_text(value)
        case _:
            return str(value)


def document(value: Any) -> str:
    """Write a parsed document again, without blanks."""
    match value:
        case dict():
            return "{" + ",".join(f"{quoted(key)}:{document(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(document, value)) + "]"
        case Decimal():
            return number_text(value)
        case float():
            return double_text(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


quoted: Callable[[str], str] = encode_basestring


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _fail(value, "BYTES")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise Mismatch(f"Value is not a valid Base64 encoded string: {error}") from None


def time_of_day(value: int) -> int:
    """Refuse a number of milliseconds that no day has."""
    if not 0 <= value <= MS_PER_DAY:
        raise Mismatch(f"Time values must use number of milliseconds greater than 0 and less than {MS_PER_DAY}.")
    return value


READERS: dict[str, Read] = {
    "BOOLEAN": _boolean,
    "INTEGER": _integer("INTEGER", 32),
    "BIGINT": _integer("BIGINT", 64),
    "DOUBLE": _double,
    "STRING": string,
    "BYTES": _bytes,
    "DATE": _integer("DATE", 32),
    "TIME": lambda value: time_of_day(_integer("TIME", 64)(value)),
    "TIMESTAMP": _integer("TIMESTAMP", 64),
}


def reader(type: Type) -> Read:
    """Return a function that reads a parsed value, null or not."""
    match type:
        case DecimalType():
            read: Read = lambda value: _decimal(value, type)  # noqa: E731
        case ArrayType(item):
            of_items = json_rows.list_reader(item, reader(item))
            read = lambda value: _array(value, of_items)  # noqa: E731
        case MapType(_, value_type):
            of_value = reader(value_type)
            read = lambda value: _map(value, of_value)  # noqa: E731
        case StructType(fields):
            read = struct_reader(fields)
        case _:
            read = READERS[base(type)]
    return lambda value: None if value is None else read(value)


def _decimal(value: Any, type: DecimalType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise _fail(value, type)
    return exact_decimal(Decimal(value), type)


def _array(value: Any, of_items: Read) -> list[Any]:
    if not isinstance(value, list):
        raise _fail(value, "ARRAY")
    return of_items(value)


def _map(value: Any, of_value: Read) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fail(value, "MAP")
    return {key: of_value(each) for key, each in value.items()}


def struct_reader(fields: tuple[Field, ...]) -> Read:
    """Read an object by the names of fields: as they are written, else in upper case."""
    read_row = row_reader([(each.name, each.type) for each in fields], [reader(each.type) for each in fields])

    def read(value: Any) -> Row:
        if not isinstance(value, dict):
            raise _fail(value, "STRUCT")
        return read_row(value)

    return read


def _write_double(value: float) -> str:
    return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'


WRITERS: dict[str, Write] = {
    "BOOLEAN": lambda value: "true" if value else "false",
    "DOUBLE": _write_double,
    "DECIMAL": plain_text,
    "STRING": quoted,
    "BYTES": lambda value: quoted(base64.b64encode(value).decode()),
}


# Types whose values json.dumps writes as their writers do, and many of them faster.
PLAIN = (*json_rows.NUMBERS, "BOOLEAN", "STRING")
_plain: Write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def writer(type: Type) -> Write:
    """Return a function that writes a value, null or not."""
    match type:
        case ArrayType(item) if base(item) in PLAIN:
            write: Write = _plain
        case ArrayType(item):
            of_item = writer(item)
            write = lambda value: "[" + ",".join(map(of_item, value)) + "]"  # noqa: E731
        case MapType(_, value_type):
            of_value = writer(value_type)
            write = lambda value: (  # noqa: E731
                "{"
                + ",".join(f"{quoted('null' if k is None else str(k))}:{of_value(v)}" for k, v in items(value))
                + "}"
            )
        case StructType(fields):
            write = object_writer([(each.name, each.type) for each in fields])
        case _:
            write = WRITERS.get(base(type), str)
    return lambda value: "null" if value is None else write(value)


def object_writer(columns: Columns) -> Write:
    return json_rows.object_writer(columns, [writer(type) for _, type in columns], quoted)


@dataclass(frozen=True, slots=True)
class Json:
    """Rows as documents. `alone` is a single column without its object."""

    read: Read
    write: Write
    alone: bool

    @classmethod
    def of(cls, columns: Columns, alone: bool) -> Json:
        if alone:
            ((_, type),) = columns
            return cls(reader(type), writer(type), True)
        return cls(struct_reader(tuple(Field(name, type) for name, type in columns)), object_writer(columns), False)

    def dumps(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        if self.alone:
            return None if row[0] is None else self.write(row[0]).encode()
        return self.write(row).encode()

    def loads(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            found = parse(data)
            if self.alone:
                return (self.read(found),)
            return None if found is None else self.read(found)
        except (ValueError, InvalidOperation, RecursionError) as error:
            raise SerdeError(f"Failed to deserialize JSON: {error}") from None
