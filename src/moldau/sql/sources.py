"""CREATE STREAM and CREATE TABLE: a statement with columns becomes a source of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from moldau.sql.catalogue import HEADERS_TYPE, SYSTEM_NAMES, Catalogue, Columns, Format, Schema, Settings, Source
from moldau.sql.errors import SqlError
from moldau.sql.format_rules import check, check_keys, check_properties, key_features, rule, value_features
from moldau.sql.printer import quoted, type_text
from moldau.sql.properties import With, default_format, read_with
from moldau.sql.tree import BIGINT, BYTES, STRING, TIMESTAMP, ColumnDef, CreateSource

# (topic, key, format, alone) -> the columns that the registry knows; `alone`: the whole schema is one column
Inference = Callable[[str, bool, Format, bool], Columns | None]


def create_source(statement: CreateSource, catalogue: Catalogue, settings: Settings, infer: Inference) -> Source:
    """Analyse the statement; nothing is registered."""
    given = read_with(statement.properties, catalogue.strict)
    topic = given.text("KAFKA_TOPIC")
    if topic is None:
        raise SqlError('Missing required property "KAFKA_TOPIC" which has no default value.')
    columns = tuple(replace(c, type=catalogue.resolve(c.type)) for c in statement.columns)
    window = given.window()
    key_format, value_format = _formats(given, settings)
    key, value = _inferred(given, columns, topic, key_format, value_format, infer)
    if statement.kind == "TABLE" and not key:
        raise SqlError(_no_primary_key(statement))
    headers = tuple((c.name, c.header) for c in columns if c.role in ("HEADERS", "HEADER"))
    _check_columns(columns)
    header_columns = tuple((c.name, c.type) for c in columns if c.role in ("HEADERS", "HEADER"))
    if not value and not header_columns and not key:
        raise SqlError("The statement does not define any columns.")
    check_keys(key)
    default_wrap = settings.flag("ksql.persistence.wrap.single.values", True)
    key_format = replace(key_format, features=key_features(key_format.name, key))
    wrap = given.flag("WRAP_SINGLE_VALUE")
    value_format = replace(value_format, features=value_features(value_format.name, value, wrap, default_wrap))
    for format_, side_columns, is_key in ((key_format, key, True), (value_format, value, False)):
        check_properties(format_)
        check(format_, side_columns, is_key)
    timestamp = _timestamp(given, Schema(key, value + header_columns))
    return Source(
        statement.name,
        statement.kind,
        Schema(key, value + header_columns),
        topic,
        key_format,
        value_format,
        headers,
        timestamp,
        given.text("TIMESTAMP_FORMAT"),
        window,
        statement.source,
        False,
        statement.text,
        given.history_ms(statement.kind, window),
    )


def _no_primary_key(statement: CreateSource) -> str:
    return (
        f"Tables require a PRIMARY KEY. Please define the PRIMARY KEY.\nUse CREATE TABLE {statement.name} (key_column "
        "type PRIMARY KEY, ...) to declare one."
    )


def _formats(given: With, settings: Settings) -> tuple[Format, Format]:
    names: dict[str, str] = {}
    for side in ("KEY", "VALUE"):
        name = given.format_name(side) or default_format(side, settings)
        if name is None:
            raise SqlError(
                f"Statement is missing the '{side}_FORMAT' property from the WITH clause. Either provide one or set a "
                f"default via the 'ksql.persistence.default.format.{side.lower()}' config."
            )
        names[side] = name.upper()
    key, value = (Format(names[side], given.format_properties(side, names[side])) for side in ("KEY", "VALUE"))
    return key, value


def _inferred(
    given: With, columns: tuple[ColumnDef, ...], topic: str, key_format: Format, value_format: Format, infer: Inference
) -> tuple[Columns, Columns]:
    """Return the columns of key and value: the declared ones, or those of the registry where none are declared."""
    key = tuple((c.name, c.type) for c in columns if c.role in ("KEY", "PRIMARY KEY"))
    value = tuple((c.name, c.type) for c in columns if c.role == "VALUE")
    for side, declared, format_ in (("KEY", key, key_format), ("VALUE", value, value_format)):
        known = rule(format_.name)
        if given.number(f"{side}_SCHEMA_ID") is None:
            continue
        if declared:
            raise SqlError(f"Table elements and {side}_SCHEMA_ID cannot both exist for create statement.")
        if not known.infers:
            raise SqlError(
                f"{side}_FORMAT should support schema inference when {side}_SCHEMA_ID is provided. "
                f"Current format is {format_.name}."
            )
    if not key and rule(key_format.name).infers and not any(c.role == "KEY" for c in columns):
        key = infer(topic, True, key_format, rule(key_format.name).unwraps) or ()
    if not value:
        if rule(value_format.name).infers:
            value = infer(topic, False, value_format, given.flag("WRAP_SINGLE_VALUE") is False) or ()
        elif not columns:
            raise SqlError("No columns supplied.")
    return key, value


def _check_columns(columns: tuple[ColumnDef, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for c in columns:
        if c.name in SYSTEM_NAMES:
            raise SqlError(f"'{c.name}' is a reserved column name. You cannot use it as a name for a column.")
        if ("", c.name) in seen:
            raise SqlError(f"Duplicate column names: {quoted(c.name)}")
        seen.add(("", c.name))
        if c.role == "HEADERS" and c.type != HEADERS_TYPE:
            wanted = type_text(HEADERS_TYPE, quoted)
            raise SqlError(f"Invalid type for HEADERS column: expected {wanted}, got {type_text(c.type, quoted)}")
        if c.role == "HEADER" and c.type != BYTES:
            raise SqlError(
                f"Invalid type for HEADER('{c.header}') column: expected BYTES, got {type_text(c.type, quoted)}"
            )
    if any(c.role == "HEADERS" for c in columns) and sum(c.role in ("HEADERS", "HEADER") for c in columns) > 1:
        raise SqlError("Schema already contains a HEADERS column.")
    named = [c.header for c in columns if c.role == "HEADER"]
    for key in named:
        if named.count(key) > 1:
            raise SqlError(f"Schema already contains a HEADER('{key}') column.")


def _timestamp(given: With, schema: Schema) -> str | None:
    name = given.text("TIMESTAMP")
    if name is None:
        return None
    return timestamp_column(name, given.text("TIMESTAMP_FORMAT"), schema)


def column_name(text: str) -> str:
    """Read the name of a column in a property: upper case unless it is quoted."""
    return text[1:-1] if text[:1] == "`" else text.upper()


def timestamp_column(text: str, format_text: str | None, schema: Schema) -> str:
    """Find the column that holds the time of a record."""
    name = column_name(text)
    kind = schema.find(name)
    if kind is None:
        raise SqlError(f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{name}'")
    if kind == STRING and format_text is None:
        raise SqlError("A String timestamp field has been specified without also specifying the timestamp_format")
    if kind not in (STRING, BIGINT, TIMESTAMP):
        raise SqlError(
            f"Timestamp column, {quoted(name)}, should be LONG(INT64), TIMESTAMP, or a String with a timestamp_format "
            "specified."
        )
    if kind != STRING and format_text is not None:
        raise SqlError(
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column is of type STRING."
        )
    return name
