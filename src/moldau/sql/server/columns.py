"""The rows of a view as Arrow columns, for DuckDB.

Columns are made once. When keys have changed since, their rows are left out of the columns and the present ones added
at the end; when many have, everything is made anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.sql.catalogue import BOUNDS, Source
from moldau.sql.maps import items
from moldau.sql.server.arrow import arrow_type
from moldau.sql.server.materialized import MUCH, View
from moldau.sql.tree import ArrayType, MapType, Primitive, StructType, Type

ROWTIME = "ROWTIME"
Row = tuple[Any, ...]


@dataclass(slots=True)
class Kept:
    """Columns of a view: `made` at some time, with the sorted keys of each partition, and `now`."""

    keys: dict[int, list[bytes]]
    made: Any
    now: Any


def table_of(view: View, with_time: bool) -> Any:
    """Return the rows as a table: the key, the bounds of windows, the values, and ROWTIME if it is wanted."""
    names = shown(view.source)
    return columns_of(view).select([*names, ROWTIME] if with_time else names)


def columns_of(view: View) -> Any:
    kept = view.columns
    if kept is None or view.changed is None:
        view.is_slow = view.count() > MUCH
        try:
            kept = view.columns = _made(view)
        finally:
            view.is_slow = False
        view.changed = {}
    elif view.changed and not view.is_told:
        kept.now = _changed(view, kept)
    view.is_told = True
    return kept.now


def _made(view: View) -> Kept:
    keys = {partition: sorted(kept) for partition, kept in sorted(view.partitions.items())}
    rows = [view.partitions[partition][key] for partition, ordered in keys.items() for key in ordered]
    table = _table(view.source, rows)
    return Kept(keys, table, table)


def _changed(view: View, kept: Kept) -> Any:
    import pyarrow as pa

    assert view.changed is not None
    bits = bytearray(b"\xff") * (len(kept.made) // 8 + 1)
    firsts, first = {}, 0
    for partition, keys in kept.keys.items():
        firsts[partition], first = first, first + len(keys)
    for partition, key in view.changed:
        keys = kept.keys.get(partition, [])
        at = bisect_left(keys, key)
        if at < len(keys) and keys[at] == key:
            place = firsts[partition] + at
            bits[place // 8] &= ~(1 << place % 8)
    rows = [row for part, key in view.changed if (row := view.partitions[part].get(key)) is not None]
    stays = pa.Array.from_buffers(pa.bool_(), len(kept.made), [None, pa.py_buffer(bytes(bits))])
    return pa.concat_tables([kept.made.filter(stays), _table(view.source, rows)])


def layout_of(source: Source) -> list[tuple[str, Type | None]]:
    """Return what a row of a view has, in order; None for what is no column."""
    stored = (*source.stored_value, *((name, source.schema.find(name)) for name, _ in source.headers))
    bounds = BOUNDS if source.window is not None else ()
    return [*stored, (ROWTIME, Primitive("BIGINT")), ("", None), ("", None), *source.schema.key, *bounds]


def shown(source: Source) -> list[str]:
    bounds = BOUNDS if source.window is not None else ()
    headers = (name for name, _ in source.headers)
    return [*(name for name, _ in (*source.schema.key, *bounds, *source.stored_value)), *headers]


def _table(source: Source, rows: Sequence[Row]) -> Any:
    import pyarrow as pa

    made = {}
    for at, (name, kind) in enumerate(layout_of(source)):
        if kind is not None:
            made[name] = pa.array(_values(rows, at, converter(kind)), arrow_type(kind))
    return pa.table(made)


def _values(rows: Iterable[Row], at: int, convert: Callable[[Any], Any] | None) -> list[Any]:
    return [row[at] for row in rows] if convert is None else [convert(row[at]) for row in rows]


def converter(kind: Type) -> Callable[[Any], Any] | None:
    """Return what turns a value into Arrow's; None if they are the same."""
    match kind:
        case ArrayType():
            inner = converter(kind.item) or (lambda item: item)
            return lambda value: None if value is None else [inner(item) for item in value]
        case MapType():
            one, other = converter(kind.key) or (lambda k: k), converter(kind.value) or (lambda v: v)
            return lambda value: None if value is None else [(one(k), other(v)) for k, v in items(value)]
        case StructType():
            named = [(field.name, converter(field.type) or (lambda v: v)) for field in kind.fields]
            return lambda value: (
                None if value is None else {name: of(v) for (name, of), v in zip(named, value, strict=True)}
            )
        case _:
            return None
