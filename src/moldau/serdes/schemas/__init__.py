"""Schemas of the three types that a registry keeps: Avro, JSON Schema and Protobuf.

`parse` understands a text and gives it its canonical form; `normalize` makes texts equal that mean the same;
`formatted` is another way to write one. All of it is pure and bounded by `Limits`; SchemaError says what is wrong. What
loads jsonschema or protobuf is imported by the first schema that needs it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import avro_text, json_text, proto_text
from .avro import Named, parse_avro
from .parsed import DEFAULT_LIMITS, NOTHING, UNLIMITED, Entity, Limits, Parsed, Reference, SchemaError, check_size
from .proto import File
from .proto_normal import normal_file
from .proto_parser import parse_proto
from .proto_scope import imported, scope_of
from .tags import Tags, entities_of, tags_of, write_tags

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

__all__ = [
    "TYPES",
    "Entity",
    "Limits",
    "Parsed",
    "Reference",
    "SchemaError",
    "Tags",
    "entities_of",
    "file_descriptors",
    "formatted",
    "imports_of",
    "normalize",
    "parse",
    "tags_of",
    "with_tags",
]

TYPES = ("JSON", "PROTOBUF", "AVRO")
Read = tuple[str, str | None, Any]  # canonical text, name, and what the type's own functions work on


def parse(
    type: str,
    text: str,
    references: Sequence[Reference] = (),
    resolved: Mapping[str, str] = NOTHING,
    *,
    new: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Parsed:
    """Read a schema from its text. `resolved` has the text of every schema that is referenced, also through others, by
    the name of its reference, and those that others need first; `new` adds the checks of a first registration."""
    if type not in READERS:
        raise SchemaError(f"schema type {type!r} is not known: use one of {', '.join(TYPES)}")
    check_size(text, resolved, limits)
    try:
        canonical, name, raw = READERS[type](text, dict(resolved), limits, new)
    except RecursionError:
        raise SchemaError("the schema nests too deeply") from None
    return Parsed(type, canonical, tuple(references), name, raw, dict(resolved))


def read_avro(text: str, resolved: dict[str, str], limits: Limits, new: bool) -> Read:
    schema, foreign = parse_avro(text, resolved, limits, new=new)
    name = schema.full_name if isinstance(schema, Named) and schema.is_record else None
    return avro_text.canonical(schema, foreign), name, schema


def read_json(text: str, resolved: dict[str, str], limits: Limits, new: bool) -> Read:
    from . import json_schema

    document = json_schema.read(text, limits)
    if new:
        json_schema.check(document, resolved, limits)
    title = document.get("title") if isinstance(document, dict) else None
    canonical = json_text.dumps(json_text.loads(text, limits, exact=True))
    return canonical, title if isinstance(title, str) else None, document


def read_protobuf(text: str, resolved: dict[str, str], limits: Limits, new: bool) -> Read:
    file = read_proto(text, limits)
    if new:
        from .proto_descriptor import descriptors

        imports = imported(file, resolved, limits, strict=True)
        descriptors(file, imports)
        normal_file(file, scope_of(file, imports))
    return proto_text.canonical(file), file.name, file


def read_proto(text: str, limits: Limits) -> File:
    """Read a file from its source, or otherwise from its descriptor in base64."""
    try:
        return parse_proto(text, limits)
    except SchemaError:
        from .proto_decode import decode, from_base64
        from .proto_descriptor import reader

        descriptor = from_base64(text)
        if descriptor is None:
            raise
        return decode(reader()(descriptor.SerializeToString()))


def normalize(parsed: Parsed) -> Parsed:
    """Return the same schema in the one form that all texts of its meaning share."""
    return parse_again(parsed, NORMALIZERS[parsed.type](parsed), tuple(sorted(set(parsed.references))))


def parse_again(parsed: Parsed, text: str, references: tuple[Reference, ...]) -> Parsed:
    again = parse(parsed.type, text, references, parsed.resolved, limits=UNLIMITED)
    return replace(again, version=parsed.version, reserved=parsed.reserved)


def normalize_avro(parsed: Parsed) -> str:
    foreign = parse_avro(parsed.text, parsed.resolved, UNLIMITED, new=False)[1]
    return avro_text.normalized(parsed.raw, foreign)


def normalize_json(parsed: Parsed) -> str:
    return json_text.dumps(json_text.in_order(json_text.loads(parsed.text, UNLIMITED, exact=True)))


def normalize_protobuf(parsed: Parsed) -> str:
    return proto_text.canonical(normal_file(parsed.raw, scope_of(parsed.raw, imports_of(parsed))))


def imports_of(parsed: Parsed) -> dict[str, File]:
    """Return all files that a Protobuf schema imports, also through others."""
    return imported(parsed.raw, parsed.resolved, UNLIMITED)


def file_descriptors(parsed: Parsed, name: str = "default") -> list[FileDescriptorProto]:
    """Return the descriptor of a Protobuf schema last, under that name, and before it all that it imports."""
    from .proto_descriptor import descriptors

    return descriptors(parsed.raw, imports_of(parsed), name)


def with_tags(parsed: Parsed, add: Tags, remove: Tags) -> Parsed:
    """Return the schema with tags added to some of its entities, and then removed from some."""
    return parse_again(parsed, write_tags(parsed, add, remove), parsed.references)


def formatted(parsed: Parsed, format: str) -> str:
    """Return the text in a format of the schema's type: the canonical text if it is unknown, as Confluent does."""
    match parsed.type, format.strip().lower():
        case "AVRO", "resolved":
            return avro_text.canonical(parsed.raw)
        case "PROTOBUF", "serialized":
            return b64encode(file_descriptors(parsed)[-1].SerializeToString()).decode()
        case "PROTOBUF", "ignore_extensions":
            return proto_text.canonical(proto_text.without_extensions(parsed.raw))
    return parsed.text


READERS = {"AVRO": read_avro, "JSON": read_json, "PROTOBUF": read_protobuf}
NORMALIZERS = {"AVRO": normalize_avro, "JSON": normalize_json, "PROTOBUF": normalize_protobuf}
