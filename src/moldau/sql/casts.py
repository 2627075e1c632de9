"""Casts: one function for each pair of types that has one, made of the pairs of their parts."""

from __future__ import annotations

import base64
import binascii
import decimal
import math
import re
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from typing import Any

from moldau.java import times
from moldau.java.numbers import decimal_text, double_text, parse_double, parse_int, plain_text, trim, wrap

from .errors import SqlError
from .maps import items
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
    MapType,
    Primitive,
    StructType,
    Type,
)
from .types import text

Convert = Callable[[Any], Any]
EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
EXACT.traps[decimal.Inexact] = False
_TRUE = re.compile(r"t(r(ue?)?)?|y(es?)?", re.I)
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", re.ASCII)
_HELP = {
    "date": "\nRequired format is: \"yyyy-MM-dd\", for example '2020-05-26'. Partials are also supported, for example "
    "'2020-05'",
    "time": "\nRequired format is: \"HH:mm:ss.SSS\", for example: '01:34:20.123' or '01:34:20'. Partials are also "
    "supported, for example '01:34'",
    "timestamp": "\nRequired format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", with an optional numeric 4-digit timezone, for "
    "example: '2020-05-26T23:59:58.000' or with tz: '2020-05-26T23:59:58.000+0200'. A trailing 'Z' instead of tz "
    'indicates the zero UTC offset. Partials are also supported, for example "2020-05-26"',
}
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_MIDNIGHT = "00:00:00.000"  # completes a time that is part of a timestamp
_ZONE = re.compile(r"(Z|[+-]\d{1,2}:?\d{0,2}|[A-Za-z]+/[A-Za-z_/]+)$")
_END_OF_DAY = re.compile(r"24(:00)*(\.0+)?")
TIMESTAMP_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSS"


def fit(value: Decimal, to: DecimalType) -> Decimal:
    """Round a number half up to the scale of a type; one that is too large is an error."""
    rounded = value.quantize(Decimal(1).scaleb(-to.scale), decimal.ROUND_HALF_UP, EXACT)
    if len(rounded.as_tuple().digits) > to.precision and rounded:
        raise ValueError(
            f"Numeric field overflow: A field with precision {to.precision} and scale {to.scale} must round to an "
            f"absolute value less than 10^{to.precision - to.scale}. Got {plain_text(value)}"
        )
    return rounded


def to_decimal(value: int | float | Decimal | str, to: DecimalType) -> Decimal:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("Infinite or NaN")
        # ksqlDB rounds twice: the exact value to the digits of the type, then to its scale.
        value = decimal.Context(prec=to.precision, rounding=decimal.ROUND_HALF_UP).plus(Decimal(value))
    return fit(Decimal(value), to)


def exact_decimal(value: Decimal, to: DecimalType) -> Decimal:
    """Take a number that was read into a type, whose scale may grow but must not round."""
    made = value.quantize(Decimal(1).scaleb(-to.scale), context=EXACT)
    digits = len(made.as_tuple().digits)
    if made != value or (digits > to.precision and made):
        raise ValueError(f"{plain_text(value)} does not fit in {text(to)}")
    return made


def double_to_int(value: float, bits: int) -> int:
    """Saturate as Java's narrowing does."""
    if value != value:
        return 0
    high = (1 << bits - 1) - 1
    return max(-high - 1, min(high, int(value))) if math.isfinite(value) else (high if value > 0 else -high - 1)


def text_to_decimal(value: str, to: DecimalType) -> Decimal:
    try:
        return fit(Decimal(trim(value)), to)
    except decimal.InvalidOperation:
        raise ValueError(f"{value} is not a number") from None


def text_to_int(value: str, bits: int) -> int:
    return parse_int(trim(value), bits)


def text_to_double(value: str) -> float:
    found = parse_double(value)
    if not math.isfinite(found):
        raise ValueError(f"Invalid double value: {value}")
    return found


def text_to_boolean(value: str) -> bool:
    return _TRUE.fullmatch(trim(value)) is not None


