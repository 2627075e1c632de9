"""Avro with a schema registry, value by value: fastavro's codec behind Confluent's frame."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import fastavro
from fastavro import _read_py
from fastavro.read import SchemaResolutionError

from .context import Context, SerdeError
from .framing import frame, unframe
from .options import Options
from .primitive import excerpt
from .registry import Registry, Schema
from .schemas import formatted, parse
from .schemas.avro import Array, Named, Primitive, children
from .schemas.avro import Schema as Node
from .typed import Subjects
from .walking import walk_avro

MAX_DEPTH = 200
WRONG_VALUE = (ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError, RecursionError, struct.error)
WRONG_BYTES = (*WRONG_VALUE, EOFError, StopIteration, MemoryError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Codec:
    """A parsed schema. fastavro's compiled half recurses on the C stack without a limit, and a list of 200,000 links
    ends the process: of recursive schemas, bytes go through its Python half, which says RecursionError, and values are
    measured first."""

    node: Node
    name: str | None
    parsed: Any
    recursive: bool
    countless: bool  # has an array whose items take no bytes

    @property
    def raw(self) -> bool:
        """A schema of bytes alone is written without its length, as Java's serializer does."""
        return isinstance(self.node, Primitive) and self.node.kind == "bytes" and not self.node.props.get("logicalType")

    @property
    def read(self) -> Callable[..., Any]:
        return _read_py.schemaless_reader if self.recursive else fastavro.schemaless_reader


@lru_cache(maxsize=1000)
def codec(schema: Schema) -> Codec:
    if schema.type != "AVRO":
        raise SerdeError(f"the schema is {schema.type}, not AVRO")
    parsed = parse("AVRO", schema.text, schema.references, dict(schema.resolved))
    text = formatted(parsed, "resolved")
    facts = Facts()
    try:
        facts.walk(parsed.raw)
        known = fastavro.parse_schema(json.loads(text))
    except RecursionError:
        raise SerdeError("the schema nests too deeply") from None
    return Codec(parsed.raw, parsed.name, known, facts.recursive, facts.countless)


@dataclass(slots=True)
class Facts:
    """What is dangerous about a schema, found in one walk over its types, however often each is used."""

    recursive: bool = False
    countless: bool = False
    open: set[int] = field(default_factory=set)
    hollow: dict[int, bool] = field(default_factory=dict)  # by identity: takes no bytes at all

    def walk(self, node: Node) -> bool:
        """Say whether values of the node take no bytes."""
        if id(node) in self.open:
            self.recursive = True
            return False
        if id(node) not in self.hollow:
            self.open.add(id(node))
            inner = [self.walk(child) for child in children(node)]
            self.open.discard(id(node))
            self.hollow[id(node)] = is_hollow(node, inner)
            self.countless |= isinstance(node, Array) and inner[0]
        return self.hollow[id(node)]


def is_hollow(node: Node, inner: list[bool]) -> bool:
    match node:
        case Primitive():
            return node.kind == "null"
        case Named(kind="fixed"):
            return node.size == 0
        case Named(kind="record" | "error"):
            return all(inner)
    return False


@dataclass(slots=True)
class Avro:
    """Serializer and deserializer. `schema` is the writer's when values are written and the reader's when they are
    read; without one, values come as they were written."""

    subjects: Subjects

    @classmethod
    def of(
        cls, registry: Registry, schema: Schema | str | None = None, settings: Mapping[str, Any] | None = None
    ) -> Avro:
        own = Schema("AVRO", schema) if isinstance(schema, str) else schema
        name = codec(own).name if own else None
        return cls(Subjects(registry, Options.of(settings or {}), own, name))

    def to_bytes(self, value: Any, context: Context) -> bytes | None:
        if value is None:
            return None
        written = self.subjects.to_write(context)
        known = codec(written.schema)
        value = self.subjects.before_writing(written.schema, context, value, partial(walk_avro, known.node))
        payload = self.subjects.payload_to_write(written.schema, context, encode(known, value))
        return frame(written.ref, payload, context, in_header=self.subjects.options.in_header)

    def from_bytes(self, data: bytes | None, context: Context) -> Any:
        if data is None:
            return None
        ref, payload = unframe(data, context)
        schema = self.subjects.writer(ref, context)
        writer = codec(schema)
        payload = self.subjects.payload_to_read(schema, context, writer.name, payload)
        reader = self.subjects.reader(context, writer.name)
        known = codec(reader) if reader else None
        value = decode(payload, writer, known)
        walk = partial(walk_avro, (known or writer).node)
        return self.subjects.after_reading(schema, context, writer.name, value, walk)


def encode(to: Codec, value: Any) -> bytes:
    if to.raw:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SerdeError(f"{excerpt(value)} is not bytes, which the schema is")
        return bytes(value)
    if to.recursive and is_deeper(value, MAX_DEPTH):
        raise SerdeError(f"the value nests deeper than {MAX_DEPTH} levels")
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, to.parsed, value)
    except WRONG_VALUE as error:
        raise SerdeError(f"{excerpt(value)} does not fit the schema {to.name or ''}: {reason(error)}") from None
    return out.getvalue()


def is_deeper(value: Any, limit: int) -> bool:
    """Look level by level, without recursion."""
    level = [value]
    for _ in range(limit):
        level = [inner for outer in level for inner in parts(outer)]
        if not level:
            return False
    return True


def parts(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list() | tuple():
            return value
    return ()


def decode(payload: bytes, writer: Codec, reader: Codec | None) -> Any:
    if writer.raw:
        return bytes(payload)
    if writer.countless:
        raise SerdeError("the schema has an array whose items take no bytes: a few bytes could claim billions of them")
    try:
        read = writer.read if not (reader and reader.recursive) else reader.read
        return read(io.BytesIO(payload), writer.parsed, reader.parsed if reader else None)
    except WRONG_BYTES as error:
        raise SerdeError(f"the bytes do not fit the schema {writer.name or ''}: {reason(error)}") from None
    except SchemaResolutionError as error:
        raise SerdeError(f"what {writer.name or 'this schema'} wrote cannot be read: {error}") from None


def reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
