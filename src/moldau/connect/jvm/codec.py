"""Frames between a worker and the host of its Java plugins: Connect's values, schemas and records as bytes.

A value begins with a tag. A schema is written once for each connection and direction, and then named by its number, in
the order in which schemas were completed. Java's side is Packer.java and Unpacker.java.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from moldau.connect.data import (
    BigInt,
    Field,
    Float32,
    Header,
    Instant,
    Int8,
    Int16,
    Int32,
    Record,
    Schema,
    Struct,
    TimestampType,
    Type,
    int_bytes,
    scaled,
    unscaled,
)
from moldau.connect.errors import DataError
from moldau.connect.jvm.layout import INSTANT, NONE, NUMERIC, OTHER, PLAIN, TEXT, Layout

BYTE, SHORT, INT, LONG = (struct.Struct(one) for one in (">b", ">h", ">i", ">q"))
FLOAT, DOUBLE = struct.Struct(">f"), struct.Struct(">d")
READ_AT = struct.Struct(">qb")  # an offset, and the type of the timestamp
NOTHING = None, None, None, None
TYPES = tuple(Type)  # in Java's order
ORDINALS = {one: at for at, one in enumerate(TYPES)}
MOST_SCHEMAS = 4096
TIMES = {-1: TimestampType.NO_TIMESTAMP_TYPE, 0: TimestampType.CREATE_TIME, 1: TimestampType.LOG_APPEND_TIME}
TIME_IDS = {one: number for number, one in TIMES.items()}
NUMBERS: dict[Any, tuple[bytes, struct.Struct]] = {
    Type.INT8: (b"b", BYTE),
    Type.INT16: (b"h", SHORT),
    Type.INT32: (b"i", INT),
    Type.INT64: (b"l", LONG),
    Type.FLOAT32: (b"f", FLOAT),
    Type.FLOAT64: (b"d", DOUBLE),
}
BY_CLASS = {
    Int8: NUMBERS[Type.INT8],
    Int16: NUMBERS[Type.INT16],
    Int32: NUMBERS[Type.INT32],
    int: NUMBERS[Type.INT64],
    Float32: NUMBERS[Type.FLOAT32],
    float: NUMBERS[Type.FLOAT64],
    Instant: (b"I", LONG),
}


class Typed(NamedTuple):
    """A value and the schema that says which number it is, where it is not in a record."""

    schema: Schema | None
    value: Any


class Packer:
    """Writes frames of one connection."""

    def __init__(self) -> None:
        self._known: dict[Schema, int] = {}
        self._layouts: dict[Schema, Layout] = {}
        self._out = bytearray()
        self._last: Record | None = None  # in this frame
        self._is_broken = False

    def frame(self, kind: str, value: Any) -> bytes:
        """Return a frame: length, kind, value. A kind in lower case has the reader forget all schemas."""
        forgets = self._is_broken or len(self._known) > MOST_SCHEMAS
        if forgets:
            self._known.clear()
            self._layouts.clear()
        self._is_broken = True  # until all of it is written: what was begun never reaches the reader
        self._out, self._last = bytearray(4), None
        self._out += (kind.lower() if forgets else kind).encode()
        self._write(value)
        self._is_broken = False
        INT.pack_into(self._out, 0, len(self._out) - 4)
        return bytes(self._out)

    def _write(self, value: Any, schema: Schema | None = None) -> None:
        """Write a value. A schema says which number an `int` or `float` is, and nothing else."""
        out, kind = self._out, type(value)
        if value is None:
            out += b"N"
        elif kind is str:
            self._blob(b"s", value.encode("utf-8", "surrogatepass"))
        elif kind is bool:
            out += b"T" if value else b"F"
        elif kind is Struct:
            self._struct(value)
        elif kind in BY_CLASS:
            typed = NUMBERS.get(schema.type) if schema is not None and kind is not Instant else None
            tag, packer = typed or BY_CLASS[kind]
            out += tag
            out += packer.pack(value)
        else:
            self._compound(value, schema)

    def _compound(self, value: Any, schema: Schema | None) -> None:
        out = self._out
        match value:
            case Typed():
                self._write(value.value, value.schema)
            case bytes() | bytearray():
                self._blob(b"y", value)
            case list() | tuple():
                out += b"a" + INT.pack(len(value))
                for one in value:
                    self._write(one, schema.value_schema if schema else None)
            case dict():
                out += b"m" + INT.pack(len(value))
                for key, one in value.items():
                    self._write(key, schema.key_schema if schema else None)
                    self._write(one, schema.value_schema if schema else None)
            case Decimal():
                whole, digits = unscaled(value)
                out += b"D" + INT.pack(digits)
                self._blob(b"y", int_bytes(whole))
            case BigInt():
                self._blob(b"B", int_bytes(value))
            case Record():
                self._record(value)
            case Schema():
                self._schema(value)
            case _:
                raise DataError(f"Values of {type(value).__qualname__} are not among those of Connect.")

    def _struct(self, value: Struct) -> None:
        schema = value.schema
        self._out += b"r"
        self._schema(schema)
        layout = self._layouts.get(schema)
        if layout is None:
            layout = self._layouts[schema] = Layout(schema)
        mask = 0
        for at, one in enumerate(value.values):
            if one is not None:
                mask |= 1 << at
        fixed, ops, _ = layout.shape(mask)
        parts: list[Any] = []
        rest: list[tuple[Any, Schema | None]] = []  # bytes, or a value and its schema
        try:
            for op, one, place in zip(ops, value.values, schema.fields, strict=True):
                if op in (PLAIN, INSTANT):
                    parts.append(one)
                elif op == OTHER:
                    rest.append((one, place.schema))
                elif op != NONE:
                    if op == NUMERIC:
                        whole, digits = unscaled(one)
                        parts.append(digits)
                        one = int_bytes(whole)
                    elif op == TEXT:
                        one = one.encode("utf-8", "surrogatepass")
                    parts.append(len(one))
                    rest.append((one, None))
            self._out += mask.to_bytes(layout.mask_size, "little") + fixed.pack(*parts)
        except (struct.error, AttributeError, TypeError, OverflowError) as error:
            raise DataError(f"A value of {schema} does not fit its field: {error}") from error
        for one, inner in rest:
            if inner is None:
                self._out += one
            else:
                self._write(one, inner)

    def _blob(self, tag: bytes, value: bytes | bytearray) -> None:
        self._out += tag + INT.pack(len(value)) + value

    def _schema(self, schema: Schema | None) -> None:
        if schema is None:
            self._out += b"N"
            return
        known = self._known.get(schema)
        if known is not None:
            self._out += b"x" + INT.pack(known)
            return
        self._out += b"X" + bytes((ORDINALS[schema.type], schema.optional))
        self._write(schema.name)
        self._write(None if schema.version is None else Int32(schema.version))
        self._write(schema.doc)
        self._write(None if schema.parameters is None else dict(schema.parameters))
        self._write(schema.default, schema.but(default=None) if schema.default is not None else None)
        self._schema(schema.key_schema if schema.type is Type.MAP else None)
        self._schema(schema.value_schema if schema.type in (Type.MAP, Type.ARRAY) else None)
        if schema.type is Type.STRUCT:
            self._out += INT.pack(len(schema.fields))
            for one in schema.fields:
                self._write(one.name)
                self._schema(one.schema)
        self._known[schema] = len(self._known)

    def _record(self, record: Record) -> None:
        write, last = self._write, self._last
        if (
            last is not None
            and record.topic == last.topic
            and record.partition == last.partition
            and record.key_schema is last.key_schema
            and record.value_schema is last.value_schema
        ):
            self._out += b"R="
        else:
            self._out += b"RH"
            write(record.topic)
            write(None if record.partition is None else Int32(record.partition))
            self._schema(record.key_schema)
            self._schema(record.value_schema)
        self._last = record
        write(record.key, record.key_schema)
        write(record.value, record.value_schema)
        write(record.timestamp)
        self._out += INT.pack(len(record.headers))
        for one in record.headers:
            write(one.name)
            self._schema(one.schema)
            write(one.value, one.schema)
        if record.offset is not None:
            kind = TIME_IDS[record.timestamp_type or TimestampType.NO_TIMESTAMP_TYPE]
            self._out += b"K" + READ_AT.pack(record.offset, kind)
            write(record.original_topic or record.topic)
            place = record.partition if record.original_partition is None else record.original_partition
            write(None if place is None else Int32(place))
            self._out += LONG.pack(record.offset if record.original_offset is None else record.original_offset)
        else:
            self._out += b"S"
            write(None if record.source_partition is None else dict(record.source_partition))
            at = len(self._out)
            self._out += INT.pack(0)
            write(None if record.source_offset is None else dict(record.source_offset))
            INT.pack_into(self._out, at, len(self._out) - at - 4)


class Unread(Mapping[str, Any]):
    """A map that is still packed: of many offsets only the last counts."""

    __slots__ = ("_made", "_packed")

    def __init__(self, packed: bytes) -> None:
        self._packed, self._made = packed, None

    def _read(self) -> Mapping[str, Any]:
        if self._made is None:
            self._made = Unpacker().value(self._packed)
        return self._made

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


class Unpacker:
    """Reads frames of one connection. Numbers without a schema get the class of their type, as `data.py` wants it."""

    def __init__(self) -> None:
        self._schemas: list[Schema] = []
        self._layouts: dict[int, Layout] = {}
        self._data: bytes | bytearray = b""
        self.at = 0
        self._partition: Any = None
        self._head: tuple[Any, ...] = NOTHING  # of the last record: topic, partition, and the schemas of key and value

    def frame(self, body: bytes | bytearray) -> tuple[str, Any]:
        """Return the kind and the value of a frame without its length."""
        kind = chr(body[0])
        if kind.islower():
            self._schemas.clear()
            self._layouts.clear()
        self._data, self.at, self._partition, self._head = body, 1, None, NOTHING
        value = self.read(False)
        self._data = b""
        return kind.upper(), value

    def read(self, is_plain: bool) -> Any:
        """Read a value; a plain one has a schema, and its numbers are those of Python."""
        tag = self._data[self.at]
        self.at += 1
        fixed = FIXED.get(tag)
        if fixed is not None:
            packer, made = fixed
            value = packer.unpack_from(self._data, self.at)[0]
            self.at += packer.size
            return value if (is_plain and tag != MOMENT) or made is None else made(value)
        return READERS[tag](self, is_plain)

    def _int(self) -> int:
        self.at += 4
        return INT.unpack_from(self._data, self.at - 4)[0]

    def _blob(self, _is_plain: bool = False) -> bytes:
        size = self._int()
        self.at += size
        return bytes(self._data[self.at - size : self.at])

    def _text(self, _is_plain: bool) -> str:
        return self._blob().decode("utf-8", "replace")

    def _decimal(self, _is_plain: bool) -> Decimal:
        digits = self._int()
        self.at += 1
        return scaled(int.from_bytes(self._blob(), "big", signed=True), digits)

    def _whole(self, _is_plain: bool) -> BigInt:
        return BigInt(int.from_bytes(self._blob(), "big", signed=True))

    def _list(self, is_plain: bool) -> list[Any]:
        return [self.read(is_plain) for _ in range(self._int())]

    def _map(self, is_plain: bool) -> dict[Any, Any]:
        return {self.read(is_plain): self.read(is_plain) for _ in range(self._int())}

    def _struct(self, _is_plain: bool) -> Struct:
        at = self.at
        if self._data[at] == KNOWN:
            schema = self._schemas[INT.unpack_from(self._data, at + 1)[0]]
            self.at += 5
        else:
            schema = self.read(False)
        layout = self._layouts.get(id(schema))  # it stays, because it is in the list of schemas
        if layout is None:
            layout = self._layouts[id(schema)] = Layout(schema)
        start = self.at + layout.mask_size
        shape = layout.shape(int.from_bytes(self._data[self.at : start], "little"))
        return Struct(schema, shape.read(self._data, start, self))

    def _known(self, _is_plain: bool) -> Schema:
        return self._schemas[self._int()]

    def _schema(self, _is_plain: bool) -> Schema:
        kind, optional = TYPES[self._data[self.at]], bool(self._data[self.at + 1])
        self.at += 2
        name, version, doc, parameters = (self.read(True) for _ in range(4))
        default = self.read(True)
        key, value = self.read(True), self.read(True)
        fields = ()
        if kind is Type.STRUCT:
            fields = tuple(Field(self.read(True), at, self.read(True)) for at in range(self._int()))
        made = Schema(kind, optional, default, name, version, doc, parameters, fields, key, value, checked=False)
        self._schemas.append(made)
        return made

    def _record(self, _is_plain: bool) -> Record:
        read = self.read
        self.at += 1
        if self._data[self.at - 1] == ord("H"):
            self._head = read(True), read(True), read(False), read(False)
        topic, partition, key_schema, value_schema = self._head
        key = read(key_schema is not None)
        value = read(value_schema is not None)
        timestamp = read(True)
        count = self._int()
        headers = tuple([self._header() for _ in range(count)]) if count else ()
        made = topic, partition, key_schema, key, value_schema, value, timestamp, headers
        self.at += 1
        if self._data[self.at - 1] == ord("K"):
            offset, kind = READ_AT.unpack_from(self._data, self.at)
            self.at += READ_AT.size
            original_topic, original_partition = read(True), read(True)
            original = LONG.unpack_from(self._data, self.at)[0]
            self.at += LONG.size
            return Record(*made, None, None, offset, TIMES[kind], original_topic, original_partition, original)
        if self._data[self.at] == ord("="):
            self.at += 1
        else:
            self._partition = read(True)
        return Record(*made, self._partition, self._later())

    def _later(self) -> Mapping[str, Any] | None:
        """Return a map that is read when it is looked at; None for nothing."""
        found = self._blob()
        return None if found == b"N" else Unread(found)

    def value(self, found: bytes) -> Any:
        """Read a value by itself, which has no schemas."""
        self._data, self.at = found, 0
        return self.read(True)

    def _header(self) -> Header:
        name, schema = self.read(True), self.read(False)
        return Header(name, schema, self.read(schema is not None))


MOMENT, KNOWN = ord("I"), ord("x")
FIXED: dict[int, tuple[struct.Struct, Callable[[Any], Any] | None]] = {
    ord("b"): (BYTE, Int8),
    ord("h"): (SHORT, Int16),
    ord("i"): (INT, Int32),
    ord("l"): (LONG, None),
    ord("f"): (FLOAT, Float32),
    ord("d"): (DOUBLE, None),
    MOMENT: (LONG, Instant),
}
READERS: dict[int, Callable[[Unpacker, bool], Any]] = {
    ord("N"): lambda _reader, _plain: None,
    ord("T"): lambda _reader, _plain: True,
    ord("F"): lambda _reader, _plain: False,
    ord("s"): Unpacker._text,
    ord("y"): Unpacker._blob,
    ord("D"): Unpacker._decimal,
    ord("B"): Unpacker._whole,
    ord("a"): Unpacker._list,
    ord("m"): Unpacker._map,
    ord("r"): Unpacker._struct,
    ord("R"): Unpacker._record,
    ord("x"): Unpacker._known,
    ord("X"): Unpacker._schema,
}
