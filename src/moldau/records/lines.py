"""Turns text into records: lines of stdin or files, with keys, headers or envelopes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, AnyStr

from moldau.admin.mistakes import Mistake
from moldau.records import envelope
from moldau.records.formats import Codec, Raw
from moldau.serdes.context import Context, SerdeError
from moldau.wire.records import Headers

CHUNK = 1 << 20
LONGEST = 256 << 20  # a record; brokers take far less


@dataclass(frozen=True, slots=True)
class Item:
    """A record to write; partition and timestamp are None where they are left to the producer."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """How a line becomes a record."""

    topic: str
    key_codec: Codec
    value_codec: Codec
    between: bytes | None = None  # key and value
    key: str | None = None  # of all records
    headers: Headers = ()
    empty_is_null: bool = False
    envelopes: bool = False
    partition: int | None = None
    timestamp: int | None = None

    @property
    def plain(self) -> bool:
        """Tell whether lines are plain keys and values, or values alone: then there is a fast way."""
        raw = isinstance(self.value_codec, Raw) and isinstance(self.key_codec, Raw)
        fixed = self.key is not None or self.partition is not None or self.timestamp is not None
        return raw and not (fixed or self.headers or self.empty_is_null or self.envelopes)

    def item(self, line: bytes, number: int) -> Item:
        """Return the record of a line; a Mistake names a line that is wrong."""
        try:
            return self._read_envelope(line, number) if self.envelopes else self._plain(line)
        except SerdeError as error:
            raise Mistake(f"Line {number}: {error}.") from None

    def _plain(self, line: bytes) -> Item:
        key, value = self.key.encode() if self.key is not None else None, line
        if self.between is not None and self.between in line:
            key, _, value = line.partition(self.between)
        return self._item(key, value, self.headers)

    def _read_envelope(self, line: bytes, number: int) -> Item:
        told = envelope.read(line, number)
        found = self._item(told.key, told.value, (*told.headers, *self.headers))
        partition = told.partition if self.partition is None else self.partition
        timestamp = told.timestamp if self.timestamp is None else self.timestamp
        return Item(found.key, found.value, found.headers, partition, timestamp)

    def _item(self, key: object, value: object, headers: Headers) -> Item:
        if self.empty_is_null:
            key, value = key or None, value or None
        kept = list(headers)
        written_key = None if key is None else self.key_codec.parse(key, Context(self.topic, "key", kept))
        written = None if value is None else self.value_codec.parse(value, Context(self.topic, "value", kept))
        return Item(written_key, written, tuple(kept), self.partition, self.timestamp)


def latin1(data: bytes) -> str:
    """Decode each byte to one character: Python splits and joins text in half the time."""
    return data.decode("latin-1")


def pieces(files: list[Path], delimiter: AnyStr, form: Callable[[bytes], AnyStr]) -> Iterator[list[AnyStr]]:
    """Yield lines as they arrive, many at a time, from stdin if no files are named. `form` is `bytes` or `latin1`."""
    if not files:
        source: Any = sys.stdin.buffer  # read1 gives what is there, and does not wait for a whole chunk
        yield from split(lambda: form(source.read1(CHUNK)), delimiter, "The input")
    for file in files:
        try:
            with file.open("rb", buffering=0) as source:
                yield from split(lambda source=source: form(source.read(CHUNK) or b""), delimiter, str(file))
        except OSError as error:
            raise Mistake(f"{file} cannot be read: {error.strerror}.") from None


def split(read: Callable[[], AnyStr], delimiter: AnyStr, name: str) -> Iterator[list[AnyStr]]:
    """Split what is read at the delimiter; what follows the last one is a record too."""
    nothing: Any = delimiter[:0]  # Any: of methods that both types have a checker makes unions
    data: Any
    rest: list[AnyStr] = []  # of a record that is not whole yet
    held = 0
    while data := read():
        lines: list[AnyStr] = data.split(delimiter)
        if len(delimiter) > 1 and rest:  # it may have been cut in two
            lines = nothing.join((*rest, data)).split(delimiter)
            rest = []
        elif len(lines) > 1 and rest:
            lines[0] = nothing.join((*rest, lines[0]))
            rest = []
        last = lines.pop()
        held = len(last) if lines else held + len(data)
        rest.append(last)
        if held > LONGEST:
            raise Mistake(f"{name} has a record of more than {LONGEST >> 20} MB; is the delimiter right?")
        if lines:
            yield lines
    if whole := nothing.join(rest):
        yield [whole]


def whole(files: list[Path]) -> Iterator[list[bytes]]:
    """Yield each file as one record."""
    for file in files:
        try:
            if file.stat().st_size > LONGEST:
                raise Mistake(f"{file} is larger than {LONGEST >> 20} MB.")
            yield [file.read_bytes()]
        except OSError as error:
            raise Mistake(f"{file} cannot be read: {error.strerror}.") from None
