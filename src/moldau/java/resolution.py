"""What parsed fields of a date and time mean, resolved as java.time's SMART style does.

A date or a time of day is made where the fields are whole; each field that is left replaces that of 1970-01-01T00:00,
in the order of Java's fields, as ksqlDB does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo

from moldau.java.times import FIRST_DAY, MS_PER_DAY, RANGES, ParseError, to_utc

Fields = Mapping[str, int | tzinfo]
DATE_ORDER = ("weekday", "day", "day_of_year", "month", "year", "era")  # in which fields without a date are applied
TIME_ORDER = ("nano", "second", "minute", "half_hour", "hour", "half")


@dataclass(slots=True)
class _Resolved:
    """What java.time makes of the fields of a text: date and time of day, as far as they are whole, and the rest."""

    fields: dict[str, int]
    text: str
    day: int | None = None  # since 1970
    nanos: int | None = None  # of the day

    def refuse(self, why: str) -> ParseError:
        return ParseError(f"Text '{self.text}' could not be parsed: {why}")

    def check(self, name: str) -> int:
        """Return a field whose value must be in its range."""
        value = self.fields[name]
        low, high = RANGES.get(name, (-999_999_999, 999_999_999))
        if not low <= value <= high:
            raise self.refuse(f"Invalid value for {name} (valid values {low} - {high}): {value}")
        return value

    def put(self, name: str, value: int, source: str) -> None:
        """Add a field that follows from another."""
        if self.fields.setdefault(name, value) != value:
            raise self.refuse(f"Conflict found: {name} {self.fields[name]} differs from {name} {value} by {source}")

    def resolve(self) -> None:
        self._resolve_day()
        self._resolve_clock()
        if self.day is not None:
            self._cross_check(self.day)

    def _resolve_day(self) -> None:
        fields = self.fields
        if "localized_weekday" in fields:
            value = self.check("localized_weekday")
            del fields["localized_weekday"]
            fields["weekday"] = (value + 5) % 7 + 1  # goes before a name
        if "year_of_era" in fields:
            value = self.check("year_of_era")
            del fields["year_of_era"]
            year = fields.get("year", 1)
            before = fields.pop("era") == 0 if "era" in fields else year <= 0
            self.put("year", 1 - value if before else value, "year_of_era")
        if "year" in fields and "month" in fields and "day" in fields:
            year, month, day = self._year(), self.check("month"), self.check("day")
            self.day = date(year, month, min(day, _length(year, month))).toordinal() - FIRST_DAY
            del fields["year"], fields["month"], fields["day"]
        elif "year" in fields and "day_of_year" in fields:
            year, of_year = self._year(), self.check("day_of_year")
            if of_year == 366 and not _is_leap(year):
                raise self.refuse(f"Invalid date 'DayOfYear 366' as '{year}' is not a leap year")
            self.day = date(year, 1, 1).toordinal() + of_year - 1 - FIRST_DAY
            del fields["year"], fields["day_of_year"]

    def _year(self) -> int:
        year = self.check("year")
        if not 1 <= year <= 9999:
            raise ParseError(f"Text '{self.text}': years before 1 and after 9999 are not supported")
        return year

    def _resolve_clock(self) -> None:
        fields = self.fields
        for name, whole, parts in (("clock_hour", "hour", 24), ("clock_half_hour", "half_hour", 12)):
            if name in fields:
                value = self.check(name) if fields[name] else 0
                del fields[name]
                self.put(whole, value % parts, name)
        if "half" in fields and "half_hour" in fields:
            value = self.check("half_hour")
            self.put("hour", fields.pop("half") * 12 + value, "half_hour")
            del fields["half_hour"]
        for name, unit in (("nano_of_day", 1), ("ms_of_day_raw", 1_000_000)):
            if name in fields:
                seconds, nano = divmod(self.check(name) * unit, 1_000_000_000)
                del fields[name]
                if unit > 1 and "nano" in fields:
                    nano += fields["nano"] % unit
                for field, value in (
                    ("hour", seconds // 3600),
                    ("minute", seconds // 60 % 60),
                    ("second", seconds % 60),
                ):
                    self.put(field, value, name)
                self.put("nano", nano, name)
        if "half" in fields and not fields.keys() & {"hour", "minute", "second", "nano"}:
            self.nanos = (fields.pop("half") * 12 + 6) * 3_600_000_000_000  # the middle of the half
            return
        if "hour" not in fields:
            for name in fields.keys() & set(TIME_ORDER):
                self.check(name)
            return
        minute, second, nano = "minute" in fields, "second" in fields, "nano" in fields
        if (not minute and (second or nano)) or (minute and not second and nano):
            return  # what lies between two fields is not made up
        values = [fields.get(name, 0) for name in ("hour", "minute", "second", "nano")]
        excess = values == [24, 0, 0, 0]
        if not excess:
            for name in ("hour", "minute", "second", "nano"):
                if name in fields:
                    self.check(name)
        hour, minutes, seconds, nanos = values
        self.nanos = (hour % 24 * 3600 + minutes * 60 + seconds) * 1_000_000_000 + nanos
        for name in ("hour", "minute", "second", "nano"):
            fields.pop(name, None)
        for name, found in (("half", hour % 24 // 12), ("half_hour", hour % 12)):
            if name in fields and fields.pop(name) != found:
                raise self.refuse(f"Conflict found: {name} differs from the time")
        if excess and self.day is not None:
            self.day += 1

    def _cross_check(self, day: int) -> None:
        """Compare the fields that are left with the date."""
        at = date.fromordinal(day + FIRST_DAY)
        of_year = at.timetuple().tm_yday
        found = {"year": at.year, "month": at.month, "day": at.day, "weekday": at.isoweekday(), "day_of_year": of_year}
        found |= {"quarter": (at.month + 2) // 3, "era": 1}
        for name in self.fields.keys() & found.keys():
            if self.fields.pop(name) != found[name]:
                raise self.refuse(f"Conflict found: {name} differs from the date {at}")


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _length(year: int, month: int) -> int:
    return 29 if month == 2 and _is_leap(year) else 28 if month == 2 else 30 if month in (4, 6, 9, 11) else 31


def _resolved(fields: Fields, text: str) -> _Resolved:
    found = _Resolved({name: value for name, value in fields.items() if isinstance(value, int)}, text)
    found.resolve()
    return found


def day_of(fields: Fields, text: str) -> int:
    """Resolve the date of parsed fields, in days since 1970. Missing fields are those of 1970-01-01."""
    return _day(_resolved(fields, text))


def _day(found: _Resolved) -> int:
    if found.day is not None:
        return found.day
    at, fields = date(1970, 1, 1), found.fields
    for name in DATE_ORDER:
        if name not in fields:
            continue
        value = found._year() if name == "year" else found.check(name)
        match name:
            case "weekday":
                at += timedelta(days=value - at.isoweekday())
            case "day":
                if value > _length(at.year, at.month):
                    raise found.refuse(f"Invalid date: {at:%B} has no day {value}")
                at = at.replace(day=value)
            case "day_of_year":
                if value == 366:
                    raise found.refuse("Leap day cannot be parsed without supplying the year field")
                at = date(at.year, 1, 1) + timedelta(days=value - 1)
            case "month":
                at = at.replace(month=value, day=min(at.day, _length(at.year, value)))
            case "year":
                at = at.replace(year=value, day=min(at.day, _length(value, at.month)))
            case _:
                if value == 0:
                    raise ParseError(f"Text '{found.text}': years before 1 and after 9999 are not supported")
    return at.toordinal() - FIRST_DAY


def nanos_of(fields: Fields, text: str) -> int:
    """Resolve the time of day of parsed fields, in nanoseconds. Missing fields are those of midnight."""
    return _nanos(_resolved(fields, text))


def _nanos(found: _Resolved) -> int:
    if found.nanos is not None:
        return found.nanos
    hour = minute = second = nano = 0
    for name in TIME_ORDER:
        if name not in found.fields:
            continue
        value = found.check(name)
        match name:
            case "nano":
                nano = value
            case "second":
                second = value
            case "minute":
                minute = value
            case "half_hour":
                hour = hour // 12 * 12 + value
            case "hour":
                hour = value
            case _:
                hour = hour % 12 + 12 * value
    return (hour * 3600 + minute * 60 + second) * 1_000_000_000 + nano


def moment_of(fields: Fields, text: str, zone: tzinfo) -> int:
    """Resolve parsed fields to milliseconds since 1970. A zone in the text goes before the one that is given, and an
    offset before a zone if date and time are whole.
    """
    found = _resolved(fields, text)
    ms = _day(found) * MS_PER_DAY + _nanos(found) // 1_000_000
    named, offset = fields.get("zone"), fields.get("offset")
    whole = found.day is not None and found.nanos is not None
    chosen = next((one for one in ((offset, named) if whole else (named, offset)) if isinstance(one, tzinfo)), zone)
    return to_utc(ms, chosen)
