"""Tags: found by path, added and removed, in all three types."""

from __future__ import annotations

import pytest

from moldau.serdes.schemas import Entity, Parsed, SchemaError, file_descriptors, parse, tags_of, with_tags

AVRO = (
    '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"record","name":"S","fields":'
    '[{"name":"b","type":"string","confluent:tags":["PII"]}]}}]}'
)
JSON = (
    '{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"object","properties":{"b.c":{"type":'
    '"string","confluent:tags":["PII"]}}}]},"d":{"type":["object","null"],"properties":{"e":{}}}},"definitions":'
    '{"x":{"type":"object","confluent:tags":["X"]}}}'
)
PROTOBUF = """
syntax = "proto3"; package p;
message M {
  string a = 1 [(confluent.field_meta).tags = "PII", deprecated = true];
  oneof o { string b = 2; }
  message N { option (confluent.message_meta) = { doc: "d" tags: ["X", "Y"] }; }
}
"""


def plain(parsed: Parsed) -> dict[str, list[str]]:
    return {f"{entity.type} {entity.path}": tags for entity, tags in tags_of(parsed).items()}


def test_tags_are_found() -> None:
    assert plain(parse("AVRO", AVRO)) == {"sr_field n.S.b": ["PII"]}
    assert plain(parse("JSON", JSON)) == {
        "sr_field object.a.oneof.0.object.b.c": ["PII"],
        "sr_record object.definitions.x.object": ["X"],
    }
    assert plain(parse("PROTOBUF", PROTOBUF)) == {"sr_field M.a": ["PII"], "sr_record M.N": ["X", "Y"]}


CHANGES = [
    ("AVRO", AVRO, Entity("n.R", "sr_record"), Entity("n.S.b", "sr_field")),
    ("JSON", JSON, Entity("object.d.anyof.1.object.e", "sr_field"), Entity("object.definitions.x.object", "sr_record")),
    ("PROTOBUF", PROTOBUF, Entity("M.b", "sr_field"), Entity("M.a", "sr_field")),
]


@pytest.mark.parametrize(("type", "text", "new", "old"), CHANGES)
def test_tags_are_added_and_removed_again(type: str, text: str, new: Entity, old: Entity) -> None:
    before = parse(type, text)
    tagged = with_tags(before, {new: ["A", "B"]}, {})
    assert tags_of(tagged) == {**tags_of(before), new: ["A", "B"]}
    bare = with_tags(tagged, {}, {new: ["A", "B", "C"]})
    assert bare.text == before.text
    gone = with_tags(before, {}, {old: tags_of(before)[old]})
    assert old not in tags_of(gone)
    with pytest.raises(SchemaError, match="there is no field"):
        with_tags(before, {Entity("no.where", "sr_field"): ["A"]}, {})


def test_tags_of_protobuf_reach_the_descriptor_without_an_import() -> None:
    descriptor = file_descriptors(parse("PROTOBUF", PROTOBUF, new=True))[-1]
    assert descriptor.message_type[0].field[0].options.deprecated
    assert b"PII" in descriptor.message_type[0].field[0].options.SerializeToString()
