"""Schemas of the three types that a registry keeps: Avro, JSON Schema and Protobuf.

`parse` understands a text and gives it its canonical form; `normalize` makes texts equal that mean the same;
`formatted` is another way to write one. All of it is pure, bounded by `Limits`, and tells what is wrong by SchemaError.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from . import avro_text, json_schema, json_text, proto_text
from .avro import Named, parse_avro
from .parsed import DEFAULT_LIMITS, NOTHING, UNLIMITED, Entity, Limits, Parsed, Reference, SchemaError, check_size
from .proto import File
from .proto_decode import decode, from_base64
from .proto_descriptor import descriptors, reader
from .proto_normal import normal_file
from .proto_parser import parse_proto
from .proto_scope import imported, scope_of
from .tags import Tags, entities_of, tags_of, write_tags

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


def parse(
    type: str,
    text: str,
    references: Sequence[Reference] = (),
    resolved: Mapping[str, str] = NOTHING,
    *,
    new: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Parsed:
    """A schema from its text. `resolved` has the text of every schema that is referenced, also through others, by
    the name of its reference, and those that others need first; `new` adds the checks of a first registration.
    """
    if type not in READERS:
        raise SchemaError(f"schema type {type!r} is not known: use one of {', '.join(TYPES)}")
    check_size(text, resolved, limits)
    try:
        return READERS[type](text, tuple(references), dict(resolved), limits, new)
    except RecursionError:
        raise SchemaError("the schema nests too deeply") from None


def read_avro(
    text: str, references: tuple[Reference, ...], resolved: dict[str, str], limits: Limits, new: bool
) -> Parsed:
    schema, foreign = parse_avro(text, resolved, limits, new=new)
    name = schema.full_name if isinstance(schema, Named) and schema.is_record else None
    return Parsed("AVRO", avro_text.canonical(schema, foreign), references, name, schema, resolved)


def read_json(
    text: str, references: tuple[Reference, ...], resolved: dict[str, str], limits: Limits, new: bool
) -> Parsed:
    document = json_schema.read(text, limits)
    if new:
        json_schema.check(document, resolved, limits)
    title = document.get("title") if isinstance(document, dict) else None
    canonical = json_text.dumps(json_text.loads(text, limits, exact=True))
    return Parsed("JSON", canonical, references, title if isinstance(title, str) else None, document, resolved)


def read_protobuf(
    text: str, references: tuple[Reference, ...], resolved: dict[str, str], limits: Limits, new: bool
) -> Parsed:
    file = read_proto(text, limits)
    if new:
        imports = imported(file, resolved, limits, strict=True)
        descriptors(file, imports)
        normal_file(file, scope_of(file, imports))
    return Parsed("PROTOBUF", proto_text.canonical(file), references, file.name, file, resolved)


def read_proto(text: str, limits: Limits) -> File:
    """A file from its source, or else from its descriptor in base64."""
    try:
        return parse_proto(text, limits)
    except SchemaError:
        descriptor = from_base64(text)
        if descriptor is None:
            raise
        return decode(reader()(descriptor.SerializeToString()))


def normalize(parsed: Parsed) -> Parsed:
    """The same schema in the one form that all texts of its meaning share."""
    references = tuple(sorted(set(parsed.references)))
    again = parse(parsed.type, NORMALIZERS[parsed.type](parsed), references, parsed.resolved, limits=UNLIMITED)
    return replace(again, version=parsed.version, reserved=parsed.reserved)


def normalize_avro(parsed: Parsed) -> str:
    foreign = parse_avro(parsed.text, parsed.resolved, UNLIMITED, new=False)[1]
    return avro_text.normalized(parsed.raw, foreign)


def normalize_json(parsed: Parsed) -> str:
    return json_text.dumps(json_text.in_order(json_text.loads(parsed.text, UNLIMITED, exact=True)))


def normalize_protobuf(parsed: Parsed) -> str:
    return proto_text.canonical(normal_file(parsed.raw, scope_of(parsed.raw, imports_of(parsed))))


def imports_of(parsed: Parsed) -> dict[str, File]:
    """All files that a Protobuf schema imports, also through others."""
    return imported(parsed.raw, parsed.resolved, UNLIMITED)


def file_descriptors(parsed: Parsed, name: str = "default") -> list[FileDescriptorProto]:
    """The descriptor of a Protobuf schema last, under that name, and before it all that it imports."""
    return descriptors(parsed.raw, imports_of(parsed), name)


def with_tags(parsed: Parsed, add: Tags, remove: Tags) -> Parsed:
    """The schema with tags added to some of its entities, and then removed from some."""
    again = parse(parsed.type, write_tags(parsed, add, remove), parsed.references, parsed.resolved, limits=UNLIMITED)
    return replace(again, version=parsed.version, reserved=parsed.reserved)


def formatted(parsed: Parsed, format: str) -> str:
    """The text in a format of the schema's type; one that is not known is the canonical text, as Confluent has it."""
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
