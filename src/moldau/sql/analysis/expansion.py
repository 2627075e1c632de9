"""Subqueries, views and SELECT DISTINCT: each is rewritten to a query that has none.

A subquery of filters and projections becomes a part of the query around it: its columns are put where their names
stand, and both conditions are joined by AND. SELECT DISTINCT in a window is a GROUP BY of all its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from moldau.sql.analysis.checks import calls_of, has_aggregate
from moldau.sql.analysis.scope import sanitize, scope_of, tables_of
from moldau.sql.catalogue import BOUNDS, PSEUDO, Catalogue
from moldau.sql.errors import SqlError
from moldau.sql.tree import (
    Call,
    Column,
    Compare,
    Expression,
    Item,
    Join,
    Literal,
    Logical,
    Node,
    Query,
    Relation,
    SelectAll,
    SelectFields,
    SelectItem,
    Table,
    rewrite,
)

SYSTEM = frozenset(name for name, _ in (*PSEUDO, *BOUNDS))
OCCURRENCES = "OCCURRENCES"
FIRST = "Create a stream or a table of it (CREATE ... AS), and read that."


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery under its alias: what its columns are, over the source that takes its place."""

    alias: str
    columns: Mapping[str, Expression]
    source: Relation
    where: Expression | None
    system: str | None  # the source of ROWTIME and its like; None for a join, whose rows have several


def branches(query: Query) -> tuple[Query, ...]:
    """Return the queries that UNION ALL joins."""
    first = replace(query, union=())
    return (first, *(replace(other, emit=query.emit, limit=query.limit) for other in query.union))


def expand(query: Query, catalogue: Catalogue) -> Query:
    """Rewrite a query to one over streams and tables alone."""
    if query.union:
        return replace(expand(replace(query, union=()), catalogue), union=tuple(_each(query.union, catalogue)))
    if query.distinct:
        query = _grouped(query)
    for table in tables_of(query.source):
        found = table.query
        if found is None and table.name not in catalogue.sources:
            found = catalogue.views.get(table.name)
        if found is not None and table.as_of is not None:
            raise SqlError(f"AS OF stands after the name of a table, and {table.name} is a view.")
        if found is not None:
            query = _merged(query, table, _inner(table.alias, expand(found, catalogue), catalogue), catalogue)
    return query


def counted(query: Query) -> Query:
    """Give the rows of SELECT DISTINCT a value, which a table must have: how often each was there."""
    return replace(query, items=(*query.items, SelectItem(Call("COUNT", ()), OCCURRENCES))) if query.distinct else query


def _each(queries: tuple[Query, ...], catalogue: Catalogue) -> list[Query]:
    return [expand(query, catalogue) for query in queries]


def _grouped(query: Query) -> Query:
    """Turn SELECT DISTINCT into GROUP BY: a group is a row of the table, however many rows it has."""
    if query.window is None:
        raise SqlError("SELECT DISTINCT needs a WINDOW: without one it would have to remember every row for good.")
    if query.group_by is not None or not all(isinstance(item, SelectItem) for item in query.items):
        raise SqlError("SELECT DISTINCT takes a list of expressions, and no GROUP BY.")
    values = [item.value for item in query.items if isinstance(item, SelectItem)]
    bounds = {Column(name) for name, _ in BOUNDS}
    keys = tuple(value for value in values if value not in bounds and not has_aggregate(value))
    there = Compare(">", Call("COUNT", ()), Literal(0, "INTEGER"))
    having = there if query.having is None else Logical("AND", there, query.having)
    return replace(query, distinct=False, group_by=keys, having=having)


def _inner(alias: str, query: Query, catalogue: Catalogue) -> Inner:
    obstacles = (
        (bool(query.union), "UNION ALL"),
        (query.group_by is not None or any(_aggregates(item) for item in query.items), "aggregates"),
        (query.partition_by is not None, "PARTITION BY"),
        (query.window is not None, "a WINDOW"),
        (query.limit is not None, "LIMIT"),
        (query.emit is not None, "EMIT"),
        (query.wait is not None, "WAIT UNTIL"),
        (any(_unnests(item) for item in query.items), "table functions"),
        (any(isinstance(item, SelectFields) for item in query.items), "->*"),
    )
    for given, what in obstacles:
        if given:
            raise SqlError(f"The subquery {alias} has {what}, so it cannot be a part of another query. {FIRST}")
    scope = scope_of(query, catalogue)
    prepared = sanitize(query, scope)
    columns: dict[str, Expression] = {}
    for item in prepared.items:
        if isinstance(item, SelectItem):
            columns[str(item.alias)] = item.value
            continue
        assert isinstance(item, SelectAll)
        for named in scope.sources:
            if item.source in (None, named.alias):
                for name, _ in (*named.source.schema.key, *named.source.schema.value):
                    columns[f"{named.alias}_{name}" if scope.joined else name] = Column(name, named.alias)
    if scope.joined:
        return Inner(alias, columns, prepared.source, prepared.where, None)
    own = scope.sources[0]

    def renamed(node: Node) -> Node | None:
        return replace(node, source=alias) if isinstance(node, Column) and node.source == own.alias else None

    where = None if prepared.where is None else rewrite(prepared.where, renamed)
    mapped = {name: rewrite(value, renamed) for name, value in columns.items()}
    return Inner(alias, mapped, Table(own.source.name, alias), where, alias)


