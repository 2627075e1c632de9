"""Rows of a database as structs: the schema of a column, the value of a driver, and what was seen last."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from moldau.connect.connectors.databases import Column, Table
from moldau.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    EPOCH,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    Instant,
    Schema,
    Struct,
    decimal,
    scale,
    struct,
)
from moldau.connect.errors import ConnectError
from moldau.connect.shapes import EXACT, Shape

INCREMENTING, WHEN, NANOS = "incrementing", "timestamp", "timestamp_nanos"
UNDECLARED_SCALE = 127  # of a numeric that says nothing of its digits, as in Confluent's
MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """The last values that were read: a number, and microseconds since 1970 in UTC."""

    number: int | None = None
    moment: int | None = None

    @staticmethod
    def of(offset: Mapping[str, Any] | None, initial_ms: int | None) -> Seen:
        offset = offset or {}
        at = offset.get(WHEN)
        if at is None:
            start = None if initial_ms is None else (int(time.time() * 1000) if initial_ms < 0 else initial_ms) * 1000
            return Seen(offset.get(INCREMENTING), start)
        micros = offset.get(NANOS, at % 1000 * 1_000_000) // 1000
        return Seen(offset.get(INCREMENTING), at // 1000 * 1_000_000 + micros)

    def offset(self) -> dict[str, int]:
        found = {} if self.number is None else {INCREMENTING: self.number}
        if self.moment is not None:
            found |= {WHEN: self.moment // 1000, NANOS: self.moment % 1_000_000 * 1000}
        return found


WHOLE = {"smallint": INT16, "int2": INT16, "integer": INT32, "int": INT32, "int4": INT32, "mediumint": INT32}
SIMPLE: dict[str, Schema] = {
    **WHOLE,
    **dict.fromkeys(("bigint", "int8", "serial8"), INT64),
    **dict.fromkeys(("tinyint", "year"), INT16),
    **dict.fromkeys(("real", "float4"), FLOAT32),
    **dict.fromkeys(("double precision", "double", "float", "float8"), FLOAT64),
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    **dict.fromkeys(("bytea", "blob", "tinyblob", "mediumblob", "longblob", "binary", "varbinary"), BYTES),
    "date": DATE_SCHEMA,
    **dict.fromkeys(("time", "time without time zone", "time with time zone"), TIME_SCHEMA),
    **dict.fromkeys(("timestamp", "datetime", "timestamp without time zone"), TIMESTAMP_SCHEMA),
    **dict.fromkeys(("timestamp with time zone", "timestamptz"), TIMESTAMP_SCHEMA),
}
OF_SQLITE = dict.fromkeys((*WHOLE, "tinyint"), INT64) | {"real": FLOAT64, "bytea": BYTES}


def schema_of(column: Column, mapping: str, is_sqlite: bool) -> Schema:
    """Return the schema of a column; what is none of the known types is a text."""
    if column.kind in ("numeric", "decimal"):
        found = _numeric(column, mapping)
    else:
        found = (OF_SQLITE.get(column.kind) if is_sqlite else None) or SIMPLE.get(column.kind, STRING)
    return found if column.is_required else found.but(optional=True)


def _numeric(column: Column, mapping: str) -> Schema:
    precision, digits = column.precision, column.scale or 0
    if mapping != "none" and precision is not None and precision <= 18 and digits <= 0:
        return next(schema for most, schema in ((4, INT16), (9, INT32), (18, INT64)) if precision <= most)
    if mapping == "best_fit" and precision is not None and precision <= 18:
        return FLOAT64
    return decimal(UNDECLARED_SCALE if precision is None else digits)


class Rows:
    """Turns rows of one statement into structs. Columns of a query are not declared: their values say what they are."""

    def __init__(self, names: list[str], columns: list[Column], config: Mapping[str, Any], table: Table | None) -> None:
        self.names, self.columns = names, columns
        is_sqlite = config["connection.url"].startswith("jdbc:sqlite:")
        self._shape = Shape() if table is None else None
        self._schema = struct(
            {one.name: schema_of(one, config["numeric.mapping"], is_sqlite) for one in columns},
            name=table.name if table else None,
        )
        self._times = [names.index(name) for name in config["timestamp.column.name"] if name in names]

    def value(self, row: Any, zone: ZoneInfo) -> tuple[Schema, Struct]:
        if self._shape is not None:
            plain = {name: _aware(value, zone) for name, value in zip(self.names, row, strict=True)}
            schema, made = self._shape.take(plain)
            assert schema is not None
            return schema, made
        values = [convert(one.schema, value, zone) for one, value in zip(self._schema.fields, row, strict=True)]
        return self._schema, Struct(self._schema, tuple(values))

    def seen(self, row: Any, mode: str, number: str, zone: ZoneInfo) -> Seen:
        counted, moment = None, None
        if INCREMENTING in mode:
            counted = _whole(row[self.names.index(number)], number)
        if "timestamp" in mode:
            if not self._times:
                raise ConnectError("The query does not return the timestamp column.")
            found = next(row[at] for at in self._times if row[at] is not None)
            moment = micros(found, zone)
        return Seen(counted, moment)


def _whole(value: Any, name: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ConnectError(f"The incrementing column {name} has the value {value!r}, which is not a number.") from None


def _aware(value: Any, zone: ZoneInfo) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=zone)
    return EPOCH.replace(tzinfo=None).time() if isinstance(value, timedelta) and not value else value


def micros(value: Any, zone: Any) -> int:
    """Return a time of a database as microseconds since 1970; numbers are milliseconds, as in SQLite."""
    if isinstance(value, bool) or not isinstance(value, int | str | datetime | date):
        raise ConnectError(f"{value!r} is not a time.")
    if isinstance(value, int):
        return value * 1000
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ConnectError(f"{value!r} is not a time.") from None
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return (aware - EPOCH) // MOMENT


def convert(schema: Schema, value: Any, zone: ZoneInfo) -> Any:
    """Turn a value of a driver into one of a column's schema; ConnectError if it does not fit."""
    if value is None:
        return None
    match schema.name:
        case name if name == DECIMAL:
            try:
                return EXACT.quantize(Decimal(str(value)), Decimal(1).scaleb(-scale(schema)))
            except InvalidOperation:
                raise ConnectError(f"{value!r} is not a number with {scale(schema)} digits after the point.") from None
        case name if name == TIMESTAMP:
            return Instant(micros(value, zone) // 1000)
        case name if name == DATE:
            return Instant(micros(value, UTC) // 86_400_000_000 * 86_400_000)
        case name if name == TIME:
            return _time(value)
    if schema.type is STRING.type:
        return value if isinstance(value, str) else _text(value)
    if schema.type is BOOLEAN.type:
        return bool(value)
    if schema.type is BYTES.type:
        return value.encode() if isinstance(value, str) else bytes(value)
    try:
        return float(value) if schema.type in (FLOAT32.type, FLOAT64.type) else int(value)
    except (TypeError, ValueError):
        raise ConnectError(f"{value!r} is not a number, as its column says.") from None


def _time(value: Any) -> Instant:
    if isinstance(value, timedelta):  # of MariaDB
        return Instant(value // timedelta(milliseconds=1) % 86_400_000)
    if isinstance(value, int):
        return Instant(value)
    try:
        found = clock.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise ConnectError(f"{value!r} is not a time of the day.") from None
    return Instant.of(found.replace(tzinfo=None))


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        import json

        return json.dumps(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
