"""Protobuf files from descriptors, which is how clients without their source register them (in base64).

Names come fully qualified, labels only where the syntax asks for them, and a map stays the repeated entry that it is
on the wire. Options of extensions that the descriptor's own pool does not know are left out, as Confluent does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.message import DecodeError

from . import proto as p
from .proto_lexer import unescaped

Descriptor = pb.FileDescriptorProto
TYPE = pb.FieldDescriptorProto.Type
LABELS = {1: "optional", 2: "required", 3: "repeated"}
# The order in which options are written; others follow by their numbers.
FIRST = (
    "java_package", "java_outer_classname", "java_multiple_files", "java_generate_equals_and_hash",
    "java_string_check_utf8", "optimize_for", "go_package", "cc_generic_services", "java_generic_services",
    "py_generic_services", "ctype", "packed", "jstype", "no_standard_descriptor_accessor", "deprecated",
)  # fmt: skip


def from_base64(text: str) -> Descriptor | None:
    """Return the descriptor that a text holds, or None if it holds none."""
    try:
        decoded = Descriptor.FromString(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return decoded if decoded.message_type or decoded.enum_type or decoded.dependency or decoded.extension else None


def decode(file: Descriptor) -> p.File:
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    kinds = ("public" if n in public else "weak" if n in weak else "" for n in range(len(file.dependency)))
    syntax = file.syntax or None
    if syntax == "editions":
        syntax = pb.Edition.Name(file.edition).removeprefix("EDITION_").lower()
    return p.File(
        syntax,
        file.package,
        list(zip(kinds, file.dependency, strict=True)),
        options(file),
        [*(message(file, inner) for inner in file.message_type), *map(enum, file.enum_type)],
        extends(file, file.extension),
        [service(inner) for inner in file.service],
    )


def message(file: Descriptor, given: pb.DescriptorProto) -> p.Message:
    groups = {entry.type_name.rpartition(".")[2] for entry in given.field if entry.type == TYPE.TYPE_GROUP}
    oneofs = [p.Oneof(inner.name, [], options(inner)) for inner in given.oneof_decl]
    made = p.Message(given.name, options=options(given), extends=extends(file, given.extension))
    for entry in given.field:
        inside = entry.HasField("oneof_index") and not entry.proto3_optional
        decoded = field(file, entry, labelled=not inside)
        if entry.type == TYPE.TYPE_GROUP:
            body = next(inner for inner in given.nested_type if inner.name == entry.type_name.rpartition(".")[2])
            decoded.type, decoded.group = body.name, message(file, body)
        (oneofs[entry.oneof_index].fields if inside else made.fields).append(decoded)
    made.oneofs = [oneof for oneof in oneofs if oneof.fields]
    made.types = [message(file, inner) for inner in given.nested_type if inner.name not in groups]
    made.types += map(enum, given.enum_type)
    made.reserved = [p.Reserved([p.Range(part.start, part.end - 1)]) for part in given.reserved_range]
    made.reserved += [p.Reserved([name], quoted=file.syntax != "editions") for name in given.reserved_name]
    ranges = given.extension_range
    made.extensions = [p.Extensions([p.Range(part.start, part.end - 1)], options(part)) for part in ranges]
    return made


def field(file: Descriptor, given: pb.FieldDescriptorProto, *, labelled: bool) -> p.Field:
    kind = given.type_name or TYPE.Name(given.type).removeprefix("TYPE_").lower()
    made = p.Field(given.name, kind, given.number, label(file, given) if labelled else None, options(given))
    if given.HasField("default_value") and file.syntax != "proto3":
        made.default = given.default_value
        if given.type == TYPE.TYPE_BYTES:
            made.default = unescaped(f'"{given.default_value}"')
    made.json_name = given.json_name if given.HasField("json_name") else None
    return made


def label(file: Descriptor, given: pb.FieldDescriptorProto) -> str | None:
    if given.label == 3 or given.proto3_optional or file.syntax in ("", "proto2"):
        return "optional" if given.proto3_optional else LABELS[given.label]
    return None


def enum(given: pb.EnumDescriptorProto) -> p.Enum:
    constants = [p.Constant(value.name, value.number, options(value)) for value in given.value]
    made = p.Enum(given.name, constants, options=options(given))
    made.reserved = [p.Reserved([p.Range(part.start, part.end)]) for part in given.reserved_range]
    made.reserved += [p.Reserved([name]) for name in given.reserved_name]
    return made


def extends(file: Descriptor, given: Iterable[pb.FieldDescriptorProto]) -> list[p.Extend]:
    found: dict[str, p.Extend] = {}
    for entry in given:
        found.setdefault(entry.extendee, p.Extend(entry.extendee)).fields.append(field(file, entry, labelled=True))
    return list(found.values())


def service(given: pb.ServiceDescriptorProto) -> p.Service:
    methods = [
        p.Method(rpc.name, rpc.input_type, rpc.output_type, rpc.client_streaming, rpc.server_streaming, options(rpc))
        for rpc in given.method
    ]
    return p.Service(given.name, methods, options(given))


def options(given: Any) -> list[p.Option]:
    """Return the options of a descriptor; each value of a repeated one is an option by itself."""
    if not given.HasField("options"):
        return []
    found = [(entry, value) for entry, value in given.options.ListFields() if entry.name != "uninterpreted_option"]
    found.sort(key=lambda item: FIRST.index(item[0].name) if item[0].name in FIRST else len(FIRST))
    made: list[p.Option] = []
    for entry, value in found:
        name = entry.full_name if entry.is_extension else entry.name
        many = value if entry.is_repeated else [value]
        made += [p.Option(name, one_value(entry, item), entry.is_extension) for item in many]
    return made


def value_of(entry: Any, value: Any) -> p.Value:
    if not entry.is_repeated:
        return one_value(entry, value)
    if entry.message_type and entry.message_type.GetOptions().map_entry:
        key, item = entry.message_type.fields_by_name["key"], entry.message_type.fields_by_name["value"]
        return [{"key": one_value(key, name), "value": one_value(item, value[name])} for name in sorted(value)]
    return [one_value(entry, item) for item in value]


def one_value(entry: Any, value: Any) -> p.Value:
    if entry.message_type:
        return {
            f"[{inner.full_name}]" if inner.is_extension else inner.name: value_of(inner, item)
            for inner, item in value.ListFields()
        }
    if entry.enum_type:
        constant = entry.enum_type.values_by_number.get(value)
        return p.Literal(constant.name if constant else str(value))
    match value:
        case str():
            return p.Literal(value, is_string=True)
        case bytes():
            return p.Literal(value.decode("utf-8", "surrogateescape"), is_string=True)
        case bool():
            return p.Literal(str(value).lower())
    return p.Literal(repr(value))
