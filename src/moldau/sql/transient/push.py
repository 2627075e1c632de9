"""Push queries: a SELECT becomes steps, and a row of the result becomes what a client gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from moldau.operators.windowed import Windowed
from moldau.sql.analysis.checks import has_aggregate
from moldau.sql.analysis.expansion import expand
from moldau.sql.analysis.query import Request, plan_query, prepare
from moldau.sql.analysis.scope import Scope, scope_of
from moldau.sql.catalogue import BOUNDS, Catalogue, Format, Schema, Source
from moldau.sql.errors import SqlError
from moldau.sql.printer import query_text
from moldau.sql.steps import QueryPlan, Select
from moldau.sql.tree import Column, Item, Literal, Query, SelectAll, SelectItem, Table, Type

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Push:
    """A planned push query: its columns, and its steps as those of a query without a sink."""

    plan: QueryPlan
    columns: tuple[tuple[str, Type], ...]
    sources: tuple[Source, ...]
    limit: int | None
    tombstone: Callable[[Any], Row]  # the row that stands for a deleted key
    scalable: bool


def plan_push(query: Query, catalogue: Catalogue, query_id: str, settings: dict[str, Any]) -> Push:
    """Analyse a push query, or a pull query on a stream."""
    if query.distinct and query.emit == "CHANGES":
        raise SqlError(
            "SELECT DISTINCT of a push query needs EMIT FINAL: a row is known to be new when its window ends."
        )
    query = expand(query, catalogue)
    expanded = _grouped(with_bounds(query, catalogue))
    prepared, scope = prepare(expanded, catalogue)
    planned = plan_query(prepared, scope, Request(query_id, "QUERY"), catalogue)
    step = planned.step
    assert isinstance(step, Select)
    nowhere = Source(query_id, "STREAM", Schema((), step.schema.value), query_id, Format("NONE"), Format("JSON"))
    names = tuple(named.source.name for named in planned.sources)
    plan = QueryPlan(query_id, step, nowhere, names, query_text(query), settings)
    return Push(
        plan,
        step.schema.value,
        tuple(named.source for named in planned.sources),
        query.limit,
        _tombstone(step, scope),
        _is_scalable(query, planned.sources[0].source, settings),
    )


def with_bounds(query: Query, catalogue: Catalogue) -> Query:
    """Expand `*` of a windowed source: the bounds of the window follow the key."""
    if not isinstance(query.source, Table):
        return query
    source = scope_of(query, catalogue).sources[0].source
    if source.window is None or query.group_by is not None:
        return query
    names = [name for name, _ in (*source.schema.key, *BOUNDS, *source.schema.value)]
    everything: list[Item] = [SelectItem(Column(name)) for name in names]
    items: list[Item] = []
    for item in query.items:
        items += everything if isinstance(item, SelectAll) else [item]
    return replace(query, items=tuple(items))


def _grouped(query: Query) -> Query:
    """Give a query of aggregates without GROUP BY a single group."""
    if query.group_by is not None:
        return query
    if any(isinstance(item, SelectItem) and has_aggregate(item.value) for item in query.items):
        return replace(query, group_by=(Literal(0, "INTEGER"),))
    return query


def _tombstone(step: Select, scope: Scope) -> Callable[[Any], Row]:
    keys = {name: at for at, (name, _) in enumerate(step.input.schema.key)}

    def row(key: Any) -> Row:
        inner = key.key if isinstance(key, Windowed) else key
        known = {name: inner[at] for name, at in keys.items()} if inner is not None else {}
        if isinstance(key, Windowed):
            known |= {"WINDOWSTART": key.start, "WINDOWEND": key.end}
        return tuple(known.get(value.name) if isinstance(value, Column) else None for _, value in step.columns)

    return row


def _is_scalable(query: Query, source: Source, settings: dict[str, Any]) -> bool:
    """Tell whether the query may tap the running query of its source instead of reading the source anew."""
    return (
        query.emit == "CHANGES"
        and source.by_query
        and isinstance(query.source, Table)
        and query.window is None
        and query.group_by is None
        and query.partition_by is None
        and settings.get("auto.offset.reset") == "latest"
        and str(settings.get("ksql.query.push.v2.enabled", "false")).lower() == "true"
    )
