"""Values of functions in Python: dates and times are datetime's, structs are dicts; results are checked.

`inward` makes what a function gets, `outward` what it returned; a result that is no value of its type is an error.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ..casts import exact_decimal
from ..tree import ArrayType, DecimalType, MapType, Primitive, StructType, Type
from ..types import text

Convert = Callable[[Any], Any]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
MS = datetime.timedelta(milliseconds=1)
BITS = {"INTEGER": 32, "BIGINT": 64}
CLASSES: dict[str, type | tuple[type, ...]] = {"BOOLEAN": bool, "STRING": str, "BYTES": (bytes, bytearray)}


def _clock(ms: int) -> datetime.time:
    return (EPOCH + ms * MS).time()


def inward(type: Type | None) -> Convert:
    """Return a function that makes a value for Python code, null or not."""
    match type:
        case Primitive("DATE"):
            convert: Convert = lambda v: datetime.date.fromordinal(v + FIRST_DAY)  # noqa: E731
        case Primitive("TIME"):
            convert = _clock
        case Primitive("TIMESTAMP"):
            convert = lambda v: EPOCH + v * MS  # noqa: E731
        case ArrayType(item):
            of_item = inward(item)
            convert = lambda v: [of_item(each) for each in v]  # noqa: E731
        case MapType(key, value):
            of_key, of_value = inward(key), inward(value)
            convert = lambda v: {of_key(k): of_value(x) for k, x in v.items()}  # noqa: E731
        case StructType(fields):
            parts = [(each.name, inward(each.type)) for each in fields]
            convert = lambda v: {name: one(x) for (name, one), x in zip(parts, v, strict=True)}  # noqa: E731
        case _:
            return lambda v: v
    return lambda v: None if v is None else convert(v)


def outward(type: Type) -> Convert:
    """Return a function that takes a result of Python code, null or not."""
    match type:
        case ArrayType(item):
            of_item = outward(item)
            convert: Convert = lambda v: [of_item(each) for each in _list(v)]  # noqa: E731
        case MapType(key, value):
            of_key, of_value = outward(key), outward(value)
            convert = lambda v: {of_key(k): of_value(x) for k, x in _dict(v).items()}  # noqa: E731
        case StructType(fields):
            parts = [(each.name, outward(each.type)) for each in fields]
            convert = lambda v: _struct(v, parts)  # noqa: E731
        case DecimalType():
            convert = lambda v: exact_decimal(Decimal(_number(v, type)), type)  # noqa: E731
        case _:
            convert = lambda v: _primitive(v, type)  # noqa: E731
    return lambda v: None if v is None else convert(v)


def _refuse(value: Any, type: Type | str) -> TypeError:
    shown = type if isinstance(type, str) else text(type)
    return TypeError(f"the function returned {value!r:.60}, which is no {shown}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | set):
        raise _refuse(value, "ARRAY")
    return list(value)


def _dict(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _refuse(value, "MAP")
    return value


def _struct(value: Any, parts: list[tuple[str, Convert]]) -> tuple[Any, ...]:
    if not isinstance(value, dict):
        raise _refuse(value, "STRUCT")
    upper = {str(key).upper(): each for key, each in value.items()}
    return tuple(one(value[name] if name in value else upper.get(name.upper())) for name, one in parts)


def _number(value: Any, type: Type) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        raise _refuse(value, type)
    return repr(value) if isinstance(value, float) else value


def _primitive(value: Any, type: Type) -> Any:
    assert isinstance(type, Primitive)
    name = type.name
    if name in CLASSES:
        if not isinstance(value, CLASSES[name]):
            raise _refuse(value, type)
        return bytes(value) if name == "BYTES" else value
    if name == "DOUBLE":
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise _refuse(value, type)
        return float(value)
    if name in BITS:
        high = 1 << BITS[name] - 1
        if isinstance(value, bool) or not isinstance(value, int) or not -high <= value < high:
            raise _refuse(value, type)
        return value
    return _time(value, name)


def _time(value: Any, name: str) -> int:
    match name, value:
        case "TIMESTAMP", datetime.datetime():
            return round(((value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - EPOCH) / MS)
        case "DATE", datetime.date() if not isinstance(value, datetime.datetime):
            return value.toordinal() - FIRST_DAY
        case "TIME", datetime.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
        case _:
            raise _refuse(value, name)
