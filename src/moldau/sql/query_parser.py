"""The parser of queries: SELECT with its sources, joins, windows and clauses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from moldau.sql.cursor import Cursor
from moldau.sql.errors import ParseError
from moldau.sql.expression_parser import expression, span, value_expression
from moldau.sql.moment_parser import as_of, wait
from moldau.sql.tree import (
    Expression,
    Item,
    Join,
    Node,
    Query,
    Relation,
    SelectAll,
    SelectFields,
    SelectItem,
    Span,
    Table,
    Window,
    Within,
    rewrite,
)

# The words of a join, longest first, and what they mean.
JoinKind: TypeAlias = Literal["INNER", "LEFT", "RIGHT", "OUTER"]
JOINS: tuple[tuple[tuple[str, ...], JoinKind], ...] = (
    (("INNER", "JOIN"), "INNER"),
    (("LEFT", "OUTER", "JOIN"), "LEFT"),
    (("LEFT", "JOIN"), "LEFT"),
    (("RIGHT", "OUTER", "JOIN"), "RIGHT"),
    (("RIGHT", "JOIN"), "RIGHT"),
    (("FULL", "OUTER", "JOIN"), "OUTER"),
    (("FULL", "JOIN"), "OUTER"),
    (("OUTER", "JOIN"), "OUTER"),
    (("JOIN",), "INNER"),
)


def query(c: Cursor) -> Query:
    """Parse a query with all its clauses: WITH, SELECT, UNION ALL, EMIT, LIMIT and WAIT UNTIL."""
    c.enter()
    named = _with(c) if c.takes("WITH") else {}
    first = inlined(_select(c), named)
    union: list[Query] = []
    while c.takes("UNION", "ALL"):
        union.append(inlined(_select(c), named))
    c.leave()
    emit, limit = _emit(c), _limit(c) if c.takes("LIMIT") else None
    return replace(first, union=tuple(union), emit=emit, limit=limit, wait=wait(c))


def _with(c: Cursor) -> dict[str, Query]:
    """Parse `name AS (query), ...`; each query may use those before it."""
    named: dict[str, Query] = {}
    while True:
        name = c.name()
        c.expect("AS", "(")
        named[name] = inlined(query(c), named)
        c.expect(")")
        if not c.takes(","):
            return named


def inlined(node: Query, named: Mapping[str, Query]) -> Query:
    """Put the queries of WITH where their names stand."""

    def change(part: Node) -> Node | None:
        if isinstance(part, Table) and part.query is None and part.name in named:
            return replace(part, name=part.alias, query=named[part.name])
        return None

    return rewrite(node, change) if named else node


def _select(c: Cursor) -> Query:
    """Parse SELECT and its clauses up to HAVING."""
    at = c.at
    c.expect("SELECT")
    distinct = c.takes("DISTINCT")
    items = [_item(c)]
    while c.takes(","):
        items.append(_item(c))
    c.expect("FROM")
    source = _relation(c)
    window = _window(c) if c.takes("WINDOW") else None
    where = expression(c) if c.takes("WHERE") else None
    group_by, group_brackets = _expressions(c) if c.takes("GROUP", "BY") else (None, False)
    partition_by, partition_brackets = _expressions(c) if c.takes("PARTITION", "BY") else (None, False)
    having = expression(c) if c.takes("HAVING") else None
    return Query(
        tuple(items),
        source,
        window,
        where,
        group_by,
        partition_by,
        having,
        group_brackets=group_brackets,
        partition_brackets=partition_brackets,
        distinct=distinct,
        at=at,
    )


def _limit(c: Cursor) -> int:
    """Take the number of rows; a negative one is for the analysis to refuse."""
    negative = c.takes("-")
    if c.now.kind in ("decimal", "float"):
        raise ParseError("Failed to prepare statement: Value must be integer for command: LIMIT")
    return -c.integer() if negative else c.integer()


def _emit(c: Cursor) -> Literal["CHANGES", "FINAL"] | None:
    if not c.takes("EMIT"):
        return None
    if c.takes("CHANGES"):
        return "CHANGES"
    c.expect("FINAL")
    return "FINAL"


def _item(c: Cursor) -> Item:
    at = c.at
    if c.takes("*"):
        return SelectAll(at=at)
    if c.now.kind in ("name", "quoted") and c.ahead(1).value == "." and c.ahead(2).raw == "*":
        source = c.name()
        c.next()
        c.next()
        return SelectAll(source, at=at)
    value = expression(c)
    if c.takes("->", "*"):
        return SelectFields(value, at=at)
    if c.takes("AS"):
        return SelectItem(value, c.name(), at=at)
    named = c.now.kind == "quoted" or (c.now.kind == "name" and not c.now.reserved)
    return SelectItem(value, c.name() if named else None, at=at)


def _relation(c: Cursor) -> Relation:
    left: Relation = _table(c)
    while True:
        at = c.at
        kind: JoinKind | None = next((kind for words, kind in JOINS if c.takes(*words)), None)
        if kind is None:
            return left
        right = _table(c)
        within = _within(c) if c.takes("WITHIN") else None
        c.expect("ON")
        left = Join(kind, left, right, expression(c), within, at=at)


def _table(c: Cursor) -> Table:
    at = c.at
    if c.takes("("):
        if c.sees("SELECT") or c.sees("WITH"):
            return _subquery(c)
        table = _table(c)
        c.expect(")")
        return table
    name = c.name()
    moment = as_of(c)
    return Table(name, c.name() if takes_alias(c) else name, as_of=moment, at=at)


def takes_alias(c: Cursor) -> bool:
    """Step over AS; tell whether the alias of a source comes next."""
    if c.takes("AS"):
        return True
    clause = c.sees("EMIT") or c.sees("PARTITION", "BY") or c.sees("UNION", "ALL") or c.sees("WAIT", "UNTIL")
    return c.now.kind == "quoted" or (c.now.kind == "name" and not c.now.reserved and not clause)


def _subquery(c: Cursor) -> Table:
    at = c.at
    inner = query(c)
    c.expect(")")
    c.takes("AS")
    alias = c.name()
    return Table(alias, alias, inner, at=at)


def _within(c: Cursor) -> Within:
    at = c.at
    if c.takes("("):
        before = span(c)
        c.expect(",")
        after = span(c)
        c.expect(")")
    else:
        before = after = span(c)
    return Within(before, after, span(c) if c.takes("GRACE", "PERIOD") else None, at=at)


def _window(c: Cursor) -> Window:
    at = c.at
    if c.takes("SESSION", "("):
        size, advance = span(c), None
        kind = "SESSION"
    elif c.takes("TUMBLING", "(", "SIZE"):
        size, advance = span(c), None
        kind = "TUMBLING"
    elif c.takes("SLIDING", "(", "SIZE"):
        size, advance = span(c), None
        kind = "SLIDING"
    else:
        c.expect("HOPPING", "(", "SIZE")
        size = span(c)
        c.expect(",", "ADVANCE", "BY")
        advance = span(c)
        kind = "HOPPING"
    retention: Span | None = None
    grace: Span | None = None
    if c.takes(",", "RETENTION"):
        retention = span(c)
    if c.takes(",", "GRACE", "PERIOD"):
        grace = span(c)
    c.expect(")")
    return Window(kind, size, advance, retention, grace, at=at)


def _expressions(c: Cursor) -> tuple[tuple[Expression, ...], bool]:
    """Parse a list of value expressions, as a whole in brackets or not; tell whether it was."""
    if c.sees("(") and (listed := _bracketed(c)) is not None:
        return listed, True
    items = [value_expression(c)]
    while c.takes(","):
        items.append(value_expression(c))
    return tuple(items), False


def _bracketed(c: Cursor) -> tuple[Expression, ...] | None:
    """Parse `(a, b)`; None, and nothing is taken, if the bracket only begins an expression such as `(a) + b`."""
    place = c.place
    c.next()
    if c.takes(")"):
        return ()
    try:
        items = [value_expression(c)]
        while c.takes(","):
            items.append(value_expression(c))
        c.expect(")")
    except ParseError:
        c.place = place
        return None
    ends = c.now.kind == "end" or c.now.value in (";", "HAVING", "PARTITION", "EMIT", "LIMIT", "UNION", ")")
    if not ends:
        c.place = place
        return None
    return tuple(items)
