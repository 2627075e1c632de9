"""Schemas for the rows of files: given by a setting or made from the names of columns, and rows read by them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moldau.connect import data
from moldau.connect.config_def import Kind, key
from moldau.connect.data import DATE, DECIMAL, TIME, TIMESTAMP, Instant, Schema, Struct, Type
from moldau.connect.errors import ConfigError, DataError
from moldau.connect.java.dates import ParseError, PatternError, SimpleDateFormat
from moldau.connect.values import parse_decimal
from moldau.java.numbers import parse_double, parse_float

MODEL = "com.github.jcustenborder.kafka.connect.model."
FORMATS = "yyyy-MM-dd'T'HH:mm:ss,yyyy-MM-dd' 'HH:mm:ss"
MOST_LEVELS, MOST_DIGITS = 100, 1000  # of a schema, and of a decimal
GENERATED = 64  # schemas that are kept: rows of JSON may have this field or that
SETTINGS = (
    key("key.schema", "", "The schema of keys, as JSON."),
    key("value.schema", "", "The schema of values, as JSON; without one, values have the types that they show."),
    key("schema.generation.enabled", False, "Make schemas from the names of columns; all are text.", Kind.BOOLEAN),
    key("schema.generation.key.fields", "", "The columns of a key whose schema is generated.", Kind.LIST),
    key("schema.generation.key.name", f"{MODEL}Key", "The name of a generated schema of keys."),
    key("schema.generation.value.name", f"{MODEL}Value", "The name of a generated schema of values."),
    key("parser.timestamp.timezone", "UTC", "The time zone of dates and times that name none."),
    key("parser.timestamp.date.formats", FORMATS, "How dates and times look, as for SimpleDateFormat.", Kind.LIST),
)
Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Times:
    """How dates and times are written."""

    formats: tuple[SimpleDateFormat, ...]
    zone: ZoneInfo

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Times:
        zone = config["parser.timestamp.timezone"]
        try:
            formats = tuple(map(SimpleDateFormat, config["parser.timestamp.date.formats"]))
            return cls(formats, ZoneInfo(zone))
        except PatternError as error:
            raise ConfigError(f"Invalid value for configuration parser.timestamp.date.formats: {error}") from None
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"Invalid value {zone} for configuration parser.timestamp.timezone: there is no such time zone."
            raise ConfigError(message) from None

    def local(self, text: str) -> tuple[int, bool]:
        """Return milliseconds, and whether they are those of a clock in the zone."""
        for one in self.formats:
            try:
                return one.parse(text), not any(part.text[:1] in "zZX" for part in one.parts if part.count)
            except ParseError:
                continue
        raise ValueError("it has none of the formats of parser.timestamp.date.formats")

    def moment(self, text: str) -> Instant:
        found, is_of_zone = self.local(text)
        if not is_of_zone:
            return Instant(found)
        clock = Instant(found).datetime.replace(tzinfo=self.zone)
        return Instant.of(clock.astimezone(UTC))

    def day(self, text: str) -> Instant:
        return Instant(self.local(text)[0] // data.MS_PER_DAY * data.MS_PER_DAY)

    def clock(self, text: str) -> Instant:
        return Instant(self.local(text)[0] % data.MS_PER_DAY)


class Rows:
    """Reads rows by the schemas of a config: those given, or those of the columns that come."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._times, self._config = Times.of(config), config
        self._is_generated = config["schema.generation.enabled"] and not config["value.schema"]
        self._key, self._value = (
            Rowed(schema_of(config[name], name), self._times) if config[name] else None
            for name in ("key.schema", "value.schema")
        )
        if self._key is not None and self._value is None and not self._is_generated:
            raise ConfigError("'value.schema' must be set if 'key.schema' is.")
        self._field = self._timestamp()
        self._generated = lru_cache(GENERATED)(self._generate)

    @property
    def have_schemas(self) -> bool:
        return self._is_generated or self._value is not None

    @property
    def columns(self) -> list[str]:
        """Return the names of columns if a file does not say them."""
        return [one.name for one in self._value.schema.fields] if self._value else []

    def _timestamp(self) -> str:
        """Return the field that has the time of a record."""
        if self._config["timestamp.mode"] != "FIELD":
            return ""
        name: str = self._config["timestamp.field"]
        found = self._value.schema.by_name.get(name) if self._value and name else None
        if found is None or found.schema.name != TIMESTAMP or found.schema.optional:
            raise ConfigError(
                f"Invalid value {name} for configuration timestamp.field: with timestamp.mode=FIELD it must be a field "
                "of value.schema that is a Timestamp and not optional."
            )
        return name

    def time_of(self, value: Struct) -> int | None:
        return value.get(self._field) if self._field else None

    def read(self, row: Any) -> tuple[Struct | None, Struct]:
        """Return a row's key and value; DataError if it does not fit the schemas."""
        if not isinstance(row, Mapping):
            raise DataError(f"A schema needs rows with columns, and this is {json.dumps(row)[:80]}.")
        key, value = (self._key, self._value) if self._value else self._generated(tuple(row))
        return key.read(row) if key else None, value.read(row)

    def _generate(self, columns: tuple[str, ...]) -> tuple[Rowed, Rowed]:
        """Make the schemas of a key and a value with these columns."""

        def made(names: Iterable[str], what: str) -> Rowed:
            fields = dict.fromkeys(names, data.OPTIONAL[Type.STRING])
            return Rowed(data.struct(fields, name=self._config[f"schema.generation.{what}.name"]), self._times)

        keys = [one for one in self._config["schema.generation.key.fields"] if one in columns]
        return self._key or made(keys, "key"), made(columns, "value")


