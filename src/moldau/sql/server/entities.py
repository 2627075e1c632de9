"""The shapes of answers: an entity for each kind of statement, with ksqlDB's `@type` and fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.sql.catalogue import Columns, Source
from moldau.sql.extensions import CreateFunction, CreateView, DropFunction, DropView
from moldau.sql.lowering import application_id
from moldau.sql.printer import quoted, type_text
from moldau.sql.properties import duration_text
from moldau.sql.server import describing
from moldau.sql.server.commands import Executed
from moldau.sql.steps import QueryPlan
from moldau.sql.tree import (
    AlterSource,
    AlterSystem,
    ArrayType,
    CreateAs,
    CreateSource,
    CreateType,
    DecimalType,
    DropSource,
    DropType,
    InsertInto,
    MapType,
    Primitive,
    QueryControl,
    Statement,
    StructType,
    Type,
)

if TYPE_CHECKING:
    from moldau.sql.server.service import Service

Entity = dict[str, Any]
CONTROLLED = {"TERMINATE": "Query terminated.", "PAUSE": "Query paused.", "RESUME": "Query resumed."}


def entity(kind: str, text: str, **fields: Any) -> Entity:
    return {"@type": kind, "statementText": text, **fields, "warnings": []}


def warned(made: Entity, messages: list[str]) -> Entity:
    return made | {"warnings": [{"@type": "warning_entity", "message": message} for message in messages]}


def current_status(text: str, command: str, done: Executed) -> Entity:
    """Return the answer to a command that has been executed."""
    status = {"status": "SUCCESS", "message": done.message, "queryId": done.query_id}
    return entity("currentStatus", text, commandId=command, commandStatus=status, commandSequenceNumber=done.number)


def terminated(text: str, query_id: str) -> Entity:
    """Return the answer to TERMINATE of a push query, which is no command."""
    return entity("terminate_query", text, queryId=query_id, wasTerminated=True)


def success(statement: Statement, plan: QueryPlan | None, before: Source | None) -> str:
    """Say what a command has done."""
    match statement:
        case CreateSource() | CreateAs() if statement.if_not_exists and before is not None:
            kind = statement.kind.lower()
            known = before.kind.lower()
            return f"Cannot add {kind} {quoted(statement.name)}: A {known} with the same name already exists."
        case CreateAs() | InsertInto():
            return "Created query." if plan is None else f"Created query with ID {plan.query_id}"
        case CreateSource():
            return f"{statement.kind.capitalize()} created"
        case DropSource():
            if before is None:
                return f"Source {quoted(statement.name)} does not exist."
            return f"Source {quoted(statement.name)} (topic: {before.topic}) was dropped."
        case CreateType():
            return (
                f"Registered custom type with name '{statement.name}' and SQL type {type_text(statement.type, quoted)}"
            )
        case DropType():
            return f"Dropped type '{statement.name}'"
        case AlterSource():
            return f"{statement.kind.capitalize()} {statement.name} altered successfully."
        case AlterSystem():
            return "System configuration altered."
        case CreateFunction() | CreateView():
            return f"{_what(statement)} {statement.name} created"
        case DropFunction() | DropView():
            return f"{_what(statement)} {statement.name} was dropped."
        case QueryControl():
            return CONTROLLED[statement.action]
        case _:
            raise AssertionError(f"{type(statement).__name__} is not a command")


def _what(statement: Statement) -> str:
    return "Function" if isinstance(statement, CreateFunction | DropFunction) else "View"


# Sources and queries


def listed(source: Source) -> Entity:
    return {
        "type": source.kind,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "isWindowed": source.window is not None,
    }


def state_of(service: Service, plan: QueryPlan) -> str:
    if plan.run.runtime == "spark":
        return _state_on_spark(service, plan)
    query = service.running.get(plan.query_id)
    if query is None:
        return "RUNNING"
    if query.error is not None:
        return "ERROR"
    return "PAUSED" if query.paused else "RUNNING"


def _state_on_spark(service: Service, plan: QueryPlan) -> str:
    """Return what the worker says; UNRESPONSIVE, as ksqlDB has it, if no living one has the query."""
    if plan.query_id in service.engine.paused:
        return "PAUSED"
    said = service.states.of(application_id(plan, service.service_id))
    if said is None or not service.states.lives(said.worker):
        return "UNRESPONSIVE"
    return "ERROR" if describing.query_errors(service, plan) else "RUNNING"


def description(service: Service, source: Source, extended: bool) -> Entity:
    catalogue, queries = service.engine.catalogue, service.engine.queries

    readers = [query_id for query_id in sorted(catalogue.readers.get(source.name, ())) if query_id in queries]
    writers = [query_id for query_id in sorted(catalogue.writers.get(source.name, ())) if query_id in queries]
    return {
        "name": source.name,
        "windowType": None if source.window is None else source.window.kind,
        "readQueries": [brief(service, queries[query_id]) for query_id in readers],
        "writeQueries": [brief(service, queries[query_id]) for query_id in writers],
        "fields": _fields(source),
        "type": source.kind,
        "timestamp": source.timestamp or "",
        "statistics": describing.statistics(service, writers) if extended else "",
        "errorStats": describing.errors(service, [*writers, *readers]) if extended else "",
        "extended": extended,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "topic": source.topic,
        "partitions": service.topics.partitions(source.topic) if extended else 0,
        "replication": service.topics.replicas(source.topic) if extended else 0,
        "statement": source.text,
        "queryOffsetSummaries": describing.offset_summaries(service, writers) if extended else [],
        "sourceConstraints": [],
        "clusterStatistics": [],
        "clusterErrorStats": [],
        **({} if source.history_ms is None else {"history": duration_text(source.history_ms)}),
    }


def brief(service: Service, plan: QueryPlan) -> Entity:
    state = state_of(service, plan)
    return {
        "queryString": plan.text,
        "sinks": [plan.sink.name],
        "sinkKafkaTopics": [plan.sink.topic],
        "id": plan.query_id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": f"{state}:1",
    }


def _fields(source: Source) -> list[Entity]:
    headers = dict(source.headers)
    rows = typed(source.schema.key, "KEY")
    for name, kind in source.schema.value:
        row: Entity = {"name": name, "schema": schema(kind)}
        if name in headers:
            row |= {"type": "HEADER"} | ({} if headers[name] is None else {"headerKey": headers[name]})
        rows.append(row)
    return rows


def typed(columns: Columns, role: str | None = None) -> list[Entity]:
    more = {} if role is None else {"type": role}
    return [{"name": name, "schema": schema(kind), **more} for name, kind in columns]


def schema(kind: Type) -> Entity:
    """Return a type as the answers describe it."""
    shape: Entity = {"type": "", "fields": None, "memberSchema": None}
    match kind:
        case Primitive():
            return shape | {"type": kind.name}
        case DecimalType():
            parameters = {"precision": kind.precision, "scale": kind.scale}
            return shape | {"type": "DECIMAL", "parameters": parameters}
        case ArrayType():
            return shape | {"type": "ARRAY", "memberSchema": schema(kind.item)}
        case MapType():
            return shape | {"type": "MAP", "memberSchema": schema(kind.value)}
        case StructType():
            return shape | {"type": "STRUCT", "fields": typed(tuple((f.name, f.type) for f in kind.fields))}
        case _:
            raise AssertionError(f"{kind} was not resolved")
