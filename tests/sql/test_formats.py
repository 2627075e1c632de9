"""Formats: rows to bytes and back, what is coerced, what is refused, and which schemas are registered."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

from moldau.serdes.registry import Schema
from moldau.sql import formats
from moldau.sql.cases.comparing import same_row
from moldau.sql.catalogue import Format
from moldau.sql.errors import SqlError
from moldau.sql.formats import SerdeError
from moldau.sql.local_registry import LocalRegistry
from moldau.sql.tree import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    StructType,
    Type,
)

FLAT = [
    ("I", INTEGER),
    ("L", BIGINT),
    ("D", DOUBLE),
    ("S", STRING),
    ("B", BOOLEAN),
    ("X", BYTES),
    ("N", DecimalType(4, 2)),
    ("DT", DATE),
    ("T", TIME),
    ("TS", TIMESTAMP),
]
FLAT_ROW = (1, 1 << 40, 1.5, "a,b", True, b"ab", Decimal("1.50"), 18321, 1000, 1651182287943)
NESTED = [
    ("A", ArrayType(DOUBLE)),
    ("M", MapType(STRING, INTEGER)),
    ("ST", StructType((Field("F", INTEGER), Field("G", ArrayType(STRING))))),
]
NESTED_ROW = ([1.0, 2.5], {"a": 1, "b": 2}, (3, ["x"]))
ALONE = frozenset({"UNWRAP_SINGLES"})


def made(name: str, columns: Any, registry: LocalRegistry | None = None, **more: Any) -> Any:
    format = Format(name, tuple(more.pop("properties", ())), more.pop("features", frozenset()))
    return formats.serde(format, columns, key=False, topic="t", registry=registry or LocalRegistry(), **more)


@pytest.mark.parametrize("name", ["DELIMITED", "JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR"])
def test_a_flat_row_comes_back(name: str) -> None:
    serde = made(name, FLAT)
    assert serde.loads(serde.dumps(FLAT_ROW)) == FLAT_ROW
    assert serde.dumps(None) is None and serde.loads(None) is None


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR"])
def test_a_nested_row_comes_back(name: str) -> None:
    serde = made(name, NESTED)
    assert serde.loads(serde.dumps(NESTED_ROW)) == NESTED_ROW


@pytest.mark.parametrize("name", ["DELIMITED", "JSON", "JSON_SR", "AVRO"])
def test_nulls_come_back(name: str) -> None:
    serde = made(name, FLAT)
    nulls = (None,) * len(FLAT)
    assert serde.loads(serde.dumps(nulls)) == nulls


@pytest.mark.parametrize(
    ("representation", "expected"), [(None, (0, "")), ("optional", (None, None)), ("wrapper", (None, None))]
)
def test_a_null_in_protobuf_is_the_default_unless_it_is_represented(representation: str | None, expected: Any) -> None:
    properties = [("nullableRepresentation", representation)] if representation else []
    serde = made("PROTOBUF", [("I", INTEGER), ("S", STRING)], properties=properties)
    assert serde.loads(serde.dumps((None, None))) == expected
    assert serde.loads(serde.dumps((0, "x"))) == (0, "x")


@pytest.mark.parametrize(("item", "one"), [(INTEGER, 1), (DecimalType(4, 2), Decimal("1.50"))])
def test_null_in_an_array_cannot_be_written_as_protobuf(item: Type, one: Any) -> None:
    serde = made("PROTOBUF", [("A", ArrayType(item))])
    assert serde.loads(serde.dumps(((one,),))) is not None
    with pytest.raises(SerdeError, match="the array A has a null in it"):
        serde.dumps(((one, None),))


def test_empty_map_of_avro_is_an_empty_map_of_a_case() -> None:
    columns = (("M", MapType(STRING, INTEGER)),)
    assert same_row({"M": {}}, {"M": []}, columns)
    assert not same_row({"M": {"a": 1}}, {"M": []}, columns)


@pytest.mark.parametrize(
    ("type", "document", "expected"),
    [
        (INTEGER, "5", 5),
        (INTEGER, '"5"', 5),
        (INTEGER, "4294967297", 1),
        (BIGINT, "1.9", 1),
        (DOUBLE, '"NaN"', "NaN"),
        (STRING, "1.50", "1.50"),
        (STRING, '{"a": [1, 2]}', '{"a":[1,2]}'),
        (STRING, '["a", 1, null]', "[a, 1, null]"),
        (STRING, "true", "true"),
        (DecimalType(4, 2), '"1.5"', Decimal("1.50")),
        (BYTES, '"aGk="', b"hi"),
        (ArrayType(STRING), "[1, null]", ["1", None]),
    ],
)
def test_json_is_coerced_to_the_column(type: Any, document: str, expected: Any) -> None:
    found = made("JSON", [("V", type)]).loads(f'{{"v": {document}}}'.encode())[0]
    assert (str(found).replace("nan", "NaN") if expected == "NaN" else found) == expected


@pytest.mark.parametrize(
    ("type", "document"),
    [
        (INTEGER, "true"),
        (BOOLEAN, "1"),
        (BOOLEAN, '"true"'),
        (DecimalType(4, 2), "1.555"),
        (DecimalType(4, 2), "100"),
        (BYTES, '"?"'),
        (ArrayType(INTEGER), "{}"),
        (INTEGER, '"x"'),
    ],
)
def test_json_that_does_not_fit_is_refused(type: Any, document: str) -> None:
    with pytest.raises(SerdeError):
        made("JSON", [("V", type)]).loads(f'{{"v": {document}}}'.encode())


def test_a_name_is_looked_up_as_it_is_written_and_then_in_upper_case() -> None:
    assert made("JSON", [("Ab", INTEGER), ("CD", INTEGER)]).loads(b'{"Ab": 1, "AB": 2, "cd": 3}') == (1, 3)


def test_json_is_written_as_ksqldb_does() -> None:
    row = (1, 1 << 40, 1e10, 'q"', False, b"hi", Decimal("1.50"), 1, 2, 3)
    assert made("JSON", FLAT).dumps(row) == (
        b'{"I":1,"L":1099511627776,"D":1.0E10,"S":"q\\"","B":false,"X":"aGk=","N":1.50,"DT":1,"T":2,"TS":3}'
    )


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO"])
def test_a_single_column_may_stand_alone(name: str) -> None:
    serde = made(name, [("A", ArrayType(BIGINT))], features=ALONE)
    assert serde.loads(serde.dumps(([1, 2],))) == ([1, 2],)
    assert serde.dumps((None,)) is None


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ((None, None), ","),
        (("", 1), '"",1'),
        (("!x", 1), '"!x",1'),
        (("a b", 1), "a b,1"),
        (('say "hi"', 1), '"say ""hi""",1'),
        (("a,b", 1), '"a,b",1'),
        (("end ", 1), '"end ",1'),
    ],
)
def test_delimited_quotes_as_commons_csv_does(row: Any, line: str) -> None:
    assert made("DELIMITED", [("S", STRING), ("I", INTEGER)]).dumps(row) == line.encode()


