"""Debezium's transforms of change events: ExtractNewRecordState and ByLogicalTableRouter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, all_of, one_of_any_case
from moldau.connect.data import Header, Record, Schema, Struct, Type
from moldau.connect.errors import ArgumentError, ConfigError, DataError, invalid
from moldau.connect.names import adjuster, adjustment
from moldau.connect.transforms.fields import EXTRACT_FIELD, INSERT_FIELD, REPLACE_FIELD
from moldau.connect.transforms.kinds import (
    KEY,
    SCHEMAS_CACHED,
    VALUE,
    Settings,
    Side,
    Transform,
    TransformClass,
    basics,
    require_struct,
)
from moldau.connect.transforms.routing import check_regex
from moldau.java.regex import RegexError, compile_regex, replace_first

PACKAGE = "io.debezium.transforms"
ENVELOPE = ".Envelope"
DELETED = "__deleted"
DROP, TOMBSTONE, REWRITE = "drop", "tombstone", "rewrite"
REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE = "rewrite-with-tombstone", "delete-to-tombstone"
MODES = (DROP, TOMBSTONE, REWRITE, REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE)
# Which part of an envelope has a field that is named without it; all others are in `source`.
PARTS: Mapping[str, str | None] = {
    "id": "transaction",
    "data_collection_order": "transaction",
    "total_order": "transaction",
    "op": None,
    "ts_ms": None,
    "ts_us": None,
    "ts_ns": None,
    "updateDescription": "updateDescription",
}


def is_envelope(record: Record) -> bool:
    """Return whether the value is a change event; heartbeats and schema changes are not."""
    schema = record.value_schema
    return schema is not None and schema.name is not None and schema.name.endswith(ENVELOPE)


def extractor(field: str) -> Transform:
    return EXTRACT_FIELD.make(EXTRACT_FIELD.settings.parse({"field": field}), VALUE)


def only(made: Any) -> Record:
    """Take the result of a transform that makes one record of each."""
    assert isinstance(made, Record)
    return made


def text_of(struct: Any, name: str) -> str | None:
    """Read a field that must be a string."""
    return typed_field(struct, name, Type.STRING)


def typed_field(struct: Any, name: str, kind: Type) -> Any:
    found = require_struct(struct, f"reading {name}")
    value = found.get(name)
    if found.schema.by_name[name].schema.type is not kind:
        raise DataError(f"Field '{name}' is not of type {kind.name}")
    return value


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of the envelope that goes into a field or a header of the result."""

    part: str | None
    field: str
    name: str

    @classmethod
    def of(cls, prefix: str, text: str) -> Reference:
        old, *new = text.split(":")
        part, dot, field = old.partition(".")
        if len(new) > 1:
            raise ArgumentError(f"Unexpected field name: {text}")
        if dot:
            return cls(part, field.partition(".")[0], prefix + (new[0] if new else f"{part}_{field.partition('.')[0]}"))
        return cls(PARTS.get(part, "source"), part, prefix + (new[0] if new else part))

    def schema(self, envelope: Schema) -> Schema | None:
        """Return the schema of the copy, which is optional; None if there is no such field."""
        place = envelope.field(self.part) if self.part else None
        if self.part and place is None:
            raise DataError(f"The change event has no field {self.part}, in which {self.field} would be.")
        found = (place.schema if place else envelope).field(self.field) or envelope.field(self.field)
        if found is None:
            return None
        inner = found.schema
        return Schema(inner.type, optional=True, value_schema=inner.value_schema, fields=inner.fields, **basics(inner))

    def value(self, envelope: Struct) -> Any:
        inside = envelope.get_without_default(self.part) if self.part else envelope
        if inside is None:
            return None
        return (inside if inside.schema.field(self.field) else envelope).get_without_default(self.field)


