"""Debezium's EventRouter: rows that are inserted into an outbox table become messages of their own topics."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, one_of_any_case
from moldau.connect.data import Header, Record, Schema, Struct, Type
from moldau.connect.errors import ConnectError, DataError, invalid
from moldau.connect.names import adjuster, adjustment
from moldau.connect.transforms.debezium import LOW, PACKAGE, extractor, is_envelope, only, text_of, typed_field
from moldau.connect.transforms.kinds import SCHEMAS_CACHED, VALUE, Settings, TransformClass, basics, require_struct
from moldau.connect.transforms.routing import REGEX_ROUTER, check_regex

log = logging.getLogger(__name__)
HEADER, ENVELOPE, PARTITION = "header", "envelope", "partition"
PAYLOAD = "payload"
TIME = "io.debezium.time."
PER_MS = {TIME + "Timestamp": 1, TIME + "MicroTimestamp": 1_000, TIME + "NanoTimestamp": 1_000_000}


class UnexpectedUpdate(ConnectError):
    """An update of an outbox table, whose rows are only ever inserted and deleted."""

    java_name = "java.lang.IllegalStateException"


@dataclass(frozen=True, slots=True)
class Additional:
    """A column that goes into a header, the envelope or the partition of the message."""

    field: str
    place: str
    name: str

    @classmethod
    def of(cls, text: str) -> Additional:
        field, place, *name = (each.strip() for each in text.split(":"))
        return cls(field, place.lower(), name[0] if name else field)


def check_additional(name: str, value: Any) -> None:
    for each in value or ():
        parts = each.split(":")
        if len(parts) not in (2, 3):
            raise invalid(name, each, "A comma-separated list of valid String pairs or trios is expected")
        if parts[1].strip().lower() not in (HEADER, ENVELOPE, PARTITION):
            raise invalid(name, each, f"The placement must be {HEADER}, {ENVELOPE} or {PARTITION}")


class EventRouter:
    """EventRouter with its settings: a function of records."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._id, self._key, self._at, self._payload = (
            settings[f"table.field.event.{each}"] for each in ("id", "key", "timestamp", "payload")
        )
        self._route = settings["route.by.field"]
        self._additional = [Additional.of(each) for each in settings["table.fields.additional.placement"] or ()]
        self._wrapped = [each for each in self._additional if each.place == ENVELOPE]
        self._skips_missing = settings["table.field.additional.missing"].lower() == "ignore"
        self._expand = Expansion(settings) if settings["table.expand.json.payload"] else None
        self._after = extractor("after")
        topics = {"regex": settings["route.topic.regex"], "replacement": settings["route.topic.replacement"]}
        self._rename = REGEX_ROUTER.make(topics, VALUE)
        self._schemas: dict[Any, Schema] = {}

    def __call__(self, record: Record) -> Record | None:
        if record.value is None:
            return None
        if not is_envelope(record):
            return record
        event = require_struct(record.value, "Detect Debezium Operation")
        match text_of(event, "op"):
            case "d":
                return None
            case "u":
                return self._unexpected(record)
            case _:
                return self._message(record, event)

    def _unexpected(self, record: Record) -> None:
        sentence = f"Unexpected update message received {record.key}"
        match self._settings["table.op.invalid.behavior"].lower():
            case "warn":
                log.warning("%s and ignored", sentence)
            case "error":
                log.error("%s and ignored", sentence)
            case _:
                raise UnexpectedUpdate(f"{sentence}, fail.")

    def _message(self, record: Record, event: Struct) -> Record:
        row = require_struct(only(self._after(record)).value, "Read Outbox Event")
        place = row.schema.field(self._payload)
        if place is None:
            raise ConnectError(f"Unable to find payload field {self._payload} in event")
        schema, payload = place.schema, row.get(self._payload)
        timestamp = _timestamp(event, row, self._at)
        headers = [*record.headers, _header("id", row, self._id)]
        if self._expand is not None:
            schema, payload = self._expand(self._payload, schema, payload)
        wrapping = self._wrapping(schema, row) if self._wrapped else None
        there = [each for each in self._additional if not self._skips_missing or row.schema.field(each.field)]
        headers += [_header(each.name, row, each.field) for each in there if each.place == HEADER]
        partitions = [typed_field(row, each.field, Type.INT32) for each in there if each.place == PARTITION]
        if wrapping is not None:
            columns = {each.name: row.get(each.field) for each in there if each.place == ENVELOPE}
            schema, payload = wrapping, Struct.of(wrapping, {PAYLOAD: payload} | columns)
        if self._settings["route.tombstone.on.empty.payload"] and _is_blank(row.get(self._payload)):
            schema = payload = None
        topic = text_of(row, self._route)
        if topic is None:
            raise DataError(f"The row has no {self._route}, by which it is routed.")
        key = row.schema.field(self._key)
        made = record.but(
            topic=topic,
            partition=partitions[-1] if partitions else None,
            key_schema=key.schema if key else data.STRING,
            key=row.get(self._key),
            value_schema=schema,
            value=payload,
            timestamp=timestamp,
            headers=tuple(headers),
        )
        return only(self._rename(made))

    def _wrapping(self, payload: Schema, row: Struct) -> Schema:
        """Return the schema of payload and columns, named after the first topic with such a payload, as in Debezium."""
        field = self._settings["table.field.event.schema.version"]
        version = typed_field(row, field, Type.INT32) if field is not None else None
        known = payload if field is None else version
        if known not in self._schemas:
            if len(self._schemas) >= SCHEMAS_CACHED:
                self._schemas.clear()
            topic = text_of(row, self._route)
            self._schemas[known] = _wrapping(payload, row.schema, self._wrapped, self._skips_missing, topic, version)
        return self._schemas[known]


