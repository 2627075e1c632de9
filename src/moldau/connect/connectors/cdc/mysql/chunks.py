"""Chunks of an incremental snapshot: rows in the order of the primary key, after the last key that was sent.

A key is kept in offsets, so its parts are numbers and texts: of bytes, their hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.connect.connectors.cdc.mysql.types import BINARIES, TEXTS, WHOLE, ColumnInfo, value_of

PLAIN = {"binary.handling.mode": "hex", "decimal.handling.mode": "string"}
BY_READING = (*TEXTS, *BINARIES, "decimal", "year", "uuid", "inet4", "inet6")
NUMBERS = (*WHOLE, "decimal", "year")


def part_of(column: ColumnInfo) -> Callable[[Any], Any] | None:
    """Return what makes a part of a key; None if the server does not compare values of the type as it orders them."""
    if column.kind in WHOLE:
        return int
    if column.kind in BY_READING:
        return value_of(column, PLAIN, column.name).read
    return str if column.kind in ("date", "datetime", "timestamp") else None


def key_after(
    key: Sequence[ColumnInfo],
    last: Sequence[Any] | None,
    quoted: Callable[[str], str],
    escaped: Callable[[str], str],
) -> str:
    """Return the condition that a row comes after a key; an index serves it, which `(a, b) > (1, 2)` would not."""
    if last is None:
        return ""
    parts = [(quoted(one.name), _literal(one, value, escaped)) for one, value in zip(key, last, strict=True)]
    found: list[str] = []
    for place, (name, value) in enumerate(parts):
        equal = [f"{one} = {other}" for one, other in parts[:place]]
        found.append(f"({' AND '.join([*equal, f'{name} > {value}'])})")
    return " OR ".join(found)


def _literal(column: ColumnInfo, value: Any, escaped: Callable[[str], str]) -> str:
    if column.kind in NUMBERS:
        return str(value)
    return f"x'{value}'" if column.kind in BINARIES else escaped(str(value))


def by_key(key: Sequence[ColumnInfo], rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """Return rows by their keys, in their order."""
    parts = [(one.name, part_of(one) or str) for one in key]
    return {tuple(part(row[name]) for name, part in parts): row for row in rows}
