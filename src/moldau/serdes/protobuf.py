"""Protobuf with a schema registry: messages behind Confluent's frame, which also says which message of the file it is.

A message class brings its schema along: its file is registered in serialized form, and each file that it imports under
a subject of the import's name, as Confluent's serializers do. Without a class, one is made from the registry's schema.
"""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from .context import Context, SerdeError
from .framing import SchemaRef, frame, unframe
from .options import Options
from .registry import Registry, Schema
from .rules import BYTES, NO_RULES, STRING, Visit
from .schemas import Reference, formatted, parse
from .schemas.proto_known import GOOGLE, known_descriptor
from .typed import Subjects

ROOT = "default"  # the name of the file whose own name nobody knows
PACKAGE = "confluent_kafka.schema_registry.confluent"
CONFLUENT = {  # files that come with confluent-kafka, and the modules that have them
    f"confluent/{name}.proto": f"{PACKAGE}.{name.replace('/', '.')}_pb2"
    for name in ("meta", "type/decimal", "types/decimal")
}
SERIALIZED = "serialized"


@lru_cache(maxsize=1000)
def file_of(schema: Schema) -> FileDescriptor:
    """Return the schema as a file with its imports, in a pool of its own."""
    if schema.type != "PROTOBUF":
        raise SerdeError(f"the schema is {schema.type}, not PROTOBUF")
    protos = {name: file_proto(name, text, schema) for name, text in schema.resolved}
    protos[ROOT] = file_proto(ROOT, schema.text, schema)
    pool = DescriptorPool()
    try:
        add(pool, ROOT, protos, set())
        return pool.FindFileByName(ROOT)
    except (TypeError, KeyError) as error:
        raise SerdeError(f"the Protobuf schema is not complete: {error}") from None


def file_proto(name: str, text: str, schema: Schema) -> FileDescriptorProto:
    """Read the serialized form that registries give on demand, or the text."""
    try:
        made = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        resolved = {other: body for other, body in schema.resolved if other != name}
        written = formatted(parse("PROTOBUF", text, schema.references, resolved), SERIALIZED)
        made = FileDescriptorProto.FromString(base64.b64decode(written))
    made.name = name
    return made


def add(pool: DescriptorPool, name: str, protos: Mapping[str, FileDescriptorProto], seen: set[str]) -> None:
    if name in seen:
        return
    seen.add(name)
    proto = protos.get(name) or known_file(name)
    for dependency in proto.dependency:
        add(pool, dependency, protos, seen)
    pool.Add(proto)  # type: ignore[attr-defined]


def known_file(name: str) -> FileDescriptorProto:
    """Return a file that comes with Protobuf or with Confluent's clients: the only ones that need no reference."""
    if name in CONFLUENT:
        return FileDescriptorProto.FromString(importlib.import_module(CONFLUENT[name]).DESCRIPTOR.serialized_pb)
    descriptor = known_descriptor(name)
    if descriptor is None:
        raise SerdeError(f"the Protobuf schema imports {name}, which is not among its references")
    return descriptor


def message_at(file: FileDescriptor, indexes: tuple[int, ...]) -> Descriptor:
    among = list(file.message_types_by_name.values())
    found: Descriptor | None = None
    for index in indexes:
        if not 0 <= index < len(among):
            raise SerdeError(f"the schema has no message at {list(indexes)}")
        found = among[index]
        among = list(found.nested_types)
    assert found is not None
    return found


def path_to(descriptor: Descriptor) -> tuple[int, ...]:
    above = descriptor.containing_type
    if above is None:
        return (list(descriptor.file.message_types_by_name.values()).index(descriptor),)
    return (*path_to(above), list(above.nested_types).index(descriptor))


def messages(file: FileDescriptor) -> Iterator[Descriptor]:
    waiting = list(file.message_types_by_name.values())
    while waiting:
        found = waiting.pop(0)
        yield found
        waiting += found.nested_types


def named(file: FileDescriptor, name: str | None) -> Descriptor:
    """Return the message of that full or simple name; the first of the file without one."""
    for found in messages(file):
        if name is None or name in (found.full_name, found.name):
            return found
    raise SerdeError(f"the schema has no message {name}" if name else "the schema has no message")


