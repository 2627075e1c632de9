"""Connect's data: schemas, structs, logical types and records, with the rules of `org.apache.kafka.connect.data`.

A value with a schema is a plain Python object: `int` for the four integer types, `float`, `bool`, `str`, `bytes`,
`list`, `dict`, `Struct`, `decimal.Decimal` for Decimal, and `Instant` for Date, Time and Timestamp (Java has one class
for the three). A value without a schema carries its type in its class, as in Java: `int` is a Long, `float` a Double,
and `Int8`, `Int16`, `Int32` and `Float32` are the narrower ones. `type_of` reads that back.

Everything here is immutable except lists and dicts, which nobody changes once they are in a record. What comes by the
record is a msgspec.Struct: it is made in C, in a third of the time that a class of Python takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from moldau.connect.errors import DataError, SchemaBuilderError
from moldau.java.numbers import to_float32 as to_float32
from moldau.java.numbers import wrap as wrap

MS_PER_DAY = 86_400_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATA = "org.apache.kafka.connect.data."
DECIMAL, DATE, TIME, TIMESTAMP = (DATA + name for name in ("Decimal", "Date", "Time", "Timestamp"))


class Type(Enum):
    """The types of Connect, in its order; the value is the name in settings and in JSON schemas."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    __hash__ = object.__hash__  # Enum's own is Python code, and many tables have types for keys

    @property
    def primitive(self) -> bool:
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)


class Int8(int):
    """A Byte of a value without a schema."""


class Int16(int):
    """A Short of a value without a schema."""


class Int32(int):
    """An Integer of a value without a schema."""


class BigInt(int):
    """A BigInteger, which no schema has."""


class Float32(float):
    """A Float of a value without a schema."""


class Instant(int):
    """A `java.util.Date`: milliseconds since 1970 in UTC, of any year."""

    @classmethod
    def of(cls, moment: datetime | date | time) -> Instant:
        """Take Python's types; a datetime without a zone is in UTC, a time is of the first day."""
        if isinstance(moment, time):
            moment = datetime.combine(EPOCH.date(), moment, moment.tzinfo or UTC)
        elif not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return cls((aware - EPOCH) // timedelta(milliseconds=1))

    @property
    def datetime(self) -> datetime:
        return EPOCH + timedelta(milliseconds=int(self))

    @property
    def date(self) -> date:
        return self.datetime.date()

    @property
    def time(self) -> time:
        return self.datetime.time()


BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
NARROW: dict[Type, type] = {Type.INT8: Int8, Type.INT16: Int16, Type.INT32: Int32, Type.FLOAT32: Float32}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    index: int
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """A schema; two are equal if all their parts are.

    What Java's SchemaBuilder refuses is refused when a schema is made, unless it is not to be `checked`.
    """

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] | None = None
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    checked: InitVar[bool] = True
    by_name: Mapping[str, Field] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self, checked: bool) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.fields})
        parts = (self.type, self.optional, self.name, self.version, self.fields, self.key_schema, self.value_schema)
        object.__setattr__(self, "_hash", hash(parts))
        if checked:
            self._check()

    def _check(self) -> None:
        if self.type is Type.STRUCT:
            if len({each.name for each in self.fields}) < len(self.fields):
                names = [each.name for each in self.fields]
                twice = next(name for name in names if names.count(name) > 1)
                raise SchemaBuilderError(f"Cannot create field because of field name duplication {twice}")
        elif self.fields:
            raise SchemaBuilderError(f"Cannot create fields on type {self.type.name}")
        if self.default is not None:
            try:
                if isinstance(self.default, Struct) and self.default.schema.fields == self.fields:
                    self.default.validate()  # the schema of a default has no default itself
                else:
                    validate(self, self.default)
            except DataError as error:
                raise SchemaBuilderError("Invalid default value") from error

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema) or self._hash != other._hash:
            return False
        return self._parts() == other._parts() and same(self.default, other.default)

    def __hash__(self) -> int:
        return self._hash

    def _parts(self) -> tuple[object, ...]:
        basic = (self.type, self.optional, self.name, self.version, self.doc, self.parameters)
        return (*basic, self.fields, self.key_schema, self.value_schema)

    def field(self, name: str) -> Field | None:
        if self.type is not Type.STRUCT:
            raise DataError("Cannot look up fields on non-struct type")
        return self.by_name.get(name)

    def but(self, **changes: Any) -> Schema:
        """This schema with some of its parts replaced."""
        return replace(self, **changes)

    def __str__(self) -> str:
        return f"Schema{{{self.name + ':' if self.name is not None else ''}{self.type.name}}}"