def text_to_bytes(value: str) -> bytes:
    try:
        rest = len(value) % 4
        return base64.b64decode(value if "=" in value or rest < 2 else value + "=" * (4 - rest), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{value!r} is not base64") from None


def text_to_date(value: str) -> int:
    """Read a date, of which the end may be missing."""
    found = _DATE.fullmatch(trim(value))
    if found is None:
        raise _unparsed("date", value, _completed(trim(value)), "dddd-dd-dd")
    try:
        return times.date(int(found[1]), int(found[2] or 1), int(found[3] or 1)).toordinal() - times.FIRST_DAY
    except ValueError as error:
        raise ValueError(f"Failed to parse date '{value}': {error}{_HELP['date']}") from None


def _completed(day: str) -> str:
    """Add the month and the day that a date lacks."""
    return day + ("-01-01", "-01")[day.count("-")] if day.count("-") < 2 else day


def _unparsed(kind: str, value: str, read: str, template: str) -> ValueError:
    """Return the refusal of a text, which names the field that could not be read, as Java does."""
    field = 0
    for at, wanted in enumerate(template):
        field = at if wanted != "d" or at == 0 or template[at - 1] != "d" else field
        char = read[at : at + 1]
        if not (char.isdigit() and char.isascii() if wanted == "d" else char == wanted):
            break
    else:
        field = len(template)
    return ValueError(
        f"Failed to parse {kind} '{value}': Text '{read}' could not be parsed at index {field}{_HELP[kind]}"
    )


def text_to_time(value: str) -> int:
    """Read a time as LocalTime does: hours and minutes, seconds and their fraction if they are there."""
    found = _CLOCK.fullmatch(trim(value))
    if found is None:
        raise _unparsed("time", value, trim(value), "dd:dd")
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)
    return seconds * 1000 + int((found[4] or "").ljust(3, "0")[:3])


def text_to_timestamp(value: str) -> int:
    """Read a moment in UTC; its end may be missing, and a zone may follow the time."""
    whole = trim(value)
    day, exact, clock = whole.partition("T")
    zone = UTC
    suffix = _ZONE.search(clock) if clock else None
    if suffix:
        zone, clock = times.zone_of(suffix[1]), clock[: suffix.start()]
    midnight = _END_OF_DAY.fullmatch(clock) is not None  # 24:00 is the end of a day
    try:
        if exact and day.count("-") < 2:
            raise ValueError(day)
        time = times.MS_PER_DAY if midnight else text_to_time(clock + _MIDNIGHT[len(clock) :])
        local = text_to_date(day) * times.MS_PER_DAY + time
    except ValueError:
        read = f"{day if exact else _completed(day)}T{clock + _MIDNIGHT[len(clock) :]}"
        raise _unparsed("timestamp", value, read, "dddd-dd-ddTdd:dd:dd.ddd") from None
    return times.to_utc(local, zone)


def timestamp_text(value: int) -> str:
    return times.format_moment(TIMESTAMP_PATTERN, value, UTC)


def date_text(value: int) -> str:
    return times.date_of(value).isoformat()


