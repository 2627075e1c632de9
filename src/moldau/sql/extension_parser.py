"""The parser of the statements that ksqlDB does not have (`extensions.py`)."""

from __future__ import annotations

from moldau.sql.cursor import Cursor
from moldau.sql.expression_parser import expression
from moldau.sql.extensions import CreateFunction, CreateView, DeleteFrom, DropFunction, DropView
from moldau.sql.query_parser import query
from moldau.sql.tree import Position, Statement


def create(c: Cursor, at: Position, or_replace: bool) -> Statement | None:
    """Parse CREATE FUNCTION or CREATE VIEW, whose first word has been read; None if it is another statement."""
    if c.takes("FUNCTION"):
        exists = c.takes("IF", "NOT", "EXISTS")
        name = c.name()
        c.expect("FROM")
        return CreateFunction(name.upper(), c.string(), or_replace, exists, at=at)
    if c.takes("VIEW"):
        exists = c.takes("IF", "NOT", "EXISTS")
        name = c.name()
        c.expect("AS")
        return CreateView(name, query(c), or_replace, exists, at=at)
    return None


def drop(c: Cursor, at: Position) -> Statement | None:
    """Parse DROP FUNCTION or DROP VIEW; None if it is another statement."""
    if c.takes("FUNCTION"):
        exists = c.takes("IF", "EXISTS")
        return DropFunction(c.name().upper(), exists, at=at)
    if c.takes("VIEW"):
        exists = c.takes("IF", "EXISTS")
        return DropView(c.name(), exists, at=at)
    return None


def delete(c: Cursor) -> Statement:
    at = c.at
    c.expect("DELETE", "FROM")
    name = c.name()
    c.expect("WHERE")
    return DeleteFrom(name, expression(c), at=at)
