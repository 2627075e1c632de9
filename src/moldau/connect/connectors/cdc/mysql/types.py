"""Types of MariaDB and MySQL as Debezium maps them: a schema, and a function for values of driver and binlog."""

from __future__ import annotations

import base64
import json
import re
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from struct import unpack
from typing import Any

from moldau.connect import data
from moldau.connect.connectors.cdc.envelope import enumeration
from moldau.connect.data import BYTES, FLOAT32, FLOAT64, INT16, INT32, INT64, OPTIONAL, STRING, Instant, Schema, Type
from moldau.connect.errors import ConnectError

TIME, DATA = "io.debezium.time.", "io.debezium.data."
EPOCH, EPOCH_DAY = datetime(1970, 1, 1), date(1970, 1, 1).toordinal()
MICROSECOND = timedelta(microseconds=1)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
EXACT = Context(prec=65)  # a DECIMAL has at most 65 digits
POINT = data.struct(
    {"x": FLOAT64, "y": FLOAT64, "wkb": OPTIONAL[Type.BYTES], "srid": OPTIONAL[Type.INT32]},
    name=DATA + "geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
GEOMETRY = data.struct(
    {"wkb": BYTES, "srid": OPTIONAL[Type.INT32]}, name=DATA + "geometry.Geometry", version=1, doc="Geometry"
)
WHOLE = {  # signed and unsigned
    "tinyint": (INT16, INT16),
    "smallint": (INT16, INT32),
    "mediumint": (INT32, INT32),
    "int": (INT32, INT64),
    "bigint": (INT64, INT64),
}
TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
BINARIES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
GEOMETRIES = (
    *("geometry", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    *("geometrycollection", "geomcollection"),
)


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column, as the catalogue or the binlog describes it; `size` are digits, bits, bytes or digits of a fraction."""

    name: str
    kind: str
    is_required: bool = False
    unsigned: bool = False
    size: int = 0
    scale: int = 0
    allowed: tuple[str, ...] = ()
    default: str | None = None
    is_of_binlog: bool = False  # values are those of the binlog's reader
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """How a column appears in events. `zero` stands for a moment that does not exist, where null is not allowed."""

    schema: Schema
    read: Callable[[Any], Any]
    zero: Any = None


def _named(schema: Schema, name: str, **parameters: str) -> Schema:
    return schema.but(name=name, version=1, parameters=parameters or None)


def value_of(column: ColumnInfo, config: Mapping[str, Any], full_name: str) -> Value:
    """Return how a column is captured; ConnectError that names it if nobody knows its type."""
    kind = column.kind
    if kind in WHOLE:
        if kind == "bigint" and column.unsigned and config["bigint.unsigned.handling.mode"] == "precise":
            return Value(data.decimal(0).but(parameters={"scale": "0", "connect.decimal.precision": "20"}), Decimal)
        long = kind == "bigint" and column.unsigned
        return Value(WHOLE[kind][column.unsigned], (lambda each: data.wrap(int(each), 64)) if long else int)
    if kind in TEXTS:
        return Value(STRING, _text)
    if kind in BINARIES:
        return _binary(config["binary.handling.mode"], column.size if kind == "binary" else 0)
    if kind in TIMES:
        return TIMES[kind](column.size, config["time.precision.mode"] == "connect")
    match kind:
        case "float":
            return Value(FLOAT64 if column.scale else FLOAT32, data.to_float32)
        case "double":
            return Value(FLOAT64, float)
        case "decimal":
            return _decimal(column, config["decimal.handling.mode"])
        case "bit":
            return _bits(column.size)
        case "year":
            return Value(_named(INT32, TIME + "Year"), _year)
        case "enum":
            escaped = [each.replace(",", "\\,") for each in column.allowed]
            return Value(enumeration(escaped), lambda each: _member(each, column.allowed))
        case "set":
            made = _named(STRING, DATA + "EnumSet", allowed=",".join(column.allowed))
            return Value(made, lambda each: _set(each, column.allowed))
        case "json":
            return Value(_named(STRING, DATA + "Json"), _json)
        case "uuid":
            return Value(_named(STRING, DATA + "Uuid"), _fixed(16, lambda each: str(uuid.UUID(bytes=each))))
        case "inet4":
            return Value(STRING, _fixed(4, lambda each: socket.inet_ntop(socket.AF_INET, each)))
        case "inet6":
            return Value(STRING, _fixed(16, _inet6))
        case "point":
            return Value(POINT, _point)
        case _ if kind in GEOMETRIES:
            return Value(GEOMETRY, _geometry)
        case _:
            raise ConnectError(
                f"The column {full_name} has the type {kind}, which cannot be captured: leave it out with "
                "column.exclude.list."
            )


def _text(each: Any) -> str:
    return each.decode() if isinstance(each, bytes) else str(each)


def _json(each: Any) -> str:
    """Return a document as a text: the catalogue has one, the binlog of MySQL its values, whose texts are bytes."""
    return each if isinstance(each, str) else _document(each)


def _document(each: Any) -> str:
    match each:
        case dict():
            members = ",".join(f"{_document(name)}:{_document(value)}" for name, value in each.items())
            return f"{{{members}}}"
        case list():
            return f"[{','.join(map(_document, each))}]"
        case Decimal():
            return f"{each:f}"
        case bytes() | date() | timedelta():
            return json.dumps(_text(each), ensure_ascii=False)
        case _:
            return json.dumps(each, ensure_ascii=False)


def _member(each: Any, allowed: Sequence[str]) -> str:
    """Return a member of an enumeration, which may come as its number; number 0 is a value that was not valid."""
    return ("", *allowed)[each] if isinstance(each, int) else _text(each)


def _set(each: Any, allowed: Sequence[str]) -> str:
    if isinstance(each, str):
        return each
    return ",".join(one for number, one in enumerate(allowed, 1) if one in each or number in each)


def _fixed(size: int, shown: Callable[[bytes], str]) -> Callable[[Any], str]:
    """Return a function for a type that the catalogue shows as a text and the binlog as bytes, less the last zeros."""
    return lambda each: each if each and isinstance(each, str) else shown((each or b"").ljust(size, b"\0"))


def _inet6(each: bytes) -> str:
    """Write an address as MariaDB does, which shortens also a single zero."""
    text = socket.inet_ntop(socket.AF_INET6, each)
    return text if "::" in text else re.sub(r"(^|:)0(:|$)", "::", text, count=1)


def _year(each: Any) -> int:
    return 0 if int(each) == 1900 else int(each)  # how the binlog's reader returns the year 0000; 1901 is the first


def _binary(mode: str, size: int) -> Value:
    """Return how bytes are captured; BINARY has a size, and the binlog leaves out the zeros at its end."""

    def taken(each: Any) -> bytes:
        return (each.encode() if isinstance(each, str) else bytes(each)).ljust(size, b"\0")

    match mode:
        case "bytes":
            return Value(BYTES, taken)
        case "base64":
            return Value(STRING, lambda each: base64.b64encode(taken(each)).decode())
        case "base64-url-safe":
            return Value(STRING, lambda each: base64.urlsafe_b64encode(taken(each)).decode())
        case _:
            return Value(STRING, lambda each: taken(each).hex())


def _decimal(column: ColumnInfo, mode: str) -> Value:
    match mode:
        case "precise":
            schema = data.decimal(column.scale)
            parameters = {"scale": str(column.scale), "connect.decimal.precision": str(column.size)}
            unit = Decimal(1).scaleb(-column.scale)
            return Value(schema.but(parameters=parameters), lambda each: Decimal(each).quantize(unit, context=EXACT))
        case "double":
            return Value(FLOAT64, float)
        case _:
            return Value(STRING, lambda each: f"{Decimal(each):.{column.scale}f}")


def _bits(size: int) -> Value:
    def number(each: Any) -> int:
        return int(each, 2) if isinstance(each, str) else int.from_bytes(each, "big")

    if size == 1:
        return Value(data.BOOLEAN, lambda each: number(each) == 1)
    schema = _named(BYTES, DATA + "Bits", length=str(size))
    return Value(schema, lambda each: number(each).to_bytes((size + 7) // 8, "little"))


def _geometry(each: bytes) -> tuple[Any, ...]:
    return each[4:], int.from_bytes(each[:4], "little") or None


def _point(each: bytes) -> tuple[Any, ...]:
    x, y = unpack("<dd" if each[4] else ">dd", each[9:25])
    return x, y, each[4:], int.from_bytes(each[:4], "little") or None


# Dates and times. What MySQL calls a date and no calendar has (0000-00-00) comes as None or as a text.


def _moment_us(each: datetime) -> int:
    return (each - EPOCH) // MICROSECOND


def _days(each: date) -> int:
    return each.toordinal() - EPOCH_DAY


def _date(_digits: int, connect: bool) -> Value:
    if connect:
        return Value(
            data.DATE_SCHEMA, lambda each: Instant((each.toordinal() - EPOCH_DAY) * data.MS_PER_DAY), Instant(0)
        )
    return Value(_named(INT32, TIME + "Date"), _days, 0)


def _time(_digits: int, connect: bool) -> Value:
    if connect:  # Connect's type has the times of a day, and no others
        return Value(
            data.TIME_SCHEMA,
            lambda each: Instant(each // timedelta(milliseconds=1)) if timedelta() <= each < DAY else None,
            Instant(0),
        )
    return Value(_named(INT64, TIME + "MicroTime"), lambda each: each // MICROSECOND, 0)


def _datetime(digits: int, connect: bool) -> Value:
    if connect:
        return Value(data.TIMESTAMP_SCHEMA, lambda each: Instant(_moment_us(each) // 1000), Instant(0))
    if digits <= 3:
        return Value(_named(INT64, TIME + "Timestamp"), lambda each: _moment_us(each) // 1000, 0)
    return Value(_named(INT64, TIME + "MicroTimestamp"), _moment_us, 0)


def _timestamp(digits: int, _connect: bool) -> Value:
    def shown(each: datetime) -> str:
        fraction = f".{each.microsecond:06d}"[: digits + 1] if digits else ""
        return f"{each.replace(tzinfo=UTC, microsecond=0):%Y-%m-%dT%H:%M:%S}{fraction}Z"

    return Value(_named(STRING, TIME + "ZonedTimestamp"), shown, "1970-01-01T00:00:00Z")


def _is_moment(kind: str, each: Any) -> bool:
    """Tell whether a value exists; 0000-00-00 as a timestamp is second 0 in the binlog, which is none of its values."""
    return isinstance(each, MOMENTS) and not (kind == "timestamp" and each == EPOCH)


def _mended(each: timedelta) -> timedelta:
    """Return a time right that the binlog's reader returned; of a negative one it subtracts the fraction from 1."""
    fraction = -each % SECOND
    return each if each >= timedelta() or not fraction else each - SECOND + 2 * fraction


TIMES: Mapping[str, Callable[[int, bool], Value]] = {
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "timestamp": _timestamp,
}
MOMENTS = (date, datetime, timedelta)


def reader(column: ColumnInfo, value: Value, schema: Schema) -> Callable[[Any], Any]:
    """Return a function that also takes null and dates that do not exist; structs get the schema of the column."""
    zero = value.zero if column.is_required else None
    if schema.type is Type.STRUCT:
        return lambda each: None if each is None else data.Struct(schema, value.read(each))
    if column.kind not in TIMES:
        return lambda each: None if each is None else value.read(each)
    mend = _mended if column.kind == "time" and column.is_of_binlog else lambda each: each

    def read(each: Any) -> Any:
        found = value.read(mend(each)) if _is_moment(column.kind, each) else None
        return zero if found is None else found

    return read


_LITERAL = re.compile(r"(b?)'((?:[^']|'')*)'|0x((?:[0-9a-fA-F]{2})*)|([-+0-9.eE]+)", re.DOTALL)
_MOMENT = re.compile(r"(\d+)-(\d\d?)-(\d\d?)(?: (\d\d?):(\d\d?):(\d\d?)(?:\.(\d{1,6}))?)?")
_DURATION = re.compile(r"(-?)(\d+):(\d\d?):(\d\d?)(?:\.(\d{1,6}))?")
NOW = "current_timestamp"


def default_of(column: ColumnInfo, value: Value) -> Any:
    """Return the default of a column, if it is a literal; what is computed is none, but a moment's is 1970."""
    text = column.default
    if text is None or text.upper() == "NULL":
        return None
    if text.lower().startswith(NOW):
        return value.zero if column.kind == "datetime" or column.is_required else None
    found = _LITERAL.fullmatch(text)
    if found is None:
        return None
    bits, quoted, binary, number = found.groups()
    literal = number if quoted is None else quoted.replace("''", "'")
    if bits and column.kind != "bit":
        literal = str(int(literal, 2))
    given = bytes.fromhex(binary) if binary is not None else _DEFAULTS.get(column.kind, str)(literal)
    try:
        return reader(column, value, value.schema)(given)
    except (ValueError, ArithmeticError):
        return None


def _moment(text: str) -> datetime | None:
    """Read a date, with a time or without; None if no calendar has it."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    *parts, fraction = found.groups("0")
    try:
        return datetime(*map(int, parts), int(fraction.ljust(6, "0")))  # type: ignore[arg-type]
    except ValueError:
        return None


def _duration(text: str) -> timedelta | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    sign, *parts = found.groups("0")
    hours, minutes, seconds, fraction = parts
    made = timedelta(
        hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=int(fraction.ljust(6, "0"))
    )
    return -made if sign == "-" else made


# How the literal of a default becomes what a driver would return; others are texts.
_DEFAULTS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("date", "datetime", "timestamp"), _moment),
    "time": _duration,
    "float": float,
    **dict.fromkeys(WHOLE, lambda text: round(Decimal(text))),
}