def _aggregates(item: Item) -> bool:
    return isinstance(item, SelectItem) and has_aggregate(item.value)


def _unnests(item: Item) -> bool:
    return isinstance(item, SelectItem) and bool(calls_of(item.value, "table"))


def _merged(query: Query, table: Table, inner: Inner, catalogue: Catalogue) -> Query:
    """Put a subquery's source, columns and condition into the query around it."""
    joined = isinstance(query.source, Join)
    if joined and isinstance(inner.source, Join):
        raise SqlError(f"The subquery {inner.alias} is a join, so it cannot be a side of another join. {FIRST}")
    if inner.where is not None and joined and not _filters_late(query.source, table):
        raise SqlError(f"The subquery {inner.alias} has a WHERE, which an outer join would apply too late. {FIRST}")
    change = _substitution(query, inner, catalogue)
    items: list[Item] = []
    for item in query.items:
        items += _items(item, query, inner, change)

    def clause(expression: Expression | None) -> Expression | None:
        return None if expression is None else rewrite(expression, change)

    def clauses(expressions: tuple[Expression, ...] | None) -> tuple[Expression, ...] | None:
        return None if expressions is None else tuple(rewrite(each, change) for each in expressions)

    conditions = [each for each in (inner.where, clause(query.where)) if each is not None]
    where = Logical("AND", *conditions) if len(conditions) == 2 else (conditions or [None])[0]
    return replace(
        query,
        items=tuple(items),
        source=_placed(query.source, table, inner, change),
        where=where,
        group_by=clauses(query.group_by),
        partition_by=clauses(query.partition_by),
        having=clause(query.having),
    )


def _filters_late(relation: Relation, table: Table) -> bool:
    """Tell whether a condition on one source of a join may as well be checked after the join."""
    if isinstance(relation, Table):
        return True
    if relation.kind == "INNER":
        return _filters_late(relation.left, table)
    return relation.kind == "LEFT" and relation.right is not table and _filters_late(relation.left, table)


def _substitution(query: Query, inner: Inner, catalogue: Catalogue) -> Callable[[Node], Node | None]:
    others = {
        name
        for table in tables_of(query.source)
        if table.alias != inner.alias and table.name in catalogue.sources
        for name, _ in (*catalogue.sources[table.name].schema.key, *catalogue.sources[table.name].schema.value)
    }
    alone = isinstance(query.source, Table)

    def change(node: Node) -> Node | None:
        if not isinstance(node, Column) or node.source not in (None, inner.alias):
            return None
        if node.source is None and not alone:
            if node.name not in inner.columns:
                return None
            if node.name in others:
                raise SqlError(f"Column '{node.name}' is ambiguous: name its source, as in {inner.alias}.{node.name}.")
        if node.name in inner.columns:
            return inner.columns[node.name]
        if node.name in SYSTEM and inner.system is not None:
            return Column(node.name, inner.system, at=node.at)
        if node.name in dict(BOUNDS) and query.window is not None:
            return None
        raise SqlError(f"Column '{node.name}' cannot be resolved: the subquery {inner.alias} has none of that name.")

    return change


def _items(item: Item, query: Query, inner: Inner, change: Callable[[Node], Node | None]) -> list[Item]:
    match item:
        case SelectAll() if isinstance(query.source, Table):
            return [SelectItem(value, name) for name, value in inner.columns.items()]
        case SelectAll() if item.source == inner.alias:
            return [SelectItem(value, f"{inner.alias}_{name}") for name, value in inner.columns.items()]
        case SelectAll(source=None):
            every = [SelectAll(table.alias) for table in tables_of(query.source)]
            return [one for each in every for one in _items(each, query, inner, change)]
        case SelectAll():
            return [item]
        case SelectFields():
            return [rewrite(item, change)]
        case SelectItem():
            alias = item.alias
            if alias is None and isinstance(item.value, Column):
                alias = item.value.name
            return [SelectItem(rewrite(item.value, change), alias, at=item.at)]


def _placed(relation: Relation, table: Table, inner: Inner, change: Callable[[Node], Node | None]) -> Relation:
    if isinstance(relation, Table):
        return inner.source if relation is table else relation
    right = relation.right
    if right is table:
        assert isinstance(inner.source, Table)
        right = inner.source
    left = _placed(relation.left, table, inner, change)
    return replace(relation, left=left, right=right, on=rewrite(relation.on, change))
