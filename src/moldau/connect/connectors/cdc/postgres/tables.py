"""The tables of a connector: which are captured, and the form of their events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.connect.connectors.cdc.envelope import Column, TableEvents, source_schema
from moldau.connect.connectors.cdc.postgres.protocol import Relation, Values
from moldau.connect.connectors.cdc.postgres.server import ColumnInfo, Server
from moldau.connect.connectors.cdc.postgres.types import UNCHANGED, Types, Value, default_of
from moldau.connect.connectors.cdc.settings import Filters
from moldau.connect.data import INT64, OPTIONAL, STRING, Struct, Type
from moldau.connect.errors import ConnectError, DataError

SOURCE = source_schema(
    "io.debezium.connector.postgresql.Source",
    {
        "schema": STRING,
        "table": STRING,
        "txId": INT64.but(optional=True),
        "lsn": INT64.but(optional=True),
        "xmin": INT64.but(optional=True),
        "origin": OPTIONAL[Type.STRING],
        "origin_lsn": INT64.but(optional=True),
    },
)


@dataclass(frozen=True, slots=True)
class Read:
    """How one column of a row is read: its place in the texts, and what stands for null."""

    place: int
    read: Callable[[str], Any]
    null: Any
    missing: Any


class Captured:
    """A table in the form that it has at the moment."""

    def __init__(self, schema: str, name: str, events: TableEvents, reads: Sequence[Read], key: Sequence[int]) -> None:
        self.schema, self.name, self.events = schema, name, events
        self.full_name = f"{schema}.{name}"
        self._reads = tuple((one.place, one.read, one.null, one.missing) for one in reads)
        self._key = tuple(key)

    def row(self, values: Values) -> Struct:
        found: list[Any] = []
        try:
            for place, read, null, missing in self._reads:
                text = values[place]
                found.append(null if text is None else missing if text is UNCHANGED else read(text))
        except (ValueError, ArithmeticError, IndexError, DataError) as error:
            column = self.events.columns[len(found)].name
            raise ConnectError(f"A value of {self.full_name}.{column} cannot be read: {error}") from error
        return self.events.row(found)

    def key_texts(self, values: Values) -> tuple[Any, ...]:
        return tuple([values[at] for at in self._key])


class Tables:
    """Makes the form of events of a table, from the catalogue or from what the stream says of it."""

    def __init__(self, config: Mapping[str, Any], server: Server) -> None:
        self._server = server
        self._types = Types(config, server.kind)
        self._filters = Filters(config, "schema")
        self.signals: str = config["signal.data.collection"]

    def takes(self, name: str) -> bool:
        schema, _, table = name.partition(".")
        return self._filters.takes(schema, table)

    def publishes(self, name: str) -> bool:
        return self.takes(name) or name == self.signals

    def of_catalogue(self, table: int, schema: str, name: str) -> tuple[Captured, list[str]]:
        """Return a table as it is now, and the names of its columns in the order in which to read them."""
        columns = self._server.columns(table)
        return self._captured(schema, name, columns), [one.name for one in columns]

    def of_relation(self, relation: Relation) -> Captured:
        """Return a table as the stream has it. What only the catalogue knows may be newer than the change."""
        self._server.forget_kinds()
        known = {one.name: one for one in self._server.columns(relation.id)}
        columns: list[ColumnInfo] = []
        for one in relation.columns:
            now = known.get(one.name)
            if now is None:  # dropped or renamed since: nothing but the stream knows it
                columns.append(ColumnInfo(one.name, one.type, one.modifier, False, None, 0))
            else:
                same = now.type == one.type
                columns.append(
                    ColumnInfo(
                        one.name, one.type, one.modifier, now.is_required, now.default if same else None, now.key_place
                    )
                )
        if not known:  # the table is gone, with its key
            columns = [
                ColumnInfo(c.name, c.type, c.modifier, one.in_key, None, place * one.in_key)
                for place, (c, one) in enumerate(zip(columns, relation.columns, strict=True), 1)
            ]
        return self._captured(relation.schema, relation.name, columns)

    def _captured(self, schema: str, name: str, columns: Sequence[ColumnInfo]) -> Captured:
        filters, full = self._filters, f"{schema}.{name}"
        chosen = filters.key_of(full)
        primary = [one.name for one in sorted(columns, key=lambda one: one.key_place) if one.key_place]
        key = chosen if chosen is not None else primary
        made: list[Column] = []
        reads: list[Read] = []
        for place, one in enumerate(columns):
            column = f"{full}.{one.name}"
            if one.name not in key and not filters.takes_column(column):
                continue
            value = self._types.value(one.type, one.modifier, column)
            if value is None:
                continue
            value, null = self._column(one, value)
            made.append(Column(filters.adjust_field(one.name), value.schema, value.read))
            reads.append(Read(place, value.read, null, null if value.missing is None else value.missing))
        names = [one.name for one in columns]
        if unknown := [one for one in key if filters.adjust_field(one) not in {column.name for column in made}]:
            raise ConnectError(f"The key of {full} has a column {unknown[0]} that is not captured.")
        fields = [filters.adjust_field(one) for one in key]
        events = TableEvents(filters.topic(schema, name), made, fields, SOURCE, filters.adjust)
        return Captured(schema, name, events, reads, [names.index(one) for one in key])

    def _column(self, one: ColumnInfo, value: Value) -> tuple[Value, Any]:
        """Return how a column is read, and what stands for null in it."""
        default = default_of(value, self._server.kind(one.type), one.default)
        value = value.but(optional=not one.is_required, default=default)
        return value, None if not one.is_required else value.fallback if default is None else default