@pytest.mark.parametrize(("delimiter", "line"), [("|", b"a|1"), ("TAB", b"a\t1"), ("SPACE", b"a 1"), (None, b"a,1")])
def test_delimited_has_its_delimiter(delimiter: str | None, line: bytes) -> None:
    properties = [("delimiter", delimiter)] if delimiter else []
    serde = made("DELIMITED", [("S", STRING), ("I", INTEGER)], properties=properties)
    assert serde.dumps(("a", 1)) == line and serde.loads(line) == ("a", 1)


@pytest.mark.parametrize("line", [b"a", b"a,1,2", b"a,x", b"a,1.5"])
def test_delimited_that_does_not_fit_is_refused(line: bytes) -> None:
    with pytest.raises(SerdeError):
        made("DELIMITED", [("S", STRING), ("I", INTEGER)]).loads(line)


@pytest.mark.parametrize(
    ("type", "value", "data"),
    [
        (INTEGER, 1, b"\0\0\0\1"),
        (BIGINT, 1, b"\0" * 7 + b"\1"),
        (DOUBLE, 1.0, b"?\xf0" + b"\0" * 6),
        (STRING, "a", b"a"),
        (BYTES, b"a", b"a"),
    ],
)
def test_kafka_is_one_column_in_the_form_of_its_serializers(type: Any, value: Any, data: bytes) -> None:
    serde = made("KAFKA", [("K", type)])
    assert serde.dumps((value,)) == data and serde.loads(data) == (value,)


def test_the_avro_schema_is_ksqldbs() -> None:
    registry = LocalRegistry()
    made("AVRO", [("A", INTEGER), ("S", StructType((Field("F", STRING),)))], registry).dumps((1, ("x",)))
    space = "io.confluent.ksql.avro_schemas"
    assert json.loads(registry.latest("t-value").schema.text) == {
        "type": "record",
        "name": "KsqlDataSourceSchema",
        "namespace": space,
        "fields": [
            {"name": "A", "type": ["null", "int"], "default": None},
            {
                "name": "S",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "KsqlDataSourceSchema_S",
                        "namespace": space,
                        "fields": [{"name": "F", "type": ["null", "string"], "default": None}],
                        "connect.name": f"{space}.KsqlDataSourceSchema_S",
                    },
                ],
                "default": None,
            },
        ],
        "connect.name": f"{space}.KsqlDataSourceSchema",
    }