def of_dict(value: Any, kind: type[Message]) -> Message:
    """Make a message of a dict in Protobuf's JSON form."""
    try:
        return json_format.ParseDict(value, kind())
    except (json_format.ParseError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise SerdeError(f"the value does not fit the message {kind.DESCRIPTOR.full_name}: {error}") from None


def of_bytes(data: bytes, kind: type[Message]) -> Message:
    try:
        return kind.FromString(bytes(data))
    except DecodeError as error:
        raise SerdeError(f"the bytes are not a {kind.DESCRIPTOR.full_name}: {error}") from None


def walk_message(descriptor: Descriptor, message: Message, visit: Visit) -> Message:
    """Visit the fields of a message that are set, and return a copy. Names and tags are those of the schema."""
    changed = type(message)()
    changed.CopyFrom(message)
    for own, value in message.ListFields():
        known = descriptor.fields_by_number.get(own.number)
        if known is not None:
            _walk_field(known, own, value, changed, visit)
    return changed


def _walk_field(known: FieldDescriptor, own: FieldDescriptor, value: Any, changed: Message, visit: Visit) -> None:
    inner, said = own.message_type, known.message_type
    if inner is None or said is None:
        leaf = partial(visit, known.full_name, _tags(known), _kind(own))
        if _is_repeated(own):
            getattr(changed, own.name)[:] = [leaf(item) for item in value]
        else:
            setattr(changed, own.name, leaf(value))
    elif inner.GetOptions().map_entry:
        of = said.fields_by_name["value"].message_type
        if of is None:
            visit(known.full_name, _tags(known), "map", value)  # rules refuse one with their tags, as Confluent's do
            return
        for key, item in value.items():
            getattr(changed, own.name)[key].CopyFrom(walk_message(of, item, visit))
    elif _is_repeated(own):
        for item, copy in zip(value, getattr(changed, own.name), strict=True):
            copy.CopyFrom(walk_message(said, item, visit))
    else:
        getattr(changed, own.name).CopyFrom(walk_message(said, value, visit))


def _is_repeated(own: Any) -> bool:
    """Ask in the way of this version of the library: older ones have a label."""
    return own.is_repeated if hasattr(own, "is_repeated") else own.label == own.LABEL_REPEATED


def meta_of(known: FieldDescriptor) -> Any:
    """Return Confluent's option of a field. Options are read only after the module that declares them is there."""
    meta = importlib.import_module(f"{PACKAGE}.meta_pb2")
    return known.GetOptions().Extensions[meta.field_meta]


def _tags(known: FieldDescriptor) -> list[str]:
    return list(meta_of(known).tags)


def _kind(own: FieldDescriptor) -> str:
    return {FieldDescriptor.TYPE_STRING: STRING, FieldDescriptor.TYPE_BYTES: BYTES}.get(own.type, "number")


@dataclass(slots=True)
class Protobuf:
    """`kind` is the class of messages; without it, values to write may also be dicts (Protobuf's JSON form) for the
    message of the schema, and those that are read are of a class made from their writer's schema."""

    subjects: Subjects
    kind: type[Message] | None = None
    message: str | None = None

    @classmethod
    def of(
        cls,
        registry: Registry,
        kind: type[Message] | None = None,
        schema: Schema | str | None = None,
        message: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Protobuf:
        own = Schema("PROTOBUF", schema) if isinstance(schema, str) else schema
        if kind is not None:
            name = kind.DESCRIPTOR.full_name
        else:
            name = named(file_of(own), message).full_name if own else message
        return cls(Subjects(registry, Options.of(settings or {}), own, name, SERIALIZED), kind, message)

    def to_bytes(self, value: Any, context: Context) -> bytes | None:
        if value is None:
            return None
        if self.kind is not None and self.subjects.own is None and not self.subjects.options.takes_from_registry:
            self.subjects.own = self.schema_of(cast(FileDescriptor, self.kind.DESCRIPTOR.file))
        written = self.subjects.to_write(context)
        message = self.message_of(written.schema, value)
        walk = partial(walk_message, self.descriptor_like(written.schema, message))
        message = self.subjects.before_writing(written.schema, context, message, walk)
        ref = SchemaRef(written.ref.id, written.ref.guid, path_to(cast(Descriptor, message.DESCRIPTOR)))
        try:
            payload = message.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise SerdeError(f"the message cannot be written: {error}") from None
        payload = self.subjects.payload_to_write(written.schema, context, payload)
        return frame(ref, payload, context, in_header=self.subjects.options.in_header)

    def message_of(self, schema: Schema, value: Any) -> Message:
        if isinstance(value, Message):
            if self.kind is not None and not isinstance(value, self.kind):
                raise SerdeError(f"the message is a {type(value).__name__}, not a {self.kind.__name__}")
            return value
        return of_dict(value, self.kind or GetMessageClass(named(file_of(schema), self.message)))

    def schema_of(self, file: FileDescriptor) -> Schema:
        """Return the schema of a file. Its imports are registered or looked up on the way, for references need a
        version."""
        references = []
        for imported in file.dependencies:
            if imported.name not in GOOGLE and imported.name not in CONFLUENT:
                version = self.subjects.settle_reference(imported.name, self.schema_of(imported))
                references.append(Reference(imported.name, imported.name, version))
        return Schema("PROTOBUF", base64.b64encode(file.serialized_pb).decode(), tuple(references))

    def from_bytes(self, data: bytes | None, context: Context) -> Any:
        if data is None:
            return None
        ref, payload = unframe(data, context, indexes=True)
        writer = self.subjects.writer(ref, context)
        if self.kind is not None and writer.rules is NO_RULES:
            return of_bytes(payload, self.kind)
        descriptor = message_at(file_of(writer), ref.indexes or (0,))
        payload = self.subjects.payload_to_read(writer, context, descriptor.full_name, payload)
        message = of_bytes(payload, self.kind or self.read_class(descriptor, context))
        walk = partial(walk_message, descriptor)
        return self.subjects.after_reading(writer, context, descriptor.full_name, message, walk)

    def descriptor_like(self, schema: Schema, message: Message) -> Descriptor:
        """Return the schema's own description of a message, which has the tags of its fields."""
        own = cast(Descriptor, message.DESCRIPTOR)
        return named(file_of(schema), own.full_name) if schema.rules.domain else own

    def read_class(self, descriptor: Descriptor, context: Context) -> type[Message]:
        """Return the class of the writer's message, or of the message of that name in the reader's schema."""
        reader = self.subjects.reader(context, descriptor.full_name)
        if reader is not None:
            descriptor = named(file_of(reader), self.message or descriptor.full_name)
        return GetMessageClass(descriptor)
