"""The WITH clause: which properties there are, what they may be, and what they mean for formats and windows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from moldau.java.times import Formatter
from moldau.sql.catalogue import Settings, WindowInfo
from moldau.sql.errors import ParseError, SqlError
from moldau.sql.format_rules import RULES
from moldau.sql.tree import Properties

SOURCE_PROPERTIES = frozenset(
    {
        "KAFKA_TOPIC",
        "PARTITIONS",
        "REPLICAS",
        "RETENTION_MS",
        "CLEANUP_POLICY",
        "TIMESTAMP",
        "TIMESTAMP_FORMAT",
        "KEY_FORMAT",
        "VALUE_FORMAT",
        "FORMAT",
        "WRAP_SINGLE_VALUE",
        "KEY_DELIMITER",
        "VALUE_DELIMITER",
        "KEY_SCHEMA_ID",
        "VALUE_SCHEMA_ID",
        "KEY_SCHEMA_FULL_NAME",
        "VALUE_SCHEMA_FULL_NAME",
        "VALUE_AVRO_SCHEMA_FULL_NAME",
        "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
        "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
        "WINDOW_TYPE",
        "WINDOW_SIZE",
        "SOURCED_BY_CONNECTOR",
    }
)
HISTORY = "HISTORY"  # beyond ksqlDB: for how long a table knows its earlier values
UNITS_MS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000, "MILLISECOND": 1}
LONGEST_HISTORY_MS = 36_500 * UNITS_MS["DAY"]


@dataclass(frozen=True, slots=True)
class With:
    """The properties of a WITH clause."""

    values: dict[str, Any]

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        return None if value is None else str(value)

    def number(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None:
            return None
        try:
            return int(value)
        except (TypeError, ValueError):
            kind = {"REPLICAS": "SHORT", "RETENTION_MS": "LONG"}.get(name, "INT")
            raise SqlError(f"Invalid value {value} for configuration {name}: Not a number of type {kind}") from None

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is not None and str(value).lower() not in ("true", "false"):
            raise SqlError(f"Invalid value {value} for configuration {name}: Expected value to be either true or false")
        return None if value is None else str(value).lower() == "true"

    def format_name(self, side: str) -> str | None:
        """Return the format that is given for KEY or VALUE."""
        both = self.text("FORMAT")
        own = self.text(f"{side}_FORMAT")
        if both is not None and own is not None:
            raise SqlError(
                f"Cannot supply both '{side}_FORMAT' and 'FORMAT' properties, as 'FORMAT' sets both key and value "
                "formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."
            )
        name = own or both
        if name is None:
            return None
        if name.upper() not in RULES:
            raise SqlError(f"Unknown format: {name.upper()}")
        return name.upper()

    def format_properties(self, side: str, format_name: str) -> tuple[tuple[str, str], ...]:
        """Return the properties of a format; PROTOBUF's single columns are plain values unless told otherwise."""
        found: dict[str, str] = {}
        full_name = self.text(f"{side}_SCHEMA_FULL_NAME") or (
            self.text("VALUE_AVRO_SCHEMA_FULL_NAME") if side == "VALUE" else None
        )
        if full_name is not None:
            if not full_name.strip():
                raise SqlError(f"fullSchemaName cannot be empty. Format configuration: {{fullSchemaName={full_name}}}")
            found["fullSchemaName"] = full_name.strip()
        if (schema_id := self.number(f"{side}_SCHEMA_ID")) is not None:
            found["schemaId"] = str(schema_id)
        if (delimiter := self.text(f"{side}_DELIMITER")) is not None:
            found["delimiter"] = delimiter
        if (how := self.text(f"{side}_PROTOBUF_NULLABLE_REPRESENTATION")) is not None:
            if not format_name.startswith("PROTOBUF"):
                raise SqlError(
                    f"Property {side}_PROTOBUF_NULLABLE_REPRESENTATION can only be enabled with protobuf format"
                )
            found["nullableRepresentation"] = how
        if format_name == "PROTOBUF":
            found["unwrapPrimitives"] = "true"
        return tuple(sorted(found.items()))

    def window(self) -> WindowInfo | None:
        """Return the windows of the keys, if WINDOW_TYPE is given."""
        given = self.text("WINDOW_TYPE")
        size = self.text("WINDOW_SIZE")
        size_ms = None if size is None else duration_ms(size, "WINDOW_SIZE")
        kind = (given or "").upper()
        if size is not None and kind in ("", "SESSION"):
            raise ParseError("'WINDOW_SIZE' should not be set for SESSION windows.")
        if given is None:
            return None
        if kind not in ("SESSION", "TUMBLING", "HOPPING"):
            raise ParseError(
                f"Configuration WINDOW_TYPE is invalid: Unknown window type: '{given}'\nAvailable window types: "
                "['SESSION', 'TUMBLING', 'HOPPING']"
            )
        if kind == "SESSION":
            return WindowInfo("SESSION")
        if size_ms is None:
            raise ParseError(
                f"{kind} windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
                "For example: 'WINDOW_SIZE'='10 SECONDS'"
            )
        if size_ms == 0:
            raise SqlError("Size must be positive")
        return WindowInfo("TUMBLING" if kind == "TUMBLING" else "HOPPING", size_ms)

    def history_ms(self, kind: str, window: WindowInfo | None) -> int | None:
        """Return for how long the table knows its earlier values, if HISTORY is given."""
        given = self.text(HISTORY)
        if given is None:
            return None
        if kind != "TABLE":
            raise SqlError("HISTORY is a property of tables: a stream has all its rows anyway.")
        if window is not None:
            raise SqlError("A table with windows cannot have a HISTORY. Its windows are kept for their RETENTION.")
        kept_ms = duration_ms(given, HISTORY)
        if not 0 < kept_ms <= LONGEST_HISTORY_MS:
            raise SqlError("HISTORY must be between 1 MILLISECOND and 36500 DAYS. For example: HISTORY='1 HOUR'")
        return kept_ms


