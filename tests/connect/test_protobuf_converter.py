"""ProtobufConverter: the schemas are those of Confluent's mapping, and what is written is read back."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect import data
from moldau.connect.converters.kinds import Converter
from moldau.connect.converters.protobuf import ProtobufConverter
from moldau.connect.converters.protobuf_schemas import TAG, Style
from moldau.connect.converters.registry_rows import PROTOBUF
from moldau.connect.data import INT32, OPTIONAL, STRING, Instant, Schema, Struct, Type
from moldau.connect.errors import DataError
from moldau.serdes.context import Context
from moldau.serdes.protobuf import Protobuf
from moldau.serdes.registry import Registry
from tests.connect.judge.inputs import Inputs


@pytest.fixture
def registry() -> Registry:
    return Registry.connect({"url": "mock://connect"})


def converter(registry: Registry, **settings: str) -> Converter:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    parsed = PROTOBUF.settings.parse({"schema.registry.url": "mock://", "converter.type": "value", **given})
    made = ProtobufConverter(parsed, registry, "value")
    return Converter(made.write, made.read)


ORDER = data.struct(
    {
        "id": INT32,
        "small": data.INT8,
        "note": OPTIONAL[Type.STRING],
        "price": data.decimal(2),
        "day": data.DATE_SCHEMA,
        "time": data.TIME_SCHEMA,
        "at": data.TIMESTAMP_SCHEMA,
        "tags": data.array(STRING),
        "by": data.map_of(STRING, data.INT64, name="by"),
        "inner": data.struct({"x": data.FLOAT32}, name="com.acme.Inner"),
        "inners": data.array(data.struct({"x": data.FLOAT32}, name="com.acme.Inner")),
    },
    name="com.acme.Order",
)
TEXT = """\
syntax = "proto3";
package com.acme;

import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "google/protobuf/timestamp.proto";

