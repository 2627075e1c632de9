"""Message classes without a compiler: files built by hand in a pool."""

from __future__ import annotations

from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

KINDS = {
    "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
    "bool": Field.TYPE_BOOL,
    "double": Field.TYPE_DOUBLE,
    "float": Field.TYPE_FLOAT,
    "int32": Field.TYPE_INT32,
    "int64": Field.TYPE_INT64,
    "uint32": Field.TYPE_UINT32,
    "uint64": Field.TYPE_UINT64,
    "sint64": Field.TYPE_SINT64,
    "fixed64": Field.TYPE_FIXED64,
}


def add_field(message: object, number: int, name: str, kind: str, label: str = "") -> None:
    field = message.field.add(name=name, number=number)  # type: ignore[attr-defined]
    field.label = Field.LABEL_REPEATED if label == "repeated" else Field.LABEL_OPTIONAL
    if kind in KINDS:
        field.type = KINDS[kind]
    else:
        field.type, field.type_name = Field.TYPE_ENUM if kind.endswith("Colour") else Field.TYPE_MESSAGE, kind
    if label == "optional":
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)  # type: ignore[attr-defined]
        message.oneof_decl.add(name=f"_{name}")  # type: ignore[attr-defined]


def files() -> tuple[FileDescriptorProto, FileDescriptorProto]:
    place = FileDescriptorProto(name="place.proto", package="geo", syntax="proto3")
    where = place.message_type.add(name="Place")
    add_field(where, 1, "town", "string")
    add_field(where, 2, "height", "double")
    person = FileDescriptorProto(name="person.proto", package="org", syntax="proto3")
    person.dependency.extend(["place.proto", "google/protobuf/timestamp.proto"])
    colour = person.enum_type.add(name="Colour")
    for number, name in enumerate(("RED", "GREEN")):
        colour.value.add(name=name, number=number)
    person.message_type.add(name="Other")
    who = person.message_type.add(name="Person")
    who.nested_type.add(name="Empty")
    inner = who.nested_type.add(name="Inner")
    add_field(inner, 1, "x", "sint64")
    entry = who.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    add_field(entry, 1, "key", "string")
    add_field(entry, 2, "value", "int32")
    rows = [
        ("name", "string", ""),
        ("age", "int32", "optional"),
        ("home", ".geo.Place", ""),
        ("tags", "string", "repeated"),
        ("counts", ".org.Person.CountsEntry", "repeated"),
        ("colour", ".org.Colour", ""),
        ("at", ".google.protobuf.Timestamp", ""),
        ("big", "uint64", ""),
        ("raw", "bytes", ""),
        ("inners", ".org.Person.Inner", "repeated"),
        ("yes", "bool", ""),
    ]
    for number, (name, kind, label) in enumerate(rows, 1):
        add_field(who, number, name, kind, label)
    return place, person


def pool() -> DescriptorPool:
    made = DescriptorPool()
    made.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for file in files():
        made.AddSerializedFile(file.SerializeToString())
    return made


def message(name: str) -> type[Message]:
    return GetMessageClass(POOL.FindMessageTypeByName(name))


POOL = pool()
Person = message("org.Person")
Inner = message("org.Person.Inner")
Place = message("geo.Place")