def _is_blank(payload: Any) -> bool:
    return payload is None or (isinstance(payload, str) and not payload.strip("".join(map(chr, range(33)))))


def _header(name: str, row: Struct, field: str) -> Header:
    value = row.get(field)
    return Header(name, row.schema.by_name[field].schema, value)


def _timestamp(event: Struct, row: Struct, field: str | None) -> int | None:
    if field is None:
        return typed_field(event, "ts_ms", Type.INT64)
    place = row.schema.field(field)
    if place is None:
        raise ConnectError(f"Unable to find timestamp field {field} in event")
    found = typed_field(row, field, Type.INT64)
    if found is None:
        return typed_field(event, "ts_ms", Type.INT64)
    if place.schema.name not in PER_MS:
        kind = place.schema.name or f"{place.schema.type.name} (without logical schema name)"
        raise ConnectError(f"Unsupported field type {kind} for event timestamp")
    per = PER_MS[place.schema.name]
    return found // per if found >= 0 else -(-found // per)


def _wrapping(
    payload: Schema, row: Schema, wrapped: list[Additional], skips: bool, topic: str | None, version: int | None
) -> Schema:
    fields = [(PAYLOAD, payload)]
    for each in wrapped:
        place = row.field(each.field)
        if place is not None:
            fields.append((each.name, place.schema))
        elif not skips:
            raise ConnectError(f"Unable to find field {each.field} in event")
    head, dot, last = (row.name or "").rpartition(".")
    name = f"{topic}.{last}" if row.name is not None else topic
    return data.struct(fields, name=f"{head}{dot}{name}", version=version)


# JSON in a column of text becomes a struct. A field has the type of its value; an array must have elements of one type.


class Expansion:
    """The function that makes a struct of JSON."""

    def __init__(self, settings: Settings) -> None:
        self._keeps_null = settings["table.json.payload.null.behavior"].lower() == "optional_bytes"
        self._adjust = adjuster(settings["field.name.adjustment.mode"], dots=False)

    def __call__(self, field: str, schema: Schema, payload: Any) -> tuple[Schema, Any]:
        if not isinstance(payload, str):
            if payload is not None:
                log.warning("table.expand.json.payload is on, but the payload is not a string")
            return schema, payload
        try:
            if not payload.startswith("{"):
                raise ValueError("the payload is not a JSON object")
            found, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(payload)
            made = self._struct(field, found)
            return made, self._value(made, found)
        except (ValueError, ConnectError) as error:
            log.warning("JSON expansion failed: %s", error)
            return schema, payload

    def _schema(self, key: str | None, value: Any) -> Schema | None:
        match value:
            case None:
                return data.OPTIONAL[Type.BYTES] if self._keeps_null else None
            case bool():
                return data.OPTIONAL[Type.BOOLEAN]
            case str():
                return data.OPTIONAL[Type.STRING]
            case float():
                return data.OPTIONAL[Type.FLOAT64]
            case int():
                return data.OPTIONAL[_whole(value)]
            case list():
                return data.array(self._element(key, value), optional=True) if value else None
            case _:
                return self._struct(key, value)

    def _struct(self, key: str | None, value: Mapping[str, Any]) -> Schema:
        fields: dict[str, Schema] = {}
        for name, each in value.items():
            made = self._adjust(name)
            found = self._schema(f"{key}.{made}" if key and not key.isspace() else made, each)
            if found is not None:
                fields.setdefault(made, found)
        return data.struct(fields, name=key, optional=True)

    def _element(self, key: str | None, values: Sequence[Any]) -> Schema:
        there = [each for each in values if each is not None]
        if len({_kind(each) for each in there}) > 1:
            raise ConnectError("Field is not a homogenous array.")
        if there and isinstance(there[0], dict):
            return _merged(list(dict.fromkeys(self._struct(key, each) for each in there)))
        schema = self._schema(None, there[0] if there else None)
        if schema is None:
            raise ConnectError("An array has elements of an unknown type.")
        return schema

    def _value(self, schema: Schema, value: Any) -> Any:
        if isinstance(value, list):
            assert schema.value_schema is not None
            return [self._value(schema.value_schema, each) for each in value]
        if not isinstance(value, dict):
            return value
        given = {self._adjust(name): each for name, each in value.items()}
        return Struct.of(
            schema, {place.name: self._value(place.schema, given.get(place.name)) for place in data.fields_of(schema)}
        )


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _whole(value: int) -> Type:
    kind = next((each for each in (Type.INT32, Type.INT64) if data.fits(value, data.BITS[each])), None)
    if kind is None:
        raise DataError(f"{value} does not fit into a field.")
    return kind


