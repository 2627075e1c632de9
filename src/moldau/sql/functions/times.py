"""Functions of dates and times."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, tzinfo
from typing import Any

from moldau.java import fastdate, resolution, times
from moldau.java.times import MS_PER_DAY, Formatter, zone_of

from .registry import scalar

UNIT_MS = {
    "MILLISECONDS": 1,
    "SECONDS": 1000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": MS_PER_DAY,
    "WEEKS": 7 * MS_PER_DAY,
}
UNIT_MONTHS = {"MONTHS": 1, "YEARS": 12}


def _plus_months(days: int, months: int) -> int:
    """Add months to a date; a day that the month lacks becomes its last."""
    at = times.date_of(days)
    whole = at.year * 12 + at.month - 1 + months
    year, month = divmod(whole, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1)).toordinal() - 1
    return min(date(year, month + 1, 1).toordinal() + at.day - 1, last) - times.FIRST_DAY


def _timestamp_plus(unit: str, count: int, value: int) -> int:
    if unit in UNIT_MONTHS:
        days, rest = divmod(value, MS_PER_DAY)
        return _plus_months(days, count * UNIT_MONTHS[unit]) * MS_PER_DAY + rest
    return value + count * UNIT_MS[unit]


def _date_plus(unit: str, count: int, value: int) -> int:
    """A part of a day is cut off towards 1970, as TimeUnit does."""
    ms = _timestamp_plus(unit, count, value * MS_PER_DAY)
    return ms // MS_PER_DAY if ms >= 0 else -(-ms // MS_PER_DAY)


def _time_plus(unit: str, count: int, value: int) -> int:
    if unit not in UNIT_MS:
        raise ValueError(f"Unsupported unit: {unit.title()}")
    return (value + count * UNIT_MS[unit]) % MS_PER_DAY


def _both(name: str, kind: str, plus: Callable[[str, int, int], int], what: str) -> None:
    line = f"(UNIT unit, INTEGER count, {kind} value) -> {kind}"
    scalar(f"{name}add{line}", doc=f"Adds a duration to a {what}.")(plus)
    scalar(f"{name}sub{line}", doc=f"Subtracts a duration from a {what}.")(lambda unit, n, value: plus(unit, -n, value))


_both("date", "DATE", _date_plus, "date")
_both("time", "TIME", _time_plus, "time")
_both("timestamp", "TIMESTAMP", _timestamp_plus, "timestamp")


@scalar(
    "convert_tz(TIMESTAMP value, STRING source, STRING target) -> TIMESTAMP",
    doc="Moves a time from one zone to another.",
)
def convert_tz(value: int, source: str, target: str) -> int:
    """Both offsets are those of the value taken as UTC, as in ksqlDB."""
    return value + _offset(value, target) - _offset(value, source)


def _offset(value: int, zone: str) -> int:
    offset = times.local(value, zone_of(zone)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds() * 1000)


def _zone(name: str | None) -> tzinfo:
    return UTC if name is None else zone_of(name)


scalar("format_date(DATE value, STRING pattern) -> STRING", doc="Writes a date by a pattern.")(
    lambda value, pattern: times.format_date(pattern, value)
)
scalar("datetostring(INTEGER value, STRING pattern) -> STRING", doc="Writes days since 1970 by a pattern.")(
    lambda value, pattern: times.format_date(pattern, value)
)
scalar("format_time(TIME value, STRING pattern) -> STRING", doc="Writes a time by a pattern.")(
    lambda value, pattern: times.format_time(pattern, value)
)


def _format_moment(value: int, pattern: str, zone: str | None = None) -> str:
    return times.format_moment(pattern, value, _zone(zone))


for _name, _kind in (("format_timestamp", "TIMESTAMP"), ("timestamptostring", "BIGINT")):
    scalar(
        f"{_name}({_kind} value, STRING pattern) -> STRING",
        f"{_name}({_kind} value, STRING pattern, STRING zone) -> STRING",
        doc="Writes a timestamp by a pattern, in UTC or in the given zone.",
    )(_format_moment)


def _parse_date(value: str, pattern: str) -> int:
    return resolution.day_of(Formatter.of(pattern).parse(value), value)


@scalar("parse_date(STRING value, STRING pattern) -> DATE", doc="Reads a date by a pattern.")
def parse_date(value: str, pattern: str) -> int:
    return fastdate.parse_date(pattern, value) if fastdate.reads(pattern) else _parse_date(value, pattern)


scalar("stringtodate(STRING value, STRING pattern) -> INTEGER", doc="Reads days since 1970 by a pattern.")(_parse_date)


@scalar("parse_time(STRING value, STRING pattern) -> TIME", doc="Reads a time by a pattern.")
def parse_time(value: str, pattern: str) -> int:
    return resolution.nanos_of(Formatter.of(pattern).parse(value), value) // 1_000_000


def parse_moment(value: str, pattern: str, zone: str | None = None) -> int:
    return resolution.moment_of(Formatter.of(pattern).parse(value), value, _zone(zone))


for _name, _kind in (("parse_timestamp", "TIMESTAMP"), ("stringtotimestamp", "BIGINT")):
    scalar(
        f"{_name}(STRING value, STRING pattern) -> {_kind}",
        f"{_name}(STRING value, STRING pattern, STRING zone) -> {_kind}",
        doc="Reads a timestamp by a pattern, in UTC or in the given zone.",
    )(parse_moment)


def _same(value: Any) -> Any:
    return value


scalar("from_days(INTEGER days) -> DATE", doc="Makes a date of days since 1970.")(_same)
scalar("from_unixtime(BIGINT ms) -> TIMESTAMP", doc="Makes a timestamp of milliseconds since 1970.")(_same)
scalar("unix_date(DATE value) -> INTEGER", doc="Returns days since 1970, of today or of a date.")(_same)
scalar("unix_timestamp(TIMESTAMP value) -> BIGINT", doc="Returns milliseconds since 1970, of now or of a time.")(_same)


@scalar("unix_date() -> INTEGER")
def unix_date() -> int:
    return int(time.time()) // 86_400


@scalar("unix_timestamp() -> BIGINT")
def unix_timestamp() -> int:
    return time.time_ns() // 1_000_000
