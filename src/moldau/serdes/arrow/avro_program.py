"""Compiles a writer's and a reader's Avro schema into a program that reads into the reader's columns.

Avro's schema resolution: fields by name or alias, defaults, promotions, unions, enum defaults. What a branch of the
writer's union holds may have no place in the reader's schema: then only rows that take that branch are wrong.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moldau.wire.numbers import zigzag

from ..context import SerdeError
from ..schemas.avro import Array, Field, Map, Named, Primitive, Schema, Union, name_of
from . import avro_code as op
from .avro_schema import Columns, decimal_of, is_decimal, logical, members_of
from .columns import Column, Layout

MAX_STEPS = 100_000
PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
NUMBERS = {
    ("int", "int"): op.INT,
    ("int", "long"): op.LONG,
    ("long", "long"): op.LONG,
    ("int", "float"): op.INT_TO_FLOAT,
    ("long", "float"): op.INT_TO_FLOAT,
    ("int", "double"): op.INT_TO_DOUBLE,
    ("long", "double"): op.INT_TO_DOUBLE,
    ("float", "double"): op.FLOAT_TO_DOUBLE,
    ("boolean", "boolean"): op.BOOL,
}
DAYS = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
SIZES = {"boolean": 1, "float": 4, "double": 8}


class Unreadable(SerdeError):
    """What the writer wrote has no place in the reader's schema."""


@dataclass(frozen=True, slots=True)
class Program:
    root: Column
    layout: Layout
    code: np.ndarray
    table: np.ndarray
    limits: np.ndarray  # of decimals: powers of ten, little-endian
    constants: np.ndarray
    start: int
    depth: int


