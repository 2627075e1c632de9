"""Files that every Protobuf schema may import without a reference: Google's well-known and common types, and those
of Confluent, whose numbers are part of the wire format.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from .parsed import DEFAULT_LIMITS
from .proto import File
from .proto_parser import parse_proto

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

PROTOBUF = "any api descriptor duration empty field_mask source_context struct timestamp type wrappers"
TYPES = (
    "calendar_period color date datetime dayofweek decimal expr fraction interval latlng localized_text money month "
    "phone_number postal_address quaternion timeofday"
)
GOOGLE = {f"google/protobuf/{name}.proto" for name in PROTOBUF.split()}
GOOGLE |= {f"google/type/{name}.proto" for name in TYPES.split()}
META = "".join(
    f"extend google.protobuf.{options} {{ Meta {name} = 1088; }}"
    for options, name in (
        ("FileOptions", "file_meta"),
        ("MessageOptions", "message_meta"),
        ("FieldOptions", "field_meta"),
        ("EnumOptions", "enum_meta"),
        ("EnumValueOptions", "enum_value_meta"),
    )
)
JAVA = 'option java_package = "io.confluent.protobuf'
CONFLUENT = {
    "confluent/meta.proto": f"""
        syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
        {JAVA}"; option java_outer_classname = "MetaProto";
        message Meta {{ string doc = 1; map<string, string> params = 2; repeated string tags = 3;
            repeated Rule rules = 4; }}
        message Rule {{ string name = 1; string doc = 2; string expr = 3; string sql = 4; }}
        {META}""",
    "confluent/type/decimal.proto": f"""
        syntax = "proto3"; package confluent.type;
        {JAVA}.type"; option java_outer_classname = "DecimalProto"; option java_multiple_files = true;
        message Decimal {{ bytes value = 1; uint32 precision = 2; int32 scale = 3; }}""",
    "confluent/type/variant.proto": f"""
        syntax = "proto3"; package confluent.type;
        {JAVA}.type"; option java_outer_classname = "VariantProto"; option java_multiple_files = true;
        message Variant {{ bytes metadata = 1; bytes value = 2; }}""",
}


@cache
def known_file(path: str) -> File | None:
    if path in CONFLUENT:
        return parse_proto(CONFLUENT[path], DEFAULT_LIMITS)
    descriptor = known_descriptor(path)
    from .proto_decode import decode  # loads protobuf, as the descriptor does

    return decode(descriptor) if descriptor else None


@cache
def known_descriptor(path: str) -> FileDescriptorProto | None:
    """Return the descriptor of one of Google's files, from the module that was made of it."""
    if path not in GOOGLE:
        return None
    from google.protobuf import descriptor_pool
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    found = FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(path).CopyToProto(found)  # pyright: ignore[reportAttributeAccessIssue]
    return found
