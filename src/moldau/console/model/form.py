"""A form made from a schema: an entry for each field, the kind of its input, and the document that results.

What does not fit into a line (arrays, maps, unions, deep nesting) is one entry of JSON. All entries are text until
`document` reads them: a browser's numbers would lose the last digits of a long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from moldau.console.model.problems import Refused
from moldau.serdes import protobuf
from moldau.serdes.avro import codec
from moldau.serdes.registry import Schema
from moldau.serdes.schemas import avro

DEEPEST = 4  # records in records
MOST = 200  # entries
TEXTS = {
    "date": "2026-11-15",
    "time-millis": "10:00:00",
    "time-micros": "10:00:00",
    "timestamp-millis": "2026-11-15T10:00:00+00:00",
    "timestamp-micros": "2026-11-15T10:00:00+00:00",
    "decimal": "0.00",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "google.protobuf.Timestamp": "2026-11-15T10:00:00Z",
    "google.protobuf.Duration": "1s",
}


class Kind(StrEnum):
    """What an entry takes."""

    TEXT = "text"
    WHOLE = "a whole number"
    NUMBER = "a number"
    FLAG = "true or false"
    CHOICE = "one of several"
    JSON = "JSON"


FIRST = {Kind.TEXT: "", Kind.WHOLE: "0", Kind.NUMBER: "0", Kind.FLAG: "false", Kind.CHOICE: "", Kind.JSON: "null"}
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A field. If it is `optional` and empty, it is null, or left out if `absent` is set."""

    path: Path
    kind: Kind
    first: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False
    absent: bool = False

    @property
    def label(self) -> str:
        return ".".join(self.path) or "value"


def entries(schema: Schema) -> list[Entry]:
    """Return the entries of a schema; SerdeError if it is not valid."""
    match schema.type:
        case "AVRO":
            found = _avro((), codec(schema).node, 0)
        case "PROTOBUF":
            found = _message((), protobuf.named(protobuf.file_of(schema), None), 0)
        case _:
            root = _loaded(schema.text)
            found = _json((), root, root, 0)
    return list(islice(found, MOST))


def document(form: Sequence[Entry], given: Mapping[Path, str | None]) -> Any:
    """Return the document that the entries make; Refused names an entry that is wrong."""
    whole: Any = {}
    for entry in form:
        text = given.get(entry.path)
        value = None if entry.optional and text in (None, "") else _value(entry, text or "")
        if value is None and entry.optional and entry.absent:
            continue
        if not entry.path:
            return value
        inner = whole
        for name in entry.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[entry.path[-1]] = value
    return whole


def firsts(form: Sequence[Entry]) -> dict[Path, str | None]:
    """Return the initial texts of the entries."""
    return {entry.path: entry.first for entry in form}


def _value(entry: Entry, text: str) -> Any:
    try:
        match entry.kind:
            case Kind.WHOLE:
                return int(text)
            case Kind.NUMBER:
                return float(text)
            case Kind.FLAG:
                return text == "true"
            case Kind.JSON:
                return json.loads(text)
            case _:
                return text
    except (ValueError, RecursionError):
        raise Refused(f"{entry.label}: {text!r:.40} is not {entry.kind}.") from None


def _empty(path: Path, kind: Kind, choices: Sequence[str] = (), first: str | None = None) -> Entry:
    chosen = FIRST[kind] if first is None else first
    return Entry(path, kind, choices[0] if choices and not first else chosen, tuple(choices))


def _with_default(entry: Entry, default: Any) -> Entry:
    """Start an entry with the schema's default."""
    if default is None:
        return replace(entry, first="")
    if entry.kind is Kind.JSON or isinstance(default, bool):
        return replace(entry, first=json.dumps(default, ensure_ascii=False))
    return replace(entry, first=str(default))


AVRO = {"boolean": Kind.FLAG, "int": Kind.WHOLE, "long": Kind.WHOLE, "float": Kind.NUMBER, "double": Kind.NUMBER}


