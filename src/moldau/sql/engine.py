"""The engine: statements in order, each of which changes the catalogue, starts a query, or is refused.

A statement is analysed completely before the catalogue changes, so it takes effect entirely or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from moldau.sql import extension_handlers
from moldau.sql.analysis.expansion import branches, counted
from moldau.sql.analysis.query import Request, plan_query, prepare
from moldau.sql.analysis.sinks import insert_into, requested_key_format, sink_of
from moldau.sql.catalogue import Catalogue, Columns, Format, Settings, Source, Topic
from moldau.sql.errors import ParseError, SqlError, StatementError
from moldau.sql.extensions import DIALECT, STRICT
from moldau.sql.format_rules import check
from moldau.sql.parser import parse
from moldau.sql.printer import quoted, statement_text, type_text
from moldau.sql.properties import read_with
from moldau.sql.sources import Inference, create_source
from moldau.sql.steps import Planned, QueryPlan
from moldau.sql.tree import (
    AlterSource,
    CreateAs,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    InsertInto,
    InsertValues,
    Query,
    QueryControl,
    SetProperty,
    Statement,
    UnsetProperty,
)
from moldau.sql.upgrades import check_query, check_source

T = TypeVar("T")
RESERVED_IDS = ("INSERTQUERY_", "CTAS_", "CSAS_", "CST_")  # how the ids of queries begin that are not given


def nothing_known(topic: str, key: bool, format_: Format, alone: bool) -> Columns | None:
    """Stand for a registry that knows no schemas."""
    return None


@dataclass(slots=True)
class Engine:
    """The catalogue and what executes statements on it. `infer` asks the registry for columns."""

    settings: dict[str, Any] = field(default_factory=dict)
    infer: Inference = nothing_known
    catalogue: Catalogue = field(default_factory=Catalogue)
    queries: dict[str, QueryPlan] = field(default_factory=dict)
    count: int = 0
    paused: set[str] = field(default_factory=set)
    position: int = -1  # the number of the last command that was executed
    turns: dict[str, int] = field(default_factory=dict)  # how often a query was paused or resumed
    functions: dict[str, str] = field(default_factory=dict)  # those of CREATE FUNCTION, with their files
    folder: str = ""  # of functions in Python; without one they are not loaded here
    trial: bool = False  # whether statements are only tried: functions, which all engines share, stay as they are

    def execute_text(self, text: str) -> list[QueryPlan]:
        """Execute all statements of a text, and return the queries that they start."""
        plans: list[QueryPlan] = []
        for statement in parse(text, {}):
            plan = self.execute(statement)
            if plan is not None:
                plans.append(plan)
        return plans

    def execute(self, statement: Statement) -> QueryPlan | None:
        """Execute one statement. A refusal carries the statement's text."""
        planner, handler = _PLANNERS.get(type(statement)), _HANDLERS.get(type(statement))
        if planner is None and handler is None:
            raise SqlError(f"{statement_text(statement)} is not executed here.")
        if handler is not None:
            return _refusing(statement, lambda: handler(self, statement))
        planned = self.plan(statement)
        return None if planned is None else self.carry_out(planned)

    def plan(self, statement: Statement) -> Planned | None:
        """Return what a statement does that makes a source or a query; None if it does nothing. Changes nothing."""
        self.catalogue.strict = str(self.settings.get(DIALECT, "")).lower() == STRICT
        planner = _PLANNERS.get(type(statement))
        return None if planner is None else _refusing(statement, lambda: planner(self, statement))

    def carry_out(self, planned: Planned) -> QueryPlan | None:
        """Make the source and start the queries of a statement, and return the first of them."""
        if planned.source is not None:
            self.catalogue.sources[planned.source.name] = planned.source
            if planned.topic is not None:
                self.catalogue.topics[planned.source.topic] = planned.topic
        if planned.query is None:
            return None
        if planned.replaces is not None:
            self._terminate(planned.replaces)
        number = self.count
        self.count += 1
        suffix = "" if planned.named else f"_{number}"
        first = self._start(planned.query, planned.replaces or planned.query.query_id + suffix)
        for query in planned.more:
            self._start(query, query.query_id + suffix)
        return first

    def _start(self, query: QueryPlan, query_id: str) -> QueryPlan:
        plan = self.queries[query_id] = replace(query, query_id=query_id)
        for source in plan.sources:
            self.catalogue.readers.setdefault(source, set()).add(query_id)
        self.catalogue.writers.setdefault(plan.sink.name, set()).add(query_id)
        return plan

    def forget_all(self) -> None:
        """End all queries, and forget all sources, types, views and functions of statements."""
        self.catalogue = Catalogue()
        for known in (self.queries, self.paused, self.turns):
            known.clear()
        extension_handlers.forget_functions(self)

    def _topic_of(self, source: Source, given: Mapping[str, Any]) -> Topic:
        """Return the topic of a new source: as it is known, or as the statement says."""
        made = Topic(int(given.get("PARTITIONS") or 1), int(given.get("REPLICAS") or 1))
        return self.catalogue.topics.get(source.topic) or made

    def _may_create(self, statement: CreateSource | CreateAs) -> bool:
        """Tell whether a source may be made; IF NOT EXISTS makes nothing if it is there."""
        if statement.name in self.catalogue.views:
            raise SqlError(
                f"Cannot add {statement.kind.lower()} '{statement.name}': A view with the same name already exists"
            )
        known = self.catalogue.sources.get(statement.name)
        if known is None:
            return True
        kind = statement.kind.lower()
        if statement.if_not_exists:
            return False
        if statement.or_replace:
            if known.read_only or (isinstance(statement, CreateSource) and statement.source):
                raise SqlError(
                    f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on source {kind}s."
                )
            return True
        raise SqlError(
            f"Cannot add {kind} '{statement.name}': A {known.kind.lower()} with the same name already exists"
        )

    def _create_source(self, statement: CreateSource) -> Planned | None:
        allowed = self._may_create(statement)
        if not allowed:
            return None
        if statement.or_replace and statement.source:
            kind = statement.kind.lower()
            raise SqlError(
                f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on source {kind}s."
            )
        source = create_source(statement, self.catalogue, Settings(self.settings), self.infer)
        if statement.name in self.catalogue.sources:
            check_source(self.catalogue.sources[statement.name], source)
        return Planned(source, self._topic_of(source, dict(statement.properties)))

    def _create_as(self, statement: CreateAs) -> Planned | None:
        if not self._may_create(statement):
            return None
        if statement.query.union:
            return self._create_union(statement)
        settings = Settings(self.settings)
        if statement.query.limit is not None:
            raise SqlError(f"CREATE {statement.kind} AS SELECT statements don't support LIMIT clause.")
        given = read_with(statement.properties, self.catalogue.strict)
        query, scope = prepare(counted(statement.query), self.catalogue)
        prepared = replace(statement, query=query)
        try:
            request = Request(statement.name, statement.kind, requested_key_format(given), given.text("TIMESTAMP"))
            planned = plan_query(query, scope, request, self.catalogue)
            sink = sink_of(prepared, given, planned, self.catalogue, settings)
        except SqlError as error:
            raise StatementError(str(error), statement_text(prepared)) from None
        prefix = "CSAS" if statement.kind == "STREAM" else "CTAS"
        first = self.catalogue.topics[planned.sources[0].source.topic]
        topic = {
            "PARTITIONS": given.number("PARTITIONS") or first.partitions,
            "REPLICAS": given.number("REPLICAS") or first.replicas,
        }
        made = self._query(f"{prefix}_{statement.name}", planned.step, sink, planned.sources, prepared)
        return Planned(sink, self._topic_of(sink, topic), made, self._replaced(sink, planned.step))

    def _create_union(self, statement: CreateAs) -> Planned | None:
        """Let the first query of UNION ALL make the stream, and the others insert into it."""
        if statement.kind != "STREAM":
            raise SqlError("UNION ALL makes a stream: a table would not know whose row a key has.")
        first, *others = branches(statement.query)
        planned = self._create_as(replace(statement, query=first))
        if planned is None or planned.source is None:
            return planned
        return replace(planned, more=self._inserting(planned.source, others, f"CSAS_{statement.name}"))

    def _replaced(self, sink: Source, step: Any) -> str | None:
        """Return the id of the query that CREATE OR REPLACE stops, which the new one takes over."""
        known = self.catalogue.sources.get(sink.name)
        if known is None:
            return None
        check_source(known, sink)
        writers = sorted(self.catalogue.writers.get(sink.name, ()))
        if not writers:
            return None
        if len(writers) > 1:
            raise SqlError(
                f"Cannot replace {sink.name}: the queries [{', '.join(writers)}] write to it. Terminate all but one."
            )
        check_query(self.queries[writers[0]].step, step)
        return writers[0]

    def _insert_into(self, statement: InsertInto) -> Planned:
        sink = self.catalogue.sources.get(statement.name)
        if sink is None:
            raise SqlError(f"{statement.name} does not exist.{self.catalogue.hint(statement.name)}")
        if sink.kind != "STREAM":
            raise SqlError(
                f"INSERT INTO can only be used to insert into a stream. {statement.name} is a {sink.kind.lower()}."
            )
        if sink.read_only:
            raise SqlError(f"Cannot insert into read-only stream: {statement.name}")
        if sink.headers:
            raise SqlError(f"Cannot insert into {statement.name} because it has header columns")
        given = dict(statement.properties).get("QUERY_ID")
        name = "INSERTQUERY" if given is None else self._given_id(str(given).upper())
        first, *others = branches(statement.query)
        query = self._insertion(sink, replace(statement, query=first), name)
        return Planned(query=query, more=self._inserting(sink, others, name), named=given is not None)

    def _given_id(self, name: str) -> str:
        """Check the id that a statement gives its query."""
        if name.startswith(RESERVED_IDS):
            raise SqlError(
                f"Query IDs must not start with a reserved query ID prefix ({', '.join(RESERVED_IDS)}). Got '{name}'."
            )
        if re.fullmatch("[A-Za-z0-9_]+", name) is None:
            raise SqlError(f"Query IDs may contain only alphanumeric characters and '_'. Got: '{name}'")
        if name in self.queries:
            raise SqlError(f"Query ID '{name}' already exists.")
        return name

    def _inserting(self, sink: Source, queries: Iterable[Query], name: str) -> tuple[QueryPlan, ...]:
        """Plan the further queries of UNION ALL."""
        statements = [InsertInto(sink.name, (), query) for query in queries]
        return tuple(self._insertion(sink, one, f"{name}_UNION{at}") for at, one in enumerate(statements, 1))

    def _insertion(self, sink: Source, statement: InsertInto, name: str) -> QueryPlan:
        query, scope = prepare(statement.query, self.catalogue)
        prepared = replace(statement, query=query)
        try:
            request = Request(statement.name, "STREAM", sink.key_format)
            planned = insert_into(sink, plan_query(query, scope, request, self.catalogue))
            check(sink.value_format, planned.step.schema.value, False)
        except SqlError as error:
            raise StatementError(str(error), statement_text(prepared)) from None
        return self._query(name, planned.step, sink, planned.sources, prepared)

    def _query(self, name: str, step: Any, sink: Source, sources: Any, statement: Statement) -> QueryPlan:
        names = tuple(named.source.name for named in sources)
        return QueryPlan(name, step, sink, names, statement_text(statement), dict(self.settings))

    def _insert_values(self, statement: InsertValues) -> None:
        source = self.catalogue.sources.get(statement.name)
        if source is None:
            hint = self.catalogue.hint(statement.name)
            raise SqlError(f"Cannot insert values into an unknown stream/table: {quoted(statement.name)}{hint}")
        headers = [name for name, _ in source.headers if name in statement.columns]
        if headers:
            raise SqlError(f"Cannot insert into HEADER columns: {', '.join(headers)}")
        raise SqlError("INSERT INTO ... VALUES needs a running server.")

    def _drop_source(self, statement: DropSource) -> None:
        known = self.catalogue.sources.get(statement.name)
        kind = statement.kind.capitalize()
        if known is None:
            if statement.if_exists:
                return
            raise SqlError(f"{kind} {statement.name} does not exist.{self.catalogue.hint(statement.name)}")
        if known.kind != statement.kind:
            raise SqlError(f"Incompatible data source type is {known.kind}, but statement was DROP {statement.kind}")
        if statement.delete_topic and known.read_only:
            raise SqlError(f"Cannot delete topic for read-only source: {statement.name}")
        self._check_unused(statement.name)
        for query_id in list(self.catalogue.writers.get(statement.name, ())):
            self._terminate(query_id)
        self.catalogue.writers.pop(statement.name, None)
        del self.catalogue.sources[statement.name]

    def _check_unused(self, name: str) -> None:
        """Refuse to drop a source that queries insert into or read. The query that made it ends with it."""
        readers = sorted(self.catalogue.readers.get(name, ()))
        reading = [each for each in readers if self._inserts(each)]
        writing = [each for each in sorted(self.catalogue.writers.get(name, ())) if self._inserts(each)]
        if reading or writing:
            raise SqlError(
                f"Cannot drop {name}.\nThe following queries read from this source: [{', '.join(reading)}].\n"
                f"The following queries write into this source: [{', '.join(writing)}].\n"
                f"You need to terminate them before dropping {name}."
            )
        if readers:
            made = ", ".join(sorted({self.queries[each].sink.name for each in readers}))
            raise SqlError(
                f"Cannot drop {name}.\nThe following streams and/or tables read from this source: [{made}].\n"
                f"You need to drop them before dropping {name}."
            )

    def _inserts(self, query_id: str) -> bool:
        return not query_id.startswith(("CSAS_", "CTAS_"))

    def _terminate(self, query_id: str) -> None:
        plan = self.queries.pop(query_id)
        self.paused.discard(query_id)
        self.turns.pop(query_id, None)
        for source in plan.sources:
            self.catalogue.readers.get(source, set()).discard(query_id)
        self.catalogue.writers.get(plan.sink.name, set()).discard(query_id)

    def _control(self, statement: QueryControl) -> None:
        """TERMINATE, PAUSE or RESUME one query or all of them."""
        wanted = None if statement.query_id is None else statement.query_id.upper()
        if wanted is not None and wanted not in self.queries:
            raise SqlError(f"Unknown queryId: {statement.query_id}")
        for query_id in list(self.queries) if wanted is None else [wanted]:
            self.turns[query_id] = self.turns.get(query_id, 0) + 1
            match statement.action:
                case "TERMINATE":
                    self._terminate(query_id)
                case "PAUSE":
                    self.paused.add(query_id)
                case "RESUME":
                    self.paused.discard(query_id)

    def _create_type(self, statement: CreateType) -> None:
        if statement.name in self.catalogue.types:
            if statement.if_not_exists:
                return
            known = type_text(self.catalogue.types[statement.name], quoted)
            raise SqlError(
                f"Cannot register custom type '{statement.name}' since it is already registered with type: {known}"
            )
        self.catalogue.types[statement.name] = self.catalogue.resolve(statement.type)

    def _drop_type(self, statement: DropType) -> None:
        if self.catalogue.types.pop(statement.name, None) is None and not statement.if_exists:
            raise SqlError(f"Type {statement.name} does not exist.")

    def _alter(self, statement: AlterSource) -> None:
        known = self.catalogue.sources.get(statement.name)
        kind = statement.kind.lower()
        if known is None:
            raise SqlError(f"Source {statement.name} does not exist.{self.catalogue.hint(statement.name)}")
        if known.kind != statement.kind:
            raise SqlError(f"Incompatible data source type is {known.kind}, but statement was ALTER {statement.kind}")
        if known.read_only:
            raise SqlError(
                f"Cannot alter {kind} '{statement.name}': ALTER operations are not supported on source {kind}s."
            )
        if known.by_query:
            raise SqlError("ALTER command is not supported for CREATE ... AS statements.")
        added = tuple((f.name, self.catalogue.resolve(f.type)) for f in statement.added)
        for name, _ in added:
            if known.schema.find(name) is not None:
                raise SqlError(
                    f"Cannot add column {quoted(name)} to schema. A column with the same name already exists."
                )
        schema = replace(known.schema, value=(*known.schema.value, *added))
        check(known.value_format, schema.value, False)
        self.catalogue.sources[statement.name] = replace(known, schema=schema)

    def _set(self, statement: SetProperty) -> None:
        self.settings[statement.name] = statement.value

    def _unset(self, statement: UnsetProperty) -> None:
        self.settings.pop(statement.name, None)


def _refusing(statement: Statement, handle: Callable[[], T]) -> T:
    """Let a refusal carry the statement's text."""
    try:
        return handle()
    except (ParseError, StatementError):
        raise
    except SqlError as error:
        raise StatementError(str(error), statement.text) from None


# What makes a source or a query is planned first: its plan is what is kept.
_PLANNERS: dict[type, Any] = {
    CreateSource: Engine._create_source,
    CreateAs: Engine._create_as,
    InsertInto: Engine._insert_into,
}
_HANDLERS: dict[type, Any] = {
    InsertValues: Engine._insert_values,
    DropSource: Engine._drop_source,
    CreateType: Engine._create_type,
    DropType: Engine._drop_type,
    AlterSource: Engine._alter,
    SetProperty: Engine._set,
    UnsetProperty: Engine._unset,
    QueryControl: Engine._control,
    **extension_handlers.HANDLERS,
}