message Order {
  int32 id = 1;
  int32 small = 2 [(confluent.field_meta) = {
    params: [
      {
        key: "connect.type",
        value: "int8"
      }
    ]
  }];
  string note = 3;
  .confluent.type.Decimal price = 4 [(confluent.field_meta) = {
    params: [
      {
        key: "scale",
        value: "2"
      }
    ]
  }];
  .google.type.Date day = 5;
  .google.type.TimeOfDay time = 6;
  .google.protobuf.Timestamp at = 7;
  repeated string tags = 8;
  repeated .com.acme.Order.ByEntry by = 9;
  .com.acme.Order.Inner inner = 10;
  repeated .com.acme.Order.Inner inners = 11;

  message ByEntry {
    string key = 1;
    int64 value = 2;
  }
  message Inner {
    float x = 1;
  }
}
"""


def order() -> Struct:
    inner = ORDER.by_name["inner"].schema
    when = {"day": Instant(-data.MS_PER_DAY), "time": Instant(3_723_004), "at": Instant(-1)}
    values = {"id": -7, "small": -1, "note": None, "price": data.scaled(-12345, 2), "tags": ["a", ""], **when}
    return Struct.of(ORDER, values, by={"k": 1 << 62}, inner=Struct.of(inner, x=1.5), inners=[Struct.of(inner, x=2.0)])


def plain(value: Any) -> Any:
    """Return a value without its schema, and without the fields that are null."""
    if isinstance(value, Struct):
        return {place.name: plain(each) for place, each in value if each is not None}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_a_struct_is_the_message_that_people_know(registry: Registry) -> None:
    one = converter(registry)
    found = one.write("t", ORDER, order())
    assert found is not None and found[:6] == b"\0\0\0\0\1\0"  # the first message of schema 1
    assert registry.latest("t-value").schema.text == TEXT
    back = one.read("t", found)
    assert back.schema is not None and back.schema.name == "Order"
    assert plain(back.value) == {**plain(order()), "note": ""}
    tags = [(each.schema.parameters or {})[TAG] for each in back.schema.fields]
    assert tags == [str(number) for number in range(1, 12)]
    assert [each.schema.type for each in back.schema.fields] == [each.schema.type for each in ORDER.fields]
    assert back.schema.by_name["price"].schema.parameters == {"scale": "2", TAG: "4"}
    again = one.write("t", back.schema, back.value)  # numbers stay, whatever the order of the fields
    assert again is not None and again[6:] == found[6:]


@pytest.mark.parametrize("setting", ["wrapper_for_nullables", "optional_for_nullables"])
def test_null_and_the_default_are_told_apart_if_wanted(registry: Registry, setting: str) -> None:
    kinds = [each for each in Type if each.primitive]
    schema = data.struct({each.value: OPTIONAL[each] for each in kinds}, name="N")
    zeros = {Type.STRING: "", Type.BYTES: b"", Type.BOOLEAN: False, Type.FLOAT32: 0.0, Type.FLOAT64: 0.0}
    one = converter(registry, **{setting: "true"})
    full = Struct.of(schema, {each.value: zeros.get(each, 0) for each in kinds})
    for value in (full, Struct.of(schema, {})):
        back = one.read("t", one.write("t", schema, value))
        assert plain(back.value) == plain(value)
        assert back.schema is not None
        assert [(each.name, each.schema.type, each.schema.optional) for each in back.schema.fields] == [
            (each.value, each, True) for each in kinds
        ]


def test_it_reads_what_others_wrote_and_writes_it_back(registry: Registry) -> None:
    text = """
        syntax = "proto3"; package a.b;
        message R {
          enum Colour { RED = 0; BLUE = 5; }
          Colour colour = 3;
          oneof either { int32 number = 4; string word = 5; In in = 6; }
          map<string, In> by = 7;
          repeated Colour colours = 8;
          uint32 big = 9; fixed64 huge = 10; optional sint32 maybe = 11;
          message In { bytes b = 2; }
        }"""
    serde = Protobuf.of(registry, schema=text, message="R")
    value = {
        "colour": "BLUE",
        "in": {"b": "AQI="},
        "by": {"x": {"b": "Aw=="}},
        "colours": ["RED", "BLUE"],
        "big": 4_000_000_000,
        "huge": 1 << 63,
        "maybe": -3,
    }
    found = serde.to_bytes(value, Context("t"))
    back = converter(registry).read("t", found)
    assert back.schema is not None and back.schema.name == "R"
    assert plain(back.value) == {
        "either_0": {"in": {"b": b"\1\2"}},
        "colour": "BLUE",
        "by": {"x": {"b": b"\3"}},
        "colours": ["RED", "BLUE"],
        "big": 4_000_000_000,
        "huge": -(1 << 63),
        "maybe": -3,
    }
    assert back.schema.by_name["either_0"].schema.name == "io.confluent.connect.protobuf.Union.either"
    full = converter(registry, enhanced_protobuf_schema_support="true", generate_index_for_unions="false")
    other = full.read("t", found).schema
    assert other is not None and other.name == "a.b.R" and "either" in other.by_name
    again = converter(registry).read("u", converter(registry).write("u", back.schema, back.value))
    assert plain(again.value) == plain(back.value)


def test_random_structs_survive(registry: Registry) -> None:
    """Names are scrubbed and nulls wrapped; what Protobuf does not have is refused with a sentence."""
    one = converter(registry, scrub_invalid_names="true", wrapper_for_nullables="true")
    inputs, seen, refused = Inputs("protobuf"), 0, 0
    for at in range(60):
        schema = inputs.struct()
        value = inputs.value(schema)
        try:
            found = one.write(f"t{at}", schema, value)
        except DataError as error:
            assert any(word in str(error) for word in REFUSALS), error
            refused += 1
            continue
        back = one.read("t", found)
        again = one.read("t", one.write(f"u{at}", back.schema, back.value))
        assert repr(plain(again.value)) == repr(plain(back.value))
        seen += 1
    assert seen > 5 and refused > 5


REFUSALS = ("Protobuf", "millis", "time fields", "date", "already defined", "year")


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (None, {"a": 1}, "needs a schema"),
        (INT32, 1, "structs only"),
        (data.struct({"a": data.array(data.array(INT32))}), {"a": [[1]]}, "arrays or maps"),
        (data.struct({"a": data.array(OPTIONAL[Type.INT32])}), {"a": [None]}, "null in it"),
        (data.struct({"a b": INT32}), {"a b": 1}, "does not allow the name"),
    ],
)
def test_what_protobuf_does_not_have_is_refused(
    registry: Registry, schema: Schema | None, value: Any, why: str
) -> None:
    given = Struct.of(schema, value) if schema and schema.type is Type.STRUCT else value
    with pytest.raises(DataError, match=why):
        converter(registry).write("t", schema, given)


def test_bytes_that_are_not_protobuf_are_refused(registry: Registry) -> None:
    one = converter(registry)
    one.write("t", ORDER, order())
    for found in (b"", b"\1\0", b"\0\0\0\0\1\0\xff", b"\0\0\0\0\1\2\6"):
        with pytest.raises(DataError, match="Failed to deserialize"):
            one.read("t", found)
    recursive = Protobuf.of(registry, schema='syntax = "proto3"; message M { M m = 1; }', message="M")
    with pytest.raises(DataError, match="contains itself"):
        one.read("r", recursive.to_bytes({}, Context("r")))
    assert one.read("t", None) == data.NULL and one.write("t", OPTIONAL[Type.STRING], None) is None


@pytest.mark.parametrize(("name", "scrubbed"), [("a b", "a_b"), ("1x", "x1x"), ("é", "x_C3_A9"), ("ok_1", "ok_1")])
def test_names_are_scrubbed(name: str, scrubbed: str) -> None:
    assert Style(scrub=True).name(name) == scrubbed
