"""Functions of numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from moldau.java.numbers import trim, wrap

from ..casts import EXACT, double_to_int
from ..tree import DecimalType, Type
from ..types import to_decimal, widen
from .registry import scalar

NAN, INFINITY = float("nan"), float("inf")
EARTH_KM, EARTH_MILES = 6371.0, 3959.0
KILOMETERS = ("km", "kilometer", "kilometers", "kilometre", "kilometres")
MILES = ("mi", "mile", "miles")


def _trig(name: str, call: Callable[[float], float], doc: str) -> None:
    """Register a function of one DOUBLE, which INTEGER and BIGINT have too."""

    def guarded(value: float) -> float:
        try:
            return call(float(value))
        except ValueError:
            return NAN
        except OverflowError:
            return INFINITY

    scalar(*(f"{name}({kind} value) -> DOUBLE" for kind in ("INTEGER", "BIGINT", "DOUBLE")), doc=doc)(guarded)


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(INFINITY, value)


def _ln(value: float) -> float:
    return -INFINITY if value == 0 else math.log(value)


def _cot(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(INFINITY, tangent) if tangent == 0 else 1 / tangent


def _cbrt(value: float) -> float:
    """Correct the last digit, which some C libraries get wrong: the root of 27 is 3."""
    root = math.cbrt(value)
    if not math.isfinite(root):
        return root
    near = (math.nextafter(root, -INFINITY), root, math.nextafter(root, INFINITY))
    return min(near, key=lambda each: abs(Fraction(each) ** 3 - Fraction(value)))


for _name, _call, _doc in (
    ("acos", math.acos, "Returns the arc cosine of a value, in radians."),
    ("asin", math.asin, "Returns the arc sine of a value, in radians."),
    ("atan", math.atan, "Returns the arc tangent of a value, in radians."),
    ("cbrt", _cbrt, "Returns the cube root of a value."),
    ("cos", math.cos, "Returns the cosine of an angle in radians."),
    ("cosh", math.cosh, "Returns the hyperbolic cosine of a value."),
    ("cot", _cot, "Returns the cotangent of an angle in radians."),
    ("degrees", math.degrees, "Converts radians to degrees."),
    ("exp", math.exp, "Returns e to the power of a value."),
    ("ln", _ln, "Returns the natural logarithm of a value."),
    ("log", _ln, "Returns the natural logarithm of a value, or the one of the given base."),
    ("radians", math.radians, "Converts degrees to radians."),
    ("sin", math.sin, "Returns the sine of an angle in radians."),
    ("sinh", _sinh, "Returns the hyperbolic sine of a value."),
    ("sqrt", math.sqrt, "Returns the square root of a value."),
    ("tan", math.tan, "Returns the tangent of an angle in radians."),
    ("tanh", math.tanh, "Returns the hyperbolic tangent of a value."),
):
    _trig(_name, _call, _doc)


def _pairs(name: str) -> tuple[str, ...]:
    return tuple(f"{name}({kind} first, {kind} second) -> DOUBLE" for kind in ("INTEGER", "BIGINT", "DOUBLE"))


@scalar(*_pairs("atan2"), doc="Returns the angle of the point (second, first), in radians.")
def atan2(first: float, second: float) -> float:
    return math.atan2(first, second)


@scalar(*_pairs("power"), doc="Returns the first value to the power of the second.")
def power(first: float, second: float) -> float:
    try:
        found = float(first) ** float(second)
    except OverflowError:
        return -INFINITY if first < 0 and second % 2 == 1 else INFINITY
    except ZeroDivisionError:
        return -INFINITY if math.copysign(1, first) < 0 and second % 2 == 1 else INFINITY
    return NAN if isinstance(found, complex) else found


@scalar(*_pairs("log"))
def log(first: float, second: float) -> float:
    if first <= 0 or first == 1:
        return NAN
    if second < 0:
        return NAN
    return _ln(second) / math.log(first)


@scalar("abs(INTEGER value) -> INTEGER", doc="Returns the absolute value.")
def abs_integer(value: int) -> int:
    return wrap(abs(value), 32)


@scalar("abs(BIGINT value) -> BIGINT")
def abs_bigint(value: int) -> int:
    return wrap(abs(value), 64)


scalar("abs(DOUBLE value) -> DOUBLE")(abs)


def _same(types: Sequence[Any]) -> Type:
    return types[0]


scalar("abs(DECIMAL value) -> DECIMAL", result=_same)(lambda value: value.copy_abs())


def _whole(name: str, double: Callable[[float], float], rounding: str, doc: str) -> None:
    scalar(f"{name}(INTEGER value) -> INTEGER", f"{name}(BIGINT value) -> BIGINT", doc=doc)(lambda value: value)
    scalar(f"{name}(DOUBLE value) -> DOUBLE")(lambda v: double(v) if math.isfinite(v) else v)

    def make(types: Sequence[Any]) -> Callable[..., Any]:
        unit = Decimal(1).scaleb(-types[0].scale)
        return lambda v: v.to_integral_value(rounding).quantize(unit, context=EXACT)

    scalar(f"{name}(DECIMAL value) -> DECIMAL", result=_same, make=make)(lambda v: v)


def _ceil(value: float) -> float:
    return math.copysign(float(math.ceil(value)), value)


_whole("ceil", _ceil, ROUND_CEILING, "Returns the smallest whole number that is not less than a value.")
_whole("floor", lambda v: float(math.floor(v)), ROUND_FLOOR, "Returns the largest whole number that is not greater.")


def round_half_up(value: Decimal, places: int) -> Decimal:
    """Round towards positive infinity where both neighbours are equally near."""
    unit = Decimal(1).scaleb(-places)
    shifted = EXACT.add(value, unit / 2)
    return shifted.quantize(unit, ROUND_FLOOR, EXACT)


def _truncate(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_DOWN, EXACT)


def _rounding(name: str, to_long: Callable[[float], int], decimal: Callable[[Decimal, int], Decimal], doc: str) -> None:
    scalar(f"{name}(INTEGER value) -> BIGINT", f"{name}(BIGINT value) -> BIGINT", doc=doc)(lambda value: value)
    scalar(f"{name}(DOUBLE value) -> BIGINT")(to_long)

    def of_double(value: float, places: int) -> float:
        if not math.isfinite(value):
            raise ValueError("Infinite or NaN")
        return float(decimal(Decimal(repr(value)), places))

    scalar(f"{name}(DOUBLE value, INTEGER places) -> DOUBLE")(of_double)

    def whole(types: Sequence[Any]) -> Type:
        return DecimalType(types[0].precision - types[0].scale, 0)

    scalar(f"{name}(DECIMAL value) -> DECIMAL", result=whole)(lambda value: decimal(value, 0))

    def make(types: Sequence[Any]) -> Callable[..., Any]:
        unit = Decimal(1).scaleb(-types[0].scale)
        scale = types[0].scale
        return lambda value, places: decimal(value, min(places, scale)).quantize(unit, context=EXACT)

    scalar(f"{name}(DECIMAL value, INTEGER places) -> DECIMAL", result=_same, make=make)(lambda v, _p: v)


def _round_double(value: float) -> int:
    if not math.isfinite(value):
        return double_to_int(value, 64)
    whole = math.floor(value)
    return double_to_int(whole + (value - whole >= 0.5), 64)


_rounding("round", _round_double, round_half_up, "Rounds a value half up, to whole numbers or to decimal places.")
_rounding("trunc", lambda v: double_to_int(v, 64), _truncate, "Cuts a value off, at the point or at decimal places.")


@scalar(
    *(f"sign({kind} value) -> INTEGER" for kind in ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")),
    doc="Returns -1, 0 or 1 for negative values, zero and positive values.",
)
def sign(value: float | Decimal) -> int:
    return (value > 0) - (value < 0)


@scalar("pi() -> DOUBLE", doc="Returns the number pi.")
def pi() -> float:
    return math.pi


@scalar("random() -> DOUBLE", doc="Returns a random number from 0 to 1.")
def random_number() -> float:
    return random.random()


@scalar(
    "geo_distance(DOUBLE lat1, DOUBLE lon1, DOUBLE lat2, DOUBLE lon2) -> DOUBLE",
    "geo_distance(DOUBLE lat1, DOUBLE lon1, DOUBLE lat2, DOUBLE lon2, STRING units) -> DOUBLE",
    doc="Returns the great-circle distance of two points given in degrees, in KM or MILES.",
    takes_nulls=True,
)
def geo_distance(
    lat1: float | None, lon1: float | None, lat2: float | None, lon2: float | None, units: str | None = None
) -> float | None:
    if lat1 is None or lon1 is None or lat2 is None or lon2 is None:
        return None
    for latitude in (lat1, lat2):
        if not -90 <= latitude <= 90:
            raise ValueError("valid latitude values for GeoDistance function are in the range -90 to 90")
    for longitude in (lon1, lon2):
        if not -180 <= longitude <= 180:
            raise ValueError("valid longitude values for GeoDistance function are in the range -180 to 180")
    unit = trim(units or "").lower() or "km"
    if unit not in (*KILOMETERS, *MILES):
        raise ValueError(f"the unit of GEO_DISTANCE is KM or MILES, not {units}")
    dlat, dlon = math.radians(lat2 - lat1), math.radians(lon2 - lon1)
    half = math.sin(dlat / 2) ** 2 + math.sin(dlon / 2) ** 2 * math.cos(math.radians(lat1)) * math.cos(
        math.radians(lat2)
    )
    return (EARTH_MILES if unit in MILES else EARTH_KM) * 2 * math.asin(math.sqrt(half))


def _series(start: int, end: int, step: int | None = None) -> list[int]:
    if step is None:
        step = 1 if start <= end else -1
    if step == 0:
        raise ValueError("GENERATE_SERIES step cannot be zero")
    if (step > 0) != (end >= start) and start != end:
        raise ValueError("GENERATE_SERIES step has wrong sign")
    if (end - start) // step > 1_000_000:
        raise ValueError("GENERATE_SERIES makes at most a million numbers")
    return list(range(start, end + (1 if step > 0 else -1), step))


scalar(
    "generate_series(INTEGER start, INTEGER end) -> ARRAY<INTEGER>",
    "generate_series(INTEGER start, INTEGER end, INTEGER step) -> ARRAY<INTEGER>",
    "generate_series(BIGINT start, BIGINT end) -> ARRAY<BIGINT>",
    "generate_series(BIGINT start, BIGINT end, INTEGER step) -> ARRAY<BIGINT>",
    doc="Returns the numbers from start to end.",
)(_series)

ORDERED = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")


def _widest(types: Sequence[Any]) -> DecimalType:
    """Return the decimal that holds all of some decimals; untyped NULLs do not count."""
    found: DecimalType | None = None
    for each in types:
        if each is not None:
            found = to_decimal(each) if found is None else widen(found, to_decimal(each))
    assert found is not None
    return found


def _extreme(name: str, choose: Callable[[list[Any]], Any], doc: str) -> None:
    def call(*values: Any) -> Any:
        known = [each for each in values if each is not None]
        return choose(known) if known else None

    lines = (f"{name}({kind} value, {kind}... values) -> {kind}" for kind in ORDERED)
    scalar(*lines, doc=doc, takes_nulls=True)(call)

    # The value stays as it is: ksqlDB widens the type, and not the scale of the number.
    scalar(f"{name}(DECIMAL value, DECIMAL... values) -> DECIMAL", takes_nulls=True, result=_widest)(
        lambda *values: call(*(None if each is None else Decimal(each) for each in values))
    )


_extreme("greatest", max, "Returns the greatest of its values; nulls do not count.")
_extreme("least", min, "Returns the least of its values; nulls do not count.")