def struct(fields: Mapping[str, Schema] | Sequence[tuple[str, Schema]] = (), **parts: Any) -> Schema:
    """Make the schema of a struct from names and schemas."""
    pairs = list(fields.items()) if isinstance(fields, Mapping) else fields
    return Schema(Type.STRUCT, fields=tuple(Field(name, at, each) for at, (name, each) in enumerate(pairs)), **parts)


def array(value: Schema, **parts: Any) -> Schema:
    return Schema(Type.ARRAY, value_schema=value, **parts)


def map_of(key: Schema, value: Schema, **parts: Any) -> Schema:
    return Schema(Type.MAP, key_schema=key, value_schema=value, **parts)


def decimal(scale: int, **parts: Any) -> Schema:
    """Make the schema of decimals that have exactly this many digits after the point."""
    return Schema(Type.BYTES, name=DECIMAL, version=1, parameters={"scale": str(scale)}, **parts)


INT8, INT16, INT32, INT64 = (Schema(each) for each in (Type.INT8, Type.INT16, Type.INT32, Type.INT64))
FLOAT32, FLOAT64, BOOLEAN = (Schema(each) for each in (Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN))
STRING, BYTES = Schema(Type.STRING), Schema(Type.BYTES)
OPTIONAL: dict[Type, Schema] = {each: Schema(each, optional=True) for each in Type if each.primitive}
REQUIRED: dict[Type, Schema] = {each: Schema(each) for each in Type if each.primitive}
DATE_SCHEMA = Schema(Type.INT32, name=DATE, version=1)
TIME_SCHEMA = Schema(Type.INT32, name=TIME, version=1)
TIMESTAMP_SCHEMA = Schema(Type.INT64, name=TIMESTAMP, version=1)

# The classes that a value of a type may have, and what a class says of a value without a schema.
CLASSES: dict[Type, tuple[type, ...]] = {
    Type.INT8: (int, Int8),
    Type.INT16: (int, Int16),
    Type.INT32: (int, Int32),
    Type.INT64: (int,),
    Type.FLOAT32: (float, Float32),
    Type.FLOAT64: (float,),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes,),
    Type.ARRAY: (list, tuple),
    Type.MAP: (dict,),
}
LOGICAL: dict[str, tuple[type, ...]] = {
    DECIMAL: (Decimal,),
    DATE: (Instant,),
    TIME: (Instant,),
    TIMESTAMP: (Instant,),
}