class NewState:
    """ExtractNewRecordState with its settings: a function of records."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._mode = settings["delete.tombstone.handling.mode"].lower()
        self._fields = [Reference.of(settings["add.fields.prefix"], each) for each in settings["add.fields"] if each]
        self._headers = [Reference.of(settings["add.headers.prefix"], each) for each in settings["add.headers"] if each]
        self._before, self._after = extractor("before"), extractor("after")
        nulls = "true" if settings["replace.null.with.default"] else "false"
        self._mark = {
            mark: _inserter({"static.field": DELETED, "static.value": mark, "replace.null.with.default": nulls})
            for mark in ("true", "false")
        }
        self._widened = lru_cache(maxsize=SCHEMAS_CACHED)(self._widen)

    def __call__(self, record: Record) -> Record | None:
        if record.value is None:
            return self._with_headers(record) if self._mode == REWRITE_WITH_TOMBSTONE else None
        if not is_envelope(record):
            return record
        record = self._with_headers(record)
        made = only(self._after(record))
        if made.value is None:
            return None if only(self._before(record)).value is None else self._deleted(record)
        if self._mode in (REWRITE, REWRITE_WITH_TOMBSTONE):
            made = self._marked(made, "false")
        return self._without_dropped(self._with_fields(self._routed(made, made.value), record.value))

    def _deleted(self, record: Record) -> Record | None:
        match self._mode:
            case "drop":
                return None
            case "tombstone":
                made = only(self._after(record))
            case "delete-to-tombstone":
                made = record.but(value_schema=None, value=None)
            case _:
                made = self._marked(only(self._before(record)), "true")
        made = self._without_dropped(self._routed(made, record.value.get("before")))
        return made if made.value is None else self._with_fields(made, record.value)

    def _marked(self, record: Record, mark: str) -> Record:
        return only(self._mark[mark](record)) if isinstance(record.value, Struct) else record

    def _widen(self, schema: Schema, envelope: Schema) -> Schema:
        more = [(each.name, found) for each in self._fields if (found := each.schema(envelope)) is not None]
        return data.struct([(each.name, each.schema) for each in schema.fields] + more, **basics(schema))

    def _with_fields(self, record: Record, envelope: Struct) -> Record:
        old = require_struct(record.value, "source field insertion")
        made = self._widened(old.schema, envelope.schema)
        more = tuple(each.value(envelope) for each in self._fields if each.schema(envelope.schema) is not None)
        return record.but(value_schema=made, value=Struct(made, old.values + more))

    def _with_headers(self, record: Record) -> Record:
        if record.value is None:
            made = [Header(each.name, data.STRING, "d") for each in self._headers if each.field == "op"]
        else:
            made = [
                Header(each.name, found, each.value(record.value))
                for each in self._headers
                if (found := each.schema(record.value.schema)) is not None
            ]
        return record.but(headers=(*record.headers, *made)) if made else record

    def _routed(self, record: Record, row: Any) -> Record:
        field = self._settings["route.by.field"]
        topic = text_of(row, field) if field else None
        return record.but(topic=topic) if topic and not topic.isspace() else record

    def _without_dropped(self, record: Record) -> Record:
        settings = self._settings
        wanted = settings["drop.fields.header.name"]
        header = next((each for each in record.headers if wanted and each.name == wanted), None)
        if header is None or not header.value:
            return record
        for side in (KEY, VALUE) if settings["drop.fields.from.key"] and record.key is not None else (VALUE,):
            record = _without(record, side, header.value, settings["drop.fields.keep.schema.compatible"])
        return record


def _inserter(config: Mapping[str, str]) -> Transform:
    return INSERT_FIELD.make(INSERT_FIELD.settings.parse(config), VALUE)


def _without(record: Record, side: Side, names: Any, only_optional: bool) -> Record:
    """Drop fields of the key or the value; those that are required stay where the schema must remain compatible."""
    schema = side.schema(record)
    if only_optional:
        places = data.fields_of(schema) if schema is not None else ()
        names = [each.name for each in places if each.schema.optional and each.name in names]
    if not names:
        return record
    return only(REPLACE_FIELD.make(REPLACE_FIELD.settings.parse({"exclude": ",".join(names)}), side)(record))


def make_logical_router(settings: Settings, _side: Side) -> Transform:
    regex, replacement = compile_regex(settings["topic.regex"]), settings["topic.replacement"]
    key_text = (settings["key.field.regex"] or "").strip()
    key_regex = compile_regex(key_text) if key_text else None
    key_replacement, name = settings["key.field.replacement"], settings["key.field.name"]
    if key_regex is not None and not (key_replacement or "").strip():
        raise ConfigError("key.field.replacement must be non-empty if key.field.regex is set.")
    unique = settings["key.enforce.uniqueness"]
    adjust = adjuster(settings["schema.name.adjustment.mode"], dots=True)
    cached = lru_cache(maxsize=max(1, settings["logical.table.cache.size"]))

    @cached
    def topics(topic: str) -> tuple[str | None, str]:
        table = _replaced(key_regex, topic, key_replacement) if key_regex is not None else None
        return _replaced(regex, topic, replacement), topic if table is None else table

    @cached
    def key_schema(schema: Schema, topic: str) -> Schema:
        more = [(name, data.STRING)] if unique else []
        return _renamed(schema, adjust(topic + ".Key"), [(each.name, each.schema) for each in schema.fields] + more)

    @cached
    def envelope_schema(schema: Schema, topic: str) -> Schema:
        row = schema.field("before") or schema.field("after")
        fields = {each.name: each.schema for each in schema.fields}
        if row is not None:
            inner = [(each.name, each.schema) for each in data.fields_of(row.schema)]
            made = _renamed(row.schema, adjust(topic + ".Value"), inner)
            fields |= {part: made for part in ("before", "after") if part in fields}
        return _renamed(schema, adjust(topic + ENVELOPE), list(fields.items()))

    def apply(record: Record) -> Record:
        topic, table = topics(record.topic)
        if not topic:
            return record
        schema: Schema | None = None
        key: Struct | None = None
        if record.key is not None:
            old = require_struct(record.key, "Updating schema")
            schema = key_schema(old.schema, topic)
            key = Struct(schema, (*old.values, table) if unique else old.values)
        record = record.but(topic=topic, key_schema=schema, key=key)
        if record.value is None or not is_envelope(record):
            return record
        whole = require_struct(record.value, "Updating schema")
        made = envelope_schema(whole.schema, topic)
        return record.but(value_schema=made, value=_with_schema(made, whole))

    return apply


def _replaced(pattern: Any, topic: str, by: str) -> str | None:
    try:
        return replace_first(pattern, topic, by) if pattern.fullmatch(topic) else None
    except RegexError as error:
        raise ArgumentError(str(error)) from None


def _with_schema(schema: Schema, old: Struct) -> Struct:
    """Return an event whose rows have the schema that another one has for them."""
    values = {place.name: old.get(place.name) for place, _ in old}
    for part in ("before", "after"):
        if values.get(part) is not None:
            row = require_struct(values[part], "Updating schema")
            values[part] = Struct.of(schema.by_name[part].schema, {each.name: value for each, value in row})
    return Struct.of(schema, values)


def _renamed(schema: Schema, name: str, fields: list[tuple[str, Schema]]) -> Schema:
    return data.struct(fields, optional=schema.optional, **{**basics(schema), "name": name})


def regex_or_none(name: str, value: Any) -> None:
    if value is not None:
        check_regex(name, value)


def required(name: str, value: Any) -> None:
    if not value or not value.strip():
        raise invalid(name, "null" if value is None else value, "A value is required")


LOW = Importance.LOW
_FIELD_LIST = (
    "Fields of the change event, such as op, table or source.ts_ms. The copy is called by the prefix and the name, or "
    "by the prefix and what follows a colon: op:operation. Fields that do not exist are left out."
)
EXTRACT_NEW_RECORD_STATE = TransformClass(
    "ExtractNewRecordState",
    "Replaces a change event of Debezium by the row that it left; settings say what becomes of deletes.",
    ConfigDef(
        [
            Key(
                "delete.tombstone.handling.mode",
                default=TOMBSTONE,
                validator=one_of_any_case(*MODES),
                doc="What becomes of a delete and of the tombstone after it. drop: neither stays. tombstone: the "
                "delete has a null value, its tombstone is dropped. rewrite: the delete is the old row with "
                "__deleted=true, all other rows get __deleted=false, the tombstone is dropped. "
                "rewrite-with-tombstone: the tombstone stays too. delete-to-tombstone: the delete becomes a "
                "tombstone without a schema, its own is dropped.",
            ),
            Key("route.by.field", default="", importance=LOW, doc="The column whose value is the new topic."),
            Key("add.fields.prefix", default="__", importance=LOW, doc="The prefix of added fields."),
            Key("add.fields", Kind.LIST, "", LOW, f"Adds fields to the value. {_FIELD_LIST}"),
            Key("add.headers.prefix", default="__", importance=LOW, doc="The prefix of added headers."),
            Key("add.headers", Kind.LIST, "", LOW, f"Adds headers. {_FIELD_LIST}"),
            Key(
                "drop.fields.header.name",
                default=None,
                importance=LOW,
                doc="The header with the names of fields that are dropped.",
            ),
            Key("drop.fields.from.key", Kind.BOOLEAN, False, LOW, "Whether they are dropped from the key too."),
            Key(
                "drop.fields.keep.schema.compatible",
                Kind.BOOLEAN,
                True,
                LOW,
                "Whether only optional fields are dropped.",
            ),
            Key(
                "replace.null.with.default",
                Kind.BOOLEAN,
                True,
                LOW,
                "Whether a null is replaced by the column's default where a row is rewritten.",
            ),
        ]
    ),
    lambda settings, _side: NewState(settings),
    sides=False,
    package=PACKAGE,
)


_ROUTER_KEYS = [
    Key(
        "topic.regex",
        importance=LOW,
        validator=all_of(required, check_regex),
        doc="The regular expression of topics that are renamed.",
    ),
    Key("topic.replacement", importance=LOW, validator=required, doc="The new name, with $1 for the first group."),
    Key(
        "key.enforce.uniqueness",
        Kind.BOOLEAN,
        True,
        LOW,
        "Whether the key gets a field that tells tables apart, whose rows may have the same key.",
    ),
    Key(
        "key.field.regex",
        default=None,
        importance=LOW,
        validator=regex_or_none,
        doc="The regular expression that finds the table in the topic. Without it the field is the whole topic.",
    ),
    Key("key.field.name", default="__dbz__physicalTableIdentifier", importance=LOW, doc="The name of that field."),
    Key("key.field.replacement", default=None, importance=LOW, doc="The value of that field, with $1 and so on."),
    adjustment("schema.name.adjustment.mode", "names of schemas"),
    Key("logical.table.cache.size", Kind.INT, 16, LOW, "How many schemas and topics are remembered."),
]
BY_LOGICAL_TABLE_ROUTER = TransformClass(
    "ByLogicalTableRouter",
    "Sends change events of several tables to one topic, and tells their keys apart.",
    ConfigDef(_ROUTER_KEYS),
    make_logical_router,
    sides=False,
    package=PACKAGE,
)