def duration_ms(text: str, name: str) -> int:
    """Read the length of time of a property, such as '30 seconds'."""
    parts = text.split()
    where = f"Configuration {name} is invalid: Invalid duration: '{text}'."
    example = "\nExample valid value: '10 SECONDS'"
    if len(parts) != 2:
        raise ParseError(f"{where} Expected 2 tokens, got: {len(parts)}{example}")
    if not re.fullmatch(r"\d+", parts[0]):
        raise ParseError(f"{where} Not numeric: '{parts[0]}'{example}")
    unit = parts[1].upper()
    size = UNITS_MS.get(unit.removesuffix("S"))
    if size is None:
        units = "NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS"
        raise ParseError(f"{where} Unknown time unit: '{unit}'\nSupported time units are: {units}{example}")
    return int(parts[0]) * size


def duration_text(length_ms: int) -> str:
    """Print a length of time in its largest whole unit."""
    unit, size = next((unit, size) for unit, size in UNITS_MS.items() if length_ms % size == 0)
    count = length_ms // size
    return f"{count} {unit}{'' if count == 1 else 'S'}"


def read_with(properties: Properties, strict: bool) -> With:
    """Check the properties that any WITH clause may have; `strict` allows only those of ksqlDB."""
    values = dict(properties)
    allowed = SOURCE_PROPERTIES if strict else SOURCE_PROPERTIES | {HISTORY}
    strange = sorted(name for name in values if name not in allowed)
    if strange:
        raise SqlError(
            f"Failed to prepare statement: Invalid config variable(s) in the WITH clause: {','.join(strange)}"
        )
    found = With(values)
    for side in ("KEY", "VALUE"):
        if (delimiter := found.text(f"{side}_DELIMITER")) is not None:
            _check_delimiter(delimiter, side)
    for name in ("PARTITIONS", "REPLICAS", "RETENTION_MS", "KEY_SCHEMA_ID", "VALUE_SCHEMA_ID"):
        found.number(name)
    found.flag("WRAP_SINGLE_VALUE")
    if found.text("KAFKA_TOPIC") == "":
        raise SqlError("Invalid value  for configuration KAFKA_TOPIC: String must be non-empty")
    names = ("VALUE_AVRO_SCHEMA_FULL_NAME", "VALUE_SCHEMA_FULL_NAME")
    if all(found.text(name) is not None for name in names):
        raise SqlError(f"Cannot supply both '{names[0]}' and '{names[1]}' properties. Please only set '{names[1]}'.")
    pattern = found.text("TIMESTAMP_FORMAT")
    try:
        Formatter.of(pattern or "")
    except ValueError as error:
        raise SqlError(f"Invalid datetime format for config:TIMESTAMP_FORMAT, reason:{error}") from None
    found.format_name("KEY")
    found.format_name("VALUE")
    return found


def _check_delimiter(text: str, side: str) -> None:
    where = f"Failed to prepare statement: Configuration {side}_DELIMITER is invalid:"
    if not text.strip():
        raise SqlError(
            f"{where} Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please use the "
            "special values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    if len(text) != 1 and text not in ("TAB", "SPACE"):
        raise SqlError(
            f"{where} Invalid delimiter value: '{text}'. Delimiter must be a single character or TAB,SPACE\n"
            "Example valid value: ';'"
        )


def default_format(side: str, settings: Settings) -> str | None:
    """Return the format for a statement that names none."""
    default = "KAFKA" if side == "KEY" else None
    return settings.text(f"ksql.persistence.default.format.{side.lower()}", default)