class Struct(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A value of a struct's schema: one value for each field, None where nothing was put."""

    schema: Schema
    values: tuple[Any, ...]

    @classmethod
    def of(cls, schema: Schema, values: Mapping[str, Any] | None = None, **more: Any) -> Struct:
        """Make a struct and check each value that is given; `validate` also finds those that are missing."""
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        found: list[Any] = [None] * len(schema.fields)
        for name, value in ({**values, **more} if values else more).items():
            place = schema.by_name.get(name)
            if place is None:
                raise DataError(f"{name} is not a valid field name")
            validate(place.schema, value, name)
            found[place.index] = value
        return cls(schema, tuple(found))

    def get(self, name: str) -> Any:
        """Return a field's value, or the default of its schema."""
        place = self._field(name)
        value = self.values[place.index]
        return place.schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        return self.values[self._field(name).index]

    def __getitem__(self, name: str) -> Any:
        return self.get(name)

    def __iter__(self) -> Iterator[tuple[Field, Any]]:
        return zip(self.schema.fields, self.values, strict=True)

    def _field(self, name: str) -> Field:
        place = self.schema.by_name.get(name)
        if place is None:
            raise DataError(f"{name} is not a valid field name")
        return place

    def validate(self) -> None:
        for place, value in self:
            if value is not None or not (place.schema.optional or place.schema.default is not None):
                validate(place.schema, value, place.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and same(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.schema, repr(self.values)))

    def __repr__(self) -> str:
        return "Struct{" + ",".join(f"{place.name}={value}" for place, value in self if value is not None) + "}"


class SchemaAndValue(msgspec.Struct, frozen=True, gc=False):
    schema: Schema | None
    value: Any


NULL = SchemaAndValue(None, None)


class Header(msgspec.Struct, frozen=True, gc=False):
    name: str
    schema: Schema | None
    value: Any


class TimestampType(Enum):
    """How a record of a topic got its timestamp, under Kafka's names."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class Record(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A record between a connector and a topic.

    A source's record has `source_partition` and `source_offset`, a sink's has `offset` and `timestamp_type`. The three
    `original_*` say where a sink's record was read from, whatever transforms have made of topic and partition.
    """

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp: int | None = None
    headers: tuple[Header, ...] = ()
    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None
    offset: int | None = None
    timestamp_type: TimestampType | None = None
    original_topic: str | None = None
    original_partition: int | None = None
    original_offset: int | None = None

    def but(self, **changes: Any) -> Record:
        """This record with some of its parts replaced."""
        return msgspec.structs.replace(self, **changes)

    def _compared(self) -> tuple[Any, ...]:
        """Return what makes two records equal: everything but where they were read from."""
        return msgspec.structs.astuple(self)[:COMPARED]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    @property
    def is_sink(self) -> bool:
        return self.offset is not None


COMPARED = Record.__struct_fields__.index("original_topic")
# Values without a logical type that fit a schema of the type by their class alone.
PLAIN: dict[type, Type] = {str: Type.STRING, bytes: Type.BYTES, bool: Type.BOOLEAN, float: Type.FLOAT64}


def validate(schema: Schema, value: Any, name: str | None = None) -> None:
    """Refuse a value that does not fit, wherever in it the misfit is."""
    if schema.name is None and PLAIN.get(type(value)) is schema.type:
        return
    _validate(schema, value, "value" if name is None else f'field: "{name}"')


def _validate(schema: Schema, value: Any, place: str) -> None:
    if value is None:
        if not schema.optional:
            raise DataError(f"Invalid value: null used for required {place}, schema type: {schema.type.name}")
        return
    classes = LOGICAL.get(schema.name) if schema.name else None
    if type(value) not in (classes or CLASSES.get(schema.type, (Struct,))):
        named = f' "{schema.name}"' if schema.name else ""
        kind = type(value).__qualname__
        raise DataError(f"Invalid object for schema{named} with type {schema.type.name}: class {kind} for {place}")
    if classes is None and schema.type in BITS and not fits(value, BITS[schema.type]):
        raise DataError(f"{value} is out of the range of {schema.type.name} for {place}")
    if schema.type is Type.STRUCT:
        if value.schema is not schema and value.schema != schema:
            raise DataError("Struct schemas do not match.")
        value.validate()
    elif schema.type is Type.ARRAY:
        inner = _known(schema.value_schema, f"element of array {place}")
        for each in value:
            _validate(inner, each, f"element of array {place}")
    elif schema.type is Type.MAP:
        keys, values = _known(schema.key_schema, f"key of map {place}"), _known(schema.value_schema, "value of map")
        for key, each in value.items():
            _validate(keys, key, f"key of map {place}")
            _validate(values, each, f"value of map {place}")


def _known(schema: Schema | None, place: str) -> Schema:
    if schema is None:
        raise DataError(f"No schema defined for {place}")
    return schema


def fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


TYPES: dict[type, Type] = {
    **{made: each for each, made in NARROW.items()},
    int: Type.INT64,
    float: Type.FLOAT64,
    bool: Type.BOOLEAN,
    str: Type.STRING,
    bytes: Type.BYTES,
    list: Type.ARRAY,
    tuple: Type.ARRAY,
    dict: Type.MAP,
    Struct: Type.STRUCT,
}


def type_of(value: Any) -> Type | None:
    """Return the type that a value without a schema has; None if none fits, as for an Instant."""
    return TYPES.get(type(value))


def typed(kind: Type, value: Any) -> Any:
    """Mark a value with the class of its type, for where no schema says it."""
    made = NARROW.get(kind)
    return made(value) if made and value is not None else value


def same(one: Any, other: Any) -> bool:
    """Compare as Java's `equals` does: 1 is neither 1.0 nor true, 1.0 is not 1.00, and NaN is NaN."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(key in other and same(one[key], other[key]) for key in one)
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one.as_tuple() == other.as_tuple()
    if isinstance(one, float) and isinstance(other, float):
        return repr(float(one)) == repr(float(other))
    return type(one) is type(other) and one == other


def scale(schema: Schema) -> int:
    """Read the scale of a Decimal's schema."""
    text = (schema.parameters or {}).get("scale")
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError("Invalid scale parameter found in Decimal schema: ") from None


def unscaled(value: Decimal) -> tuple[int, int]:
    """Split a decimal into Java's unscaled value and scale."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise DataError(f"{value} is not a number")
    whole = int("".join(map(str, digits)) or "0")
    return (-whole if sign else whole), -exponent


def scaled(whole: int, digits: int) -> Decimal:
    """Make a decimal from Java's unscaled value and scale, exactly."""
    return Decimal((whole < 0, tuple(map(int, str(abs(whole)))), -digits))


def decimal_bytes(schema: Schema, value: Decimal) -> bytes:
    """Encode a decimal as BigInteger.toByteArray does: big-endian, two's complement, as few bytes as possible."""
    whole, digits = unscaled(value)
    wanted = scale(schema)
    if digits != wanted:
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {wanted}, value has scale {digits}."
        )
    return int_bytes(whole)


