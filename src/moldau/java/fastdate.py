"""Dates by patterns of FastDateFormat. It reads leniently: numbers of any width, days that a month lacks, any rest."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import date

MONTHS = tuple(date(2000, month, 1).strftime("%B").lower() for month in range(1, 13))
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ITEM = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
_NUMBERS = "yMdDHhkKmsS"
_MS = {"H": 3_600_000, "h": 3_600_000, "k": 3_600_000, "K": 3_600_000, "m": 60_000, "s": 1000, "S": 1}
_FIRST_DAY = date(1970, 1, 1).toordinal()


def reads(pattern: str) -> bool:
    """Tell whether a pattern has only letters that are read here."""
    letters = re.sub(r"'(?:[^']|'')*'", "", pattern)
    return "'" not in letters and all(char in _NUMBERS + "Ea" or not char.isalpha() for char in letters)


def parse_date(pattern: str, text: str) -> int:
    """Read days since 1970; a ValueError if the text does not fit, or has a time of day."""
    found: dict[str, int] = {}
    items = list(_ITEM.finditer(pattern))
    at = 0
    for number, item in enumerate(items):
        adjoining = number + 1 < len(items) and _is_number(items[number + 1])
        at = _read(item, adjoining, text, at, found)
    ms = sum((found.get(letter, 0) % {"k": 24, "h": 12}.get(letter, 1 << 62)) * size for letter, size in _MS.items())
    days, rest = divmod(ms + found.get("a", 0) * 12 * _MS["h"], 86_400_000)
    if rest:
        raise ValueError("Date format contains time field.")
    months = found.get("y", 1970) * 12 + found.get("M", 1) - 1
    month, day = (months // 12 * 12, found["D"]) if "D" in found else (months, found.get("d", 1))
    return date(month // 12, month % 12 + 1, 1).toordinal() - _FIRST_DAY + day - 1 + days


def _is_number(item: re.Match[str]) -> bool:
    return item[2] is not None and item[2] in _NUMBERS and not (item[2] == "M" and len(item[0]) > 2)


def _read(item: re.Match[str], adjoining: bool, text: str, at: int, found: dict[str, int]) -> int:
    """Read one item of a pattern, and return where it ends."""
    if item[2] is None:
        literal = item[0] if item[1] is None else item[1].replace("''", "'") or "'"
        if not text.startswith(literal, at):
            raise ValueError(f"Unparseable date: {text!r}")
        return at + len(literal)
    if _is_number(item):
        taken = re.compile(rf"\d{{1,{len(item[0])}}}" if adjoining else r"\s*\d+", re.ASCII).match(text, at)
        if taken is None:
            raise ValueError(f"Unparseable date: {text!r}")
        found[item[2]] = _year(int(taken[0])) if item[2] == "y" and len(item[0]) < 3 else int(taken[0])
        return taken.end()
    words: dict[str, tuple[str, ...]] = {"M": MONTHS, "E": DAYS, "a": ("am", "pm")}
    shorter: Callable[[str], str] = lambda word: word[:3]  # noqa: E731
    for names in (words[item[2]], tuple(map(shorter, words[item[2]]))):
        for place, name in enumerate(names):
            if text[at : at + len(name)].lower() == name:
                found[item[2]] = place + (item[2] == "M")
                return at + len(name)
    raise ValueError(f"Unparseable date: {text!r}")


def _year(value: int) -> int:
    """Put a year of two digits into the hundred years that began 80 years ago."""
    if value >= 100:
        return value
    begin = time.gmtime().tm_year - 80
    return begin - begin % 100 + value + (100 if value < begin % 100 else 0)
