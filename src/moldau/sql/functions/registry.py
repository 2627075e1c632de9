"""The registry of functions: rows of scalars, aggregates and table functions by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import SqlError
from ..tree import Type
from .signatures import Argument, Bindings, Signature, choose, read

TypeOf = Callable[[Sequence[Any]], Type]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A function of one row. Unless it `takes_nulls`, a null argument makes its result null without a call.

    `result` computes the type of the result of the types of the arguments where the signature cannot say it; `make`
    makes the function of those types where values alone do not say enough.
    """

    signature: Signature
    call: Callable[..., Any]
    doc: str = ""
    takes_nulls: bool = False
    result: TypeOf | None = None
    make: Callable[[Sequence[Any]], Callable[..., Any]] | None = None


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function that makes a list of rows of one."""

    signature: Signature
    call: Callable[..., list[Any]]
    doc: str = ""
    make: Callable[[Sequence[Any]], Callable[..., list[Any]]] | None = None  # as that of a Scalar


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A row of the aggregates: `make` returns an Aggregate of what is given."""

    signature: Signature
    make: Callable[[Any], Any]
    doc: str = ""
    constants: int = 0  # how many parameters at the end must be literals


Row = Scalar | TableFunction | AggregateFunction


@dataclass(slots=True)
class Registry:
    """All functions by upper-case name."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)  # the names that files of functions have brought

    def add(self, row: Row) -> None:
        self.rows.setdefault(row.signature.name.upper(), []).append(row)

    def overloads(self, name: str) -> list[Row]:
        found = self.rows.get(name.upper())
        if not found:
            raise SqlError(f"Can't find any functions with the name '{name}'")
        return found

    def kind(self, name: str) -> str | None:
        found = self.rows.get(name.upper())
        if not found:
            return None
        kinds = {Scalar: "scalar", TableFunction: "table", AggregateFunction: "aggregate"}
        return kinds[type(found[0])]

    def choose(self, name: str, arguments: Sequence[Argument]) -> tuple[Any, Bindings]:
        found = self.overloads(name)
        return choose(found[0].signature.name, found, arguments, isinstance(found[0], Scalar))


REGISTRY = Registry()


def scalar(
    *lines: str,
    doc: str = "",
    takes_nulls: bool = False,
    result: TypeOf | None = None,
    make: Callable[[Sequence[Any]], Callable[..., Any]] | None = None,
    registry: Registry = REGISTRY,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of one row under each of the signatures."""

    def register(call: Callable[..., Any]) -> Callable[..., Any]:
        for line in lines:
            registry.add(Scalar(read(line), call, doc or (call.__doc__ or ""), takes_nulls, result, make))
        return call

    return register


def table_function(
    *lines: str, doc: str = "", registry: Registry = REGISTRY
) -> Callable[[Callable[..., list[Any]]], Callable[..., list[Any]]]:
    """Register a table function."""

    def register(call: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        for line in lines:
            registry.add(TableFunction(read(line), call, doc or (call.__doc__ or "")))
        return call

    return register
