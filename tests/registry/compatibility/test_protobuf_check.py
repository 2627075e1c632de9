"""Compatibility of Protobuf files: each change by its name and place, types of other files, bombs."""

from __future__ import annotations

import pytest

from moldau.registry.compatibility import check
from moldau.registry.compatibility.protobuf_check import COMPATIBLE, differences
from moldau.serdes.schemas import Parsed, Reference, parse


def proto(body: str, *references: Reference, **resolved: str) -> Parsed:
    given = {name.replace("_", "."): text for name, text in resolved.items()}
    return parse("PROTOBUF", f'syntax = "proto3"; {body}', references, given, new=True)


# old, new -> what is found
CHANGES = [
    ("message A { int32 a = 1; }", "message A { bool a = 1; }", []),
    ("message A { int32 a = 1; }", "message A { sint32 a = 1; }", ["FIELD_SCALAR_KIND_CHANGED #/A/1"]),
    ("message A { fixed32 a = 1; }", "message A { sfixed32 a = 1; }", []),
    ("message A { string a = 1; }", "message A { bytes b = 1; }", ["FIELD_NAME_CHANGED #/A/1"]),
    ("message A { float a = 1; }", "message A { double a = 1; }", ["FIELD_SCALAR_KIND_CHANGED #/A/1"]),
    (
        "message A { optional int32 a = 1; }",
        "message A { repeated int32 a = 1; }",
        ["FIELD_NUMERIC_LABEL_CHANGED #/A/1"],
    ),
    ("message A { string a = 1; }", "message A {}", ["FIELD_REMOVED #/A/1"]),
    ("message A { A a = 1; }", "message A { A a = 1; }", []),
    ("message A {} message B {}", "message A {}", ["MESSAGE_REMOVED #/B"]),
    ("message A { message B {} }", "message A { message B {} message C {} }", ["MESSAGE_ADDED #/A/C"]),
    ("enum E { X = 0; }", "enum E { X = 0; Y = 1; }", ["ENUM_CONST_ADDED #/E/1"]),
    ("message A { map<string, int32> m = 1; }", "message A { map<string, int64> m = 1; }", []),
    (
        "message A { map<string, int32> m = 1; }",
        "message A { repeated E m = 1; message E { option map_entry = true; string key = 1; int32 value = 2; } }",
        [],
    ),
    ("message A { map<string, int32> m = 1; }", "message A { string m = 1; }", ["FIELD_KIND_CHANGED #/A/1"]),
    (
        "message A { oneof o { string a = 1; } }",
        "message A { string a = 1; }",
        ["ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/A/1", "ONEOF_REMOVED #/A/o"],
    ),
    (
        "message A { string a = 1; string b = 2; }",
        "message A { oneof o { string a = 1; string b = 2; } }",
        ["MULTIPLE_FIELDS_MOVED_TO_ONEOF #/A/o", "ONEOF_ADDED #/A/o"],
    ),
    ("message A { oneof o { string a = 1; } }", "message A {}", ["ONEOF_REMOVED #/A/o"]),
    (
        "message A { oneof o { string a = 1; } }",
        "message A { oneof o { string a = 1; int32 b = 2; } }",
        ["ONEOF_FIELD_ADDED #/A/o/2"],
    ),
    (
        "message A { oneof o { string a = 1; } }",
        "message A { oneof o { int32 b = 1; } }",
        ["FIELD_NAME_CHANGED #/A/o/1", "FIELD_SCALAR_KIND_CHANGED #/A/o/1"],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_are_named_and_placed(old: str, new: str, expected: list[str]) -> None:
    assert sorted(str(difference) for difference in differences(proto(old), proto(new))) == expected


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_every_change_that_breaks_is_told(old: str, new: str, expected: list[str]) -> None:
    told = check("BACKWARD", proto(new), [proto(old)])
    broken = [change.split() for change in expected if change.split()[0] not in COMPATIBLE]
    assert [message.split('"')[1] for message in told if message.startswith("{errorType")] == [
        name for name, _ in broken
    ]
    assert all(path in "".join(told) for _, path in broken)


def test_groups_count_as_fields_and_are_no_messages() -> None:
    old, new = (
        parse("PROTOBUF", text, new=True)
        for text in (
            "message A { optional group G = 1 { required int32 a = 1; } optional group H = 2 {} }",
            "message A { optional group G = 1 {} optional A h = 2; }",
        )
    )
    found = sorted(str(difference) for difference in differences(old, new))
    assert found == [
        "FIELD_KIND_CHANGED #/A/2",
        "MESSAGE_REMOVED #/A/H",
        "REQUIRED_FIELD_REMOVED #/A/G/1",
    ]


def outer(version: int, inner: str) -> Parsed:
    reference = Reference("inner.proto", "inner", version)
    return proto('import "inner.proto"; message A { p.B b = 1; }', reference, inner_proto=inner)


def test_an_imported_message_is_compared_where_it_is_used() -> None:
    old = outer(1, 'syntax = "proto3"; package p; message B { int32 x = 1; }')
    new = outer(2, 'syntax = "proto3"; package p; message B { string x = 1; }')
    assert sorted(str(one) for one in differences(old, new)) == [
        "FIELD_NAMED_TYPE_CHANGED #/A/1",
        "FIELD_SCALAR_KIND_CHANGED #/B/1",
    ]
    assert differences(old, outer(1, 'syntax = "proto3"; package p; message B { string x = 1; }')) == []


def test_imports_that_branch_and_meet_again_do_not_explode() -> None:
    def layers(scalar: str) -> Parsed:
        files = {"l0.proto": f'syntax = "proto3"; package l0; message M {{ {scalar} x = 1; }}'}
        for number in range(1, 25):
            fields = " ".join(f"l{number - 1}.M f{field} = {field};" for field in (1, 2, 3))
            head = f'syntax = "proto3"; package l{number}; import "l{number - 1}.proto";'
            files[f"l{number}.proto"] = f"{head} message M {{ {fields} }}"
        references = [Reference(name, name, 1 if scalar == "int32" else 2) for name in files]
        text = 'syntax = "proto3"; import "l24.proto"; message A { l24.M m = 1; }'
        return parse("PROTOBUF", text, references, files, new=True)

    assert check("FULL", layers("int32"), [layers("int32")]) == []
    assert check("BACKWARD", layers("string"), [layers("int32")])


def test_messages_say_where_and_why() -> None:
    told = check("BACKWARD", proto("message A { string a = 1; }"), [proto("message A { int32 a = 1; }")])
    assert told[0] == (
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The scalar at path '
        "'#/A/1' of the new schema cannot read that of the old\"}"
    )
    assert told[-1] == "{compatibility: 'BACKWARD'}"