def _avro(path: Path, node: avro.Schema, depth: int) -> Iterator[Entry]:
    logical = node.props.get("logicalType") if isinstance(node, avro.Primitive | avro.Named) else None
    if isinstance(logical, str) and logical in TEXTS:
        yield _empty(path, Kind.TEXT, first=TEXTS[logical])
        return
    match node:
        case avro.Named(kind="record" | "error") if depth < DEEPEST:
            for field in node.fields:
                yield from _avro_field(path, field, depth)
        case avro.Named(kind="enum"):
            yield _empty(path, Kind.CHOICE, node.symbols)
        case avro.Named(kind="fixed"):
            yield _empty(path, Kind.TEXT, first="0" * node.size if node.size < MOST else "")
        case avro.Primitive() if node.kind != "null":
            yield _empty(path, AVRO.get(node.kind, Kind.TEXT))
        case avro.Union() if (one := _optional(node)) is not None:
            found = list(islice(_avro(path, one, depth + 1), 2))
            whole = found[0] if len(found) == 1 and found[0].path == path else Entry(path, Kind.JSON)
            yield replace(whole, first="", optional=True)
        case avro.Array() | avro.Map():
            yield _empty(path, Kind.JSON, first="[]" if isinstance(node, avro.Array) else "{}")
        case _:
            yield _empty(path, Kind.JSON)


def _avro_field(path: Path, field: avro.Field, depth: int) -> Iterator[Entry]:
    here = (*path, field.name)
    found = list(islice(_avro(here, field.type, depth + 1), MOST))
    if field.has_default and len(found) == 1 and found[0].path == here:
        found = [_with_default(found[0], field.default)]
    yield from found


def _optional(node: avro.Union) -> avro.Schema | None:
    """Return the other branch of a union of null and one other type."""
    others = [branch for branch in node.branches if branch.kind != "null"]
    return others[0] if len(others) == 1 and len(node.branches) == 2 else None


JSON = {"boolean": Kind.FLAG, "integer": Kind.WHOLE, "number": Kind.NUMBER, "string": Kind.TEXT}


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {}


def _json(path: Path, schema: Any, root: Any, depth: int) -> Iterator[Entry]:
    schema = _resolve(schema, root)
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    others = [kind for kind in kinds if kind != "null"]
    kind = others[0] if len(others) == 1 else None
    fields, choices = schema.get("properties"), schema.get("enum")
    entry = None
    if isinstance(fields, dict) and depth < DEEPEST:
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        for name, inner in fields.items():
            found = list(islice(_json((*path, name), inner, root, depth + 1), MOST))
            yield from found if name in needed else (replace(one, optional=True, absent=True) for one in found)
    elif isinstance(choices, list) and choices and all(isinstance(one, str) for one in choices):
        entry = _empty(path, Kind.CHOICE, choices)
    elif kind in JSON:
        entry = _empty(path, JSON[kind])
    else:
        entry = _empty(path, Kind.JSON, first="[]" if kind == "array" else "{}" if kind == "object" else None)
    if entry is not None:
        entry = replace(entry, optional="null" in kinds)
        given = next((schema[name] for name in ("default", "const") if name in schema), None)
        yield entry if given is None else _with_default(entry, given)


def _resolve(schema: Any, root: Any) -> dict[str, Any]:
    """Follow references within the document, which may be circular."""
    for _ in range(DEEPEST):
        if not isinstance(schema, dict):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return schema
        found = root
        for name in ref[2:].split("/"):
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        schema = found
    return {}


WHOLE = {
    FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64,
}  # fmt: skip
REAL = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}


def _message(path: Path, of: Descriptor, depth: int) -> Iterator[Entry]:
    for field in of.fields:
        yield from _protobuf((*path, field.name), field, depth)


def _protobuf(path: Path, field: FieldDescriptor, depth: int) -> Iterator[Entry]:
    inner = field.message_type
    one_of_many = field.containing_oneof is not None
    if field.is_repeated:
        mapped = inner is not None and inner.GetOptions().map_entry
        yield _empty(path, Kind.JSON, first="{}" if mapped else "[]")
    elif inner is not None and inner.full_name in TEXTS:
        yield _absent(_empty(path, Kind.TEXT, first=TEXTS[inner.full_name]), one_of_many)
    elif inner is not None and depth < DEEPEST and not one_of_many and not inner.full_name.startswith("google."):
        yield from _message(path, inner, depth + 1)
    elif inner is not None:
        yield replace(_empty(path, Kind.JSON), first="", optional=True, absent=True)
    elif field.enum_type is not None:
        yield _absent(_empty(path, Kind.CHOICE, [value.name for value in field.enum_type.values]), one_of_many)
    else:
        kind = Kind.WHOLE if field.cpp_type in WHOLE else Kind.NUMBER if field.cpp_type in REAL else Kind.TEXT
        kind = Kind.FLAG if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else kind
        yield _absent(_empty(path, kind), one_of_many)


def _absent(entry: Entry, one_of_many: bool) -> Entry:
    """Make an entry optional: every field of Protobuf may be left out, and fields of a oneof start empty."""
    return replace(entry, optional=True, absent=True, first="" if one_of_many else entry.first)
