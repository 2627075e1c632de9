"""Values of rows as JSON nodes, in the form in which ksqlDB's server sends them."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from typing import Any

from moldau.sql.casts import date_text, time_text, timestamp_text
from moldau.sql.maps import items
from moldau.sql.tree import ArrayType, MapType, Primitive, StructType, Type

_TEXTS: dict[str, Callable[[Any], Any]] = {
    "BYTES": lambda value: base64.b64encode(value).decode(),
    "DATE": date_text,
    "TIME": time_text,
    "TIMESTAMP": timestamp_text,
    "DOUBLE": lambda value: value if math.isfinite(value) else _special(value),
}


def _special(value: float) -> str:
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def node(value: Any, kind: Type) -> Any:
    """Return a value of a type as JSON."""
    if value is None:
        return None
    match kind:
        case ArrayType():
            return [node(item, kind.item) for item in value]
        case MapType():
            return {_key(key): node(item, kind.value) for key, item in items(value)}
        case StructType():
            return {f.name: node(item, f.type) for f, item in zip(kind.fields, value, strict=True)}
        case Primitive() if kind.name in _TEXTS:
            return _TEXTS[kind.name](value)
        case _:
            return value


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def row_nodes(row: Sequence[Any], types: Sequence[Type]) -> list[Any]:
    return [node(value, kind) for value, kind in zip(row, types, strict=True)]