@dataclass(slots=True)
class Compiler:
    code: list[list[int]] = field(default_factory=list)
    table: list[int] = field(default_factory=list)
    limits: list[bytes] = field(default_factory=list)
    constants: bytearray = field(default_factory=bytearray)
    depth: int = 0
    deepest: int = 0
    steps: int = 0

    def step(self) -> None:
        """Count a step. A schema that uses each of its types twice doubles at every level, so the work is bounded."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise SerdeError(f"the schema needs more than {MAX_STEPS} instructions")

    def emit(self, *words: int) -> int:
        self.step()
        self.code.append([*words, *[0] * (op.OPERANDS - len(words))])
        return len(self.code) - 1

    def read(self, writer: Schema, reader: Schema, column: Column) -> None:
        if isinstance(writer, Union):
            self.branches(writer, lambda branch: self.read(branch, reader, column))
        elif isinstance(reader, Union):
            self.read_into_union(writer, reader, column)
        else:
            self.value(writer, reader, column)

    def branches(self, writer: Union, each: Any) -> None:
        table = len(self.table)
        self.table += [0] * len(writer.branches)
        self.emit(op.UNION, len(writer.branches), table)
        jumps = []
        for number, branch in enumerate(writer.branches):
            self.table[table + number] = len(self.code)
            depth = self.depth
            try:
                each(branch)
            except Unreadable:
                del self.code[self.table[table + number] :]
                self.depth = depth
                self.emit(op.FAIL, op.UNREADABLE)
            jumps.append(self.emit(op.JUMP, 0))
        for jump in jumps:
            self.code[jump][1] = len(self.code)

    def read_into_union(self, writer: Schema, reader: Union, column: Column) -> None:
        chosen = branch_for(writer, reader)
        if chosen.kind == "null":
            self.null(column)
            return
        if column.nullable and column.validity >= 0:
            self.emit(op.VALID, column.validity, 1)
        members = members_of(reader)
        if len(members) == 1:
            self.value(writer, chosen, column)
            return
        for member, inner in zip(members, column.children, strict=True):
            if member is chosen:
                if inner.validity >= 0:
                    self.emit(op.VALID, inner.validity, 1)
                self.value(writer, member, inner)
            else:
                self.null(inner)

    def null(self, column: Column) -> None:
        """Emit a null for the column and all columns below it."""
        if column.validity >= 0:
            self.emit(op.VALID, column.validity, 0)
        if column.kind in ("text", "list", "map"):
            self.emit(op.EMPTY, column.values, column.counter)
        elif column.kind == "struct":
            for child in column.children:
                self.null(child)

    def value(self, writer: Schema, reader: Schema, column: Column) -> None:
        if not fits(writer, reader):
            raise Unreadable(f"the writer's {name_of(writer)} cannot be read as {name_of(reader)}")
        match writer, reader:
            case (Array(), Array()):
                item = column.field_of_item
                self.items(lambda: self.read(writer.items, reader.items, item), op.NEXT, column.values, column.counter)
            case (Map(), Map()):
                key, value = column.field_of_item.children
                self.items(
                    lambda: (self.text(op.STRING, key), self.read(writer.values, reader.values, value)),
                    op.NEXT, column.values, column.counter,
                )  # fmt: skip
            case (Named(kind="enum"), Named()):
                table = len(self.table)
                self.table += [symbol_for(symbol, reader) for symbol in writer.symbols]
                self.emit(op.ENUM, column.values, table, len(writer.symbols))
            case (Named(kind="fixed"), Named()):
                self.fixed(reader, column)
            case (Named(), Named()):
                self.record(writer, reader, column)
            case (Primitive(), Primitive()):
                self.primitive(writer.kind, reader, column)

    def items(self, body: Any, next: int, *operands: int) -> None:
        """Emit a loop over the items of a list; each machine takes what it needs of the operands at its ends."""
        begin = self.emit(op.LIST, 0, *operands)
        self.deepen(1)
        body()
        self.code[begin][1] = self.emit(next, begin + 1, *operands)
        self.deepen(-1)

    def deepen(self, by: int) -> None:
        self.depth += by
        self.deepest = max(self.deepest, self.depth)

    def text(self, code: int, column: Column) -> None:
        self.emit(code, column.values, column.bytes, column.counter)

    def primitive(self, writer: str, reader: Primitive, column: Column) -> None:
        if reader.kind == "bytes" and is_decimal(reader):
            self.emit(op.DECIMAL, column.values, column.width, 0, self.limit(reader, column))
        elif reader.kind in ("bytes", "string"):
            self.text(op.BYTES if reader.kind == "bytes" else op.STRING, column)
        elif (writer, reader.kind) in NUMBERS:
            self.emit(NUMBERS[writer, reader.kind], column.values, DAYS.get(logical(reader), 0))
        elif reader.kind != "null":
            self.emit(op.FIXED, column.values, SIZES[reader.kind])

    def fixed(self, reader: Named, column: Column) -> None:
        if is_decimal(reader):
            self.emit(op.DECIMAL_FIXED, column.values, column.width, reader.size, self.limit(reader, column))
        elif column.kind == "text":
            self.text(op.UUID, column)
        elif logical(reader) == "duration" and reader.size == 12:
            self.emit(op.DURATION, column.values)
        else:
            self.emit(op.FIXED, column.values, reader.size)

    def limit(self, reader: Primitive | Named, column: Column) -> int:
        self.limits.append((10 ** decimal_of(reader)[0]).to_bytes(32, "little"))
        return len(self.limits) - 1

    def record(self, writer: Named, reader: Named, column: Column) -> None:
        taken: set[str] = set()
        for entry in writer.fields:
            wanted = reader_field(entry, reader)
            if wanted is None:
                self.skip(entry.type, ())
            else:
                taken.add(wanted.name)
                self.read(entry.type, wanted.type, column.children[reader.fields.index(wanted)])
        for entry, inner in zip(reader.fields, column.children, strict=True):
            if entry.name not in taken:
                self.default(entry, reader, inner)

    def default(self, entry: Field, reader: Named, column: Column) -> None:
        """Emit a default: its Avro bytes are a constant, which is read like any other value."""
        if not entry.has_default:
            raise Unreadable(f"the writer has no field {entry.name} of {reader.full_name}, and it has no default")
        start = len(self.constants)
        self.constants += constant(entry.type, entry.default)
        self.emit(op.CONSTANT, start, len(self.constants))
        self.deepen(1)
        self.read(entry.type, entry.type, column)
        self.deepen(-1)
        self.emit(op.RESUME)

    def skip(self, writer: Schema, above: tuple[Schema, ...]) -> None:
        if any(writer is other for other in above):
            raise SerdeError(f"{name_of(writer)} contains itself, and columns cannot: read it value by value")
        above = (*above, writer)
        self.step()
        match writer:
            case Union():
                self.branches(writer, lambda branch: self.skip(branch, above))
            case Array():
                self.items(lambda: self.skip(writer.items, above), op.SKIP_NEXT)
            case Map():
                self.items(lambda: (self.emit(op.SKIP_BYTES), self.skip(writer.values, above)), op.SKIP_NEXT)
            case Named(kind="record" | "error"):
                for entry in writer.fields:
                    self.skip(entry.type, above)
            case Named(kind="fixed"):
                self.emit(op.SKIP_FIXED, writer.size)
            case Primitive(kind="bytes" | "string"):
                self.emit(op.SKIP_BYTES)
            case Primitive() if writer.kind in SIZES:
                self.emit(op.SKIP_FIXED, SIZES[writer.kind])
            case Primitive(kind="null"):
                pass
            case _:
                self.emit(op.SKIP_NUMBER)


def compile_reader(writer: Schema, reader: Schema, dictionaries: bool = False) -> Program:
    columns = Columns(dictionaries)
    root = columns.root(reader)
    made = Compiler()
    made.null(root)
    made.emit(op.HALT)
    start = len(made.code)
    if root.validity >= 0:
        made.emit(op.VALID, root.validity, 1)
    if isinstance(writer, Primitive) and writer.kind == "bytes" and not logical(writer) and root.kind == "text":
        made.text(op.RAW, root)
    else:
        made.read(writer, reader, root)
    made.emit(op.HALT)
    limits = np.frombuffer(b"".join(made.limits) or bytes(32), np.uint8).reshape(-1, 32)
    constants = np.frombuffer(bytes(made.constants) or b"\0", np.uint8)
    code, table = np.array(made.code, np.int64), np.array(made.table or [0], np.int64)
    return Program(root, columns.layout, code, table, limits, constants, start, made.deepest)


def fits(writer: Schema, reader: Schema) -> bool:
    match writer, reader:
        case (Named(), Named()):
            same = writer.kind == reader.kind or (writer.is_record and reader.is_record)
            return same and named_alike(writer, reader) and writer.size == reader.size
        case (Primitive(), Primitive()):
            return writer.kind == reader.kind or reader.kind in PROMOTIONS.get(writer.kind, ())
    return writer.kind == reader.kind and writer.kind in ("array", "map")


def named_alike(writer: Named, reader: Named) -> bool:
    aliases = (alias.rpartition(".")[2] for alias in reader.aliases)
    return writer.name == reader.name or writer.full_name in reader.aliases or writer.name in aliases


def branch_for(writer: Schema, reader: Union) -> Schema:
    """Choose the branch of the same name or type, otherwise the first that it can be promoted to."""
    for same in (is_same, fits):
        for branch in reader.branches:
            if same(writer, branch):
                return branch
    raise Unreadable(f"the writer's {name_of(writer)} is not a branch of the reader's union")


def is_same(writer: Schema, reader: Schema) -> bool:
    return fits(writer, reader) and name_of(writer) == name_of(reader)


def reader_field(entry: Field, reader: Named) -> Field | None:
    for same in (lambda f: f.name == entry.name, lambda f: entry.name in f.aliases):
        for wanted in reader.fields:
            if same(wanted):
                return wanted
    return None


def symbol_for(symbol: str, reader: Named) -> int:
    wanted = symbol if symbol in reader.symbols else reader.default
    return reader.symbols.index(wanted) if wanted is not None else -1


def constant(node: Schema, value: Any) -> bytes:
    """Return the Avro bytes of a default in its JSON form."""
    match node:
        case Union():
            for number, branch in enumerate(node.branches):
                try:
                    return zigzag(number) + constant(branch, value)
                except (TypeError, ValueError, AttributeError, KeyError):
                    continue
            raise ValueError(f"the default {value!r} is of no branch of its union")
        case Array():
            return (
                zigzag(len(value)) + b"".join(constant(node.items, item) for item in listed(value)) if value else b""
            ) + b"\0"
        case Map():
            pairs = (text_bytes(key) + constant(node.values, item) for key, item in value.items())
            return (zigzag(len(value)) + b"".join(pairs) if value else b"") + b"\0"
        case Named(kind="enum"):
            return zigzag(node.symbols.index(value))
        case Named(kind="fixed"):
            return value.encode("latin-1")
        case Named():
            return b"".join(constant(f.type, value.get(f.name, f.default)) for f in node.fields)
    return primitive_constant(node.kind, value)


def primitive_constant(kind: str, value: Any) -> bytes:
    match kind, value:
        case ("null", None):
            return b""
        case ("boolean", bool()):
            return bytes((value,))
        case ("int" | "long", int()) if not isinstance(value, bool):
            return zigzag(value)
        case ("float" | "double", int() | float()) if not isinstance(value, bool):
            return struct.pack("<f" if kind == "float" else "<d", value)
        case ("bytes", str()):
            return zigzag(len(value)) + value.encode("latin-1")
        case ("string", str()):
            return text_bytes(value)
    raise TypeError(f"the default {value!r} is no {kind}")


def listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def text_bytes(value: str) -> bytes:
    return zigzag(len(value.encode())) + value.encode()