def int_bytes(whole: int) -> bytes:
    return whole.to_bytes((whole if whole >= 0 else ~whole).bit_length() // 8 + 1, "big", signed=True)


def decimal_of_bytes(schema: Schema, data: bytes) -> Decimal:
    if not data:
        raise DataError("Zero length BigInteger")
    return scaled(int.from_bytes(data, "big", signed=True), scale(schema))


def encode_logical(schema: Schema, value: Any) -> Any:
    """Turn a logical value into the value of its type (bytes, days, milliseconds)."""
    match schema.name:
        case name if name == DECIMAL:
            return decimal_bytes(schema, value)
        case name if name == DATE:
            if value % MS_PER_DAY:
                raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
            return wrap(value // MS_PER_DAY, 32)
        case name if name == TIME:
            if not 0 <= value <= MS_PER_DAY:
                raise DataError("Kafka Connect Time type should not have any date fields set to non-zero values.")
            return int(value)
        case _:
            return int(value)


def decode_logical(schema: Schema, value: Any) -> Any:
    """Turn a value of a logical schema's type into the logical value."""
    match schema.name:
        case name if name == DECIMAL:
            return decimal_of_bytes(schema, value)
        case name if name == DATE:
            return Instant(value * MS_PER_DAY)
        case name if name == TIME:
            if not 0 <= value <= MS_PER_DAY:
                raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
            return Instant(value)
        case _:
            return Instant(value)


def fields_of(schema: Schema) -> Sequence[Field]:
    if schema.type is not Type.STRUCT:
        raise DataError("Cannot list fields on non-struct type")
    return schema.fields
