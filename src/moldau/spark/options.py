"""Options of the data source as rows (name, parser, default, meaning), and the parsers of their values.

Names are those of Spark's own Kafka source and sink where it has one, in any case, so that jobs change one word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_TEXT = 10_000_000


class OptionError(ValueError):
    """A wrong option: one sentence that says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option. `parse` turns text into a value, or raises ValueError with what it must be."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    meaning: str


def resolve(table: Collection[Option], given: Mapping[str, str], prefixes: Collection[str] = ()) -> dict[str, Any]:
    """Return the value of every option in the table; refuse a name that neither is in it nor has a known prefix."""
    rows = {row.name.lower(): row for row in table}
    values = {row.name: row.default for row in table}
    for name, text in given.items():
        row = rows.get(name.lower())
        if row is not None:
            values[row.name] = parse_option(row, text)
        elif not name.lower().startswith(tuple(prefixes)):
            raise OptionError(f"There is no option {name}.{nearest(name, rows, prefixes)}")
    return values


def parse_option(row: Option, text: str) -> Any:
    if len(text) > MAX_TEXT:
        raise OptionError(f"The option {row.name} has {len(text)} characters; it may have {MAX_TEXT}.")
    try:
        return row.parse(text.strip())
    except ValueError as error:
        raise OptionError(f"The option {row.name} is {excerpt(text)!r}: {error}.") from None


def nearest(name: str, rows: Mapping[str, Option], prefixes: Collection[str]) -> str:
    near = get_close_matches(name.lower(), list(rows), n=1)
    if near:
        return f" Did you mean {rows[near[0]].name}?"
    if "kafka." in prefixes:
        return f" If it is a setting of the Kafka client, write kafka.{name}."
    return ""


def under(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the options that begin with a prefix, without the prefix."""
    return {name[len(prefix) :]: text for name, text in given.items() if name.lower().startswith(prefix)}


def excerpt(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def words(text: str) -> str:
    if not text:
        raise ValueError("it must not be empty")
    return text


def boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


def positive(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text) or int(text) < 1:
        raise ValueError("it must be a whole number from 1 on")
    return int(text)


def milliseconds(text: str) -> int:
    """Parse a time or a duration in milliseconds."""
    if not re.fullmatch(r"\d{1,18}", text):
        raise ValueError("it must be a number of milliseconds")
    return int(text)


def duration_ms(text: str) -> int:
    """Parse a duration as Spark writes it: `15m`, `30s`, `500ms`."""
    match = re.fullmatch(r"(\d{1,12})\s*([a-z]*)", text.lower())
    if not match or (match[2] or "ms") not in UNITS_MS:
        raise ValueError("it must be a length of time, such as 30s, 15m or 500ms")
    return int(match[1]) * UNITS_MS[match[2] or "ms"]


def one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"it must be one of {', '.join(allowed)}")
        return text.lower()

    return parse


def json_object(text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"it must be JSON such as {example}")
    return found


def partition_numbers(text: str) -> dict[tuple[str, int], int]:
    """Parse a number for each partition: `{"orders": {"0": 23, "1": -2}}`."""
    example = '{"orders": {"0": 23, "1": -2}}'
    out: dict[tuple[str, int], int] = {}
    for topic, numbers in json_object(text, example).items():
        if not isinstance(numbers, dict):
            raise ValueError(f"it must be JSON such as {example}")
        for partition, number in numbers.items():
            if not partition.isdecimal() or not isinstance(number, int) or isinstance(number, bool):
                raise ValueError(f"it must be JSON such as {example}")
            out[topic, int(partition)] = number
    return out


def partition_lists(text: str) -> dict[str, tuple[int, ...]]:
    """Parse partitions of topics: `{"orders": [0, 1]}`."""
    example = '{"orders": [0, 1]}'
    out = {}
    for topic, listed in json_object(text, example).items():
        if not isinstance(listed, list) or not all(type(one) is int and one >= 0 for one in listed):
            raise ValueError(f"it must be JSON such as {example}")
        out[topic] = tuple(sorted(set(listed)))
    if not any(out.values()):
        raise ValueError("it must name at least one partition")
    return out
