"""All functions: their rows are in the modules of this package, a module for each kind of value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import SqlError
from ..tree import ArrayType, Expression, Type
from . import aggregates, collections, json, numbers, strings, tables, times, urls
from .aggregates import Aggregate
from .registry import REGISTRY, TableFunction
from .signatures import AnyDecimal, instantiate

__all__ = ["Aggregate", "aggregate", "kind", "table"]
MODULES = (aggregates, collections, json, numbers, strings, tables, times, urls)


def kind(name: str) -> str | None:
    """Say whether a function is a scalar, an aggregate or a table function; None if there is none of that name."""
    return REGISTRY.kind(name)


def aggregate(
    name: str, types: Sequence[Type | None], arguments: Sequence[Expression], settings: Mapping[str, Any] | None = None
) -> Aggregate:
    """Return the aggregate of that name for arguments of those types."""
    if REGISTRY.kind(name) != "aggregate":
        raise SqlError(f"Can't find any functions with the name '{name}'")
    return aggregates.resolve(name, types, arguments, settings or {}, REGISTRY)


def table(name: str, types: Sequence[Type | None]) -> tuple[Callable[..., list[Any]], Type]:
    """Return a table function and the type of its rows."""
    row, bindings = REGISTRY.choose(name, types)
    assert isinstance(row, TableFunction)
    result = instantiate(row.signature.result, bindings)
    if isinstance(row.signature.result, AnyDecimal):
        result = types[0].item if isinstance(types[0], ArrayType) else types[0]
    if result is None:
        raise SqlError(f"The type of the result of {name} is not known. Cast its arguments to the desired types.")
    return (row.make(types) if row.make else row.call), result
