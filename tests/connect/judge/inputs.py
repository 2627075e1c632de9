"""Random schemas, values and records, each from a seed."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from moldau.connect import data
from moldau.connect.data import (
    MS_PER_DAY,
    BigInt,
    Header,
    Instant,
    Record,
    Schema,
    Struct,
    TimestampType,
    Type,
)

NAMES = ("a", "b", "c", "d", "e", "a.b", "x`y")
TEXTS = (
    *(
        "",
        "abc",
        "Zoë",
        'say "hi"',
        "back\\slash",
        "tab\there",
        "new\nline",
        "true",
        "FALSE",
        "null",
        "42",
        "-7",
        "300",
    ),
    *("1.5", "1e3", "+5", " 9 ", "99999999999", "2020-02-30", "12:13:14.123Z", "2021-03-04T05:06:07.089Z", "[1,2]"),
    *('{"a":1}', "NaN", "1_0", "0x10", "2020/01/02", "日本", "\u0001", "5f", "07", "1.0E10"),
)
PRIMITIVES = tuple(each for each in Type if each.primitive)
LOGICAL = ("decimal", "date", "time", "timestamp")
DOUBLES = (0.0, -0.0, 1.5, -2.25, 1e10, 1e-5, 123456.75, 1e300, -1e300, 3.0e9, -129.0, 0.001, 9999999.0, 1e7, 255.5)
SPECIAL = (float("nan"), float("inf"), float("-inf"))


class Inputs:
    """A source of random things; the same seed gives the same ones."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(str(seed))
        self.config: dict[str, str] = {}  # of what the items are for

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def one(self, of: Any) -> Any:
        return self.random.choice(of)

    def schema(self, depth: int = 2, primitive: bool = False) -> Schema:
        parts: dict[str, Any] = {"optional": self.chance(0.4)}
        kind = self.random.random()
        if kind < 0.25:
            made = self._logical(parts)
        elif kind < 0.7 or depth == 0 or primitive:
            made = Schema(self.one(PRIMITIVES), **parts)
        elif kind < 0.78:
            made = data.array(self.schema(depth - 1), **parts)
        elif kind < 0.86:
            made = data.map_of(self._key_schema(), self.schema(depth - 1), **parts)
        else:
            made = self.struct(depth - 1, **parts)
        if made.name is None and self.chance(0.2):
            made = made.but(name=self.one(("n", "m.n")))
        if self.chance(0.1):
            made = made.but(doc="a doc")
        if made.parameters is None and self.chance(0.1):
            made = made.but(parameters={"p": "1", "q": ""})
        if made.version is None and self.chance(0.1):
            made = made.but(version=self.random.randint(-1, 5))
        if self.chance(0.25) and made.type.primitive:
            made = made.but(default=self.value(made.but(optional=False)))
        return made

    def _logical(self, parts: dict[str, Any]) -> Schema:
        match self.one(LOGICAL):
            case "decimal":
                return data.decimal(self.random.randint(-2, 5), **parts)
            case "date":
                return data.DATE_SCHEMA.but(**parts)
            case "time":
                return data.TIME_SCHEMA.but(**parts)
            case _:
                return data.TIMESTAMP_SCHEMA.but(**parts)

    def _key_schema(self) -> Schema:
        return Schema(self.one((Type.STRING, Type.STRING, Type.INT32, Type.INT64, Type.BOOLEAN)))

    def struct(self, depth: int = 2, **parts: Any) -> Schema:
        names = self.random.sample(NAMES, self.random.randint(0 if self.chance(0.1) else 2, 5))
        if self.chance(0.3):
            parts["name"] = self.one(("rec", "a.b.Rec"))
        return data.struct([(name, self.schema(depth)) for name in names], **parts)

    def value(self, schema: Schema) -> Any:
        """Make a value that fits."""
        if schema.optional and self.chance(0.2):
            return None
        if schema.name in data.LOGICAL:
            return self._logical_value(schema)
        match schema.type:
            case Type.ARRAY:
                assert schema.value_schema
                return [self.value(schema.value_schema) for _ in range(self.random.randint(0, 3))]
            case Type.MAP:
                assert schema.key_schema and schema.value_schema
                keys = [self.value(schema.key_schema) for _ in range(self.random.randint(0, 3))]
                return {key: self.value(schema.value_schema) for key in keys}
            case Type.STRUCT:
                return Struct.of(schema, {each.name: self.field(each.schema) for each in schema.fields} | {})
            case kind:
                return self.primitive(kind)

    def field(self, schema: Schema) -> Any:
        return self.value(schema)

    def _logical_value(self, schema: Schema) -> Any:
        if schema.name == data.DECIMAL:
            digits = self.one((1, 3, 9, 25))
            return data.scaled(self.random.randint(-(10**digits), 10**digits), data.scale(schema))
        if schema.name == data.DATE:
            return Instant(self.random.randint(-200_000, 60_000) * MS_PER_DAY)
        if schema.name == data.TIME:
            return Instant(self.random.randint(0, MS_PER_DAY - 1))
        return Instant(self.moment())

    def moment(self) -> int:
        low, high = self.one(
            ((0, 1_900_000_000_000), (0, 1_900_000_000_000), (-70_000_000_000_000, 300_000_000_000_000))
        )
        return self.random.randint(low, high) // self.one((1, 1000, MS_PER_DAY)) * self.one((1, 1000, 1))

    def primitive(self, kind: Type) -> Any:
        if kind in data.BITS:
            bits = data.BITS[kind]
            return data.wrap(
                self.one((0, 1, -1, 127, 128, 1 << bits - 2, 1 << bits - 1, self.random.getrandbits(bits))), bits
            )
        match kind:
            case Type.FLOAT64:
                return (
                    self.one(SPECIAL) if self.chance(0.05) else self.one((*DOUBLES, self.random.randint(-999, 999) / 8))
                )
            case Type.FLOAT32:
                return data.to_float32(self.primitive(Type.FLOAT64))
            case Type.BOOLEAN:
                return self.chance(0.5)
            case Type.STRING:
                return self.one(TEXTS)
            case _:
                return self.random.randbytes(self.random.randint(0, 6))

    def schemaless(self, depth: int = 2) -> Any:
        kind = self.random.random()
        if kind < 0.05:
            return None
        if kind < 0.2 and depth:
            return self.mapping(depth - 1)
        if kind < 0.3 and depth:
            return [self.schemaless(depth - 1) for _ in range(self.random.randint(0, 3))]
        if kind < 0.4:
            return self.one((Instant(self.moment()), Decimal("1.50"), BigInt(1 << 70), Decimal(-3)))
        chosen = self.one(PRIMITIVES)
        return data.typed(chosen, self.primitive(chosen))

    def mapping(self, depth: int = 2) -> dict[str, Any]:
        return {name: self.schemaless(depth) for name in self.random.sample(NAMES, self.random.randint(0, 5))}

    def part(self) -> tuple[Schema | None, Any]:
        """Make the key or the value of a record."""
        kind = self.random.random()
        if kind < 0.05:
            return None, None
        if kind < 0.1:
            return self.schema().but(optional=True), None
        if kind < 0.4:
            return None, self.mapping() if self.chance(0.85) else self.schemaless()
        schema = self.struct(optional=self.chance(0.3)) if self.chance(0.8) else self.schema()
        return schema, self.value(schema.but(optional=False, default=None) if self.chance(0.9) else schema)

    def fitted(self) -> tuple[Schema | None, Any]:
        """Make a part whose struct has exactly its schema."""
        schema, value = self.part()
        return (
            (
                value.schema.but(optional=schema.optional),
                Struct(value.schema.but(optional=schema.optional), value.values),
            )
            if schema and isinstance(value, Struct)
            else (schema, value)
        )

    def record(self) -> Record:
        key_schema, key = self.fitted()
        value_schema, value = self.fitted()
        sink = self.chance(0.5)
        return Record(
            self.one(("orders", "a-b-c", "foo.bar", "x1y22", "UPPER_lower")),
            self.random.randint(0, 9) if sink or self.chance(0.5) else None,
            key_schema,
            key,
            value_schema,
            value,
            self.moment() if self.chance(0.8) else None,
            tuple(self.header() for _ in range(self.random.randint(0, 3))),
            offset=self.random.randint(0, 1 << 40) if sink else None,
            timestamp_type=TimestampType.CREATE_TIME if sink else None,
        )

    def header(self) -> Header:
        schema = self.schema(1) if self.chance(0.7) else None
        value = self.value(schema) if schema else self.schemaless(1)
        return Header(self.one(NAMES), schema, value)


def random_struct(seed: object) -> tuple[Schema, Struct]:
    """Make a struct with fields of many types, of which some are null."""
    made = Inputs(seed)
    names = [f"f{number}" for number in range(made.random.randint(0, 20))]
    schema = data.struct([(name, made.schema()) for name in names])
    return schema, made.value(schema)
