"""Checks that several clauses share: types of expressions, aggregates in them, lists of names in messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.sql import functions
from moldau.sql.catalogue import Columns, Schema
from moldau.sql.errors import SqlError
from moldau.sql.printer import expression_text, quoted, type_text
from moldau.sql.tree import BOOLEAN, Call, Column, Expression, Node, Type, children, walk
from moldau.sql.typing import type_of


def typed(expression: Expression, columns: Mapping[str, Type]) -> Type:
    """Return the type of a column of SELECT; a bare NULL has none, and is refused."""
    found = type_of(expression, columns)
    if found is None:
        raise SqlError(
            "Can't infer a type of null. Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR)."
        )
    return found


def check_condition(condition: Expression, columns: Mapping[str, Type], clause: str) -> None:
    """Refuse a condition that is not a boolean."""
    try:
        found = type_of(condition, columns)
    except SqlError as error:
        raise SqlError(f"Error in {clause} expression: {error}") from None
    if found != BOOLEAN:
        shown = type_text(found, quoted) if found is not None else "null"
        raise SqlError(
            f"Type error in {clause} expression: Should evaluate to boolean but is {expression_text(condition)} "
            f"({shown}) instead."
        )


def calls_of(expression: Expression, kind: str) -> list[Call]:
    """Return the calls of functions of a kind, the outer ones first."""
    return [node for node in walk(expression) if isinstance(node, Call) and functions.kind(node.name) == kind]


def check_known(expression: Expression) -> None:
    """Refuse functions that do not exist."""
    for node in walk(expression):
        if isinstance(node, Call) and functions.kind(node.name) is None:
            raise SqlError(f"Can't find any functions with the name '{node.name}'")


def has_aggregate(expression: Expression) -> bool:
    return bool(calls_of(expression, "aggregate"))


def columns_outside(node: Node, covered: frozenset[Expression]) -> list[Column]:
    """Return the columns that stand neither in an aggregate nor in one of the covered expressions."""
    if isinstance(node, Expression) and node in covered:
        return []
    if isinstance(node, Call) and functions.kind(node.name) == "aggregate":
        return []
    if isinstance(node, Column):
        return [node]
    return [column for child in children(node) for column in columns_outside(child, covered)]


def columns_in(expressions: Iterable[Expression]) -> list[str]:
    """Return the names of all columns, each once, in order."""
    names = (node.name for e in expressions for node in walk(e) if isinstance(node, Column))
    return list(dict.fromkeys(names))


def by_name(schema: Schema) -> dict[str, Type]:
    return dict(schema.value)


def check_duplicates(columns: Columns, side: str) -> None:
    seen: set[str] = set()
    for name, kind in columns:
        if name in seen:
            raise SqlError(f"Duplicate {side} columns found in schema: {quoted(name)} {type_text(kind, quoted)}")
        seen.add(name)


def and_list(items: Iterable[str], word: str = "and") -> str:
    """Join words as a sentence does: a, b and c."""
    listed = list(items)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} {word} {listed[-1]}"