def time_text(value: int) -> str:
    """Write a time as ksqlDB does: seconds only if they are not zero, and never their fraction."""
    minutes, seconds = divmod(value // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}" + (f":{seconds:02d}" if seconds else "")


# The pairs of types without parameters.
PAIRS: dict[tuple[Type, Type], Convert] = {
    (BOOLEAN, STRING): lambda v: "true" if v else "false",
    (INTEGER, BIGINT): lambda v: v,
    (INTEGER, DOUBLE): float,
    (INTEGER, STRING): str,
    (BIGINT, INTEGER): lambda v: wrap(v, 32),
    (BIGINT, DOUBLE): float,
    (BIGINT, STRING): str,
    (DOUBLE, INTEGER): lambda v: double_to_int(v, 32),
    (DOUBLE, BIGINT): lambda v: double_to_int(v, 64),
    (DOUBLE, STRING): double_text,
    (STRING, BOOLEAN): text_to_boolean,
    (STRING, INTEGER): lambda v: text_to_int(v, 32),
    (STRING, BIGINT): lambda v: text_to_int(v, 64),
    (STRING, DOUBLE): text_to_double,
    (STRING, DATE): text_to_date,
    (STRING, TIME): text_to_time,
    (STRING, TIMESTAMP): text_to_timestamp,
    (STRING, BYTES): text_to_bytes,
    (TIMESTAMP, STRING): timestamp_text,
    (TIMESTAMP, DATE): lambda v: v // times.MS_PER_DAY,
    (TIMESTAMP, TIME): lambda v: v % times.MS_PER_DAY,
    (DATE, TIMESTAMP): lambda v: v * times.MS_PER_DAY,
    (DATE, STRING): date_text,
    (TIME, STRING): time_text,
}
FROM_DECIMAL: dict[Type, Convert] = {
    INTEGER: lambda v: wrap(int(v), 32),
    BIGINT: lambda v: wrap(int(v), 64),
    DOUBLE: float,
    STRING: plain_text,
}


def java_text(type: Type) -> Convert:
    """Return a function that writes a value inside an array, map or struct as Java's toString does."""
    match type:
        case DecimalType():
            write: Convert = decimal_text
        case ArrayType(item):
            of_item = java_text(item)
            write = lambda v: f"[{', '.join(map(of_item, v))}]"  # noqa: E731
        case MapType(key, value):
            of_key, of_value = java_text(key), java_text(value)
            write = lambda v: f"{{{', '.join(f'{of_key(k)}={of_value(x)}' for k, x in items(v))}}}"  # noqa: E731
        case StructType(fields):
            parts = [(each.name, java_text(each.type)) for each in fields]
            write = lambda v: (  # noqa: E731
                "Struct{" + ",".join(f"{n}={w(x)}" for (n, w), x in zip(parts, v, strict=True) if x is not None) + "}"
            )
        case Primitive("STRING"):
            write = str
        case Primitive("BYTES"):
            write = lambda v: base64.b64encode(v).decode()  # noqa: E731
        case _:
            write = PAIRS[type, STRING]
    return lambda v: "null" if v is None else write(v)


def caster(source: Type | None, target: Type) -> Convert:
    """Return the function of a CAST, which takes values that are not null. A pair without one is refused."""
    if source is None or source == target:
        return lambda v: v
    known = PAIRS.get((source, target))
    if known is not None:
        return known
    match source, target:
        case DecimalType(), DecimalType():
            return lambda v: fit(v, target)
        case DecimalType(), _ if target in FROM_DECIMAL:
            return FROM_DECIMAL[target]
        case Primitive("INTEGER" | "BIGINT" | "DOUBLE"), DecimalType():
            return lambda v: to_decimal(v, target)
        case Primitive("STRING"), DecimalType():
            return lambda v: text_to_decimal(v, target)
        case ArrayType(one), ArrayType(two):
            item = null_safe(caster(one, two))
            return lambda v: [item(each) for each in v]
        case MapType(), MapType():
            key, value = null_safe(caster(source.key, target.key)), null_safe(caster(source.value, target.value))
            return lambda v: {key(k): value(x) for k, x in v.items()}
        case StructType(), StructType():
            return _struct_caster(source, target)
        case ((ArrayType() | MapType() | StructType()), Primitive("STRING")):
            return java_text(source)
        case _:
            raise SqlError(f"Cast of {text(source)} to {text(target)} is not supported")


def _struct_caster(source: StructType, target: StructType) -> Convert:
    """Match fields by name; those that the source lacks are null."""
    known = {each.name: (number, each.type) for number, each in enumerate(source.fields)}
    parts: list[tuple[int, Convert] | None] = []
    for each in target.fields:
        if each.name in known:
            number, type = known[each.name]
            parts.append((number, null_safe(caster(type, each.type))))
        else:
            parts.append(None)
    return lambda v: tuple(None if part is None else part[1](v[part[0]]) for part in parts)


def null_safe(convert: Convert) -> Convert:
    return lambda v: None if v is None else convert(v)
