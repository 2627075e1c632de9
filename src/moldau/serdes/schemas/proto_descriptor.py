"""Protobuf files as descriptors: what protoc would make of them, checked by the library's own descriptor pool.

Options that mean nothing to Protobuf stay in the text and are left out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2 as pb
from google.protobuf import text_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from .parsed import SchemaError
from .proto import SCALARS, Enum, Extend, Field, File, Literal, Message, Option, Range, Reserved
from .proto_known import known_descriptor, known_file
from .proto_scope import Scope, scope_of
from .proto_text import value_text

TYPE = pb.FieldDescriptorProto.Type
LABEL = pb.FieldDescriptorProto.Label
LABELS = {"optional": LABEL.LABEL_OPTIONAL, "required": LABEL.LABEL_REQUIRED, "repeated": LABEL.LABEL_REPEATED}
OPTIONS_OF = "google.protobuf."
Path = tuple[str, ...]


@dataclass(slots=True)
class Builder:
    """Makes one descriptor; extensions among the options wait until the file is in a pool that knows them."""

    file: File
    scope: Scope
    waiting: list[tuple[Any, list[Option], Path]] = field(default_factory=list)

    def build(self, name: str) -> pb.FileDescriptorProto:
        file = self.file
        made = pb.FileDescriptorProto(name=name, package=file.package)
        if file.is_edition:
            made.syntax, made.edition = "editions", edition(file.syntax or "")
        elif file.syntax:
            made.syntax = file.syntax
        for position, (kind, path) in enumerate(file.imports):
            made.dependency.append(path)
            if kind in ("public", "weak"):
                getattr(made, f"{kind}_dependency").append(position)
        self.types(file.types, made.message_type, made.enum_type, ())
        self.extends(file.extends, made.extension, ())
        for service in file.services:
            into = made.service.add(name=service.name)
            self.options(into, service.options, ())
            for rpc in service.methods:
                request, response = self.scope.resolve(rpc.request, ()), self.scope.resolve(rpc.response, ())
                method = into.method.add(name=rpc.name, input_type=request, output_type=response)
                method.client_streaming, method.server_streaming = rpc.request_streams, rpc.response_streams
                self.options(method, rpc.options, ())
        self.options(made, file.options, ())
        return made

    def types(self, nodes: Sequence[Message | Enum], messages: Any, enums: Any, path: Path) -> None:
        for node in nodes:
            if isinstance(node, Enum):
                self.enum(node, enums.add(name=node.name), path)
            else:
                self.message(node, messages.add(name=node.name), path)

    def message(self, node: Message, made: pb.DescriptorProto, path: Path) -> None:
        inside = (*path, node.name)
        for entry in node.fields:
            self.field(entry, made.field.add(), inside, made)
        for position, oneof in enumerate(node.oneofs):
            self.options(made.oneof_decl.add(name=oneof.name), oneof.options, inside)
            for entry in oneof.fields:
                self.field(entry, made.field.add(oneof_index=position), inside, made)
        self.optionals(made)
        self.types(node.types, made.nested_type, made.enum_type, inside)
        self.extends(node.extends, made.extension, inside)
        reserve(made, node.reserved, lambda last: last + 1)
        for extensions in node.extensions:
            for part in extensions.ranges:
                self.options(made.extension_range.add(start=part.first, end=part.last + 1), extensions.options, inside)
        self.options(made, node.options, inside)

    def optionals(self, made: pb.DescriptorProto) -> None:
        """Put each optional field of proto3 alone into a oneof that nobody wrote."""
        if self.file.syntax != "proto3":
            return
        for entry in made.field:
            if entry.proto3_optional:
                entry.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{entry.name}")

    def field(self, entry: Field, made: pb.FieldDescriptorProto, path: Path, owner: Any) -> None:
        made.name, made.number = entry.name, entry.number
        made.label = LABELS[entry.label or "optional"]
        made.proto3_optional = entry.label == "optional" and self.file.syntax == "proto3"
        if not made.proto3_optional:
            made.ClearField("proto3_optional")
        if entry.group:
            self.message(entry.group, owner.nested_type.add(name=entry.group.name), path)
            made.type, made.type_name = TYPE.TYPE_GROUP, self.scope.resolve(entry.group.name, path)
        elif entry.map_types:
            self.map_field(entry, made, path, owner)
        else:
            self.set_type(made, entry.type, path)
        if entry.default is not None:
            made.default_value = default_text(entry)
        if entry.json_name is not None:
            made.json_name = entry.json_name
        self.options(made, entry.options, path)

    def set_type(self, made: pb.FieldDescriptorProto, name: str, path: Path) -> None:
        if name in SCALARS:
            made.type = TYPE.Value(f"TYPE_{name.upper()}")
            return
        made.type_name = self.scope.resolve(name, path)
        is_enum = isinstance(self.scope.types[made.type_name[1:]].node, Enum)
        made.type = TYPE.TYPE_ENUM if is_enum else TYPE.TYPE_MESSAGE

    def map_field(self, entry: Field, made: pb.FieldDescriptorProto, path: Path, owner: Any) -> None:
        name = "".join(part[:1].upper() + part[1:] for part in entry.name.split("_")) + "Entry"
        nested = owner.nested_type.add(name=name)
        nested.options.map_entry = True
        for position, (part, kind) in enumerate(zip(("key", "value"), entry.map_types or (), strict=True), 1):
            inner = nested.field.add(name=part, number=position, label=LABEL.LABEL_OPTIONAL)
            self.set_type(inner, kind, path)
        made.label, made.type = LABEL.LABEL_REPEATED, TYPE.TYPE_MESSAGE
        made.type_name = "." + ".".join((*([self.file.package] if self.file.package else []), *path, name))

    def extends(self, extends: Sequence[Extend], made: Any, path: Path) -> None:
        for extend in extends:
            extendee = self.scope.resolve(extend.name, path)
            for entry in extend.fields:
                self.field(entry, made.add(extendee=extendee), path, None)

    def enum(self, node: Enum, made: pb.EnumDescriptorProto, path: Path) -> None:
        inside = (*path, node.name)
        for constant in node.constants:
            self.options(made.value.add(name=constant.name, number=constant.number), constant.options, inside)
        reserve(made, node.reserved, lambda last: min(last, (1 << 31) - 1))
        self.options(made, node.options, inside)

    def options(self, made: Any, options: list[Option], path: Path) -> None:
        for option in options:
            if not option.is_extension:
                merge_text(made.options, option_as_text(option.name, option))
        extensions = [option for option in options if option.is_extension]
        if extensions:
            self.waiting.append((made, extensions, path))

    def finish(self, pool: DescriptorPool) -> None:
        """Set the options that are extensions, with the classes of a pool in which the file itself stands. Those of
        Confluent mean something also in a file that does not import them."""
        for made, options, path in self.waiting:
            for option in options:
                full = self.scope.find_extension(option.name, path)
                if full is not None:
                    set_extension(made.options, full, option, pool)
                elif option.name.startswith("confluent."):
                    set_extension(made.options, option.name, option, meta_pool())


def reserve(made: Any, given: Sequence[Reserved], end_of: Callable[[int], int]) -> None:
    """Reserve names and ranges; the end of a range is exclusive in messages and inclusive in enums."""
    for value in (value for reserved in given for value in reserved.values):
        if isinstance(value, Range):
            made.reserved_range.add(start=value.first, end=end_of(value.last))
        else:
            made.reserved_name.append(value)


def edition(name: str) -> pb.Edition.ValueType:
    try:
        return pb.Edition.Value(f"EDITION_{name.upper()}")
    except ValueError:
        raise SchemaError(f"edition {name!r} is not known") from None


def default_text(entry: Field) -> str:
    """Return a default as descriptors hold it: bytes with escapes, numbers in decimal digits."""
    text = entry.default or ""
    if entry.type == "bytes":
        return value_text(Literal(text, is_string=True))[1:-1]
    if entry.type in ("string", "bool") or entry.type not in SCALARS:
        return text
    try:
        return str(int(text, 0))
    except ValueError:
        return text


def option_as_text(name: str, option: Option) -> str:
    """Return an option in the text format of messages."""
    value = option.nested_value()
    if isinstance(value, dict):
        return f"{name} {value_text(value)}"
    return f"{name}: {value_text(value)}"


def merge_text(message: Any, text: str, pool: DescriptorPool | None = None) -> None:
    """Merge what can be understood; the rest is not an option of this message."""
    copy = type(message)()
    try:
        text_format.Merge(text, copy, descriptor_pool=pool)
    except text_format.ParseError:
        return
    message.MergeFrom(copy)


def descriptors(file: File, imports: Mapping[str, File], name: str = "default") -> list[pb.FileDescriptorProto]:
    """Return the file's descriptor last, and before it those of all that it imports."""
    pool = DescriptorPool()
    return [add(pool, path, each, imports) for path, each in (*imports.items(), (name, file))]


