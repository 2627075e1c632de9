"""Tables of text that fit a width: lists of things, and the rows of queries, which come one by one."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

LEAST = 6  # the least width of a column that is made narrower
NARROWEST = 10  # of a query's column
DEFAULT_WIDTH = 80


def width_of(text: str) -> int:
    """Return how many places a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cell(value: Any) -> str:
    """Return a value of a row as text. What would control a terminal is escaped."""
    if isinstance(value, str):
        text = value
    elif value is None or isinstance(value, bool | int | float):
        text = json.dumps(value)
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{name}={cell(item)}" for name, item in value.items()) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(map(cell, value)) + "]"
    else:
        text = str(value)
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text.replace("\t", "    "))


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` places, at blanks where there are any."""
    lines: list[str] = []
    for line in text.split("\n"):
        while width_of(line) > width:
            cut = _cut(line, width)
            blank = line.rfind(" ", 1, cut + 1)
            cut = blank if blank > 0 else cut
            lines.append(line[:cut].rstrip())
            line = line[cut:].lstrip()
        lines.append(line)
    return lines


def _cut(line: str, width: int) -> int:
    """Return how many characters fit; one at least."""
    taken = 0
    for at, character in enumerate(line):
        taken += width_of(character)
        if taken > width:
            return max(at, 1)
    return len(line)


def clip(text: str, width: int) -> str:
    """Return one line of at most `width` places, with dots where something is left out."""
    line = " ".join(text.split("\n"))
    return line if width_of(line) <= width else line[: _cut(line, max(width - 3, 1))] + "..."[: max(width - 1, 0)]


def fitted(wanted: Sequence[int], room: int) -> list[int]:
    """Return widths whose sum is at most `room`: the widest columns give way first."""
    widths = list(wanted)
    while sum(widths) > room and max(widths) > LEAST:
        widest = max(widths)
        places = [at for at, width in enumerate(widths) if width == widest]
        following = max([width for width in widths if width < widest], default=LEAST)
        surplus = sum(widths) - room
        lower = max(following, widest - max(surplus // len(places), 1), LEAST)
        for at in places if surplus >= len(places) else places[:surplus]:
            widths[at] = lower if surplus >= len(places) else widest - 1
    return widths


def listing(titles: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a table in the form of ksqlDB's lists. Without a width each row is a line."""
    texts = [[cell(value) for value in row] for row in rows]
    wanted = [
        max(map(width_of, [line for row in (titles, *texts) for line in row[at].split("\n")]))
        for at in range(len(titles))
    ]
    frame = 3 * len(titles)
    widths = wanted if width is None else fitted(wanted, width - frame)
    rule = "-" * (sum(widths) + frame)
    yield from _lines(titles, widths)
    yield rule
    for row in texts:
        yield from _lines(row, widths)
    yield rule


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    parts = [wrap(text, width) for text, width in zip(row, widths, strict=True)]
    for at in range(max(map(len, parts))):
        yield " " + " | ".join(
            _padded(part[at] if at < len(part) else "", width) for part, width in zip(parts, widths, strict=True)
        )


def _padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


class Grid:
    """The rows of a query: all columns have the same width, because no row is known before it comes."""

    def __init__(
        self, names: Sequence[str], width: int | None, column: int | None = None, wrapping: bool = True
    ) -> None:
        count = max(len(names), 1)
        share = ((width or DEFAULT_WIDTH) - count - 1) // count
        self.width = column or max(share, NARROWEST)
        self.names, self.wrapping = names, wrapping

    def head(self) -> Iterator[str]:
        rule = "+" + "+".join("-" * self.width for _ in self.names) + "+"
        yield rule
        yield from self.row(self.names)
        yield rule

    def row(self, values: Sequence[Any]) -> Iterator[str]:
        texts = map(cell, values)
        parts = [wrap(text, self.width) if self.wrapping else [clip(text, self.width)] for text in texts]
        for at in range(max(map(len, parts), default=0)):
            yield "|" + "|".join(_padded(part[at] if at < len(part) else "", self.width) for part in parts) + "|"
