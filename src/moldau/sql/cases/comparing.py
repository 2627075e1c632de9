"""Comparing what came out with what a case expects."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from moldau.sql.catalogue import Columns
from moldau.sql.tree import ArrayType, DecimalType, Field, MapType, Primitive, StructType, Type

TOLERANCE = 1e-6


def same_row(expected: Any, actual: Any, columns: Columns) -> bool:
    """Compare a key or a value with its columns: a record of them, or a single one that stands alone."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        record = StructType(tuple(Field(name, type) for name, type in columns))
        alone = columns[0][1] if len(columns) == 1 else None
        names = {name.upper() for name, _ in columns}
        if alone is None or {str(key).upper() for key in actual} <= names:
            return same(expected, actual, record)
        return same(expected, actual, alone)
    return same(expected, actual, columns[0][1] if len(columns) == 1 else None)


def same(expected: Any, actual: Any, type: Type | None = None) -> bool:
    """Compare two nodes: names without regard to case, doubles with a tolerance, decimals exactly, absent as null."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        mine = {str(key).upper(): value for key, value in actual.items()}
        wanted = {str(key).upper(): value for key, value in expected.items()}
        return all(same(wanted.get(key), mine.get(key), _inner(type, key)) for key in mine.keys() | wanted.keys())
    if isinstance(type, MapType) and isinstance(expected, dict) and actual == []:
        return not expected  # Avro has maps as arrays of entries, and this one has none
    if isinstance(expected, list) and isinstance(actual, list):
        item = type.item if isinstance(type, ArrayType) else None
        return len(expected) == len(actual) and all(same(*pair, item) for pair in zip(expected, actual, strict=True))
    if expected is None or actual is None or isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(type, DecimalType):
        return str(_decimal(expected)) == str(_decimal(actual))  # 1.0 is not 1.00
    if isinstance(expected, float) or isinstance(actual, float) or type == Primitive("DOUBLE"):
        return _close(expected, actual)
    return expected == actual


def _inner(type: Type | None, name: str) -> Type | None:
    match type:
        case StructType(fields):
            return next((each.type for each in fields if each.name.upper() == name), None)
        case MapType(_, value):
            return value
        case _:
            return None


def _decimal(value: Any) -> Any:
    """Read a decimal, which files write as a number or as text."""
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return value


def _close(expected: Any, actual: Any) -> bool:
    one, other = _number(expected), _number(actual)
    if one is None or other is None:
        return expected == actual
    return one == other or abs(one - other) <= TOLERANCE or (one != one and other != other)


def _number(value: Any) -> float | None:
    """Read a number; NaN and Infinity are written as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def shown(node: Any) -> str:
    """Print a node on one line."""
    return json.dumps(node, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)
