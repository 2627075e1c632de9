"""Statements that ksqlDB does not have. `ksql.dialect=strict` refuses them, and queries that ksqlDB cannot read.

A query is beyond ksqlDB by a subquery in FROM, which WITH makes too, by UNION ALL, SELECT DISTINCT, WINDOW SLIDING,
AS OF or WAIT UNTIL.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.sql.errors import SqlError
from moldau.sql.tree import Expression, Query, Statement, Table, Window, walk

DIALECT, STRICT = "ksql.dialect", "strict"


@dataclass(frozen=True, slots=True)
class CreateFunction(Statement):
    """CREATE FUNCTION name FROM 'file.py': the file is in the folder of functions of each server."""

    name: str
    file: str
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFunction(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    """A name for a query. It has no topic, and runs only as a part of the queries that read it."""

    name: str
    query: Query
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropView(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DeleteFrom(Statement):
    """DELETE FROM table WHERE key = ...: a tombstone."""

    name: str
    where: Expression


STATEMENTS = (CreateFunction, DropFunction, CreateView, DropView, DeleteFrom)


def check_dialect(statement: Statement, dialect: str) -> None:
    """Refuse what ksqlDB does not have if the dialect is its own."""
    if dialect.lower() != STRICT:
        return
    if isinstance(statement, STATEMENTS):
        raise SqlError(f"This statement is not one of ksqlDB ({DIALECT}={STRICT}).")
    for node in walk(statement):
        if isinstance(node, Table) and node.query is not None:
            raise SqlError(f"Subqueries are not a part of ksqlDB ({DIALECT}={STRICT}).")
        if isinstance(node, Query) and (node.union or node.distinct):
            raise SqlError(f"UNION ALL and SELECT DISTINCT are not a part of ksqlDB ({DIALECT}={STRICT}).")
        if (isinstance(node, Table) and node.as_of is not None) or (isinstance(node, Query) and node.wait is not None):
            raise SqlError(f"AS OF and WAIT UNTIL are not a part of ksqlDB ({DIALECT}={STRICT}).")
        if isinstance(node, Window) and node.kind == "SLIDING":
            raise SqlError(f"Sliding windows are not a part of ksqlDB ({DIALECT}={STRICT}).")
