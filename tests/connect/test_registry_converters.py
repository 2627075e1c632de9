"""Converters with a schema registry: what is written is read back, and the schemas are those that people know."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.connect import data
from moldau.connect.converters import make_converter
from moldau.connect.converters.avro import AvroConverter
from moldau.connect.converters.json_schema import JsonSchemaConverter
from moldau.connect.converters.kinds import Converter
from moldau.connect.converters.registry_rows import AVRO, JSON_SCHEMA
from moldau.connect.data import INT32, OPTIONAL, STRING, Instant, Schema, Struct, Type
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.serdes.avro import Avro
from moldau.serdes.context import Context
from moldau.serdes.json_schema import JsonSchema
from moldau.serdes.registry import Registry
from moldau.serdes.registry import Schema as Registered
from tests.connect.judge import coding
from tests.connect.judge.inputs import Inputs


@pytest.fixture
def registry() -> Registry:
    return Registry.connect({"url": "mock://connect"})


def converter(registry: Registry, **settings: str) -> Converter:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    parsed = AVRO.settings.parse({"schema.registry.url": "mock://", "converter.type": "value", **given})
    made = AvroConverter(parsed, registry, "value")
    return Converter(made.write, made.read)


def json_converter(registry: Registry, **settings: str) -> Converter:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    parsed = JSON_SCHEMA.settings.parse({"schema.registry.url": "mock://", "converter.type": "value", **given})
    made = JsonSchemaConverter(parsed, registry, "value")
    return Converter(made.write, made.read)


def registered(registry: Registry, subject: str = "t-value") -> Any:
    return json.loads(registry.latest(subject).schema.text)


ORDER = data.struct(
    {
        "id": INT32,
        "small": Schema(Type.INT8, default=3),
        "note": OPTIONAL[Type.STRING],
        "price": data.decimal(2),
        "day": data.DATE_SCHEMA,
        "at": data.TIMESTAMP_SCHEMA.but(optional=True),
        "tags": data.array(STRING),
        "by": data.map_of(STRING, OPTIONAL[Type.INT64]),
        "inner": data.struct({"x": data.FLOAT32}, name="com.acme.Inner", optional=True),
    },
    name="com.acme.Order",
    version=2,
    doc="an order",
)


def order() -> Struct:
    inner = ORDER.by_name["inner"].schema
    values = {"id": 7, "small": 1, "price": data.scaled(1234, 2), "day": Instant(data.MS_PER_DAY), "tags": ["a"]}
    return Struct.of(ORDER, values, by={"k": None}, at=Instant(5), inner=Struct.of(inner, x=1.5))


def test_avro_has_the_mapping_that_people_know(registry: Registry) -> None:
    avro = converter(registry)
    found = avro.write("t", ORDER, order())
    assert found is not None
    assert struct.unpack(">bI", found[:5]) == (0, 1)
    schema = registered(registry)
    fields = {each["name"]: each for each in schema["fields"]}
    assert (schema["type"], schema["namespace"], schema["name"]) == ("record", "com.acme", "Order")
    assert (schema["connect.version"], schema["connect.name"]) == (2, "com.acme.Order")
    assert fields["id"]["type"] == "int"
    assert fields["small"] == {
        "name": "small",
        "type": {"type": "int", "connect.type": "int8", "connect.default": 3},
        "default": 3,
    }
    assert fields["note"] == {"name": "note", "type": ["null", "string"], "default": None}
    assert fields["price"]["type"] == {
        "type": "bytes",
        "scale": 2,
        "precision": 64,
        "connect.version": 1,
        "connect.parameters": {"scale": "2"},
        "connect.name": data.DECIMAL,
        "logicalType": "decimal",
    }
    assert fields["day"]["type"]["logicalType"] == "date"
    assert fields["at"]["type"][1]["logicalType"] == "timestamp-millis"
    assert fields["by"]["type"] == {"type": "map", "values": ["null", "long"]}
    back = avro.read("t", found)
    assert (back.schema, back.value) == (ORDER, order())


def test_avro_reads_what_others_wrote(registry: Registry) -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "namespace": "com.acme",
            "fields": [
                {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}},
                {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 2}},
                {"name": "either", "type": ["null", "int", "string", {"type": "record", "name": "E", "fields": []}]},
                {"name": "maybe", "type": ["long", "null"], "default": 5, "doc": "perhaps"},
            ],
        }
    )
    serde = Avro.of(registry, text)
    found = [
        serde.to_bytes({"colour": "RED", "code": b"ab", "either": either, "maybe": None}, Context("t"))
        for either in (None, 5, "x", ("com.acme.E", {}))
    ]
    avro = converter(registry)
    values = [avro.read("t", each) for each in found]
    schema = values[0].schema
    assert schema is not None and schema.name == "com.acme.R"
    colour, code, either, maybe = (each.schema for each in schema.fields)
    assert (colour.type, colour.parameters) == (
        Type.STRING,
        {
            "io.confluent.connect.avro.Enum": "com.acme.Colour",
            "io.confluent.connect.avro.Enum.RED": "RED",
            "io.confluent.connect.avro.Enum.BLUE": "BLUE",
        },
    )
    assert (code.type, code.name, code.parameters) == (Type.BYTES, "com.acme.Code", {"connect.fixed.size": "2"})
    assert (either.name, [each.name for each in either.fields]) == (
        "io.confluent.connect.avro.Union",
        ["int", "string", "E"],
    )
    assert (maybe.optional, maybe.default, maybe.doc) == (True, 5, "perhaps")
    assert values[0].value["either"] is None
    assert [each.value["either"]["int"] for each in values[1:]] == [5, None, None]
    assert values[2].value["either"]["string"] == "x"
    assert values[3].value["either"]["E"] == Struct(either.by_name["E"].schema, ())
    for each in values:
        assert converter(registry).read("t", avro.write("t", each.schema, each.value)).value == _with_defaults(
            each.schema, each.value
        )


def test_enums_stay_enums_if_wanted(registry: Registry) -> None:
    enum = "io.confluent.connect.avro.Enum"
    schema = data.struct({"c": STRING.but(parameters={enum: "a.C", f"{enum}.X": "X"})}, name="R")
    avro = converter(registry, enhanced_avro_schema_support="true")
    back = avro.read("t", avro.write("t", schema, Struct.of(schema, c="X")))
    assert registered(registry)["fields"][0]["type"]["type"] == "enum"
    assert back.value["c"] == "X"


def legal(inputs: Inputs) -> Iterator[tuple[Schema, Any]]:
    """Yield random structs whose names and numbers Avro allows."""
    while True:
        schema = inputs.struct()
        value = inputs.value(schema)
        if not any(word in repr(schema) for word in ("a.b", "x`y", "nan", "inf", "'scale': '-")):
            yield schema, value


def test_random_structs_survive_avro(registry: Registry) -> None:
    avro, seen = converter(registry), 0
    structs = legal(Inputs("avro"))
    while seen < 100:
        schema, value = next(structs)
        try:
            found = avro.write(f"t{seen}", schema, value)
        except DataError as error:
            assert "two different records" in str(error)
            continue
        back = avro.read("t", found)
        assert coding.in_order(coding.schema(back.schema)) == coding.in_order(coding.schema(schema))
        assert coding.in_order(coding.value(back.schema, back.value)) == coding.in_order(
            coding.value(schema, _with_defaults(schema, value))
        )
        seen += 1


def _with_defaults(schema: Schema | None, value: Any) -> Any:
    """Put the default of its schema in place of each null, as the converters do."""
    if value is None:
        return schema.default if schema else None
    inner = schema.value_schema if schema else None
    if isinstance(value, Struct):
        return Struct(value.schema, tuple(_with_defaults(place.schema, each) for place, each in value))
    if isinstance(value, list):
        return [_with_defaults(inner, each) for each in value]
    return {key: _with_defaults(inner, each) for key, each in value.items()} if isinstance(value, dict) else value


def test_avro_refuses_what_it_cannot_write(registry: Registry) -> None:
    avro = converter(registry)
    with pytest.raises(DataError, match="needs a schema"):
        avro.write("t", None, {"a": 1})
    with pytest.raises(DataError, match=r"does not allow the name a\.b"):
        schema = data.struct({"a.b": INT32})
        avro.write("t", schema, Struct.of(schema, {"a.b": 1}))
    with pytest.raises(DataError, match="Found null value"):
        avro.write("t", INT32, None)
    assert avro.write("t", OPTIONAL[Type.INT32], None) is None
    assert avro.read("t", None) == data.NULL


@pytest.mark.parametrize("found", [b"", b"\1\0\0\0\1x", b"\0\0\0\0\1\xff"])
def test_avro_refuses_bytes_that_are_not_avro(registry: Registry, found: bytes) -> None:
    avro = converter(registry)
    avro.write("t", STRING, "x")
    with pytest.raises(DataError, match="Failed to deserialize"):
        avro.read("t", found)


def test_an_unknown_schema_is_an_error_that_may_not_pass(registry: Registry) -> None:
    with pytest.raises(ConnectError, match="refused"):
        converter(registry).read("t", b"\0\0\0\0\x63x")
    with pytest.raises(ConnectError, match="refused"):
        converter(registry, auto_register_schemas="false").write("t", STRING, "x")


def test_a_registry_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"schema\.registry\.url"):
        make_converter("AvroConverter", "value", {})


def test_the_subject_can_be_that_of_the_record(registry: Registry) -> None:
    strategy = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    converter(registry, value_subject_name_strategy=strategy).write("t", ORDER, order())
    assert registered(registry, "com.acme.Order")["name"] == "Order"


def test_floats_that_are_no_numbers_survive(registry: Registry) -> None:
    avro = converter(registry)
    assert math.isnan(avro.read("t", avro.write("t", data.FLOAT64, math.nan)).value)


def test_json_schema_has_the_mapping_that_people_know(registry: Registry) -> None:
    converted = json_converter(registry)
    found = converted.write("t", ORDER, order())
    assert found is not None
    assert json.loads(found[5:])["day"] == 1
    schema = registered(registry)
    fields = schema["properties"]
    assert (schema["type"], schema["title"], schema["connect.version"]) == ("object", "com.acme.Order", 2)
    assert fields["id"] == {"type": "integer", "connect.type": "int32", "connect.index": 0}
    assert fields["note"] == {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 2}
    assert fields["price"] == {
        "type": "number",
        "title": data.DECIMAL,
        "connect.type": "bytes",
        "connect.version": 1,
        "connect.parameters": {"scale": "2"},
        "connect.index": 3,
    }
    assert fields["by"]["connect.type"] == "map"
    assert fields["by"]["additionalProperties"]["oneOf"][1] == {"type": "integer", "connect.type": "int64"}
    back = converted.read("t", found)
    assert (back.schema, back.value) == (ORDER, order())


def test_random_structs_survive_json_schema(registry: Registry) -> None:
    converted, inputs = json_converter(registry, decimal_format="NUMERIC"), Inputs("json schema")
    for at in range(150):
        schema = inputs.struct()
        value = inputs.value(schema)
        if any(word in repr((schema, value)) for word in ("nan", "inf", "-0.0", "E+", "'scale': '-")):
            continue
        back = converted.read("t", converted.write(f"t{at}", schema, value))
        assert coding.in_order(coding.schema(back.schema)) == coding.in_order(coding.schema(schema))
        assert coding.in_order(coding.value(back.schema, back.value)) == coding.in_order(
            coding.value(schema, _with_defaults(schema, value))
        )


def test_json_schema_reads_what_others_wrote(registry: Registry) -> None:
    text = json.dumps(
        {
            "title": "R",
            "type": "object",
            "definitions": {"inner": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "properties": {
                "a": {"$ref": "#/definitions/inner"},
                "b": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                "c": {"type": ["null", "boolean"]},
                "d": {"enum": ["X", "Y"], "type": "string"},
            },
        }
    )
    value = {"a": {"x": 1}, "b": 2.5, "c": None, "d": "Y"}
    found = JsonSchema.of(registry, text).to_bytes(value, Context("t"))
    back = json_converter(registry).read("t", found)
    assert back.schema is not None and back.schema.name == "R"
    one_of = "io.confluent.connect.json.OneOf"
    assert (back.value["a"]["x"], back.value["b"][f"{one_of}.field.1"], back.value["c"]) == (1, 2.5, None)
    assert [each.schema.optional for each in back.schema.fields] == [False, False, True, False]
    again = json_converter(registry).write("t2", back.schema, back.value)
    assert again is not None and json.loads(again[5:]) == value


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"allOf": []}, "allOf"),
        ({"$ref": "#"}, "contains itself"),
        ({"$ref": "http://x/y"}, "within a schema only"),
        ({"type": "object", "properties": {"a": True}}, "allows everything"),
    ],
)
def test_json_schemas_without_equivalent_are_refused(registry: Registry, schema: Any, error: str) -> None:
    ref = registry.register("t-value", Registered("JSON", json.dumps(schema)), False)
    with pytest.raises(DataError, match=error):
        json_converter(registry).read("t", ref.prefix() + b"{}")
