"""Java's SimpleDateFormat in UTC, in English: all letters to format, and those to parse that name a single moment.

Parsing is lenient as in Java: fields may overflow (the 32nd of January is the first of February), a text may go on
after what was parsed, and blanks before a field are skipped unless it is a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from moldau.connect.data import Instant
from moldau.connect.java.calendar import MS_PER_DAY, Moment, day_of, moment

MONTHS: list[str] = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
DAYS: list[str] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
UTC_NAME = "Coordinated Universal Time"
LETTERS = "GyMwWDdFEaHkKhmsSzZYuXL"
_NUMBER = re.compile(r"-?\d+|NaN")  # Java's DecimalFormat reads this too, and its int is 0
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d\d)?")
_X_OFFSET = {
    1: re.compile(r"([+-])(\d\d)()"),
    2: re.compile(r"([+-])(\d\d)(\d\d)"),
    3: re.compile(r"([+-])(\d\d):(\d\d)"),
}


class PatternError(ValueError):
    """A pattern that Java refuses, or that cannot be parsed here."""


class ParseError(ValueError):
    """A text that does not match its pattern."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of one letter, or (with count 0) literal text."""

    text: str
    count: int = 0

    @property
    def is_name(self) -> bool:
        """Whether it is read as one of some names: blanks before it are not skipped."""
        return self.text in "EaG" or (self.text in "ML" and self.count >= 3)


def compile_pattern(pattern: str) -> tuple[Part, ...]:
    """Split a pattern into letters and literal text; two quotes are a quote."""
    found: list[Part] = []
    literal, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == "'":
            if pattern[at : at + 2] == "''":
                literal, at = literal + "'", at + 2
                continue
            quoted = re.compile(r"'((?:[^']|'')*)'").match(pattern, at)
            if quoted is None:
                raise PatternError("Unterminated quote")
            literal, at = literal + quoted[1].replace("''", "'"), quoted.end()
        elif char.isascii() and char.isalpha():
            if char not in LETTERS:
                raise PatternError(f"Illegal pattern character '{char}'")
            end = at
            while end < len(pattern) and pattern[end] == char:
                end += 1
            if char == "X" and end - at > 3:
                raise PatternError(f"invalid ISO 8601 format: length={end - at}")
            found += [Part(literal)] if literal else []
            found.append(Part(char, end - at))
            literal, at = "", end
        else:
            literal, at = literal + char, at + 1
    return (*found, Part(literal)) if literal else tuple(found)


