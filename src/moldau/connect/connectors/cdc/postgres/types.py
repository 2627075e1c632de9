"""PostgreSQL's types in events: a row of a table for each, with Debezium's schema and how a text becomes a value.

Stream and snapshot both bring values as the texts of PostgreSQL's own output functions, so there is one way to read
them. A type is known by its name; domains are read as their base type, arrays element by element.
"""

from __future__ import annotations

import base64
import json
import logging
import math
import re
import struct as binary
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from moldau.connect.connectors.cdc.envelope import enumeration
from moldau.connect.connectors.cdc.postgres import times
from moldau.connect.data import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    OPTIONAL,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    Instant,
    Schema,
    Struct,
    Type,
    array,
    int_bytes,
    map_of,
    struct,
    to_float32,
    unscaled,
)
from moldau.connect.errors import ConnectError, DataError

log = logging.getLogger(__name__)
UNLIMITED_BITS = 2_147_483_647  # what pgjdbc says of a bit varying without a length
VARLENA = 4  # typmods of many types count the bytes of a length
UNCHANGED = object()  # a large value that an update did not touch, so the log does not have it


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of the catalogue, as far as events need it."""

    oid: int
    name: str
    form: str = "b"  # pg_type.typtype: base, composite, domain, enum, pseudo, range, multirange
    base: int = 0
    modifier: int = -1  # of the base type of a domain
    element: int = 0
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """How values of a column are read. `fallback` stands for null where the column must not be null, as in the row
    before a delete, of which the log has the key alone; `missing` is for what is UNCHANGED.
    """

    schema: Schema
    read: Callable[[str], Any]
    fallback: Any
    missing: Any = None

    def but(self, **parts: Any) -> Value:
        """Return the value with parts of its schema replaced; structs must have the very schema of their column."""
        schema = self.schema.but(**parts)
        if schema.type is not Type.STRUCT or self.fallback is None:
            return replace(self, schema=schema)
        read = self.read
        fallback = Struct(schema, self.fallback.values)
        return replace(self, schema=schema, read=lambda text: Struct(schema, read(text).values), fallback=fallback)


def named(schema: Schema, name: str, **parts: Any) -> Schema:
    return schema.but(name=f"io.debezium.{name}", version=1, **parts)


JSON, XML, UUID = (named(STRING, f"data.{name}") for name in ("Json", "Xml", "Uuid"))
VARIABLE_DECIMAL = struct(
    {"scale": INT32, "value": BYTES},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)
PLACE = {"wkb": BYTES, "srid": OPTIONAL[Type.INT32]}
POINT = struct(
    {"x": FLOAT64, "y": FLOAT64, "wkb": OPTIONAL[Type.BYTES], "srid": OPTIONAL[Type.INT32]},
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
GEOMETRY = struct(PLACE, name="io.debezium.data.geometry.Geometry", version=1, doc="Geometry")
GEOGRAPHY = struct(PLACE, name="io.debezium.data.geometry.Geography", version=1, doc="Geography")
SPARSE = struct(
    {"dimensions": INT16, "vector": map_of(INT16, FLOAT64)},
    name="io.debezium.data.SparseDoubleVector",
    version=1,
    doc="Sparse double vector",
)
EMPTY_COLLECTION = bytes.fromhex("010700000000000000")


def _bool(text: str) -> bool:
    return text == "t"


def _float32(text: str) -> float:
    return to_float32(float(text))


TEXTS = (
    *("text", "varchar", "bpchar", "char", "name", "citext", "inet", "cidr", "macaddr", "macaddr8", "isbn"),
    *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
)
SIMPLE: dict[str, tuple[Schema, Callable[[str], Any], Any]] = {
    "bool": (BOOLEAN, _bool, False),
    "int2": (INT16, int, 0),
    "int4": (INT32, int, 0),
    "int8": (INT64, int, 0),
    "oid": (INT64, int, 0),
    "float4": (FLOAT32, _float32, 0.0),
    "float8": (FLOAT64, float, 0.0),
    "json": (JSON, str, ""),
    "jsonb": (JSON, str, ""),
    "xml": (XML, str, ""),
    "uuid": (UUID, str, ""),
    "tsvector": (named(STRING, "data.Tsvector"), str, ""),
    "ltree": (named(STRING, "data.Ltree"), str, ""),
    **dict.fromkeys(TEXTS, (STRING, str, "")),
}


BINARY: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
}


class Types:
    """The types of one connector: the table above, and what settings decide."""

    def __init__(self, config: Mapping[str, Any], find: Callable[[int], Kind]) -> None:
        self._config, self._find = config, find
        self._decimals: str = config["decimal.handling.mode"]
        self._binary: str = config["binary.handling.mode"]
        self._placeholder: str = config["unavailable.value.placeholder"]
        self._told: set[str] = set()
        self._made: dict[str, Callable[[int], Value]] = {
            "numeric": self._numeric,
            "money": self._money,
            "bytea": lambda _: self._bytes(_bytea),
            "bit": self._bits,
            "varbit": self._bits,
            "date": self._date,
            "time": self._time,
            "timestamp": self._timestamp,
            "timetz": lambda _: Value(named(STRING, "time.ZonedTime"), times.zoned_clock, "00:00:00Z"),
            "timestamptz": self._zoned,
            "interval": self._interval,
            "hstore": self._hstore,
            "point": lambda _: Value(POINT, _point, _point("(0,0)")),
            "geometry": lambda _: _postgis(GEOMETRY),
            "geography": lambda _: _postgis(GEOGRAPHY),
            "vector": lambda _: Value(_vector("DoubleVector", FLOAT64), _numbers, []),
            "halfvec": lambda _: Value(_vector("FloatVector", FLOAT32), _numbers, []),
            "sparsevec": lambda _: Value(SPARSE, _sparse, Struct(SPARSE, (0, {}))),
        }

    def value(self, oid: int, modifier: int, column: str) -> Value | None:
        """Return how a column is read; None if its type is unknown and such columns are left out."""
        found = self._known(oid, modifier)
        if found is not None:
            return found
        name = self._find(oid).name
        kept = self._config["include.unknown.datatypes"]
        if column not in self._told:
            self._told.add(column)
            fate = "its values are kept as they are" if kept else "set include.unknown.datatypes=true to keep it"
            log.warning("no events know the type %s of the column %s: %s", name, column, fate)
        if not kept:
            return None
        if self._config["unknown.datatypes.handling.mode"] == "text":
            return Value(STRING, str, "", self._placeholder)
        return self._bytes(str.encode)

    def _known(self, oid: int, modifier: int) -> Value | None:
        kind = self._find(oid)
        if kind.form == "d":
            return self._known(kind.base, kind.modifier if kind.modifier >= 0 else modifier)
        if kind.form == "e":
            return Value(enumeration(kind.labels), str, "")
        if kind.name in SIMPLE:
            schema, read, fallback = SIMPLE[kind.name]
            return Value(schema, read, fallback, self._placeholder if schema.type is Type.STRING else None)
        if kind.name in self._made:
            return self._made[kind.name](modifier)
        if kind.element and kind.name.startswith("_"):
            return self._array(kind, modifier)
        return None

    def _array(self, kind: Kind, modifier: int) -> Value | None:
        element = self._known(kind.element, modifier)
        if element is None:
            return None
        if self._find(kind.element).form != "e":  # Debezium's labels in an array cannot be null
            element = element.but(optional=True)
        read = element.read
        missing: list[Any]
        if element.schema.type in (Type.INT16, Type.INT32, Type.INT64):
            missing = list(self._placeholder.encode())
        elif element.schema.type is Type.BYTES:
            missing = [self._placeholder.encode()]
        else:
            missing = [self._placeholder] if element.schema.type is Type.STRING else []

        def one(found: Any) -> Any:
            if isinstance(found, list):
                raise DataError("events have no arrays of several dimensions; leave it out with column.exclude.list")
            return None if found is None else read(found)

        return Value(
            array(element.schema),
            lambda text: [one(each) for each in parse_array(text)],
            [],
            missing,
        )

    def _numeric(self, modifier: int) -> Value:
        if self._decimals == "string" and modifier < VARLENA:
            return Value(STRING, str, "0")
        if self._decimals == "double":
            return Value(FLOAT64, float, 0.0)
        if modifier < VARLENA:
            return Value(VARIABLE_DECIMAL, _variable_decimal, _variable_decimal("0"))
        precision = (modifier - VARLENA) >> 16
        digits = (modifier - VARLENA) & 0x7FF
        digits = digits - 2048 if digits >= 1024 else digits  # a scale may be negative since PostgreSQL 15
        if self._decimals == "string":
            return Value(STRING, lambda text: _fixed(text, digits), _fixed("0", digits))
        return Value(_decimal(digits, precision), lambda text: _exact(text, digits), _exact("0", digits))

    def _money(self, _: int) -> Value:
        digits = self._config["money.fraction.digits"]
        if self._decimals == "precise":
            schema = Schema(Type.BYTES, name=DECIMAL, version=1, parameters={"scale": str(digits)})
            return Value(schema, lambda text: _exact(_money(text), digits), _exact("0", digits))
        if self._decimals == "double":
            return Value(FLOAT64, lambda text: float(_money(text)), 0.0)
        return Value(STRING, lambda text: _money(text), f"{_exact('0', digits):f}")

    def _bytes(self, read: Callable[[str], bytes]) -> Value:
        write = BINARY[self._binary]
        placeholder = self._placeholder if self._binary == "hex" else write(self._placeholder.encode())
        schema = BYTES if self._binary == "bytes" else STRING
        return Value(schema, lambda text: write(read(text)), b"" if schema is BYTES else "", placeholder)

    def _bits(self, modifier: int) -> Value:
        length = UNLIMITED_BITS if modifier < 0 else modifier
        if length == 1:
            return Value(BOOLEAN, lambda text: text == "1", False)
        schema = named(BYTES, "data.Bits", parameters={"length": str(length)})
        return Value(schema, _bit_bytes, b"")

    @property
    def _times(self) -> str:
        return self._config["time.precision.mode"]

    def _date(self, _: int) -> Value:
        match self._times:
            case "connect":
                return Value(DATE_SCHEMA, lambda text: Instant(times.day_number(text) * 86_400_000), Instant(0))
            case "isostring":
                return Value(named(STRING, "time.IsoDate"), times.iso_day, "1970-01-01Z")
            case _:
                return Value(named(INT32, "time.Date"), times.day_number, 0)

    def _time(self, modifier: int) -> Value:
        mode, clock = self._times, times.clock_us
        if mode == "connect":
            return Value(TIME_SCHEMA, lambda text: Instant(clock(text) // 1000), Instant(0))
        if mode == "isostring":
            return Value(named(STRING, "time.IsoTime"), times.iso_clock, "00:00:00Z")
        if mode == "nanoseconds":
            return Value(named(INT64, "time.NanoTime"), lambda text: clock(text) * 1000, 0)
        if mode == "adaptive" and 0 <= modifier <= 3:
            return Value(named(INT32, "time.Time"), lambda text: clock(text) // 1000, 0)
        return Value(named(INT64, "time.MicroTime"), clock, 0)

    def _timestamp(self, modifier: int) -> Value:
        mode, moment = self._times, times.moment_us
        if mode == "connect":
            return Value(TIMESTAMP_SCHEMA, lambda text: Instant(moment(text) // 1000), Instant(0))
        if mode == "isostring":
            return Value(named(STRING, "time.IsoTimestamp"), times.iso_moment_short, "1970-01-01T00:00:00Z")
        if mode == "nanoseconds":
            return Value(named(INT64, "time.NanoTimestamp"), _nanos, 0)
        if mode.startswith("adaptive") and 0 <= modifier <= 3:
            return Value(named(INT64, "time.Timestamp"), lambda text: moment(text) // 1000, 0)
        return Value(named(INT64, "time.MicroTimestamp"), moment, 0)

    def _zoned(self, modifier: int) -> Value:
        digits = 6 if modifier < 0 else modifier
        fallback = "1970-01-01T00:00:00Z"
        return Value(named(STRING, "time.ZonedTimestamp"), lambda text: times.iso_moment(text, digits), fallback)

    def _interval(self, _: int) -> Value:
        if self._config["interval.handling.mode"] == "string":
            return Value(named(STRING, "time.Interval"), times.interval_text, "P0Y0M0DT0H0M0S")
        return Value(named(INT64, "time.MicroDuration"), times.interval_us, 0)

    def _hstore(self, _: int) -> Value:
        missing = {self._placeholder: self._placeholder}
        if self._config["hstore.handling.mode"] == "map":
            return Value(map_of(STRING, OPTIONAL[Type.STRING]), parse_hstore, {}, missing)
        return Value(JSON, lambda text: _compact(parse_hstore(text)), "{}", _compact(missing))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _decimal(digits: int, precision: int) -> Schema:
    parameters = {"scale": str(digits), "connect.decimal.precision": str(precision)}
    return Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)


def _exact(text: str, digits: int) -> Decimal:
    found = Decimal(text)
    if not found.is_finite():
        raise DataError(f"{text} is not a number that decimal.handling.mode=precise has; use string or double.")
    # Built, not quantized: quantize is bounded by the precision of a context.
    whole, exact = unscaled(found)
    moved = whole * 10 ** (digits - exact) if digits >= exact else whole // 10 ** (exact - digits)
    return Decimal((moved < 0, tuple(map(int, str(abs(moved)))), -digits))


def _fixed(text: str, digits: int) -> str:
    """Write a number with so many digits; that is how values come, but not defaults, and there is NaN."""
    if not text[-1].isdigit() or len(text.partition(".")[2]) == max(digits, 0):
        return text
    return f"{_exact(text, digits):f}"


def _variable_decimal(text: str) -> Struct:
    found = Decimal(text)
    if not found.is_finite():
        raise DataError(f"{text} is not a number that decimal.handling.mode=precise has; use string or double.")
    whole, digits = unscaled(found)
    while digits > 0 and whole % 10 == 0:
        whole, digits = whole // 10, digits - 1
    return Struct(VARIABLE_DECIMAL, (digits, int_bytes(whole)))


def _money(text: str) -> str:
    """Leave out the currency and the separators of a locale's money; the last point or comma is the decimal one."""
    sign = "-" if "-" in text or text.startswith("(") else ""
    digits = re.sub(r"[^\d.,]", "", text)
    place = max(digits.rfind("."), digits.rfind(","))
    if place < 0:
        return sign + digits
    return sign + re.sub(r"\D", "", digits[:place]) + "." + digits[place + 1 :]


