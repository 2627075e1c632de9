"""Steps, sources and catalogues as JSON, for the command topic: `decoded(encoded(plan))` is the plan.

A node is an object with its class under `@`; fields that have their defaults are left out, so a field that a later
release adds is read as its default. Only classes of the tree, the steps and the catalogue are made of names: nothing in
a topic becomes any other object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from moldau.sql import catalogue, steps, tree

CLASS = "@"
OTHERS = ("set", "map", "decimal", "bytes", "float")


def encoded(value: Any) -> Any:
    """Return what `json.dumps` takes."""
    match value:
        case None | bool() | int() | str():
            return value
        case tuple() | list():
            return [encoded(item) for item in value]
        case float():
            return {CLASS: "float", "is": value.hex()}  # nan and infinities too
        case Decimal():
            return {CLASS: "decimal", "is": str(value)}
        case bytes():
            return {CLASS: "bytes", "is": value.hex()}
        case set() | frozenset():
            return {CLASS: "set", "is": sorted(value)}
        case Mapping():
            return {CLASS: "map", "is": [[key, encoded(item)] for key, item in value.items()]}
        case _:
            return {CLASS: type(value).__name__, **dict(_fields(value))}


def _fields(node: Any) -> Iterator[tuple[str, Any]]:
    if classes().get(type(node).__name__) is not type(node):
        raise TypeError(f"{type(node).__name__} is not a part of a plan")
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if field.name != "at" and not (value == field.default and type(value) is type(field.default)):
            yield field.name, encoded(value)


def decoded(document: Any) -> Any:
    """Return the value of a document; ValueError if it is none of ours."""
    if isinstance(document, list):
        return tuple(decoded(item) for item in document)
    if not isinstance(document, dict):
        return document
    name, fields = str(document.get(CLASS)), {key: item for key, item in document.items() if key != CLASS}
    try:
        if name in OTHERS:
            return _other(name, fields["is"])
        return classes()[name](**{key: decoded(item) for key, item in fields.items()})
    except (KeyError, TypeError) as error:
        raise ValueError(f"a plan with the node {name} cannot be read: {error}") from None


def _other(name: str, value: Any) -> Any:
    match name:
        case "set":
            return frozenset(value)
        case "map":
            return {key: decoded(item) for key, item in value}
        case "decimal":
            return Decimal(value)
        case "bytes":
            return bytes.fromhex(value)
        case _:
            return float.fromhex(value)


@cache
def classes() -> dict[str, type[Any]]:
    """Return the classes of nodes by name."""
    return {
        name: one
        for module in (tree, steps, catalogue)
        for name, one in vars(module).items()
        if isinstance(one, type) and dataclasses.is_dataclass(one) and one.__module__ == module.__name__
    }