class Rowed:
    """Makes structs of one schema."""

    def __init__(self, schema: Schema, times: Times) -> None:
        if schema.type is not Type.STRUCT:
            raise ConfigError(f"Rows of files have schemas of type STRUCT, not {schema.type.name}.")
        self.schema = schema
        self._fields = [(one.name, reader(one.schema, times)) for one in schema.fields]

    def read(self, row: Mapping[str, Any]) -> Struct:
        values = []
        for name, read in self._fields:
            try:
                values.append(read(row.get(name)))
            except (ValueError, OverflowError, DataError) as error:
                raise DataError(f"The field {name} cannot be read from {row.get(name)!r}: {error}") from error
        return Struct(self.schema, tuple(values))


def reader(schema: Schema, times: Times) -> Read:
    """Return the function that reads a value of a file, a text or what JSON has."""
    required = _required(schema, times)

    def read(value: Any) -> Any:
        if value is None or (value == "" and schema.type is not Type.STRING):
            if not schema.optional and schema.default is None:
                raise DataError("it is empty, and not optional")
            return schema.default
        return required(value)

    return read


def _required(schema: Schema, times: Times) -> Read:
    match schema.type:
        case Type.STRUCT:
            inner = Rowed(schema, times)
            return lambda value: inner.read(_expect(value, Mapping, "an object"))
        case Type.ARRAY:
            each = reader(schema.value_schema or data.STRING, times)
            return lambda value: [each(one) for one in _expect(value, list, "an array")]
        case Type.MAP:
            name, each = (reader(one or data.STRING, times) for one in (schema.key_schema, schema.value_schema))
            return lambda value: {name(one): each(of) for one, of in _expect(value, Mapping, "an object").items()}
    if schema.name == DECIMAL:
        return partial(_decimal, data.scale(schema))
    if schema.name in (DATE, TIME, TIMESTAMP):
        read = {DATE: times.day, TIME: times.clock, TIMESTAMP: times.moment}[schema.name]
        return lambda value: Instant(value) if _is_whole(value) else read(_expect(value, str, "a text"))
    if schema.type not in SCALARS:
        raise ConfigError(f"Rows of files cannot have fields of type {schema.type.name} ({schema.name}).")
    return SCALARS[schema.type]


def _expect(value: Any, kind: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise DataError(f"it is not {what}")
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> int | float | str:
    if isinstance(value, bool):
        raise DataError("it is not a number")
    return _expect(value, int | float | str, "a number")


def _decimal(digits: int, value: Any) -> Decimal:
    whole, found = data.unscaled(parse_decimal(str(_number(value))))
    if abs(digits - found) > MOST_DIGITS:
        raise DataError(f"it is more than {MOST_DIGITS} digits away from its scale")
    if found <= digits:
        return data.scaled(whole * 10 ** (digits - found), digits)
    shorter, rest = divmod(abs(whole), 10 ** (found - digits))
    if rest:
        raise DataError(f"it has more than {digits} digits after the point")
    return data.scaled(-shorter if whole < 0 else shorter, digits)


def _whole(bits: int, value: Any) -> int:
    given = _number(value)
    if isinstance(given, str) and not re.fullmatch(r"[+-]?[0-9]{1,20}", given):
        raise DataError("it is not a whole number")
    found = int(given)
    if not data.fits(found, bits):
        raise DataError(f"it does not fit into {bits} bits")
    return found


def _real(parse: Callable[[str], float], value: Any) -> float:
    given = _number(value)
    return parse(given) if isinstance(given, str) else float(given)


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else str(_expect(value, str, "true or false")).lower() == "true"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


SCALARS: dict[Type, Read] = {
    **{kind: partial(_whole, bits) for kind, bits in data.BITS.items()},
    Type.FLOAT32: lambda value: data.to_float32(_real(parse_float, value)),
    Type.FLOAT64: partial(_real, parse_double),
    Type.BOOLEAN: _truth,
    Type.STRING: _text,
}


def schema_of(text: str, setting: str) -> Schema:
    """Read a schema from the JSON of a setting; ConfigError if it is none."""
    try:
        return _schema(json.loads(text), MOST_LEVELS)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DataError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"Invalid value for configuration {setting}: it is not a schema: {said}") from error


def _schema(given: Mapping[str, Any], levels: int) -> Schema:
    if not levels:
        raise DataError(f"it has more than {MOST_LEVELS} levels")
    kind = Type[given["type"].upper()]
    inner = {
        name: _schema(given[place], levels - 1) if given.get(place) else None
        for name, place in (("key_schema", "keySchema"), ("value_schema", "valueSchema"))
    }
    parts: dict[str, Any] = {
        "name": given.get("name") or None,
        "doc": given.get("doc") or None,
        "version": given.get("version"),
        "optional": bool(given.get("isOptional", False)),
        "parameters": dict(given["parameters"]) if given.get("parameters") is not None else None,
    }
    match kind:
        case Type.STRUCT:
            fields = given.get("fieldSchemas") or {}
            return data.struct([(name, _schema(one, levels - 1)) for name, one in fields.items()], **parts)
        case Type.ARRAY | Type.MAP if inner["value_schema"] is None or (kind is Type.MAP and not inner["key_schema"]):
            raise DataError(f"{kind.name} lacks the schema of what is in it")
        case Type.ARRAY:
            return Schema(kind, value_schema=inner["value_schema"], **parts)
        case Type.MAP:
            return Schema(kind, **inner, **parts)
    default = given.get("defaultValue")
    if default is not None and kind in (Type.FLOAT32, Type.FLOAT64):
        default = float(default)
    return Schema(kind, default=default, **parts)
