"""Java's GregorianCalendar in UTC: days and dates of any year, Julian before 15 October 1582."""

from __future__ import annotations

from dataclasses import dataclass

MS_PER_DAY = 86_400_000
CUTOVER = -141_427  # the day of 1582-10-15
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in fields. `year` is the proleptic one: 0 is 1 BC. Days of the week count from Sunday, which is 1."""

    day: int  # since 1970
    year: int
    month: int  # 1 to 12
    day_of_month: int
    ms_of_day: int

    @property
    def era_year(self) -> int:
        return self.year if self.year > 0 else 1 - self.year

    @property
    def day_of_year(self) -> int:
        return self.day - day_of(self.year, 1, 1) + 1

    @property
    def day_of_week(self) -> int:
        return (self.day + 4) % 7 + 1

    @property
    def week_of_month(self) -> int:
        return _week(self.day_of_month, self.day_of_week)

    @property
    def week_of_year(self) -> int:
        if day_of(self.year + 1, 1, 1) - self.day <= (day_of(self.year + 1, 1, 1) + 4) % 7:
            return 1  # the week in which the next year begins
        return _week(self.day_of_year, self.day_of_week)

    @property
    def week_year(self) -> int:
        return self.year + (self.week_of_year == 1 and self.month == 12)


def _week(day: int, day_of_week: int) -> int:
    """Number the week of a day within its month or year: weeks begin on Sunday, the first may be short."""
    first = (day_of_week - day) % 7  # the weekday of day 1, from Sunday as 0
    return (day - 1 + first) // 7 + 1


def moment(ms: int) -> Moment:
    day, rest = divmod(ms, MS_PER_DAY)
    year, month, of_month = date_of(day)
    return Moment(day, year, month, of_month, rest)


def date_of(day: int) -> tuple[int, int, int]:
    """Return year, month and day of the month of a day since 1970."""
    julian = day < CUTOVER
    year = 1970 + (day * 4 // 1461 if julian else day * 400 // 146_097)  # right, or off by one
    while _first(year + 1, julian) <= day:
        year += 1
    while _first(year, julian) > day:
        year -= 1
    rest = day - _first(year, julian)
    leap = _is_leap(year, julian)
    month = next(month for month in range(12, 0, -1) if rest >= _before(month, leap))
    return year, month, rest - _before(month, leap) + 1


def day_of(year: int, month: int, day: int) -> int:
    """Return the day since 1970 of a date, whose month and day may overflow as in a lenient calendar."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    found = _first(year, False) + _before(month, _is_leap(year, False)) + day - 1
    if found >= CUTOVER:
        return found
    julian = _first(year, True) + _before(month, _is_leap(year, True)) + day - 1
    return julian if julian < CUTOVER else found


def _first(year: int, julian: bool) -> int:
    """Return the day since 1970 on which a year begins."""
    before = year - 1
    leaps = before // 4 if julian else before // 4 - before // 100 + before // 400
    return before * 365 + leaps - (719_164 if julian else 719_162)


def _is_leap(year: int, julian: bool) -> bool:
    return year % 4 == 0 and (julian or year % 100 != 0 or year % 400 == 0)


def _before(month: int, leap: bool) -> int:
    return _DAYS_BEFORE[month - 1] + (leap and month > 2)