def _kind(value: Any) -> Any:
    return _whole(value) if type(value) is int else type(value)


def _merged(schemas: list[Schema]) -> Schema:
    """Join the fields of all objects of an array; a field that was null takes the type of one that was not."""
    if len(schemas) == 1:
        return schemas[0]
    fields: dict[str, Schema] = {}
    for each in (place for schema in schemas for place in schema.fields):
        known = fields.get(each.name)
        if known is None or (known.type is Type.BYTES and each.schema.type is not Type.BYTES):
            fields[each.name] = each.schema
    return data.struct(fields, **basics(schemas[0]))


_COLUMNS: Mapping[str, tuple[str | None, str]] = {
    "table.field.event.id": ("id", "The column with the id of the event, which goes into the header id."),
    "table.field.event.key": ("aggregateid", "The column with the key of the message."),
    "table.field.event.type": ("type", "The column with the type of the event."),
    "table.field.event.payload": ("payload", "The column with the payload."),
    "table.field.event.timestamp": (None, "The column with the timestamp of the message; otherwise the event's."),
    "table.field.event.schema.version": (None, "The column with the version of the schema."),
}
_NO_TRACING = " Moldau does not trace; the setting has no effect."
EVENT_ROUTER = TransformClass(
    "EventRouter",
    "Makes a message of each row that is inserted into an outbox table, and drops all other changes of it.",
    ConfigDef(
        [
            *(Key(name, default=default, importance=LOW, doc=doc) for name, (default, doc) in _COLUMNS.items()),
            Key(
                "table.fields.additional.placement",
                Kind.LIST,
                None,
                Importance.HIGH,
                "More columns, each as COLUMN:PLACEMENT or COLUMN:PLACEMENT:NAME; the placement is header, envelope or "
                "partition.",
                validator=check_additional,
            ),
            Key(
                "table.field.additional.missing",
                default="error",
                validator=one_of_any_case("error", "ignore"),
                doc="What happens if such a column does not exist: error or ignore.",
            ),
            Key(
                "table.op.invalid.behavior",
                default="warn",
                validator=one_of_any_case("warn", "error", "fatal"),
                doc="What happens with an update: it is logged as a warning or an error and dropped, or fatal.",
            ),
            Key(
                "table.expand.json.payload",
                Kind.BOOLEAN,
                False,
                doc="Whether a payload that is a JSON object in a string becomes a struct.",
            ),
            Key(
                "table.json.payload.null.behavior",
                default="ignore",
                validator=one_of_any_case("ignore", "optional_bytes"),
                doc="Whether fields of that object that are null are left out or are optional bytes.",
            ),
            adjustment("field.name.adjustment.mode", "names of the fields of such an object"),
            Key("route.by.field", default="aggregatetype", importance=Importance.HIGH, doc="The column that routes."),
            Key(
                "route.topic.regex",
                default="(?<routedByValue>.*)",
                importance=LOW,
                validator=check_regex,
                doc="The regular expression for the value of that column.",
            ),
            Key(
                "route.topic.replacement",
                default="outbox.event.${routedByValue}",
                importance=Importance.HIGH,
                doc="The topic, with groups of the expression.",
            ),
            Key(
                "route.tombstone.on.empty.payload",
                Kind.BOOLEAN,
                False,
                Importance.HIGH,
                "Whether an empty payload becomes a tombstone.",
            ),
            Key(
                "tracing.span.context.field",
                default="tracingspancontext",
                importance=LOW,
                doc="The column with the context of a trace." + _NO_TRACING,
            ),
            Key(
                "tracing.operation.name",
                default="debezium-read",
                importance=LOW,
                doc="The name of the operation." + _NO_TRACING,
            ),
            Key(
                "tracing.with.context.field.only",
                Kind.BOOLEAN,
                False,
                LOW,
                "Whether only rows with a context are traced." + _NO_TRACING,
            ),
        ]
    ),
    lambda settings, _side: EventRouter(settings),
    sides=False,
    package=PACKAGE + ".outbox",
)