def add(pool: DescriptorPool, name: str, file: File, imports: Mapping[str, File]) -> pb.FileDescriptorProto:
    known = known_descriptor(name) if file is known_file(name) else None
    if known is not None:
        into(pool, known)
        return known
    builder = Builder(file, scope_of(file, imports))
    made = builder.build(name)
    into(pool, made)
    builder.finish(pool)
    return made


def into(pool: DescriptorPool, made: pb.FileDescriptorProto) -> None:
    try:
        pool.AddSerializedFile(made.SerializeToString())
    except TypeError as error:
        problem = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
        raise SchemaError(f"{made.name if made.name != 'default' else 'the schema'}: {problem}") from None


def set_extension(options: Any, name: str, option: Option, pool: DescriptorPool) -> None:
    try:
        kind = pool.FindMessageTypeByName(f"{OPTIONS_OF}{type(options).__name__}")
    except KeyError:
        return
    message = GetMessageClass(kind)()
    merge_text(message, option_as_text(f"[{name}]", option), pool)
    options.MergeFromString(message.SerializeToString())


@cache
def meta_pool() -> DescriptorPool:
    """Make a pool of descriptors and of the options that Confluent extends them by."""
    pool = DescriptorPool()
    files = {path: known_file(path) or File() for path in ("google/protobuf/descriptor.proto", "confluent/meta.proto")}
    for path, file in files.items():
        add(pool, path, file, files)
    return pool


@cache
def reader() -> Callable[[bytes], Any]:
    """Return what reads descriptors with options of Confluent's extensions."""
    return GetMessageClass(meta_pool().FindMessageTypeByName("google.protobuf.FileDescriptorProto")).FromString
