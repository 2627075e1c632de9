"""Java's DateTimeFormatter in English: patterns that format moments and parse texts.

A pattern is a list of rows (`Item`); formatting and parsing walk over it. Parsing is strict about widths and lenient
about case, as ksqlDB sets it up; what it finds is resolved as java.time's SMART style does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
EPOCH = datetime(1970, 1, 1)
FIRST_DAY = date(1970, 1, 1).toordinal()
MS_PER_DAY = 86_400_000


class PatternError(ValueError):
    """A pattern that Java refuses, or that is not supported here."""


class ParseError(ValueError):
    """A text that does not match its pattern, or that is no moment."""


@dataclass(frozen=True, slots=True)
class Item:
    """A run of one letter, literal text (letter "'"), or an optional part (letter "[")."""

    letter: str
    count: int = 0
    text: str = ""
    inner: tuple[Item, ...] = ()


# letter -> field, and whether one letter alone is of a fixed width. Widths: (least, most) by the count of letters.
NUMBERS: dict[str, str] = {
    "u": "year",
    "y": "year_of_era",
    "M": "month",
    "L": "month",
    "d": "day",
    "D": "day_of_year",
    "H": "hour",
    "k": "clock_hour",
    "K": "half_hour",
    "h": "clock_half_hour",
    "m": "minute",
    "s": "second",
    "A": "ms_of_day_raw",
    "n": "nano",
    "N": "nano_of_day",
    "Q": "quarter",
    "q": "quarter",
    "e": "localized_weekday",
    "c": "localized_weekday",
    "w": "week",
    "W": "week_of_month",
    "F": "aligned_week",
    "Y": "week_year",
}
RANGES: dict[str, tuple[int, int]] = {
    "month": (1, 12),
    "day": (1, 31),
    "day_of_year": (1, 366),
    "hour": (0, 23),
    "clock_hour": (1, 24),
    "half_hour": (0, 11),
    "clock_half_hour": (1, 12),
    "minute": (0, 59),
    "second": (0, 59),
    "nano": (0, 999_999_999),
    "ms_of_day_raw": (0, MS_PER_DAY - 1),
    "nano_of_day": (0, MS_PER_DAY * 1_000_000 - 1),
    "quarter": (1, 4),
    "localized_weekday": (1, 7),
    "weekday": (1, 7),
    "half": (0, 1),
    "era": (0, 1),
    "year_of_era": (1, 999_999_999),
}
LETTERS = "GuyYDMLQqwWdEecFahKkHmsSAnNVzOXxZ"
MOST = {"d": 2, "H": 2, "h": 2, "K": 2, "k": 2, "m": 2, "s": 2, "D": 3, "w": 2, "W": 1, "F": 1, "a": 1}
MOST |= {"M": 5, "L": 5, "Q": 5, "q": 5, "E": 5, "e": 5, "c": 5, "G": 5, "S": 9, "X": 5, "x": 5, "Z": 5, "z": 4}
ADJACENT = frozenset("uyMLdDHkKhmsAnNQqwWFYSec")
OFFSETS = {1: (False, 1), 2: (False, 2), 3: (True, 2), 4: (False, 3), 5: (True, 3)}  # colon, how many parts


@lru_cache(maxsize=1000)
def compile_pattern(pattern: str) -> tuple[Item, ...]:
    """Split a pattern into items."""
    stack: list[list[Item]] = [[]]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char.isascii() and char.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == char:
                end += 1
            stack[-1].append(_item(pattern, char, end - at))
            at = end
        elif char == "'":
            quoted = re.compile(r"'((?:[^']|'')*)'").match(pattern, at)
            if quoted is None:
                raise PatternError(f"Pattern ends with an incomplete string literal: {pattern}")
            stack[-1].append(Item("'", text=quoted[1].replace("''", "'") or "'"))
            at = quoted.end()
        elif char == "[":
            stack.append([])
            at += 1
        elif char == "]":
            if len(stack) == 1:
                raise PatternError("Pattern invalid as it contains ] without previous [")
            inner = tuple(stack.pop())
            stack[-1].append(Item("[", inner=inner))
            at += 1
        elif char in "{}#":
            raise PatternError(f"Pattern includes reserved character: '{char}'")
        else:
            stack[-1].append(Item("'", text=char))
            at += 1
    while len(stack) > 1:  # an optional part may be left open
        inner = tuple(stack.pop())
        stack[-1].append(Item("[", inner=inner))
    return tuple(stack[0])


def _item(pattern: str, letter: str, count: int) -> Item:
    if letter not in LETTERS:
        raise PatternError(f"Unknown pattern letter: {letter}" if letter != "p" else "Pad letter 'p' is not supported")
    if count > MOST.get(letter, 19) or (letter == "V" and count != 2) or (letter == "O" and count not in (1, 4)):
        raise PatternError(f"Too many pattern letters: {letter}")
    if letter == "z" and count == 4:
        raise PatternError(f"The full names of zones (zzzz) are not supported: {pattern}")
    if letter in "wWFY":
        raise PatternError(f"The pattern letter {letter} (weeks) is not supported: {pattern}")
    return Item(letter, count)


@dataclass(frozen=True, slots=True)
class Formatter:
    """A pattern. `format` takes fields of a local date and time; `parse` returns the fields it finds."""

    pattern: str
    items: tuple[Item, ...]

    @classmethod
    def of(cls, pattern: str) -> Formatter:
        return cls(pattern, compile_pattern(pattern))

    def format(self, moment: datetime | date | None, ms_of_day: int | None, zone: tzinfo | None = None) -> str:
        """Write a date, a time of day, or both; `zone` is the zone of a moment."""
        return "".join(_write(each, _Moment(moment, ms_of_day, zone)) for each in self.items)

    def parse(self, text: str) -> dict[str, int | tzinfo]:
        fields: dict[str, int | tzinfo] = {}
        end = _read_all(self.items, text, 0, fields)
        if end is None:
            raise ParseError(f"Text '{text}' could not be parsed with the pattern {self.pattern}")
        if end < len(text):
            raise ParseError(f"Text '{text}' could not be parsed, unparsed text found at index {end}")
        return fields


@dataclass(frozen=True, slots=True)
class _Moment:
    date: date | None
    ms_of_day: int | None
    zone: tzinfo | None

    def day(self) -> date:
        if self.date is None:
            raise ValueError("Unsupported field: a time of day has no date")
        return self.date

    def clock(self) -> int:
        if self.ms_of_day is None:
            raise ValueError("Unsupported field: a date has no time of day")
        return self.ms_of_day

    def offset(self) -> int:
        """Return the offset from UTC in seconds."""
        if self.zone is None:
            raise ValueError("Unsupported field: OffsetSeconds")
        found = self.moment().utcoffset()
        assert found is not None
        return int(found.total_seconds())

    def moment(self) -> datetime:
        assert isinstance(self.date, datetime)
        return self.date


VALUES: dict[str, Callable[[_Moment], int]] = {
    "u": lambda at: at.day().year,
    "y": lambda at: at.day().year,
    "M": lambda at: at.day().month,
    "L": lambda at: at.day().month,
    "d": lambda at: at.day().day,
    "D": lambda at: at.day().timetuple().tm_yday,
    "Q": lambda at: (at.day().month + 2) // 3,
    "q": lambda at: (at.day().month + 2) // 3,
    "e": lambda at: at.day().isoweekday() % 7 + 1,
    "c": lambda at: at.day().isoweekday() % 7 + 1,
    "H": lambda at: at.clock() // 3_600_000,
    "k": lambda at: at.clock() // 3_600_000 or 24,
    "K": lambda at: at.clock() // 3_600_000 % 12,
    "h": lambda at: at.clock() // 3_600_000 % 12 or 12,
    "m": lambda at: at.clock() // 60_000 % 60,
    "s": lambda at: at.clock() // 1000 % 60,
    "A": lambda at: at.clock(),
    "n": lambda at: at.clock() % 1000 * 1_000_000,
    "N": lambda at: at.clock() * 1_000_000,
}


def _write(item: Item, at: _Moment) -> str:
    letter, count = item.letter, item.count
    if letter == "'":
        return item.text
    if letter == "[":
        try:
            return "".join(_write(each, at) for each in item.inner)
        except ValueError:
            return ""
    names = _names(item)
    if names:
        return names[_index(letter, at)]
    if letter in VALUES:
        value = VALUES[letter](at)
        if letter in "uy" and count == 2:
            return f"{value % 100:02d}"
        return str(value).rjust(count, "0")
    if letter == "S":
        return f"{at.clock() % 1000:03d}000000"[:count]
    return _write_zone(letter, count, at)


def _names(item: Item) -> tuple[str, ...] | None:
    """Return the texts of a field that is written in words."""
    letter, count = item.letter, item.count
    if letter == "a":
        return ("AM", "PM")
    if letter == "G":
        return {4: ("Before Christ", "Anno Domini"), 5: ("B", "A")}.get(count, ("BC", "AD"))
    if letter in "ML" and count >= 3:
        return _shortened(MONTHS, count)
    if letter == "E" or (letter in "ec" and count >= 3):
        return _shortened(DAYS, count)
    if letter in "Qq" and count >= 3:
        longer = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
        return {3: ("Q1", "Q2", "Q3", "Q4"), 4: longer, 5: ("1", "2", "3", "4")}[count]
    return None


def _shortened(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    return names if count == 4 else tuple(each[: 1 if count == 5 else 3] for each in names)


def _index(letter: str, at: _Moment) -> int:
    match letter:
        case "a":
            return int(at.clock() >= MS_PER_DAY // 2)
        case "G":
            at.day()
            return 1
        case "M" | "L":
            return at.day().month - 1
        case "Q" | "q":
            return (at.day().month - 1) // 3
        case _:
            return at.day().isoweekday() - 1


def _write_zone(letter: str, count: int, at: _Moment) -> str:
    seconds = at.offset()
    if letter == "V":
        return zone_name(at.zone)
    if letter == "z":
        named = isinstance(at.zone, ZoneInfo)
        return (at.moment().tzname() if named else None) or zone_name(at.zone)
    if letter == "O" or (letter == "Z" and count == 4):
        return _localized_offset(seconds, count)
    if seconds == 0 and (letter == "X" or (letter == "Z" and count == 5)):
        return "Z"
    colon, parts = OFFSETS[count] if letter in "Xx" else (False, 2) if count < 4 else (True, 3)
    sign, rest = "-" if seconds < 0 else "+", abs(seconds)
    pieces = [f"{rest // 3600:02d}", f"{rest // 60 % 60:02d}", f"{rest % 60:02d}"]
    if (parts == 1 and rest // 60 % 60) or (parts == 3 and not rest % 60):
        parts = 2
    return sign + (":" if colon else "").join(pieces[:parts])


def _localized_offset(seconds: int, count: int) -> str:
    if seconds == 0:
        return "GMT"
    sign, rest = "-" if seconds < 0 else "+", abs(seconds)
    hours, minutes, left = rest // 3600, rest // 60 % 60, rest % 60
    text = f"{hours:02d}:{minutes:02d}" if count == 4 else f"{hours}:{minutes:02d}" if minutes or left else str(hours)
    return f"GMT{sign}{text}" + (f":{left:02d}" if left else "")


def zone_name(zone: tzinfo | None) -> str:
    if isinstance(zone, ZoneInfo):
        return zone.key
    if isinstance(zone, timezone):
        seconds = int(zone.utcoffset(None).total_seconds())
        return "Z" if seconds == 0 and zone is not UTC else "UTC" if zone is UTC else _colon_offset(seconds)
    return "UTC"


def _colon_offset(seconds: int) -> str:
    sign, rest = "-" if seconds < 0 else "+", abs(seconds)
    return f"{sign}{rest // 3600:02d}:{rest // 60 % 60:02d}"


@lru_cache(maxsize=1000)
def zone_of(name: str) -> tzinfo:
    """Return the zone of a name, as ZoneId.of does; a ParseError says that there is none."""
    if name in ("UTC", "GMT", "UT", "Z"):
        return UTC
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?(?::?(\d\d))?", name)
    if offset:
        seconds = int(offset[2]) * 3600 + int(offset[3] or 0) * 60 + int(offset[4] or 0)
        if seconds > 18 * 3600:
            raise ParseError(f"Zone offset not in valid range: {name}")
        return timezone(timedelta(seconds=seconds if offset[1] == "+" else -seconds))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParseError(f"Unknown time-zone ID: {name}") from None


def _read_all(items: tuple[Item, ...], text: str, at: int, fields: dict[str, int | tzinfo]) -> int | None:
    """Read items one after the other and return where they end; None if they do not match."""
    for number, item in enumerate(items):
        if item.letter == "[":
            tried = dict(fields)
            end = _read_all(item.inner, text, at, tried)
            if end is not None:
                fields.update(tried)
                at = end
            continue
        end = _read(item, items[number + 1 :], text, at, fields)
        if end is None:
            return None
        at = end
    return at


def _read(item: Item, following: tuple[Item, ...], text: str, at: int, fields: dict[str, int | tzinfo]) -> int | None:
    letter = item.letter
    if letter == "'":
        end = at + len(item.text)
        return end if text[at:end].lower() == item.text.lower() else None
    names = _names(item)
    if names:
        return _read_name(letter, names, text, at, fields)
    if letter == "S":
        found = re.compile(rf"\d{{{item.count}}}", re.ASCII).match(text, at)
        if found is None:
            return None
        return _found(fields, "nano", int(found[0].ljust(9, "0")), found.end())
    if letter in "XxZOVz":
        return _read_zone(item, text, at, fields)
    return _read_number(item, following, text, at, fields)


def _widths(item: Item) -> tuple[int, int]:
    """Return the least and the most digits of a number."""
    letter, count = item.letter, item.count
    if letter in "uy":
        return (2, 2) if count == 2 else (count, 19)
    if letter == "D" and count > 1:
        return count, 3
    if letter in "AnN" or (count == 1 and letter not in "ec"):
        return count, 19
    return count, count


def _read_number(
    item: Item, following: tuple[Item, ...], text: str, at: int, fields: dict[str, int | tzinfo]
) -> int | None:
    least, most = _widths(item)
    reserved = 0
    if most > least and item.letter in ADJACENT:  # numbers of a fixed width that follow at once keep their digits
        for each in following:
            if each.letter not in ADJACENT or _names(each):
                break
            if each.letter != "S" and _widths(each)[0] != _widths(each)[1]:
                break
            reserved += each.count
    sign, padded = "", item.letter in "uy" and item.count >= 4
    if text[at : at + 1] == "+" and padded:
        sign, at = "+", at + 1
    elif text[at : at + 1] == "-" and (padded or (most == 19 and item.letter not in "AnN")):
        sign, at = "-", at + 1
    digits = re.compile(rf"\d{{1,{most + reserved}}}", re.ASCII).match(text, at)
    if digits is None:
        return None
    length = max(least, len(digits[0]) - reserved) if most > least else most
    if len(digits[0]) < length:
        return None
    if padded and ((not sign and length > item.count) or (sign == "+" and length <= item.count)):
        return None  # a longer year needs its plus, another must not have it
    value = int(digits[0][:length])
    if sign == "-" and value == 0:
        return None
    if item.letter in "uy" and item.count == 2:
        value += 2000
    return _found(fields, NUMBERS[item.letter], -value if sign == "-" else value, at + length)


def _found(fields: dict[str, int | tzinfo], name: str, value: int | tzinfo, end: int) -> int | None:
    """Note a field, and return where it ends; None if the text had it before with another value."""
    return end if fields.setdefault(name, value) == value else None


def _read_name(letter: str, names: tuple[str, ...], text: str, at: int, fields: dict[str, int | tzinfo]) -> int | None:
    rest = text[at:].lower()
    matching = [(len(name), number) for number, name in enumerate(names) if rest.startswith(name.lower())]
    if not matching:
        return None
    length, number = max(matching)
    field, first = {
        "a": ("half", 0),
        "G": ("era", 0),
        "E": ("weekday", 1),
        "e": ("weekday", 1),
        "c": ("weekday", 1),
    }.get(letter, ("quarter" if letter in "Qq" else "month", 1))
    return _found(fields, field, number + first, at + length)


def _read_zone(item: Item, text: str, at: int, fields: dict[str, int | tzinfo]) -> int | None:
    letter, count = item.letter, item.count
    if letter in "Vz":
        return _read_zone_name(text, at, fields)
    if letter == "O" or (letter == "Z" and count == 4):
        hours = r"\d\d):(" if count == 4 else r"\d{1,2})(?::("  # minutes must be there in the long form
        minutes = r"[0-5]\d)" + ("" if count == 4 else ")?")
        found = re.compile(rf"GMT(?:([+-])({hours}{minutes}(?::(\d\d))?|(?![+-]))", re.I).match(text, at)
    elif letter == "x" and count == 1 and text.startswith("+00", at):
        return _found(fields, "offset", UTC, at + 3)
    elif text[at : at + 1].upper() == "Z" and (letter == "X" or (letter == "Z" and count == 5)):
        return _found(fields, "offset", UTC, at + 1)
    else:
        colon, parts = OFFSETS[count] if letter in "Xx" else (False, 2) if count < 4 else (True, 3)
        between = ":" if colon else ""
        minutes = f"(?:{between}([0-5]\\d)){'?' if parts == 1 else ''}"
        found = re.compile(
            rf"([+-])(\d\d){minutes}(?:{between}([0-5]\d))?" if parts == 3 else rf"([+-])(\d\d){minutes}()"
        ).match(text, at)
    if found is None:
        return None
    seconds = int(found[2] or 0) * 3600 + int(found[3] or 0) * 60 + int(found[4] or 0)
    if seconds > 18 * 3600:
        raise ParseError(f"Zone offset not in valid range: {found[0]}")
    zone = timezone(timedelta(seconds=-seconds if found[1] == "-" else seconds))
    return _found(fields, "offset", zone, found.end())


def _read_zone_name(text: str, at: int, fields: dict[str, int | tzinfo]) -> int | None:
    """Read a zone: an offset, one of UTC and its like with an offset, or the longest name that is known."""
    offset = re.compile(r"(?:UTC|GMT|UT)?[+-]\d\d:[0-5]\d(?::[0-5]\d)?|Z(?![A-Za-z])", re.I).match(text, at)
    if offset:
        fields["zone"] = zone_of(offset[0].upper())
        return offset.end()
    known = _zone_names()
    word = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]*").match(text, at)
    for end in range(word.end(), at, -1) if word else ():
        name = known.get(text[at:end].lower())
        if name is not None:
            fields["zone"] = zone_of(name)  # of two zones the last one counts
            return end
    if short := re.compile(r"[A-Z]{2,}").match(text, at):
        raise ParseError(f"Text '{text}' could not be parsed: the short name {short[0]} of a zone is not supported")
    return None


@lru_cache(maxsize=1)
def _zone_names() -> dict[str, str]:
    """Return the names of zones by what they are in small letters."""
    short = {name.lower(): zone for name, zone in SHORT_ZONES.items()}
    return {name.lower(): name for name in (*available_timezones(), "UTC", "GMT", "UT")} | short


SHORT_ZONES = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
}


def to_utc(local_ms: int, zone: tzinfo) -> int:
    """Return the moment of a local time. In a gap the time moves forward, in an overlap the earlier moment is meant."""
    if zone is UTC:
        return local_ms
    local = EPOCH + timedelta(milliseconds=local_ms)
    offset = local.replace(tzinfo=zone).utcoffset()
    assert offset is not None
    return local_ms - int(offset.total_seconds() * 1000)


def local(ms: int, zone: tzinfo) -> datetime:
    """Return a moment as a local date and time that knows its zone."""
    try:
        return (EPOCH.replace(tzinfo=UTC) + timedelta(milliseconds=ms)).astimezone(zone)
    except OverflowError:
        raise ValueError("years before 1 and after 9999 are not supported") from None


def format_moment(pattern: str, ms: int, zone: tzinfo) -> str:
    at = local(ms, zone)
    clock = ((at.hour * 60 + at.minute) * 60 + at.second) * 1000 + at.microsecond // 1000
    return Formatter.of(pattern).format(at, clock, zone)


def format_date(pattern: str, days: int) -> str:
    return Formatter.of(pattern).format(date_of(days), None)


def format_time(pattern: str, ms_of_day: int) -> str:
    return Formatter.of(pattern).format(None, ms_of_day)


def date_of(days: int) -> date:
    try:
        return date.fromordinal(days + FIRST_DAY)
    except (ValueError, OverflowError):
        raise ValueError("years before 1 and after 9999 are not supported") from None
