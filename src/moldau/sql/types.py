"""SQL types: their text, which of them fit into which, and the types of arithmetic.

The nodes are those of `tree.py`; None is the type of an untyped NULL. How a value of each type looks in Python:
BOOLEAN bool, INTEGER and BIGINT int, DOUBLE float, DECIMAL Decimal with its scale, STRING str, BYTES bytes, DATE days
since 1970, TIME milliseconds of the day, TIMESTAMP milliseconds since 1970, ARRAY list, MAP dict, STRUCT a tuple in the
order of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .errors import SqlError
from .tree import (
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
    NamedType,
    Primitive,
    StructType,
    Type,
)

Columns = Sequence[tuple[str, Type]]
MAX_PRECISION = 38
AS_DECIMAL: dict[Type, DecimalType] = {INTEGER: DecimalType(10, 0), BIGINT: DecimalType(19, 0)}
RANK: dict[str, int] = {"INTEGER": 0, "BIGINT": 1, "DECIMAL": 2, "DOUBLE": 3}
TIMES: tuple[Type, ...] = (DATE, TIME, TIMESTAMP)
FROM_TEXT: tuple[Type, ...] = (TIME, DATE, TIMESTAMP, BYTES)  # where a STRING is taken for one without a CAST
PRIMITIVES = {each.name: each for each in (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP)}


def base(type: Type | None) -> str:
    """Return the name of a type without its parameters."""
    match type:
        case None:
            return "null"
        case Primitive(name) | NamedType(name):
            return name
        case DecimalType():
            return "DECIMAL"
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case StructType():
            return "STRUCT"


def text(type: Type | None) -> str:
    """Write a type as ksqlDB does."""
    match type:
        case DecimalType(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case ArrayType(item):
            return f"ARRAY<{text(item)}>"
        case MapType(key, value):
            return f"MAP<{text(key)}, {text(value)}>"
        case StructType(fields):
            return (
                f"STRUCT<{', '.join(f'`{each.name}` {text(each.type)}' for each in fields)}>" if fields else "STRUCT< >"
            )
        case _:
            return base(type)


def is_numeric(type: Type | None) -> bool:
    return base(type) in RANK


def to_decimal(type: Type) -> DecimalType:
    """Return the decimal that holds every value of an exact numeric type."""
    return type if isinstance(type, DecimalType) else AS_DECIMAL[type]


def widen(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    return DecimalType(max(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def wider(left: Type, right: Type) -> Type:
    """Return the numeric type that values of both become."""
    if DOUBLE in (left, right):
        return DOUBLE
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        return widen(to_decimal(left), to_decimal(right))
    return left if RANK[base(left)] >= RANK[base(right)] else right


def arithmetic(op: str, left: Type, right: Type) -> Type:
    """Return the type of an operation on two numbers."""
    if DOUBLE in (left, right):
        return DOUBLE
    if not isinstance(left, DecimalType) and not isinstance(right, DecimalType):
        return wider(left, right)
    one, two = to_decimal(left), to_decimal(right)
    whole = (one.precision - one.scale, two.precision - two.scale)
    match op:
        case "+" | "-":
            scale = max(one.scale, two.scale)
            precision = max(whole) + scale + 1
        case "*":
            scale, precision = one.scale + two.scale, one.precision + two.precision + 1
        case "/":
            scale = max(6, one.scale + two.precision + 1)
            precision = whole[0] + two.scale + scale
        case _:
            scale = max(one.scale, two.scale)
            precision = min(whole) + scale
    return DecimalType(precision, scale)


def fits(source: Type | None, target: Type) -> bool:
    """Say whether a value is taken for another type without a CAST."""
    if source is None or source == target:
        return True
    if is_numeric(source) and is_numeric(target):
        return RANK[base(source)] < RANK[base(target)] or base(source) == base(target) == "DECIMAL"
    return source == STRING and target in FROM_TEXT


def common(types: Iterable[Type | None]) -> Type | None:
    """Return the type that the values of a list, of a CASE or of IN share; None if all are untyped NULLs."""
    found: Type | None = None
    for each in types:
        if each is not None:
            found = each if found is None else _common_of(found, each)
    return found


def _common_of(left: Type, right: Type) -> Type:
    if left == right:
        return left
    if is_numeric(left) and is_numeric(right):
        return wider(left, right)
    if STRING in (left, right):
        other = right if left == STRING else left
        if isinstance(other, Primitive | DecimalType):
            return other  # a literal is read as the other type
    match left, right:
        case ArrayType(one), ArrayType(two):
            return ArrayType(_common_of(one, two))
        case MapType(), MapType():
            return MapType(_common_of(left.key, right.key), _common_of(left.value, right.value))
        case StructType(), StructType():
            second = {each.name: each.type for each in right.fields}
            fields = [
                Field(each.name, _common_of(each.type, second.pop(each.name)) if each.name in second else each.type)
                for each in left.fields
            ]
            return StructType((*fields, *(Field(name, type) for name, type in second.items())))
        case _:
            raise SqlError(f"operator does not exist: {text(left)} = {text(right)}")


def contains(type: Type, what: type[MapType] | type[StructType] | type[ArrayType]) -> bool:
    """Say whether a kind of type occurs anywhere in a type."""
    if isinstance(type, what):
        return True
    match type:
        case ArrayType(item):
            return contains(item, what)
        case MapType(key, value):
            return contains(key, what) or contains(value, what)
        case StructType(fields):
            return any(contains(each.type, what) for each in fields)
        case _:
            return False