class SimpleDateFormat:
    """A pattern that formats moments and parses texts. Its time zone is UTC."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.parts = compile_pattern(pattern)

    def format(self, ms: int) -> str:
        at = moment(ms)
        return "".join(FORMATS[part.text](at, part.count) if part.count else part.text for part in self.parts)

    def parse(self, text: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Instant:
        """Read a moment from the beginning of a text."""
        fields: dict[str, int] = {}
        at = 0
        for part, following in zip(self.parts, (*self.parts[1:], None), strict=True):
            if not part.count:
                if not text.startswith(part.text, at):
                    raise self._unparsable(text)
                at += len(part.text)
                continue
            # A number that another field follows has a fixed width, which blanks before it are a part of.
            limit = at + part.count if following is not None and following.count else None
            while at < len(text) and text[at] in " \t" and not part.is_name:
                at += 1
            end = _parse_field(part, text, at, limit, fields, now)
            if end is None:
                raise self._unparsable(text)
            at = end
        if at == 0:
            raise self._unparsable(text)
        return Instant(self._establish(fields))

    def _unparsable(self, text: str) -> ParseError:
        return ParseError(f'Unparseable date: "{text}"')

    def _establish(self, fields: dict[str, int]) -> int:
        year = fields.get("year", 1970)
        if fields.get("era") == 0:
            year = 1 - year
        if "day_of_year" in fields and "day" not in fields:
            day = day_of(year, 1, fields["day_of_year"])
        elif fields.keys() & {"week", "week_of_month", "week_in_month", "week_year"} or (
            "weekday" in fields and not fields.keys() & {"day", "day_of_year"}
        ):
            raise PatternError(f"Weeks can be formatted but not parsed: {self.pattern}")
        else:
            day = day_of(year, fields.get("month", 1), fields.get("day", 1))
        hour = fields.get("hour")
        if hour is None:
            hour = fields.get("half_hour", 0) + 12 * fields.get("half", 0)
        clock = (hour * 60 + fields.get("minute", 0)) * 60 + fields.get("second", 0)
        return day * MS_PER_DAY + clock * 1000 + fields.get("ms", 0) - fields.get("offset", 0)


def _padded(value: int, count: int) -> str:
    return ("-" if value < 0 else "") + str(abs(value)).rjust(count, "0")


def _year(value: int, count: int) -> str:
    if count != 2:
        return _padded(value, count)
    return ("-" if value < 0 else "") + _padded(abs(value) % 100, 2)


def _month(at: Moment, count: int) -> str:
    name = MONTHS[at.month - 1]
    return name if count >= 4 else name[:3] if count == 3 else _padded(at.month, count)


def _hour(at: Moment) -> int:
    return at.ms_of_day // 3_600_000


FORMATS: dict[str, Callable[[Moment, int], str]] = {
    "G": lambda at, _n: "AD" if at.year > 0 else "BC",
    "y": lambda at, n: _year(at.era_year, n),
    "Y": lambda at, n: _year(at.week_year, n),
    "M": _month,
    "L": _month,
    "w": lambda at, n: _padded(at.week_of_year, n),
    "W": lambda at, n: _padded(at.week_of_month, n),
    "D": lambda at, n: _padded(at.day_of_year, n),
    "d": lambda at, n: _padded(at.day_of_month, n),
    "F": lambda at, n: _padded((at.day_of_month - 1) // 7 + 1, n),
    "E": lambda at, n: DAYS[at.day_of_week - 1] if n >= 4 else DAYS[at.day_of_week - 1][:3],
    "u": lambda at, n: _padded((at.day_of_week + 5) % 7 + 1, n),
    "a": lambda at, _n: "PM" if _hour(at) >= 12 else "AM",
    "H": lambda at, n: _padded(_hour(at), n),
    "k": lambda at, n: _padded(_hour(at) or 24, n),
    "K": lambda at, n: _padded(_hour(at) % 12, n),
    "h": lambda at, n: _padded(_hour(at) % 12 or 12, n),
    "m": lambda at, n: _padded(at.ms_of_day // 60_000 % 60, n),
    "s": lambda at, n: _padded(at.ms_of_day // 1000 % 60, n),
    "S": lambda at, n: _padded(at.ms_of_day % 1000, n),
    "z": lambda _at, n: UTC_NAME if n >= 4 else "UTC",
    "Z": lambda _at, _n: "+0000",
    "X": lambda _at, _n: "Z",
}

# The field that a letter sets when it is parsed as a number.
NUMBERS = {
    "y": "year",
    "Y": "week_year",
    "M": "month",
    "L": "month",
    "w": "week",
    "W": "week_of_month",
    "F": "week_in_month",
    "D": "day_of_year",
    "d": "day",
    "u": "weekday",
    "H": "hour",
    "k": "hour",
    "K": "half_hour",
    "h": "half_hour",
    "m": "minute",
    "s": "second",
    "S": "ms",
}


def _parse_field(
    part: Part, text: str, at: int, limit: int | None, fields: dict[str, int], now: Callable[[], datetime]
) -> int | None:
    """Read one field and return where it ends, or None if it is not there."""
    letter = part.text
    if at >= len(text):
        return None
    if letter in "zZX":
        return _parse_zone(part, text, at, fields)
    if letter in "ML" and part.count >= 3:
        return _parse_name(text, at, MONTHS, "month", 1, fields)
    if letter == "E":
        return _parse_name(text, at, DAYS, "weekday", 1, fields)
    if letter == "a":
        return _parse_name(text, at, ["AM", "PM"], "half", 0, fields)
    if letter == "G":
        return _parse_name(text, at, ["BC", "AD"], "era", 0, fields)
    if limit is not None and limit > len(text):
        return None
    found = _NUMBER.match(text, at, len(text) if limit is None else limit)
    if found is None:
        return None
    value = 0 if found[0] == "NaN" else int(found[0])
    if letter == "y" and part.count <= 2 and found.end() - at == 2 and value >= 0:
        value = _century(value, now())
    if (letter, value) in (("k", 24), ("h", 12)):
        value = 0
    fields[NUMBERS[letter]] = value
    return found.end()


def _century(value: int, now: datetime) -> int:
    """Place a year of two digits within the 80 years before and the 20 after now."""
    start = now.year - 80
    year = start // 100 * 100 + value
    return year + 100 if year < start else year


def _parse_name(text: str, at: int, names: list[str], field: str, first: int, fields: dict[str, int]) -> int | None:
    rest = text[at:].lower()
    found = [
        (len(each), number)
        for number, name in enumerate(names, first)
        for each in {name, name[:3]}
        if rest.startswith(each.lower())
    ]
    if not found:
        return None
    length, fields[field] = max(found)
    return at + length


def _parse_zone(part: Part, text: str, at: int, fields: dict[str, int]) -> int | None:
    if part.text == "X":
        if text[at] == "Z":
            fields["offset"] = 0
            return at + 1
        found = _X_OFFSET[part.count].match(text, at)
    else:
        if text.startswith(UTC_NAME, at):
            fields["offset"] = 0
            return at + len(UTC_NAME)
        name = next((each for each in ("GMT", "UTC") if text[at : at + 3].upper() == each), "")
        found = _OFFSET.match(text, at + 3 if name == "GMT" else at) if name != "UTC" else None
        if name and found is None:
            fields["offset"] = 0
            return at + 3
    if found is None or int(found[2]) > 23 or int(found[3] or 0) > 59:
        return None
    minutes = int(found[2]) * 60 + int(found[3] or 0)
    fields["offset"] = (-minutes if found[1] == "-" else minutes) * 60_000
    return found.end()
