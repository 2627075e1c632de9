"""Prints chunks of records: as values, by a template or as envelopes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from moldau.client import Record
from moldau.records import envelope, template
from moldau.records.formats import Codec, Raw
from moldau.records.reading import Chunk, Wanted
from moldau.serdes.context import Context, SerdeError


@dataclass(slots=True)
class Printer:
    """A printer of chunks. `topic` is the topic of the current chunk, for codecs."""

    key: Codec
    value: Codec
    skip_bad: bool
    null: bytes
    topic: str = ""
    count: int = 0
    bad: int = 0
    wanted: Wanted = Wanted.RECORDS  # what it needs to know of records
    lay_out: Callable[[Chunk], bytes] = field(default=lambda _: b"")

    @property
    def is_plain(self) -> bool:
        """Return whether keys and values are printed as they are."""
        return isinstance(self.key, Raw) and isinstance(self.value, Raw)

    def write(self, chunk: Chunk) -> None:
        self.topic = chunk.topic
        try:
            laid = self.lay_out(chunk)
        except SerdeError:
            laid = self._one_by_one(chunk)
        self.count += chunk.size  # before they are printed: Ctrl-C may come at any time
        sys.stdout.buffer.write(laid)

    def _one_by_one(self, chunk: Chunk) -> bytes:
        """Lay out records one by one, up to one that cannot be decoded, or without it."""
        laid = []
        for record in chunk.records:
            try:
                laid.append(self.lay_out(chunk._replace(records=[record])))
            except SerdeError as error:
                sentence = f"{chunk.topic}-{chunk.partition} offset {record.offset}: {error}"
                if not self.skip_bad:
                    sys.stdout.buffer.write(b"".join(laid))
                    raise SerdeError(f"{sentence}. --skip-bad skips such records.") from None
                self.bad += 1
                print(f"skipped {sentence}", file=sys.stderr)
        return b"".join(laid)

    def by_template(self, made: template.Layout) -> None:
        self.lay_out = lambda chunk: made(chunk.topic, chunk.partition, chunk.rows)
        self.wanted = Wanted.ROWS if self.is_plain else Wanted.RECORDS

    def by_envelope(self) -> None:
        self.lay_out = self._plain_envelopes if self.is_plain else self._envelopes
        self.wanted = Wanted.ROWS if self.is_plain else Wanted.RECORDS

    def values_alone(self, delimiter: bytes) -> None:
        """Print values only, without a function call for each record."""
        null, self.wanted = self.null, Wanted.VALUES

        def lay_out(chunk: Chunk) -> bytes:
            values = chunk.values
            if values is None:
                values = [null if (value := record[3]) is None else value for record in chunk.records]
            return delimiter.join((*values, b"")) if values else b""

        self.lay_out = lay_out

    def keys_and_values(self, between: bytes, delimiter: bytes, otherwise: template.Layout) -> None:
        """Print keys and values as they are, without a call for each record; otherwise by the layout."""
        self.wanted = Wanted.PAIRS

        def lay_out(chunk: Chunk) -> bytes:
            if chunk.pairs is None:
                return otherwise(chunk.topic, chunk.partition, chunk.rows)
            keys, values = chunk.pairs
            columns = zip(keys, repeat(between), values, repeat(delimiter))
            return b"".join(chain.from_iterable(columns))

        self.lay_out = lay_out

    def _plain_envelopes(self, chunk: Chunk) -> bytes:
        try:
            return envelope.plain_lines(chunk.topic, chunk.partition, chunk.rows, append_time=chunk.append_time)
        except UnicodeDecodeError:
            return self._envelopes(chunk._replace(records=[Record(*row) for row in chunk.rows]))

    def _envelopes(self, chunk: Chunk) -> bytes:
        def shown(coder: Codec, index: int, name: Any) -> Callable[[Any], envelope.Shown]:
            return lambda record: coder.show(record[index], Context(chunk.topic, name, list(record.headers)))

        key, value = shown(self.key, 2, "key"), shown(self.value, 3, "value")
        return envelope.lines(
            envelope.written(chunk.topic, chunk.partition, record, append_time=chunk.append_time, key=key, value=value)
            for record in chunk.records
        )
