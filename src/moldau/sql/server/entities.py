"""The shapes of answers: an entity for each kind of statement, with ksqlDB's `@type` and fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.plan.describe import describe
from moldau.sql import functions
from moldau.sql.catalogue import Columns, Source
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DIALECT, STRICT, CreateFunction, CreateView, DropFunction, DropView
from moldau.sql.functions.categories import category
from moldau.sql.functions.registry import REGISTRY, Row
from moldau.sql.lowering import application_id, build
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
    Describe,
    DropSource,
    DropType,
    Explain,
    InsertInto,
    MapType,
    Primitive,
    QueryControl,
    Show,
    Statement,
    StructType,
    Type,
)

if TYPE_CHECKING:
    from moldau.sql.server.service import Request, Service

Entity = dict[str, Any]
CONTROLLED = {"TERMINATE": "Query terminated.", "PAUSE": "Query paused.", "RESUME": "Query resumed."}
HIDDEN_TOPICS = ("_confluent", "__")  # SHOW TOPICS leaves these out, SHOW ALL TOPICS does not
LOCAL = (
    "Queries with ksql.runtime=local run in the process of a server. After a restart they read their topics anew, and "
    "results of the last second may be written twice."
)
NO_WORKER = "No worker runs the query: `moldau worker` starts one, and SET 'ksql.runtime'='local' needs none."


def entity(kind: str, text: str, **fields: Any) -> Entity:
    return {"@type": kind, "statementText": text, **fields, "warnings": []}


def _warned(made: Entity, messages: list[str]) -> Entity:
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


def answer(service: Service, statement: Statement, request: Request) -> Entity:
    """Answer a statement that changes nothing."""
    match statement:
        case Show():
            return _show(service, statement, request)
        case Describe():
            return _describe(service, statement)
        case Explain():
            return _explain(service, statement, request)
        case _:
            raise SqlError(f"The server does not execute this kind of statement yet: {type(statement).__name__}.")


# SHOW


def _show(service: Service, statement: Show, request: Request) -> Entity:
    return _SHOWN[statement.what](service, statement, request)


def _sources(kind: str, tag: str) -> Callable[[Service, Show, Request], Entity]:
    def show(service: Service, statement: Show, request: Request) -> Entity:
        found = [source for _, source in sorted(service.engine.catalogue.sources.items()) if source.kind == kind]
        if statement.extended:
            described = [description(service, source, True) for source in found]
            return entity("source_descriptions", statement.text, sourceDescriptions=described)
        return entity(tag, statement.text, **{tag: [_listed(source) for source in found]})

    return show


def _listed(source: Source) -> Entity:
    return {
        "type": source.kind,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "isWindowed": source.window is not None,
    }


def _topics(service: Service, statement: Show, request: Request) -> Entity:
    names = service.topics.names()
    if statement.scope != "ALL":
        names = [name for name in names if not name.startswith(HIDDEN_TOPICS)]
    rows = []
    for name in names:
        count = service.topics.partitions(name)
        row: Entity = {"name": name, "replicaInfo": [service.topics.replicas(name)] * count}
        if statement.extended:
            row |= {"consumerCount": 0, "consumerGroupCount": 0}
        rows.append(row)
    kind = "kafka_topics_extended" if statement.extended else "kafka_topics"
    return entity(kind, statement.text, topics=rows)


def _queries(service: Service, statement: Show, request: Request) -> Entity:
    plans = list(service.engine.queries.values())
    if statement.extended:
        described = [_query_description(service, plan) for plan in plans]
        return entity("query_descriptions", statement.text, queryDescriptions=described)
    rows = [_brief(service, plan) for plan in plans]
    for query_id in service.pushes:
        rows.append(
            {
                "queryString": "",
                "sinks": [],
                "sinkKafkaTopics": [],
                "id": query_id,
                "statusCount": {"RUNNING": 1},
                "queryType": "PUSH",
                "state": "RUNNING:1",
            }
        )
    shown = entity("queries", statement.text, queries=rows)
    warnings = [LOCAL] if any(plan.run.runtime == "local" for plan in plans) else []
    warnings += [NO_WORKER] if any("UNRESPONSIVE" in row["statusCount"] for row in rows) else []
    return _warned(shown, warnings)


def _state(service: Service, plan: QueryPlan) -> str:
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


def _functions(service: Service, statement: Show, request: Request) -> Entity:
    rows = [
        {"name": name, "type": str(functions.kind(name)).upper(), "category": category(name)}
        for name in sorted(REGISTRY.rows)
    ]
    return entity("function_names", statement.text, functions=rows)


def _types(service: Service, statement: Show, request: Request) -> Entity:
    types = service.engine.catalogue.types
    return entity("type_list", statement.text, types={name: schema(kind) for name, kind in sorted(types.items())})


def _variables(service: Service, statement: Show, request: Request) -> Entity:
    rows = [{"name": name, "value": value} for name, value in sorted(request.variables.items())]
    return entity("variables", statement.text, variables=rows)


def _properties(service: Service, statement: Show, request: Request) -> Entity:
    effective = {**service.settings, **request.properties}
    rows = [
        {"name": name, "scope": "KSQL", "value": str(value), "editable": True, "level": "QUERY"}
        for name, value in sorted(effective.items())
        if "password" not in name and "secret" not in name and "jaas" not in name
    ]
    return entity(
        "properties",
        statement.text,
        properties=rows,
        overwrittenProperties=sorted(request.properties),
        defaultProperties=[],
    )


_SHOWN: dict[str, Callable[[Service, Show, Request], Entity]] = {
    "STREAMS": _sources("STREAM", "streams"),
    "TABLES": _sources("TABLE", "tables"),
    "TOPICS": _topics,
    "QUERIES": _queries,
    "FUNCTIONS": _functions,
    "TYPES": _types,
    "VARIABLES": _variables,
    "PROPERTIES": _properties,
}


# DESCRIBE and EXPLAIN


def _describe(service: Service, statement: Describe) -> Entity:
    catalogue = service.engine.catalogue
    match statement.what:
        case "SOURCE":
            name = statement.name or ""
            source = catalogue.sources.get(name)
            if source is None:
                raise SqlError(f"Could not find STREAM/TABLE '{name}' in the Metastore{catalogue.hint(name)}")
            described = description(service, source, statement.extended)
            return entity("sourceDescription", statement.text, sourceDescription=described)
        case "STREAMS" | "TABLES":
            kind = statement.what[:-1]
            found = [source for _, source in sorted(catalogue.sources.items()) if source.kind == kind]
            described = [description(service, source, statement.extended) for source in found]
            return entity("source_descriptions", statement.text, sourceDescriptions=described)
        case "FUNCTION":
            return _function(statement)
        case "CONNECTOR":
            raise AssertionError("waiting.py answers what connectors are asked for")


def description(service: Service, source: Source, extended: bool) -> Entity:
    catalogue, queries = service.engine.catalogue, service.engine.queries

    readers = [query_id for query_id in sorted(catalogue.readers.get(source.name, ())) if query_id in queries]
    writers = [query_id for query_id in sorted(catalogue.writers.get(source.name, ())) if query_id in queries]
    return {
        "name": source.name,
        "windowType": None if source.window is None else source.window.kind,
        "readQueries": [_brief(service, queries[query_id]) for query_id in readers],
        "writeQueries": [_brief(service, queries[query_id]) for query_id in writers],
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


def _brief(service: Service, plan: QueryPlan) -> Entity:
    state = _state(service, plan)
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
    rows = _typed(source.schema.key, "KEY")
    for name, kind in source.schema.value:
        row: Entity = {"name": name, "schema": schema(kind)}
        if name in headers:
            row |= {"type": "HEADER"} | ({} if headers[name] is None else {"headerKey": headers[name]})
        rows.append(row)
    return rows


def _typed(columns: Columns, role: str | None = None) -> list[Entity]:
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
            return shape | {"type": "STRUCT", "fields": _typed(tuple((f.name, f.type) for f in kind.fields))}
        case _:
            raise AssertionError(f"{kind} was not resolved")


def _function(statement: Describe) -> Entity:
    name = (statement.name or "").upper()
    rows: list[Row] = REGISTRY.rows.get(name, [])
    if not rows:
        raise SqlError(f"Can't find any functions with the name '{name}'")
    overloads = [
        {
            "arguments": [{"name": "", "type": str(parameter), "isVariadic": False} for parameter in _parameters(row)],
            "returnType": str(row.signature.result),
            "description": row.doc.strip(),
        }
        for row in rows
    ]
    return entity(
        "describe_function",
        statement.text,
        name=name,
        description=rows[0].doc.strip(),
        author="",
        version="",
        path="internal",
        functions=overloads,
        type=str(functions.kind(name)).upper(),
    )


def _parameters(row: Row) -> list[Any]:
    return list(row.signature.parameters)


def _explain(service: Service, statement: Explain, request: Request) -> Entity:
    warnings: list[str] = []
    if statement.query_id is not None:
        plan = service.engine.queries.get(statement.query_id.upper())
        if plan is None:
            raise SqlError(
                f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view the full set of queries."
            )
    else:
        assert statement.statement is not None
        warnings = _change_texts(service, statement.statement, request)
        plan = service.planned(statement.statement, request)
    explained = entity("queryDescription", statement.text, queryDescription=_query_description(service, plan))
    return _warned(explained, warnings)


def _change_texts(service: Service, statement: Statement, request: Request) -> list[str]:
    """Say what CREATE OR REPLACE ... AS would do to a query that runs; SqlError if it would be refused."""
    dialect = str({**service.settings, **request.properties}.get(DIALECT, "")).lower()
    if not isinstance(statement, CreateAs) or not statement.or_replace or dialect == STRICT:
        return []
    if statement.name not in service.engine.catalogue.sources:
        return []
    change = service.change_of(statement, request)
    if change.action == "refused":
        raise SqlError(change.reason)
    if change.action == "unchanged":
        return [f"{statement.name} would stay as it is."]
    said = [f"This would replace the query {change.query}. Its state: {change.state}."]
    return said + ([f"Queries that read {statement.name}: {', '.join(change.readers)}."] if change.readers else [])


def _query_description(service: Service, plan: QueryPlan) -> Entity:
    topology = build(plan, service.registry, service_id=service.service_id).build()
    return {
        "id": plan.query_id,
        "statementText": plan.text,
        "windowType": None if plan.sink.window is None else plan.sink.window.kind,
        "fields": _typed(plan.sink.schema.key, "KEY") + _typed(plan.sink.schema.value),
        "sources": list(plan.sources),
        "sinks": [plan.sink.name],
        "topology": describe(topology.plan(topology.settings)),
        "executionPlan": _steps(plan.step),
        "overriddenProperties": dict(plan.settings),
        "ksqlHostQueryStatus": {},
        "queryType": "PERSISTENT",
        "queryErrors": describing.query_errors(service, plan),
        "tasksMetadata": [],
        "state": _state(service, plan),
        "consumerGroupId": application_id(plan, service.service_id),
    }


def _steps(step: Any, depth: int = 0) -> str:
    """Print the steps of a query, the last one first."""
    from moldau.sql.steps import inputs

    line = f"{'  ' * depth} > [ {type(step).__name__.upper()} ] | Schema: {step.schema.text()} | Logger: {step.context}"
    return "\n".join([line, *(_steps(below, depth + 1) for below in inputs(step))])
