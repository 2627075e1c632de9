"""Compiles an Avro schema into a program that writes its columns as Avro."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..context import SerdeError
from ..schemas.avro import Array, Map, Named, Primitive, Schema, Union
from . import avro_code as op
from .avro_program import SIZES, Compiler, constant
from .avro_schema import is_decimal, logical, members_of
from .columns import Column

NUMBERS = {"int": op.INT, "long": op.LONG, "boolean": op.BOOL, "float": op.FIXED, "double": op.FIXED}


@dataclass(slots=True)
class WriterCompiler(Compiler):
    missing: set[int] = field(default_factory=set)

    def write(self, node: Schema, column: Column) -> None:
        if isinstance(node, Union):
            self.write_union(node, column)
            return
        if column.validity >= 0:
            self.emit(op.REQUIRE, column.validity)
        self.write_value(node, column)

    def write_union(self, node: Union, column: Column) -> None:
        """Write the branch of the first member that is set; null where none is, which fails where null is not a
        branch."""
        members = members_of(node)
        options = [column] if len(members) == 1 else column.children
        ends = []
        if len(members) > 1 and column.validity >= 0:
            ends.append(self.emit(op.IF_NULL, column.validity, 0))
        for member, inner in zip(members, options, strict=False):
            otherwise = self.emit(op.IF_NULL, inner.validity, 0) if inner.validity >= 0 else None
            self.emit(op.BRANCH, node.branches.index(member))
            self.write_value(member, inner)
            ends.append(self.emit(op.JUMP, 0))
            if otherwise is None:
                break
            self.code[otherwise][2] = len(self.code)
        self.finish_union(node, ends)

    def finish_union(self, node: Union, ends: list[int]) -> None:
        nulls = [number for number, branch in enumerate(node.branches) if branch.kind == "null"]
        at = len(self.code)
        self.emit(op.BRANCH, nulls[0]) if nulls else self.emit(op.FAIL, op.NULL)
        for end in ends:
            if self.code[end][0] == op.JUMP:
                self.code[end][1] = len(self.code)
            else:
                self.code[end][2] = at

    def write_value(self, node: Schema, column: Column) -> None:
        match node:
            case Array():
                self.items(lambda: self.write(node.items, column.field_of_item), op.NEXT, column.values)
            case Map():
                key, value = column.field_of_item.children
                self.items(lambda: (self.text(op.BYTES, key), self.write(node.values, value)), op.NEXT, column.values)
            case Named(kind="enum"):
                self.emit(op.ENUM, column.values)
            case Named(kind="fixed"):
                self.fixed(node, column)
            case Named():
                self.write_record(node, column)
            case Primitive(kind="bytes") if is_decimal(node):
                self.emit(op.DECIMAL, column.values, column.width)
            case Primitive(kind="bytes" | "string"):
                self.text(op.BYTES, column)
            case Primitive() if node.kind != "null":
                self.emit(NUMBERS[node.kind], column.values, SIZES.get(node.kind, 0))

    def write_record(self, node: Named, column: Column) -> None:
        for entry, inner in zip(node.fields, column.children, strict=True):
            if id(inner) not in self.missing:
                self.write(entry.type, inner)
                continue
            if not entry.has_default:
                raise SerdeError(f"there is no column for {entry.name} of {node.full_name}, and it has no default")
            start = len(self.constants)
            self.constants += constant(entry.type, entry.default)
            self.emit(op.CONSTANT, start, len(self.constants))


def compile_writer(node: Schema, root: Column, missing: set[int]) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the code, its constants, and how deep lists nest."""
    made = WriterCompiler(missing=missing)
    if isinstance(node, Primitive) and node.kind == "bytes" and not logical(node):
        made.text(op.RAW, root)
    elif isinstance(node, Union):
        made.write(node, root)
    else:
        made.write_value(node, root)
    made.emit(op.HALT)
    return np.array(made.code, np.int64), np.frombuffer(bytes(made.constants) or b"\0", np.uint8), made.deepest
