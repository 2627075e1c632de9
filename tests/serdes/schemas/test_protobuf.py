"""Protobuf schemas: canonical and normal text, imports, descriptors both ways, what is refused."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from moldau.serdes.schemas import Parsed, SchemaError, file_descriptors, formatted, normalize, parse

EVERYTHING = """
// comments go
syntax = "proto2";
package foo.bar;
import public "pub.proto"; import "google/protobuf/descriptor.proto";
option java_package = "x\\ty" "z"; /* and these */
option (note).a.b = 1;
message M {
  reserved 100 to max, 7; reserved "old", 'older';
  option deprecated = true;
  message Inner { optional string s = 1; optional Inner again = 2; }
  required string name = 1 [(tag) = {k: "v" k: 'w' n { x: -1.5 } l: [A, B]}, default = "a\\001\\"b", json_name = "N"];
  map<string, .foo.bar.M.Inner> many = 2 [deprecated = false];
  oneof choice { int32 a = 3; group G = 4 { optional bool on = 1; } }
  optional group H = 5 { repeated bytes raw = 1; }
  extensions 20 to 30, 50;
  enum E { option allow_alias = true; reserved 9; ZERO = 0; NULL = 0x00; MINUS = -1 [deprecated = true]; }
  extend M { optional int32 inside = 20; }
};
extend google.protobuf.FieldOptions { optional Tag tag = 1000; }
extend google.protobuf.FileOptions { optional Note note = 1001; }
message Note { optional Note a = 1; optional int32 b = 2; }
message Tag {
  repeated string k = 1; optional N n = 2; repeated E l = 3; enum E { A = 0; B = 1; }
  message N { optional double x = 1; }
}
service S {
  option deprecated = true;
  rpc Get (M) returns (stream Note) { option deprecated = true; } rpc Put (stream M) returns (Note);
}
"""
CANONICAL = """\
syntax = "proto2";
package foo.bar;

import "google/protobuf/descriptor.proto";
import public "pub.proto";

option java_package = "x\\tyz";
option (note).a.b = 1;

message M {
  reserved 100 to max, 7;
  reserved "old", "older";

  option deprecated = true;

  required string name = 1 [
    (tag) = {
      k: [
        "v",
        "w"
      ],
      n: {
        x: -1.5
      },
      l: [
        A,
        B
      ]
    },
    default = "a\\001\\"b",
    json_name = "N"
  ];
  map<string, .foo.bar.M.Inner> many = 2 [deprecated = false];

  oneof choice {
    int32 a = 3;
\x20\x20
    group G = 4 {
      optional bool on = 1;
    }
  }

  optional group H = 5 {
    repeated bytes raw = 1;
  }

  extensions 20 to 30, 50;

  extend M {
    optional int32 inside = 20;
  }

  message Inner {
    optional string s = 1;
    optional Inner again = 2;
  }
  enum E {
    reserved 9;
    option allow_alias = true;
    ZERO = 0;
    NULL = 0;
    MINUS = -1 [deprecated = true];
  }
}
message Note {
  optional Note a = 1;
  optional int32 b = 2;
}
message Tag {
  repeated string k = 1;
  optional N n = 2;
  repeated E l = 3;

  message N {
    optional double x = 1;
  }
  enum E {
    A = 0;
    B = 1;
  }
}

extend google.protobuf.FieldOptions {
  optional Tag tag = 1000;
}
extend google.protobuf.FileOptions {
  optional Note note = 1001;
}

service S {
  option deprecated = true;

  rpc Get (M) returns (stream Note) {
    option deprecated = true;
  };
  rpc Put (stream M) returns (Note);
}
"""


def proto(text: str, **resolved: str) -> Parsed:
    given = {f"{name}.proto": other for name, other in resolved.items()}
    return parse("PROTOBUF", text, resolved=given, new=True)


def test_canonical_text_has_confluents_layout() -> None:
    parsed = proto(EVERYTHING, pub="")
    assert parsed.text == CANONICAL
    assert proto(CANONICAL, pub="").text == CANONICAL
    assert parsed.name == "foo.bar.M"


def test_without_extensions_their_options_go_too() -> None:
    text = formatted(proto(EVERYTHING, pub=""), "ignore_extensions")
    assert "extend" not in text
    assert "(tag)" not in text
    assert "deprecated = true" in text


def test_the_normal_form_has_full_names_and_an_order() -> None:
    one = """
    syntax = "proto3"; package p; import "google/protobuf/timestamp.proto"; import "confluent/meta.proto";
    message M {
      repeated N n = 9; google.protobuf.Timestamp t = 1; map<string, N> m = 3;
      oneof late { string x = 8; string w = 7; } oneof early { int32 z = 2; }
      reserved 30, 20 to 25; reserved "b", "a";
      string s = 4 [json_name = "S", (confluent.field_meta).tags = "A", deprecated = true,
                    (confluent.field_meta).doc = "d"];
    }
    message N {}
    enum E { B = 1; Z = 0; A = 1; option allow_alias = true; }
    """
    assert normalize(proto(one.replace("E { B = 1; Z = 0", "E { Z = 0; B = 1"))).text == (
        'syntax = "proto3";\npackage p;\n\n'
        'import "confluent/meta.proto";\nimport "google/protobuf/timestamp.proto";\n\n'
        "message M {\n"
        '  reserved 20 to 25;\n  reserved 30;\n  reserved "a";\n  reserved "b";\n\n'
        "  .google.protobuf.Timestamp t = 1;\n"
        "  map<string, .p.N> m = 3;\n"
        "  string s = 4 [\n"
        '    (confluent.field_meta) = {\n      doc: "d",\n      tags: "A"\n    },\n'
        '    deprecated = true,\n    json_name = "S"\n  ];\n'
        "  repeated .p.N n = 9;\n\n"
        "  oneof early {\n    int32 z = 2;\n  }\n"
        "  oneof late {\n    string w = 7;\n    string x = 8;\n  }\n"
        "}\nmessage N {}\n"
        "enum E {\n  option allow_alias = true;\n  Z = 0;\n  A = 1;\n  B = 1;\n}\n"
    )


def test_a_descriptor_in_base64_is_a_schema() -> None:
    parsed = proto(base64.b64encode(timestamp_pb2.DESCRIPTOR.serialized_pb).decode())
    assert parsed.name == "google.protobuf.Timestamp"
    assert parsed.text.endswith(
        'message Timestamp {\n  int64 seconds = 1 [json_name = "seconds"];\n'
        '  int32 nanos = 2 [json_name = "nanos"];\n}\n'
    )


DESCRIBED = [
    'syntax = "proto3"; message M { optional string a = 1; repeated int32 b = 2; oneof o { string c = 3; } '
    "map<int32, M> d = 4; }",
    'edition = "2023"; package p; message M { string a = 1 [features.field_presence = IMPLICIT]; }',
    "message M { optional bytes b = 1 [default = 'x\\377']; optional E e = 2 [default = B]; enum E { A = 0; B = 1; } }",
    "message M { optional group G = 1 { required int32 x = 1; } extensions 5 to 9; } extend M { optional M e = 7; }",
    'syntax = "proto3"; import "confluent/meta.proto"; message M { option (confluent.message_meta) = {tags: ["A"]}; }',
    'syntax = "proto3"; import "google/type/money.proto"; '
    "service S { rpc A (google.type.Money) returns (stream google.type.Money); }",
]


@pytest.mark.parametrize("text", DESCRIBED)
def test_text_and_descriptor_mean_the_same(text: str) -> None:
    parsed = proto(text)
    serialized = formatted(parsed, "serialized")
    again = proto(serialized)
    if not text.startswith("edition"):  # a feature by its path is not written as one in braces
        assert normalize(again).text == normalize(parsed).text
    assert formatted(again, "serialized") == serialized


def test_a_descriptor_makes_messages() -> None:
    pool = DescriptorPool()
    for descriptor in file_descriptors(proto(DESCRIBED[0])):
        pool.Add(descriptor)
    message = GetMessageClass(pool.FindMessageTypeByName("M"))(a="x", b=[1, 2])
    message.d[5].c = "y"
    assert message.SerializeToString() == b"\x0a\x01x\x12\x02\x01\x02\x22\x07\x08\x05\x12\x03\x1a\x01y"


def test_an_optional_field_of_proto3_is_alone_in_a_oneof() -> None:
    made: FileDescriptorProto = file_descriptors(proto(DESCRIBED[0]))[-1]
    first: FieldDescriptorProto = made.message_type[0].field[0]
    assert (first.proto3_optional, first.oneof_index) == (True, 1)
    assert [oneof.name for oneof in made.message_type[0].oneof_decl] == ["o", "_a"]


def test_types_are_found_from_the_inside_out_and_through_imports() -> None:
    other = 'syntax = "proto3"; package a.b; import public "third.proto"; message T {}'
    text = 'syntax = "proto3"; package a.c; import "other.proto"; '
    text += "message M { message T {} T one = 1; b.T two = 2; a.d.U three = 3; }"
    parsed = proto(text, other=other, third='syntax = "proto3"; package a.d; message U {}')
    assert [field.type_name for field in file_descriptors(parsed)[-1].message_type[0].field] == [
        ".a.c.M.T",
        ".a.b.T",
        ".a.d.U",
    ]


REFUSED = {
    "message": "expected the name of a message",
    'syntax = "proto4";': "'proto4' is not known",
    'edition = "1999"; message A {}': "'1999' is not known",
    "message A { string a = 1 }": "expected ';' but found '}' in line 1, column 26",
    "message A { string a = x; }": "expected the number of a field",
    "message A { string a = 1; int32 a = 2; }": "duplicate field name",
    "message A { string a = 1; int32 b = 1; }": "duplicate field number",
    "message A { string a = 0; }": "invalid field number",
    "message A { B b = 1; }": "'B' is used in A but not defined",
    "message A {} message A {}": "duplicate symbol",
    'syntax = "proto3"; enum E { A = 1; }': "first value must be zero",
    'import "missing.proto";': "'missing.proto' is neither",
    "package a; package b;": "package is given twice",
    "message A { # }": "unexpected '#' in line 1",
    "message A { /* }": "unexpected '*'",
    "hello": "expected import, package",
    "aGVsbG8=": "expected import, package",
}


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_wrong_is_said(given: str) -> None:
    with pytest.raises(SchemaError) as raised:
        proto(given)
    assert REFUSED[given] in str(raised.value)


def test_files_that_import_each_other_are_refused() -> None:
    with pytest.raises(SchemaError, match="a circle"):
        proto('import "a.proto";', a='import "b.proto";', b='import "a.proto";')


def test_a_reference_that_is_wrong_is_named() -> None:
    with pytest.raises(SchemaError, match=r"reference a\.proto: expected"):
        proto('import "a.proto";', a="message")


BOMBS = {
    "messages": "message M { " * 100_000,
    "options": "option a = " + "{ a: " * 100_000,
    "groups": "message M {" + "optional group G = 1 {" * 5000,
    "big": f"message M {{ reserved {', '.join(map(str, range(200_000)))}; }}",
    "number": f"option a = 1e{'9' * 50};" + "x",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    with pytest.raises(SchemaError):
        proto(BOMBS[name])


def test_a_number_out_of_all_range_is_normalized_in_no_time() -> None:
    parsed = proto("option (x) = 1e999999999;")
    assert normalize(parsed).text == "\noption (x) = 1e999999999;\n"
