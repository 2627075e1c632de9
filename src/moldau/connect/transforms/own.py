"""Transforms that Connect does not have: Sql, Python and Explode.

Sql and Python see a struct as a dict. An expression of Python is checked before it is compiled: names and functions of
the tables, methods of plain values, no statements. A function of Python must be marked with `transform`, so
that a config can name only functions that were written for this.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

from moldau.connect import data
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, one_of
from moldau.connect.data import Record, Schema, Struct, Type
from moldau.connect.errors import ConfigError, DataError
from moldau.connect.transforms.cast import OUTPUTS, cast
from moldau.connect.transforms.kinds import Settings, Side, Transform, TransformClass, basics, require_struct

PACKAGE = "moldau.connect.transforms"
MARK = "__moldau_transform__"
F = TypeVar("F", bound=Callable[..., Any])
# What goes wrong when an expression meets a value that it does not expect.
WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
FUNCTIONS: dict[str, Any] = {
    each.__name__: each
    for each in (
        *(abs, all, any, bool, bytes, dict, enumerate, float, int, len, list, max, min),
        *(range, reversed, round, set, sorted, str, sum, tuple, zip),
    )
}
NAMES = ("key", "value", "topic", "partition", "timestamp", "headers")
# What an expression may use after a dot: the methods of values, but not those that format by attribute.
ATTRIBUTES = {
    name
    for each in (str, bytes, dict, list, set, int, float, Decimal, data.Instant, datetime)
    for name in dir(each)
    if not name.startswith("_")
} - {"format", "format_map"}
MAX_LENGTH = 10_000


def transform(function: F) -> F:
    """Mark a function of a record as one that the setting `function` of the transform Python may name."""
    setattr(function, MARK, True)
    return function


def plain(value: Any) -> Any:
    """Return a value with dicts in place of structs."""
    if isinstance(value, Struct):
        return {place.name: plain(value.get(place.name)) for place, _ in value}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def make_sql(settings: Settings, side: Side) -> Transform:
    from moldau.operators.context import TopologyError
    from moldau.operators.expressions import evaluation
    from moldau.operators.record import Record as Row

    try:
        where = evaluation(settings["where"], "Sql") if settings["where"] else None
        expression = evaluation(settings["expression"], "Sql") if settings["expression"] else None
    except TopologyError as error:
        raise ConfigError(str(error)) from None
    if where is None and expression is None:
        raise ConfigError("The transform Sql needs the setting where or the setting expression")
    put = _put(side, settings["field"], Type(settings["result.type"]))

    def apply(record: Record) -> Record | None:
        headers = tuple((each.name, plain(each.value)) for each in record.headers)
        row = Row(plain(record.key), plain(record.value), -1 if record.timestamp is None else record.timestamp, headers)
        try:
            if where is not None and where(row) is not True:
                return None
            return record if expression is None else put(record, expression(row))
        except WRONG as error:
            raise DataError(f"The expression of the transform Sql failed: {error}") from error

    return apply


def make_python(settings: Settings, side: Side) -> Transform:
    if bool(settings["expression"]) == bool(settings["function"]):
        raise ConfigError("The transform Python needs either the setting expression or the setting function")
    if settings["function"]:
        return _function(settings["function"])
    code = compile_expression(settings["expression"])
    put = _put(side, settings["field"], Type(settings["result.type"]))

    def apply(record: Record) -> Record | None:
        names = {
            "key": plain(record.key),
            "value": plain(record.value),
            "topic": record.topic,
            "partition": record.partition,
            "timestamp": record.timestamp,
            "headers": {each.name: plain(each.value) for each in record.headers},
        }
        try:
            return put(record, eval(code, {"__builtins__": {}, **FUNCTIONS, **names}))
        except WRONG as error:
            raise DataError(f"The expression of the transform Python failed: {error}") from error

    return apply


def compile_expression(text: str) -> Any:
    """Compile an expression of Python that uses nothing but the names and functions of the tables."""
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"The expression is longer than {MAX_LENGTH} characters: use a function")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"The expression is not valid Python: {error}") from None
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in ATTRIBUTES:
            raise ConfigError(f"The expression may not use .{node.attr}")
        if isinstance(node, ast.Name) and node.id not in {*NAMES, *FUNCTIONS, *bound}:
            raise ConfigError(f"The expression uses {node.id}, which is none of {', '.join(NAMES)}")
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.Pow):
            raise ConfigError(f"The expression may not use {type(node).__name__.lower()}")
    return compile(tree, "<expression>", "eval")


def _function(path: str) -> Transform:
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"There is no function {path} (it is written as module:function): {error}") from None
    if not getattr(found, MARK, False):
        raise ConfigError(f"{path} is not a transform: mark it with moldau.connect.transforms.own.transform")

    def apply(record: Record) -> Record | Sequence[Record] | None:
        made = found(record)
        if made is not None and not isinstance(made, Record | list | tuple):
            raise DataError(f"{path} returned a {type(made).__qualname__} instead of a Record, a list of them or None")
        return made

    return apply


def _put(side: Side, field: str, kind: Type) -> Callable[[Record, Any], Record]:
    """Put a result into a field, or in place of the whole key or value; with a schema it is cast to a type."""

    @lru_cache(maxsize=64)
    def updated(schema: Schema) -> Schema:
        fields = {each.name: each.schema for each in data.fields_of(schema)} | {field: data.OPTIONAL[kind]}
        return data.struct(fields, optional=schema.optional, **basics(schema))

    def put(record: Record, made: Any) -> Record:
        schema, value = side.schema(record), side.value(record)
        if not field:
            return side.put(record, schema and data.OPTIONAL[kind], cast(None, made, kind) if schema else made)
        if schema is None:
            if value is not None and not isinstance(value, dict):
                raise DataError(f"The value of the record is not a map, so it cannot have a field {field}")
            return side.put(record, None, (value or {}) | {field: made})
        old = require_struct(value, "a field with the result of an expression")
        new = updated(schema)
        kept = {place.name: each for place, each in old if place.name != field}
        return side.put(
            record,
            new,
            Struct.of(new, {k: v for k, v in kept.items() if v is not None}, **{field: cast(None, made, kind)}),
        )

    return put


def make_explode(settings: Settings, side: Side) -> Transform:
    field, index, keep = settings["field"], settings["index.field"], settings["keep.empty"]

    @lru_cache(maxsize=64)
    def updated(schema: Schema) -> Schema:
        place = schema.field(field)
        if place is None or place.schema.type is not Type.ARRAY or place.schema.value_schema is None:
            raise DataError(f"The field {field} is not an array")
        inner = place.schema.value_schema
        fields = {each.name: each.schema for each in schema.fields}
        fields[field] = inner.but(optional=True) if keep else inner
        if index:
            fields[index] = data.OPTIONAL[Type.INT32]
        return data.struct(fields, optional=schema.optional, **basics(schema))

    def elements(found: Any) -> list[tuple[int | None, Any]]:
        if found is not None and not isinstance(found, list | tuple):
            raise DataError(f"The field {field} is not an array")
        return list(enumerate(found)) if found else [(None, None)] if keep else []

    def of_map(value: Mapping[str, Any]) -> list[Any]:
        numbered = elements(value.get(field))
        return [
            {**value, field: each} | ({index: None if at is None else data.Int32(at)} if index else {})
            for at, each in numbered
        ]

    def of_struct(value: Struct, made: Schema) -> list[Any]:
        others = {place.name: each for place, each in value if place.name != field and each is not None}
        numbered = elements(value.get(field))
        return [Struct.of(made, {**others, field: each} | ({index: at} if index else {})) for at, each in numbered]

    def apply(record: Record) -> Record | list[Record]:
        schema, value = side.schema(record), side.value(record)
        if value is None:
            return record
        if schema is None:
            if not isinstance(value, dict):
                raise DataError(f"The value of the record is not a map, so it has no field {field}")
            return [side.put(record, None, each) for each in of_map(value)]
        made = updated(schema)
        return [side.put(record, made, each) for each in of_struct(require_struct(value, "exploding"), made)]

    return apply


RESULT = (
    Key("field", default="", doc="The field for the result. If it is empty, the result replaces the key or value."),
    Key(
        "result.type",
        default="string",
        validator=one_of(*(each.value for each in OUTPUTS)),
        doc="The type of the result, for records with schemas.",
    ),
)
SQL = TransformClass(
    "Sql",
    "Keeps the records for which a SQL condition is true, and computes a field, or the key or value, by SQL.",
    ConfigDef(
        [
            Key(
                "where",
                default=None,
                importance=Importance.HIGH,
                doc="The condition, over key, value, timestamp and headers.",
            ),
            Key("expression", default=None, importance=Importance.HIGH, doc="The expression to compute."),
            *RESULT,
        ]
    ),
    make_sql,
    package=PACKAGE,
)
PYTHON = TransformClass(
    "Python",
    "Computes a field, or the key or value, by an expression of Python; or passes the record to a function.",
    ConfigDef(
        [
            Key(
                "expression",
                default=None,
                importance=Importance.HIGH,
                doc="An expression over key, value, topic, partition, timestamp and headers.",
            ),
            Key(
                "function",
                default=None,
                importance=Importance.HIGH,
                doc="A function of a Record, as module:function, that returns a Record, a list of them or None.",
            ),
            *RESULT,
        ]
    ),
    make_python,
    package=PACKAGE,
)
EXPLODE = TransformClass(
    "Explode",
    "Makes a record for each element of an array.",
    ConfigDef(
        [
            Key("field", importance=Importance.HIGH, doc="The field with the array, which gets the element."),
            Key("index.field", default="", doc="A field for the element's position, counted from 0."),
            Key("keep.empty", Kind.BOOLEAN, False, doc="Whether a record without elements is kept, with null."),
        ]
    ),
    make_explode,
    package=PACKAGE,
)
