"""EXPLAIN: the steps and the topology of a query, and what CREATE OR REPLACE would do to one that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.plan.describe import describe
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DIALECT, STRICT
from moldau.sql.lowering import application_id, build, build_rows
from moldau.sql.processing_log import step_name
from moldau.sql.server import describing
from moldau.sql.server.entities import Entity, entity, state_of, typed, warned
from moldau.sql.steps import QueryPlan, inputs
from moldau.sql.tree import CreateAs, Explain, QueryStatement, Statement

if TYPE_CHECKING:
    from moldau.sql.server.service import Request, Service
    from moldau.streams.builder import StreamsBuilder

# What ksqlDB calls the steps; the others have the name of their class.
NAMES = {
    "Read": "SOURCE",
    "Select": "PROJECT",
    "SelectKey": "REKEY",
    "GroupBy": "GROUP_BY",
    "FlatMap": "FLAT_MAP",
    "StreamStreamJoin": "JOIN",
    "StreamTableJoin": "JOIN",
    "TableTableJoin": "JOIN",
}
INDENT = "\t\t"


def explain(service: Service, statement: Explain, request: Request) -> Entity:
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
    is_push = isinstance(statement.statement, QueryStatement)
    described = _push_description(service, plan, statement.text) if is_push else query_description(service, plan)
    return warned(entity("queryDescription", statement.text, queryDescription=described), warnings)


def _push_description(service: Service, plan: QueryPlan, text: str) -> Entity:
    """Describe a query that writes nothing: there is no sink, and no group reads."""
    builder = build_rows(plan, lambda key, row, time: None, service.registry, None, service.service_id)
    steps = "".join(_lines(plan.step, plan.query_id, ""))
    return _description(service, plan, builder, steps) | {
        "statementText": text.split(None, 1)[1],
        "sinks": [],
        "queryType": "PUSH",
        "state": None,
        "consumerGroupId": None,
    }


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


def query_description(service: Service, plan: QueryPlan) -> Entity:
    return _description(service, plan, build(plan, service.registry, service_id=service.service_id), summary(plan))


def _description(service: Service, plan: QueryPlan, builder: StreamsBuilder, steps: str) -> Entity:
    topology = builder.build()
    return {
        "id": plan.query_id,
        "statementText": plan.text,
        "windowType": None if plan.sink.window is None else plan.sink.window.kind,
        "fields": typed(plan.sink.schema.key, "KEY") + typed(plan.sink.schema.value),
        "sources": list(plan.sources),
        "sinks": [plan.sink.name],
        "topology": describe(topology.plan(topology.settings)),
        "executionPlan": steps,
        "overriddenProperties": {
            name: value for name, value in plan.settings.items() if service.settings.get(name) != value
        },
        "runtime": plan.run.runtime,  # ours; the others are ksqlDB's
        "ksqlHostQueryStatus": {},
        "queryType": "PERSISTENT",
        "queryErrors": describing.query_errors(service, plan),
        "tasksMetadata": [],
        "state": state_of(service, plan),
        "consumerGroupId": application_id(plan, service.service_id),
    }


def summary(plan: QueryPlan) -> str:
    """Print the steps of a query, the last one first, each with the name of its processing log."""
    sink = _line("", "SINK", plan.sink.schema.text(), plan.query_id, plan.sink.name)
    return "".join([sink, *_lines(plan.step, plan.query_id, INDENT)])


def _lines(step: Any, query_id: str, indent: str) -> list[str]:
    kind = type(step).__name__
    lines = [_line(indent, NAMES.get(kind, kind.upper()), step.schema.text(), query_id, step.context)]
    for below in inputs(step):
        lines += _lines(below, query_id, indent + INDENT)
    return lines


def _line(indent: str, name: str, schema: str, query_id: str, context: str) -> str:
    return f"{indent} > [ {name} ] | Schema: {schema} | Logger: {step_name(query_id, context)}\n"
