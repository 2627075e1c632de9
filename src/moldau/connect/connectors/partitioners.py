"""Folders of files that records are written to: by partition, by fields, by time, as Confluent's partitioners."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moldau.connect.connectors.file_formats import field_of, shown
from moldau.connect.data import EPOCH, Instant, Record
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.java.dates import PatternError, SimpleDateFormat

HOUR_MS = 3_600_000
DAY, HOUR = "'year'=YYYY/'month'=MM/'day'=dd", "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
EXTRACTORS = ("Wallclock", "Record", "RecordField")
Folder = Callable[[Record], str]


def extractor(config: Mapping[str, Any]) -> Callable[[Record], int]:
    """Return what tells the time of a record, in ms since 1970."""
    name = config["timestamp.extractor"]
    if name == "Wallclock":
        return lambda _record: time.time_ns() // 1_000_000
    return _of_field(config["timestamp.field"]) if name == "RecordField" else _of_record


def _of_record(record: Record) -> int:
    if record.timestamp is None:
        raise ConnectError("The record has no timestamp.")
    return record.timestamp


def _of_field(name: str) -> Callable[[Record], int]:
    from datetime import UTC, datetime

    def read(record: Record) -> int:
        value: Any = field_of(record, name)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        try:
            moment = datetime.fromisoformat(str(value))
        except (TypeError, ValueError):
            raise ConnectError(f"The field {name} has the value {value!r}, which is not a time.") from None
        return Instant.of(moment if moment.tzinfo else moment.replace(tzinfo=UTC))

    return read


def by_partition(config: Mapping[str, Any]) -> Folder:
    return lambda record: f"partition={record.original_partition if record.original_partition is not None else 0}"


def by_fields(config: Mapping[str, Any]) -> Folder:
    names = config["partition.field.name"]
    if not names:
        raise ConfigError("FieldPartitioner needs partition.field.name.")
    return lambda record: "/".join(f"{name}={_safe(shown(field_of(record, name)))}" for name in names)


def _safe(text: str) -> str:
    """Keep a value from leaving its folder."""
    return re.sub(r"[/\\\x00]", "_", text) if text not in (".", "..") else text.replace(".", "_")


def by_time(config: Mapping[str, Any], pattern: str = "", duration_ms: int = 0) -> Folder:
    """Make folders of times; a pattern is one of Joda, whose YYYY is Java's yyyy."""
    pattern = pattern or config["path.format"]
    duration = duration_ms or config["partition.duration.ms"]
    if not pattern or duration <= 0:
        raise ConfigError("TimeBasedPartitioner needs path.format and partition.duration.ms.")
    try:
        made, zone = SimpleDateFormat(_of_joda(pattern)), ZoneInfo(config["timezone"] or "UTC")
    except (PatternError, ZoneInfoNotFoundError, ValueError) as error:
        raise ConfigError(f"path.format or timezone cannot be used: {error}") from None
    when = extractor(config)

    def folder(record: Record) -> str:
        ms = when(record)
        shift = (EPOCH + timedelta(milliseconds=ms)).astimezone(zone).utcoffset() or timedelta()
        local = ms + shift // timedelta(milliseconds=1)
        return made.format(local - local % duration)

    return folder


def _of_joda(pattern: str) -> str:
    parts = pattern.split("'")  # every other one is quoted
    return "'".join(part if at % 2 else part.replace("Y", "y") for at, part in enumerate(parts))


PARTITIONERS: dict[str, Callable[[Mapping[str, Any]], Folder]] = {
    "DefaultPartitioner": by_partition,
    "FieldPartitioner": by_fields,
    "TimeBasedPartitioner": by_time,
    "DailyPartitioner": lambda config: by_time(config, DAY, 24 * HOUR_MS),
    "HourlyPartitioner": lambda config: by_time(config, HOUR, HOUR_MS),
}


def find(config: Mapping[str, Any]) -> Folder:
    simple = config["partitioner.class"].rpartition(".")[2]
    if simple not in PARTITIONERS:
        known = ", ".join(PARTITIONERS)
        raise ConfigError(f"Invalid value {simple} for configuration partitioner.class: the partitioners are {known}")
    return PARTITIONERS[simple](config)
