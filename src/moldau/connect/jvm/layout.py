"""How structs are packed: which fields are there, then all parts of fixed size, then the rest in the order of fields.

So the numbers of a struct, and the lengths of its texts, are read by one call. Java's side is Layout.java.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from moldau.connect.data import DATE, DECIMAL, TIME, TIMESTAMP, Instant, Schema, Type, scaled

NONE, PLAIN, TEXT, BYTES, INSTANT, NUMERIC, OTHER = range(7)  # how a field's value is packed
LOGICAL = {DECIMAL: (NUMERIC, "ii"), **dict.fromkeys((DATE, TIME, TIMESTAMP), (INSTANT, "q"))}
KINDS = {
    Type.INT8: (PLAIN, "b"),
    Type.INT16: (PLAIN, "h"),
    Type.INT32: (PLAIN, "i"),
    Type.INT64: (PLAIN, "q"),
    Type.FLOAT32: (PLAIN, "f"),
    Type.FLOAT64: (PLAIN, "d"),
    Type.BOOLEAN: (PLAIN, "?"),
    Type.STRING: (TEXT, "i"),  # its length
    Type.BYTES: (BYTES, "i"),
}
MOST_SHAPES = 256


Read = Callable[[Any, int, Any], tuple[Any, ...]]


class Shape(NamedTuple):
    """The fixed part where certain fields are there, how each value is packed, and what reads them all: a function of
    the bytes, where the fixed part begins, and the Unpacker, which then stands behind the struct.
    """

    fixed: struct.Struct
    ops: tuple[int, ...]
    read: Read


class Layout:
    """The layout of one schema. A mask has a bit for each field that is there, the first in the lowest bit."""

    def __init__(self, schema: Schema) -> None:
        self._kinds = [_kind(one.schema) for one in schema.fields]
        self.mask_size = (len(self._kinds) + 7) // 8
        self._shapes: dict[int, Shape] = {}

    def shape(self, mask: int) -> Shape:
        found = self._shapes.get(mask)
        if found is None:
            here = [kind if mask >> at & 1 else (NONE, "") for at, kind in enumerate(self._kinds)]
            fixed = struct.Struct(">" + "".join(text for _, text in here))
            if len(self._shapes) >= MOST_SHAPES:
                self._shapes.clear()
            ops = tuple(op for op, _ in here)
            found = self._shapes[mask] = Shape(fixed, ops, _reader(fixed, ops))
        return found


def _kind(schema: Schema) -> tuple[int, str]:
    return LOGICAL.get(schema.name or "") or KINDS.get(schema.type, (OTHER, ""))


def _reader(fixed: struct.Struct, ops: tuple[int, ...]) -> Read:
    """Make the function that reads the values of a shape; nothing of a schema becomes a part of its code."""
    parts: list[str] = []
    body: list[str] = []
    values: list[str] = []
    for number, op in enumerate(ops):
        part, value = f"f{len(parts)}", f"v{number}"
        if op in (PLAIN, INSTANT):
            parts.append(part)
            value = part if op == PLAIN else f"Instant({part})"
        elif op == OTHER:
            body += ["reader.at = at", f"{value} = reader.read(True)", "at = reader.at"]
        elif op == NONE:
            value = "None"
        else:
            size = f"f{len(parts) + (op == NUMERIC)}"
            parts += [part, size] if op == NUMERIC else [part]
            found = f"data[at : at + {size}]"
            decimal = f"scaled(int.from_bytes({found}, 'big', signed=True), {part})"
            made = {TEXT: f"{found}.decode('utf-8', 'replace')", BYTES: f"bytes({found})", NUMERIC: decimal}[op]
            body += [f"{value} = {made}", f"at += {size}"]
        values.append(value)
    if parts:
        body.insert(0, f"{', '.join(parts)}, = unpack_from(data, at)")
    lines = [body[0], "at += SIZE", *body[1:]] if parts else body
    lines += ["reader.at = at", f"return ({''.join(f'{one}, ' for one in values)})"]
    text = "def run(data, at, reader):\n" + "".join(f"    {line}\n" for line in lines)
    names: dict[str, Any] = {"unpack_from": fixed.unpack_from, "SIZE": fixed.size, "scaled": scaled, "Instant": Instant}
    exec(compile(text, "<a struct of a frame>", "exec"), names)
    return names["run"]