def test_the_protobuf_schema_is_ksqldbs() -> None:
    registry = LocalRegistry()
    made("PROTOBUF", [("I", INTEGER)], registry, properties=[("nullableRepresentation", "optional")]).dumps((1,))
    text = 'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  optional int32 I = 1;\n}\n'
    assert registry.latest("t-value").schema.text == text


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_columns_are_inferred_from_what_was_registered(name: str) -> None:
    registry = LocalRegistry()
    columns = [*FLAT, *NESTED]
    made(name, columns, registry).dumps((*FLAT_ROW, *NESTED_ROW))
    expected = StructType(tuple(Field(each, type) for each, type in columns))
    assert formats.columns_of(registry.latest("t-value").schema) == expected


def test_avro_of_others_is_read_by_names_without_regard_to_case() -> None:
    registry = LocalRegistry()
    fields = [{"name": "c1", "type": "int"}, {"name": "m", "type": {"type": "map", "values": "long"}}]
    schema = Schema("AVRO", json.dumps({"type": "record", "name": "r", "fields": fields}))
    registry.register("t-value", schema, False)
    columns = [("C1", INTEGER), ("M", MapType(STRING, BIGINT)), ("GONE", STRING)]
    place = {"key": False, "topic": "t", "registry": registry}
    data = formats.encode_case(Format("AVRO"), columns, {"c1": 4, "m": {"a": 5}}, **place)
    assert made("AVRO", columns, registry).loads(data) == (4, {"a": 5}, None)
    assert formats.columns_of(schema) == StructType((Field("C1", INTEGER), Field("M", MapType(STRING, BIGINT))))


def test_a_schema_by_its_id_is_written_with_its_defaults() -> None:
    registry = LocalRegistry()
    fields = [{"name": "c1", "type": "int"}, {"name": "c2", "type": "int", "default": 100}]
    schema = Schema("AVRO", json.dumps({"type": "record", "name": "r", "fields": fields}))
    registry.register("other", schema, False, id=7)
    serde = made("AVRO", [("c1", INTEGER)], registry, properties=[("schemaId", "7")])
    place = {"key": False, "topic": "t", "registry": registry}
    assert formats.decode_case(Format("AVRO"), [("c1", INTEGER)], serde.dumps((4,)), **place) == {"c1": 4, "c2": 100}


def test_types_that_a_schema_names_and_refers_to_are_found() -> None:
    address = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
    fields = [{"name": "home", "type": address}, {"name": "work", "type": ["null", "Address"]}]
    avro = Schema("AVRO", json.dumps({"type": "record", "name": "Person", "fields": fields}))
    reference = {"$ref": "#/definitions/address"}
    text = {"type": "object", "properties": {"city": {"type": "string"}}}
    both = {"type": "object", "properties": {"home": reference, "work": reference}, "definitions": {"address": text}}
    city = StructType((Field("CITY", STRING),))
    expected = StructType((Field("HOME", city), Field("WORK", city)))
    assert formats.columns_of(avro) == formats.columns_of(Schema("JSON", json.dumps(both))) == expected


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"$ref": "#/definitions/no"}, {"$ref": "http://x.org/s.json"}, {"type": "null"}]
)
def test_a_json_schema_without_an_sql_type_is_refused(schema: Any) -> None:
    with pytest.raises(SqlError):
        formats.columns_of(Schema("JSON", json.dumps(schema)))


def test_an_enum_of_protobuf_is_a_text() -> None:
    registry = LocalRegistry()
    schema = Schema(
        "PROTOBUF", 'syntax = "proto3"; message M { enum E { A = 0; B = 1; } E e = 1; repeated uint32 n = 2; }'
    )
    registry.register("t-value", schema, False)
    columns = [("E", STRING), ("N", ArrayType(BIGINT))]
    assert formats.columns_of(schema) == StructType((Field("E", STRING), Field("N", ArrayType(BIGINT))))
    place = {"key": False, "topic": "t", "registry": registry}
    data = formats.encode_case(Format("PROTOBUF"), columns, {"e": "B", "n": [1]}, **place)
    assert made("PROTOBUF", columns, registry).loads(data) == ("B", [1])


DECIMAL_FIRST = """
from moldau.serdes.registry import Schema
from moldau.sql import formats
text = '''syntax = "proto3"; import "confluent/type/decimal.proto"; message M { confluent.type.Decimal d = 1
  [(confluent.field_meta) = { params: [{ key: "precision", value: "4" }, { key: "scale", value: "2" }] }]; }'''
print(formats.columns_of(Schema("PROTOBUF", text)).fields[0].type)
"""


def test_a_decimal_of_protobuf_is_known_to_a_process_that_has_read_no_other_schema() -> None:
    found = subprocess.run([sys.executable, "-c", DECIMAL_FIRST], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == repr(DecimalType(4, 2))
