"""Schemas, structs and logical types."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from moldau.connect import data
from moldau.connect.data import INT32, INT64, OPTIONAL, STRING, Instant, Int16, Int32, Struct, Type
from moldau.connect.errors import DataError, SchemaBuilderError, java_name

ADDRESS = data.struct({"street": STRING, "number": OPTIONAL[Type.INT32]}, name="address")


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (INT32, 5, 1 << 31),
        (INT32, Int32(5), Int16(5)),
        (INT32, 0, True),
        (INT64, -(1 << 63), Int32(5)),
        (data.FLOAT64, 1.5, 1),
        (data.BYTES, b"x", "x"),
        (data.array(INT32), [1], [None]),
        (data.map_of(STRING, INT32), {"a": 1}, {"a": "b"}),
        (data.decimal(2), Decimal("1.00"), 1.0),
        (data.TIMESTAMP_SCHEMA, Instant(5), 5),
        (ADDRESS, Struct.of(ADDRESS, street="x"), Struct.of(ADDRESS.but(name="other"), street="x")),
        (OPTIONAL[Type.STRING], None, 5),
    ],
)
def test_a_value_must_fit_its_schema(schema: data.Schema, good: object, bad: object) -> None:
    data.validate(schema, good)
    with pytest.raises(DataError):
        data.validate(schema, bad)


def test_a_struct_checks_what_is_put_and_finds_what_is_missing() -> None:
    with pytest.raises(DataError, match="nope is not a valid field name"):
        Struct.of(ADDRESS, nope=1)
    with pytest.raises(DataError, match='null used for required field: "street"'):
        Struct.of(ADDRESS, street=None)
    with pytest.raises(DataError, match='required field: "street"'):
        Struct.of(ADDRESS, number=1).validate()


def test_a_default_stands_in_for_null_only_if_asked() -> None:
    schema = data.struct({"a": STRING.but(default="x")})
    value = Struct.of(schema)
    value.validate()
    assert (value["a"], value.get_without_default("a")) == ("x", None)


def test_schemas_that_cannot_exist_are_refused() -> None:
    with pytest.raises(SchemaBuilderError, match="duplication a") as error:
        data.struct([("a", INT32), ("a", STRING)])
    assert java_name(error.value) == "org.apache.kafka.connect.errors.SchemaBuilderException"
    with pytest.raises(SchemaBuilderError, match="Invalid default"):
        INT32.but(default="x")


def test_equality_is_that_of_java() -> None:
    assert data.decimal(2, default=Decimal("1.00")) == data.decimal(2, default=Decimal("1.00"))
    assert data.decimal(2, default=Decimal("1.00")) != data.decimal(2, default=Decimal("1.0"))
    assert not data.same(1, True)
    assert not data.same({"a": 1}, {"a": Int32(1)})
    assert data.same(float("nan"), float("nan"))


@pytest.mark.parametrize(
    ("schema", "logical", "plain"),
    [
        (data.decimal(2), Decimal("-1.28"), b"\x80"),
        (data.decimal(-2), Decimal("1E+2"), b"\x01"),
        (data.DATE_SCHEMA, Instant.of(date(1969, 12, 31)), -1),
        (data.TIME_SCHEMA, Instant.of(time(0, 0, 1)), 1000),
        (data.TIMESTAMP_SCHEMA, Instant.of(datetime(1970, 1, 1, 0, 0, 1, 5999, UTC)), 1005),
    ],
)
def test_logical_values_have_plain_ones(schema: data.Schema, logical: object, plain: object) -> None:
    assert data.encode_logical(schema, logical) == plain
    assert data.decode_logical(schema, plain) == logical


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (data.decimal(2), Decimal("1.0")),
        (data.DATE_SCHEMA, Instant(1)),
        (data.TIME_SCHEMA, Instant(-1)),
    ],
)
def test_logical_values_that_do_not_fit_are_refused(schema: data.Schema, value: object) -> None:
    with pytest.raises(DataError):
        data.encode_logical(schema, value)
