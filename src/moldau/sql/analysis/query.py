"""A query becomes steps: sources, WHERE, table functions, GROUP BY or PARTITION BY, and SELECT, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from moldau.sql import functions
from moldau.sql.analysis import aggregation, joining, partitioning
from moldau.sql.analysis.checks import by_name, calls_of, check_condition, has_aggregate
from moldau.sql.analysis.expansion import expand
from moldau.sql.analysis.projection import Item, KeyRule, check_names, everything, items_of, project
from moldau.sql.analysis.scope import Aliases, Named, Scope, aliases_of, sanitize, scope_of
from moldau.sql.catalogue import BOUNDS, PSEUDO, Catalogue, Format, Schema
from moldau.sql.errors import SqlError
from moldau.sql.printer import expression_text, quoted
from moldau.sql.sources import column_name
from moldau.sql.steps import Filter, FlatMap, Formats, Read, Step, kind_of
from moldau.sql.tree import Call, Case, Cast, Column, Expression, Node, Query, SelectItem, rewrite, walk
from moldau.sql.typing import type_of


@dataclass(frozen=True, slots=True)
class Request:
    """What a query is planned for: the name of its sink, and the key format that the statement asks for.

    A transient query is of the kind QUERY: its columns come in the order of SELECT, and need not hold the key.
    """

    sink: str
    kind: str
    key_format: Format | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    step: Step
    query: Query  # with all names filled in
    sources: tuple[Named, ...]


def prepare(query: Query, catalogue: Catalogue) -> tuple[Query, Scope]:
    """Give every column its source and every expression of SELECT a name."""
    query = expand(query, catalogue)
    if query.union:
        raise SqlError("UNION ALL can stand in CREATE STREAM ... AS, in INSERT INTO and in push queries only.")
    if query.wait is not None:
        raise SqlError("WAIT UNTIL can stand at the end of pull queries only.")
    scope = joining.with_synthetic(query, scope_of(query, catalogue))

    def resolved(node: Node) -> Node | None:
        return replace(node, type=catalogue.resolve(node.type)) if isinstance(node, Cast) else None

    return sanitize(rewrite(query, resolved), scope), scope


def plan_query(query: Query, scope: Scope, request: Request, catalogue: Catalogue) -> Planned:
    """Turn the prepared query of CREATE ... AS or INSERT INTO into steps."""
    aliases = aliases_of(scope)
    aliases.taken.update(item.alias for item in query.items if isinstance(item, SelectItem) and item.alias)
    if request.kind != "QUERY" and any(n.source.kind == "TABLE" and n.source.window for n in scope.sources):
        raise SqlError("KSQL does not support persistent queries on windowed tables.")
    before, rule = _sources(query, scope, catalogue, request)
    if query.where is not None:
        before = _where(query, scope, before)
    items = items_of(query, scope, before.schema, aliases) if query.group_by is not None else None
    partitioned: frozenset[str] = frozenset()
    became: dict[Expression, Column] = {}
    if query.partition_by is not None and query.group_by is None:
        formats = _formats(scope, request)
        before, rule, became = partitioning.partition(query, scope, before, formats, aliases)
        partitioned = frozenset(name for name, _ in before.schema.key)
    before, query_items = _table_functions(query, scope, before, aliases, items, became)
    if query.group_by is not None:
        return _grouped(query, scope, before, query_items, request)
    if query.having is not None:
        raise SqlError("HAVING requires a GROUP BY clause.")
    if query.window is not None:
        raise SqlError("WINDOW clause requires a GROUP BY clause.")
    if query.emit == "FINAL":
        raise SqlError("EMIT FINAL is only supported for windowed aggregations.")
    aggregation.check_ungrouped(query_items, request.kind, _rowtime(scope))
    if request.kind == "QUERY":
        return Planned(everything("Project", before, query_items), query, scope.sources)
    check_names(query_items, query, partitioned)
    _check_timestamp(request, query_items)
    step = project("Project", before, query_items, rule, request.sink)
    return Planned(step, query, scope.sources)


def _check_timestamp(request: Request, items: list[Item]) -> None:
    name = request.timestamp
    if name is not None and all(item.name != column_name(name) for item in items):
        raise SqlError(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{column_name(name)}'"
        )


def _rowtime(scope: Scope) -> Column:
    """Return the time of the rows: of a join, that of its first source."""
    return Column(scope.row_name(Column("ROWTIME", scope.sources[0].alias)))


def read(named: Named, context: str) -> Read:
    source = named.source
    bounds = BOUNDS if source.window is not None else ()
    value = (*source.schema.value, *PSEUDO, *source.schema.key, *bounds)
    formats = Formats(source.key_format, source.value_format)
    return Read(f"{context}/Source", Schema(source.schema.key, value), source, formats)


def _sources(query: Query, scope: Scope, catalogue: Catalogue, request: Request) -> tuple[Step, KeyRule]:
    if scope.joined:
        return joining.join(query, scope, catalogue, read)
    step = read(scope.sources[0], "KsqlTopic")
    keys = tuple((Column(name), name) for name, _ in step.schema.key)
    return step, KeyRule(keys, "key column")


def _formats(scope: Scope, request: Request) -> Formats:
    source = scope.sources[0].source
    key = request.key_format or source.key_format
    key = replace(key, properties=tuple(p for p in key.properties if p[0] != "schemaId"))
    if key.name == "NONE":
        key = Format("KAFKA")
    value = source.value_format
    value = replace(value, properties=tuple(p for p in value.properties if p[0] != "schemaId"), features=frozenset())
    return Formats(key, value)


def _where(query: Query, scope: Scope, before: Step) -> Filter:
    assert query.where is not None
    condition = scope.plain(query.where)
    for call in calls_of(condition, "aggregate"):
        raise SqlError(f"WHERE does not support aggregate functions: {call.name} is an aggregate function.")
    if calls_of(condition, "table"):
        raise SqlError("Table functions cannot be used in the WHERE clause.")
    check_condition(condition, by_name(before.schema), "WHERE")
    return Filter("WhereFilter", before, condition)


def _table_functions(
    query: Query,
    scope: Scope,
    before: Step,
    aliases: Aliases,
    items: list[Item] | None,
    became: Mapping[Expression, Column],
) -> tuple[Step, list[Item]]:
    """Put the table functions of SELECT into a step of their own. `became` has the expressions that are now a key."""
    listed = items_of(query, scope, before.schema, aliases) if items is None else items
    listed = [Item(item.name, became.get(item.value, item.value)) for item in listed]
    calls = [call for item in listed for call in calls_of(item.value, "table")]
    if not calls:
        return before, listed
    if query.group_by is not None or any(has_aggregate(item.value) for item in listed):
        raise SqlError("Table functions cannot be used with aggregations.")
    for case in (node for item in query.items for node in walk(item) if isinstance(node, Case)):
        if calls_of(case, "table"):
            raise SqlError(f"Table functions cannot be used in CASE: {expression_text(case)}")
    if kind_of(before) == "TABLE":
        raise SqlError("Table source is not supported with table functions")
    columns = by_name(before.schema)
    named = {call: f"KSQL_SYNTH_{at}" for at, call in enumerate(calls)}
    added: list[tuple[str, Call]] = []
    types = []
    for call, name in named.items():
        if nested := [inner for arg in call.args for inner in calls_of(arg, "table")]:
            raise SqlError(f"Table functions cannot be nested: {quoted(call.name)}({quoted(nested[0].name)}())")
        arguments = [type_of(arg, columns) for arg in call.args]
        types.append((name, functions.table(call.name, arguments)[1]))
        added.append((name, call))

    def change(node: Node) -> Node | None:
        return Column(named[node]) if isinstance(node, Call) and node in named else None

    schema = Schema(before.schema.key, (*before.schema.value, *types))
    step = FlatMap("FlatMap", schema, before, tuple(added))
    return step, [Item(item.name, rewrite(item.value, change)) for item in listed]


def _grouped(query: Query, scope: Scope, before: Step, items: list[Item], request: Request) -> Planned:
    assert query.group_by is not None
    names = [named.source.name for named in scope.sources if named.source.value_format.name == "KAFKA"]
    if names:
        raise SqlError(
            f"Source(s) {', '.join(names)} are using the 'KAFKA' value format. "
            "This format does not yet support GROUP BY."
        )
    if query.partition_by is not None:
        raise SqlError("Only one of PARTITION BY and GROUP BY is allowed.")
    final = query.emit == "FINAL"
    if final and query.window is None:
        raise SqlError("EMIT FINAL is only supported for windowed aggregations.")
    if query.window is not None and kind_of(before) == "TABLE":
        raise SqlError("WINDOW clause is not supported on tables.")
    window = None if query.window is None else aggregation.time_window(query.window, final)
    having = None if query.having is None else scope.plain(query.having)
    rowtime = _rowtime(scope)
    keys = tuple(scope.plain(e) for e in query.group_by)
    formats = _formats(scope, request)
    grouped = aggregation.Grouped(keys, items, having, window, rowtime)
    step, rule, items = aggregation.aggregate(grouped, before, formats, aliases_of(scope))
    if request.kind == "QUERY":
        return Planned(everything("Aggregate/Project", step, items), query, scope.sources)
    check_names(items, query)
    return Planned(project("Aggregate/Project", step, items, rule, request.sink), query, scope.sources)
