"""TimestampConverter: timestamps as strings, Unix times, Dates, Times or Timestamps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, one_of
from moldau.connect.data import MS_PER_DAY, Instant, Record, Schema, Struct, Type
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.connect.java.dates import ParseError, PatternError, SimpleDateFormat
from moldau.connect.transforms.kinds import (
    NULLS,
    Settings,
    Side,
    Transform,
    TransformClass,
    basics,
    carried,
    per_schema,
    require_map,
    require_struct,
)
from moldau.connect.transforms.straight import Part, Shape, Writer, ruled
from moldau.java.numbers import trim

SCHEMAS = {
    "string": data.STRING,
    "unix": data.INT64,
    "Date": data.DATE_SCHEMA,
    "Time": data.TIME_SCHEMA,
    "Timestamp": data.TIMESTAMP_SCHEMA,
}
LOGICAL = {data.DATE: "Date", data.TIME: "Time", data.TIMESTAMP: "Timestamp"}
# How many of a unit are a millisecond (or, for seconds, the other way round).
UNITS = {"nanoseconds": 1_000_000, "microseconds": 1000, "milliseconds": 1, "seconds": 1000}
LONG = (1 << 63) - 1


def _saturated(value: int) -> int:
    return max(-LONG - 1, min(LONG, value))


def _truncated(value: int, by: int) -> int:
    return -(-value // by) if value < 0 else value // by


@dataclass(frozen=True, slots=True)
class _Conversion:
    target: str
    format: SimpleDateFormat | None
    unit: str

    def convert(self, value: Any, source: str | None) -> Any:
        if value is None:
            return None
        return self._to(self._moment(value, source or self._infer(value)))

    def _infer(self, value: Any) -> str:
        kinds = {Instant: "Timestamp", int: "unix", str: "string"}
        if type(value) not in kinds:
            raise DataError(f"TimestampConverter does not support {type(value).__qualname__} objects as timestamps")
        return kinds[type(value)]

    def _moment(self, value: Any, source: str) -> Instant:
        if source == "unix":
            unit = UNITS[self.unit]
            return Instant(_saturated(value * unit) if self.unit == "seconds" else _truncated(value, unit))
        if source != "string":
            return value
        if self.format is None:
            raise DataError("TimestampConverter needs the setting format to read strings")
        try:
            return self.format.parse(value)
        except (ParseError, PatternError) as error:
            pattern = self.format.pattern
            raise DataError(
                f"Could not parse timestamp: value ({value}) does not match pattern ({pattern}): {error}"
            ) from None

    def _to(self, moment: Instant) -> Any:
        match self.target:
            case "string":
                assert self.format
                return self.format.format(moment)
            case "unix":
                unit = UNITS[self.unit]
                return _truncated(moment, unit) if self.unit == "seconds" else _saturated(moment * unit)
            case "Date":
                return Instant(data.wrap(moment - moment % MS_PER_DAY, 64))
            case "Time":
                return Instant(moment % MS_PER_DAY)
            case _:
                return moment


def source_of(schema: Schema) -> str:
    """Tell from a schema how its timestamps are represented."""
    if schema.name in LOGICAL:
        return LOGICAL[schema.name]
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise ConnectError(f"Schema {schema} does not correspond to a known timestamp type format")


def make_converter(settings: Settings, side: Side) -> Transform:
    name, target, pattern = settings["field"], settings["target.type"], settings["format"]
    with_default = settings["replace.null.with.default"]
    if target == "string" and not trim(pattern or ""):
        raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
    try:
        conversion = _Conversion(
            target, SimpleDateFormat(pattern) if trim(pattern) else None, settings["unix.precision"]
        )
    except PatternError as error:
        raise ConfigError(f"format is not a pattern of SimpleDateFormat: {pattern}: {error}") from None

    def converted(struct: Struct, made: Schema) -> Struct:
        values = []
        for place, each in struct:
            value = carried(place, each, with_default)
            values.append(conversion.convert(value, source_of(place.schema)) if place.name == name else value)
        return Struct(made, tuple(values))

    @per_schema
    def updated(schema: Schema) -> Schema:
        fields = [
            (each.name, SCHEMAS[target].but(optional=each.schema.optional) if each.name == name else each.schema)
            for each in data.fields_of(schema)
        ]
        made = data.struct(fields, optional=schema.optional, **basics(schema))
        return made if schema.default is None else made.but(default=converted(schema.default, made))

    def apply(record: Record) -> Record:
        schema, value = side.schema(record), side.value(record)
        if schema is None:
            if value is None or not name:
                return side.put(record, None, conversion.convert(value, None))
            known = require_map(value, "converting timestamp formats")
            return side.put(record, None, known | {name: conversion.convert(known.get(name), None)})
        if not name:
            made = SCHEMAS[target].but(optional=schema.optional)
            return side.put(record, made, conversion.convert(value, source_of(schema)))
        if value is None:
            return side.put(record, updated(schema), None)
        old = require_struct(value, "converting timestamp formats")
        return side.put(record, updated(schema), converted(old, updated(schema)))

    def rule(shape: Shape, writer: Writer) -> Shape | None:
        part = writer.struct(shape, side)
        if part is None or not name:
            return None
        fields = list(part.fields)
        if (place := part.schema.by_name.get(name)) is not None:
            convert = partial(conversion.convert, source=source_of(place.schema))
            fields[place.index] = writer.call(convert, fields[place.index], place.schema.optional)
        return shape.put(side, Part(updated(part.schema), None, tuple(fields)))

    return ruled(apply, rule)


TIMESTAMP_CONVERTER = TransformClass(
    "TimestampConverter",
    "Converts timestamps between strings, Unix times and Connect's Date, Time and Timestamp.",
    ConfigDef(
        [
            Key(
                "field",
                default="",
                importance=Importance.HIGH,
                doc="The field with the timestamp. If it is empty, the whole key or value is the timestamp.",
            ),
            Key(
                "target.type",
                importance=Importance.HIGH,
                validator=one_of(*SCHEMAS),
                doc="What to convert to: string, unix, Date, Time or Timestamp.",
            ),
            Key(
                "format",
                default="",
                doc="A pattern of Java's SimpleDateFormat, with which strings are read and written.",
            ),
            Key(
                "unix.precision",
                default="milliseconds",
                importance=Importance.LOW,
                validator=one_of(*UNITS),
                doc="The unit of Unix times. What is finer than a millisecond is lost.",
            ),
            NULLS,
        ]
    ),
    make_converter,
)
