"""The tables of a connector: which are captured, and the form of their events."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.connect.connectors.cdc.envelope import At, Column, TableEvents, source_schema
from moldau.connect.connectors.cdc.mysql.schema_changes import Affected, SchemaChanges, change_of
from moldau.connect.connectors.cdc.mysql.server import SYSTEM, Server
from moldau.connect.connectors.cdc.mysql.types import (
    BINARIES,
    GEOMETRIES,
    TEXTS,
    WHOLE,
    ColumnInfo,
    default_of,
    reader,
    value_of,
)
from moldau.connect.connectors.cdc.settings import Filters
from moldau.connect.data import INT32, INT64, OPTIONAL, STRING, Record, Schema, Struct, Type
from moldau.connect.errors import ConnectError, DataError

FIXED = ("uuid", "inet4", "inet6")  # bytes in the binlog
# The types that a column of the binlog may have; the first is taken where the catalogue does not know better.
KINDS: Mapping[int, tuple[str, ...]] = {
    1: ("tinyint",),
    2: ("smallint",),
    3: ("int",),
    4: ("float",),
    5: ("double",),
    7: ("timestamp",),
    8: ("bigint",),
    9: ("mediumint",),
    10: ("date",),
    11: ("time",),
    12: ("datetime",),
    13: ("year",),
    15: ("varchar", "varbinary"),
    16: ("bit",),
    17: ("timestamp",),
    18: ("datetime",),
    19: ("time",),
    245: ("json",),
    246: ("decimal",),
    247: ("enum",),
    248: ("set",),
    252: ("longtext", *TEXTS, "longblob", *BINARIES),
    253: ("varchar", "varbinary"),
    254: ("char", "binary", *FIXED),
    255: ("geometry", "point", *GEOMETRIES),
}
# Character sets of the server, by Python's names; its Unicode has the most significant byte first.
CODECS = {"ucs2": "utf_16_be", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be"}
CODECS |= {"eucjpms": "euc_jp", "hp8": "hp_roman8", "macce": "mac_latin2"}
UNICODE = ("utf8", "utf8mb3", "utf8mb4", "ascii", None)  # in which the reader has members of ENUM and SET
KNOWN = frozenset(kind for kinds in KINDS.values() for kind in kinds)
MORE = {
    "table": OPTIONAL[Type.STRING],
    "server_id": INT64,
    "gtid": OPTIONAL[Type.STRING],
    "file": STRING,
    "pos": INT64,
    "row": INT32,
    "thread": OPTIONAL[Type.INT64],
    "query": OPTIONAL[Type.STRING],
}


def source_of(connector: str) -> Schema:
    return source_schema(f"io.debezium.connector.{connector}.Source", MORE)


@dataclass(frozen=True, slots=True)
class Captured:
    """A table in the form that it has at the moment; `names` are its columns, in order, `primary` its primary key."""

    schema: str
    name: str
    events: TableEvents
    names: tuple[str, ...]
    primary: tuple[ColumnInfo, ...]

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    def row(self, values: Mapping[str, Any]) -> Struct:
        found: list[Any] = []
        column = ""
        try:
            for one, column in zip(self.events.columns, self.names, strict=True):
                found.append(one.convert(values.get(column)))
        except (ValueError, TypeError, ArithmeticError, AttributeError, DataError) as error:
            raise ConnectError(f"A value of {self.full_name}.{column} cannot be read: {error}") from error
        return self.events.row(found)


class Tables:
    """Makes the form of events of a table, from the catalogue or from what the binlog says of it."""

    def __init__(self, config: Mapping[str, Any], server: Server, connector: str) -> None:
        self._config, self._server, self.source = config, server, source_of(connector)
        self._filters = Filters(config, "database")
        self._comments: bool = server.is_mariadb or config["include.schema.comments"]
        self._schema_changes = SchemaChanges(connector, config["topic.prefix"], self.source, self._filters.adjust)

    def takes(self, schema: str, name: str) -> bool:
        return schema not in SYSTEM and self._filters.takes(schema, name)

    def takes_database(self, name: str) -> bool:
        return name not in SYSTEM and self._filters.takes_level(name)

    def schema_change(self, at: At, database: str, statement: str, changes: Sequence[Affected]) -> Record:
        described = [change_of(self._server, one, self._comments) for one in changes if one.table]
        return self._schema_changes.record(at, database, statement, described)

    def of_catalogue(self, schema: str, name: str) -> Captured:
        columns, key = self._server.columns(schema, name)
        return self._captured(schema, name, columns, key)

    def of_binlog(self, schema: str, name: str, columns: Sequence[Any], nullable: bytes) -> Captured:
        """Return a table as the binlog has it; what the catalogue adds may be newer than the change."""
        known_columns, known_key = self._server.columns(schema, name)
        now = {one.name: one for one in known_columns}
        made: list[ColumnInfo] = []
        for place, one in enumerate(columns):
            found = _of_binlog(one, not nullable[place // 8] >> place % 8 & 1)
            known = now.get(one.name)
            if known and (_agree(known.kind, found.kind, one.type) or known.kind not in KNOWN):
                scale = known.scale if known.kind == "float" else found.scale
                found = replace(found, kind=known.kind, default=known.default, scale=scale, comment=known.comment)
            if any(isinstance(each, int) for each in found.allowed):
                if not known or known.kind != found.kind or len(known.allowed) != len(found.allowed):
                    raise ConnectError(
                        f"The binlog does not say what the members of {schema}.{name}.{one.name} were, as they are in "
                        f"the character set {one.character_set_name}, and the column has changed since."
                    )
                found = replace(found, allowed=known.allowed)
            made.append(found)
        # Of a unique key, and of the order of columns in a primary one, only the catalogue knows.
        primary = [one.name for one in columns if one.is_primary]
        knows = set(primary or (one.name for one in columns)).issuperset(known_key)
        is_same = knows and (not primary or len(primary) == len(known_key))
        return self._captured(schema, name, made, known_key if is_same else primary)

    def _captured(self, schema: str, name: str, columns: Sequence[ColumnInfo], primary: Sequence[str]) -> Captured:
        filters, full = self._filters, f"{schema}.{name}"
        chosen = filters.key_of(full)
        key = list(primary) if chosen is None else chosen
        made: list[Column] = []
        names: list[str] = []
        for one in columns:
            if one.name not in key and not filters.takes_column(f"{full}.{one.name}"):
                continue
            value = value_of(one, self._config, f"{full}.{one.name}")
            doc = (self._comments and one.comment) or value.schema.doc
            described = value.schema.but(optional=not one.is_required, default=default_of(one, value), doc=doc)
            made.append(Column(filters.adjust_field(one.name), described, reader(one, value, described)))
            names.append(one.name)
        if unknown := [one for one in key if one not in names]:
            raise ConnectError(f"The key of {full} has a column {unknown[0]} that the table does not have.")
        fields = [filters.adjust_field(one) for one in key]
        events = TableEvents(filters.topic(schema, name), made, fields, self.source, filters.adjust)
        by_name = {one.name: one for one in columns}
        return Captured(schema, name, events, tuple(names), tuple(by_name[one] for one in primary))


def use_codecs(columns: Sequence[Any]) -> None:
    """Name the codecs of columns for the reader of rows; where it lost members of an enumeration, number them."""
    for one in columns:
        one.character_set_name = CODECS.get(one.character_set_name, one.character_set_name)
        labels = (one.enum_values or [""])[1:] or one.set_values or []
        if one.character_set_name in UNICODE or all(each and each.isascii() and "\0" not in each for each in labels):
            continue
        one.enum_values = one.enum_values and list(range(len(labels) + 1))
        one.set_values = one.set_values and list(range(1, len(labels) + 1))


def _agree(known: str, found: str, number: int) -> bool:
    """Tell whether the type that a column has now may be that of the binlog, which tells texts from bytes."""
    return known in KINDS.get(number, ()) and ((known in TEXTS) == (found in TEXTS))


def _of_binlog(one: Any, is_required: bool) -> ColumnInfo:
    kinds = KINDS.get(one.type)
    if kinds is None:
        raise ConnectError(f"The binlog has a column {one.name} of a type {one.type} that is not known.")
    is_binary = one.collation_name in (None, "binary")
    kind = next((each for each in kinds if each in BINARIES), kinds[0]) if is_binary else kinds[0]
    allowed = tuple(each for each in (one.enum_values or one.set_values or ()) if each)
    if kind in TEXTS and not _is_codec(one.character_set_name):
        name, codec = one.name, one.character_set_name
        raise ConnectError(f"The column {name} has the character set {codec}, which cannot be read from the binlog.")
    size = getattr(one, "precision", 0) or getattr(one, "bits", 0) or getattr(one, "fsp", 0)
    size = one.max_length if kind == "binary" else size
    unsigned = bool(one.unsigned) and kind in (*WHOLE, "float", "double", "decimal")
    return ColumnInfo(one.name, kind, is_required, unsigned, size, getattr(one, "decimals", 0), allowed, None, True)


def _is_codec(name: str) -> bool:
    try:
        return bool(codecs.lookup(name))
    except LookupError:
        return False