def _bytea(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _bit_bytes(text: str) -> bytes:
    """Return the bits as Java's BitSet does: little-endian, without zeros at the end."""
    number = int(text, 2) if text else 0
    return number.to_bytes(math.ceil(number.bit_length() / 8), "little")


def _nanos(text: str) -> int:
    if text in times.INFINITIES:
        return 2**63 - 1 if text == "infinity" else -(2**63)
    return times.moment_us(text) * 1000


def _point(text: str) -> Struct:
    x, y = map(float, text.strip("()").split(","))
    return Struct(POINT, (x, y, b"\x01" + binary.pack("<Idd", 1, x, y), None))


def _postgis(schema: Schema) -> Value:
    def read(text: str) -> Struct:
        data = bytes.fromhex(text)
        order = "<" if data[0] else ">"
        (kind,) = binary.unpack(order + "I", data[1:5])
        if not kind & 0x2000_0000:
            return Struct(schema, (data, None))
        (srid,) = binary.unpack(order + "I", data[5:9])
        return Struct(schema, (data[:1] + binary.pack(order + "I", kind & ~0x2000_0000) + data[9:], srid))

    return Value(schema, read, Struct(schema, (EMPTY_COLLECTION, None)))


def _vector(name: str, element: Schema) -> Schema:
    return array(element, name=f"io.debezium.data.{name}", version=1)


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.strip("[]").split(",") if one]


