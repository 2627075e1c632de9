"""Dates, times and intervals as PostgreSQL writes them (DateStyle ISO, IntervalStyle iso_8601, UTC), as numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

DAY_US = 86_400_000_000
INFINITIES = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}  # pgjdbc's, in us
INFINITE_DAYS = {"infinity": 2_147_483_647, "-infinity": -2_147_483_648}
MONTH_DAYS = Fraction(1461, 48)  # 365.25 / 12
_PARTS = re.compile(r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?")


def day_number(text: str) -> int:
    """Return the days since 1970 of a date, of any year, also BC."""
    if text in INFINITE_DAYS:
        return INFINITE_DAYS[text]
    before_christ = text.endswith(" BC")
    year, month, day = map(int, text.removesuffix(" BC").rsplit("-", 2))
    return _days(1 - year if before_christ else year, month, day)


def _days(year: int, month: int, day: int) -> int:
    """Count days in the proleptic Gregorian calendar, whose year begins in March here."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def clock_us(text: str) -> int:
    """Return the microseconds since midnight of a time of the day."""
    seconds, _, fraction = text[6:].partition(".")
    whole = int(text[:2]) * 3600 + int(text[3:5]) * 60 + int(seconds)
    return whole * 1_000_000 + (int(fraction.ljust(6, "0")) if fraction else 0)


def moment_us(text: str) -> int:
    """Return the microseconds since 1970 of a timestamp; of one with a zone too, which is UTC."""
    if text in INFINITIES:
        return INFINITIES[text]
    era = " BC" if text.endswith(" BC") else ""
    day, _, clock = text.removesuffix(" BC").partition(" ")
    return day_number(day + era) * DAY_US + clock_us(clock.removesuffix("+00"))


def iso_moment(text: str, digits: int) -> str:
    """Write a timestamp with time zone as Debezium does: with exactly so many digits after the point."""
    if text in INFINITIES:
        return text
    era = text.endswith(" BC")
    day, _, clock = text.removesuffix(" BC").partition(" ")
    seconds, _, fraction = clock.removesuffix("+00").partition(".")
    shown = f".{fraction.ljust(digits, '0')}" if digits else ""
    return f"{_iso_day(day, era)}T{seconds}{shown}Z"


def _iso_day(day: str, before_christ: bool = False) -> str:
    year, month, rest = day.rsplit("-", 2)
    number = 1 - int(year) if before_christ else int(year)
    shown = f"{number:04d}" if 0 <= number <= 9999 else f"{number:+05d}"
    return f"{shown}-{month}-{rest}"


def iso_day(text: str) -> str:
    return text if text in INFINITE_DAYS else _iso_day(text.removesuffix(" BC"), text.endswith(" BC")) + "Z"


def iso_clock(text: str) -> str:
    return text.rstrip("0").rstrip(".") + "Z" if "." in text else text + "Z"


def iso_moment_short(text: str) -> str:
    """Write a timestamp without a zone, with as many digits as it has."""
    if text in INFINITIES:
        return text
    fraction = text.partition(".")[2].removesuffix(" BC")
    return iso_moment(text, len(fraction))


def zoned_clock(text: str) -> str:
    """Write a time with time zone in UTC."""
    found = re.fullmatch(r"(\d\d:\d\d:\d\d(?:\.\d+)?)([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?", text)
    if found is None:
        raise ValueError(f"{text} is not a time with time zone")
    clock, sign, *offset = found.groups()
    hours, minutes, seconds = (int(one or 0) for one in offset)
    ahead = (hours * 3600 + minutes * 60 + seconds) * 1_000_000 * (1 if sign == "+" else -1)
    if clock == "24:00:00" and not ahead:
        return "24:00:00Z"
    us = (clock_us(clock) - ahead) % DAY_US
    whole, fraction = divmod(us, 1_000_000)
    shown = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}{shown}Z"


def interval_parts(text: str) -> tuple[int, int, int, int, int, Decimal]:
    """Return years, months, days, hours, minutes and seconds."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is not an interval")
    years, months, days, hours, minutes = (int(one or 0) for one in found.groups()[:5])
    return years, months, days, hours, minutes, Decimal(found[6] or 0)


def interval_us(text: str) -> int:
    """Return the microseconds of an interval; a month has 30.4375 days."""
    years, months, days, hours, minutes, seconds = interval_parts(text)
    whole = (Fraction(years * 12 + months) * MONTH_DAYS + days) * DAY_US
    return int(whole + (hours * 3600 + minutes * 60) * 1_000_000 + Fraction(seconds) * 1_000_000)


def interval_text(text: str) -> str:
    years, months, days, hours, minutes, seconds = interval_parts(text)
    shown = f"{seconds:f}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return f"P{years}Y{months}M{days}DT{hours}H{minutes}M{shown}S"
