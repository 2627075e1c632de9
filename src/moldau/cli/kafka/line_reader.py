"""The reader of lines of the console producers, with the properties of Kafka's LineMessageReader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MOST_LINE = 64 << 20  # bytes of a line


class BadLine(Exception):
    """An error in a line."""


class Line(NamedTuple):
    """A record read from a line."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class LineReader:
    """A reader of `headers<TAB>key<TAB>value`; headers and key are optional."""

    parse_key: bool = False
    parse_headers: bool = False
    ignore_error: bool = False
    key_separator: str = "\t"
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None

    @property
    def is_plain(self) -> bool:
        """Return whether a line is only a value."""
        return not (self.parse_key or self.parse_headers or self.null_marker is not None)

    def read(self, line: str, number: int) -> Line:
        start, headers, key = 0, None, None
        if self.parse_headers:
            headers, start = self._part(line, number, 0, self.headers_delimiter, "headers delimiter")
        if self.parse_key:
            key, start = self._part(line, number, start, self.key_separator, "key separator")
        pairs = [] if headers is None or headers == self.null_marker else self._headers(headers, number)
        return Line(self._bytes(key), self._bytes(line[start:]), pairs)

    def _part(self, line: str, number: int, start: int, sign: str, name: str) -> tuple[str | None, int]:
        at = line.find(sign, start)
        if at >= 0:
            return line[start:at], at + len(sign)
        if self.ignore_error:
            return None, start
        raise BadLine(f"No {name} found on line number {number}: '{line}'")

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self.null_marker else text.encode()

    def _headers(self, text: str, number: int) -> list[tuple[str, bytes | None]]:
        pairs = re.split(self.headers_separator, text)
        while pairs and not pairs[-1]:  # Java's split drops empty strings at the end
            pairs.pop()
        return [self._header(pair, number) for pair in pairs or [""]]

    def _header(self, pair: str, number: int) -> tuple[str, bytes | None]:
        name, sign, value = pair.partition(self.headers_key_separator)
        if not sign:
            if self.ignore_error:
                return pair, None
            raise BadLine(f"No header key separator found in pair '{pair}' on line number {number}")
        if name == self.null_marker:
            marker = f"'{self.null_marker}'"
            raise BadLine(f"Header keys should not be equal to the null marker {marker} as they can't be null")
        return name, self._bytes(value)


SIGNS = {
    "key_separator": "key.separator",
    "headers_delimiter": "headers.delimiter",
    "headers_separator": "headers.separator",
    "headers_key_separator": "headers.key.separator",
    "null_marker": "null.marker",
}
# Pairs of separators that must differ.
PAIRS = (
    ("headers_delimiter", "headers_separator"),
    ("headers_delimiter", "headers_key_separator"),
    ("headers_separator", "headers_key_separator"),
    ("null_marker", "key_separator"),
    ("null_marker", "headers_separator"),
    ("null_marker", "headers_delimiter"),
    ("null_marker", "headers_key_separator"),
)


def line_reader(properties: Mapping[str, str]) -> LineReader:
    """Make the reader that properties describe."""
    given: dict[str, Any] = {
        name: properties.get(name.replace("_", "."), "").strip().lower() == "true"
        for name in ("parse_key", "parse_headers", "ignore_error")
    }
    given |= {name: properties[java] for name, java in SIGNS.items() if java in properties}
    reader = LineReader(**given)
    for one, other in PAIRS:
        if getattr(reader, one) == getattr(reader, other):
            raise BadLine(f"{SIGNS[one]} and {SIGNS[other]} may not be equal")
    return reader


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends (LF, CR or both); bytes that are not UTF-8 become U+FFFD, as in Java."""
    for chunk in chunks:
        if len(chunk) > MOST_LINE:
            raise BadLine(f"A line has at most {MOST_LINE} bytes")
        line = chunk.removesuffix(b"\n").removesuffix(b"\r")
        if not line.isascii():
            line = line.decode(errors="replace").encode()
        if b"\r" in line:
            yield from line.split(b"\r")
        else:
            yield line