def _sparse(text: str) -> Struct:
    inner, _, size = text.partition("/")
    pairs = (one.split(":") for one in inner.strip("{}").split(",") if one)
    return Struct(SPARSE, (int(size), {int(at): float(value) for at, value in pairs}))


_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse_array(text: str) -> list[Any]:
    """Read an array: nested ones are lists of lists; NULL is None."""
    if text.startswith("["):  # bounds that do not begin with 1
        text = text.partition("=")[2]
    stack: list[list[Any]] = [[]]
    at = 0
    while at < len(text):
        match text[at]:
            case "{":
                stack.append([])
                at += 1
            case "}":
                done = stack.pop()
                stack[-1].append(done)
                at += 1
            case ",":
                at += 1
            case _:
                found = _ITEM.match(text, at)
                if found is None:
                    raise ConnectError(f"{text} is not an array.")
                plain = found[2]
                item = _ESCAPED.sub(r"\1", found[1]) if plain is None else None if plain == "NULL" else plain
                stack[-1].append(item)
                at = found.end()
    return stack[0][0]


_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, |$)', re.DOTALL)


def parse_hstore(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for key, value in ((one[1], one[2]) for one in _PAIR.finditer(text)):
        found[_ESCAPED.sub(r"\1", key)] = None if value is None else _ESCAPED.sub(r"\1", value)
    return found


_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_CALL = re.compile(r"[(]?[A-Za-z0-9_.]+\(.*\)", re.DOTALL)
NOW = {"current_timestamp", "current_time", "current_date", "localtime", "localtimestamp"}
WITH_DEFAULTS = {
    "bit": "00",
    "varbit": "0",
    "bool": "f",
    "bpchar": "",
    "varchar": "",
    "text": "",
    "numeric": "0.0",
    "float4": "0.0",
    "float8": "0.0",
    "int2": "0",
    "int4": "0",
    "int8": "0",
    "json": "{}",
    "jsonb": "{}",
    "xml": "",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "interval": "PT0S",
}


def default_text(kind: Kind, expression: str | None) -> str | None:
    """Return the default of a column as the text of a value; one that is computed has a placeholder.

    Other types have none, as in Debezium: nothing is lost, for events have every value.
    """
    if expression is None or expression.startswith("NULL::"):
        return None
    if kind.form == "e":
        found = _LITERAL.match(expression)
        return found[1] if found else None
    placeholder = WITH_DEFAULTS.get(kind.name)
    if placeholder is None:
        return None
    if _CALL.match(expression) or expression.lower() in NOW:
        return placeholder
    if kind.name == "bool":
        return "t" if expression == "true" else "f"
    if "'" not in expression:
        return expression
    found = _LITERAL.search(expression)
    return found[1].replace("''", "'") if found else None


def default_of(value: Value, kind: Kind, expression: str | None) -> Any:
    """Return the default of a column as a value, or None."""
    text = default_text(kind, expression)
    if text is None or value.schema.type is Type.STRUCT:
        return None
    if kind.name in ("timestamp", "timestamptz") and " " not in text:
        text += " 00:00:00" + ("+00" if kind.name == "timestamptz" else "")
    try:
        return value.read(text)
    except (ValueError, ArithmeticError, IndexError, DataError):
        log.warning("the default %s of a column of type %s is not understood", expression, kind.name)
        return None
