"""DELIMITED: columns of text with a delimiter, quoted as Commons CSV does."""

from __future__ import annotations

import base64
import csv
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from moldau.java.numbers import double_text, parse_double, parse_int, plain_text
from moldau.serdes.context import SerdeError

from ..casts import exact_decimal
from ..tree import DecimalType, Type
from ..types import Columns, base
from .json import time_of_day
from .rows import Row

SPECIAL = {"TAB": "\t", "SPACE": " "}
READERS: dict[str, Callable[[str], Any]] = {
    "BOOLEAN": lambda text: text.lower() == "true",
    "INTEGER": lambda text: parse_int(text, 32),
    "BIGINT": lambda text: parse_int(text, 64),
    "DOUBLE": parse_double,
    "STRING": str,
    "BYTES": lambda text: base64.b64decode(text, validate=True),
    "DATE": lambda text: parse_int(text, 32),
    "TIME": lambda text: time_of_day(parse_int(text, 64)),
    "TIMESTAMP": lambda text: parse_int(text, 64),
}
WRITERS: dict[str, Callable[[Any], str]] = {
    "BOOLEAN": lambda value: "true" if value else "false",
    "DOUBLE": double_text,
    "DECIMAL": plain_text,
    "BYTES": lambda value: base64.b64encode(value).decode(),
}


def _reader(type: Type) -> Callable[[str], Any]:
    if isinstance(type, DecimalType):
        return lambda text: exact_decimal(Decimal(text), type)
    return READERS[base(type)]


@dataclass(frozen=True, slots=True)
class Delimited:
    delimiter: str
    readers: tuple[Callable[[str], Any], ...]
    writers: tuple[Callable[[Any], str], ...]

    @classmethod
    def of(cls, columns: Columns, delimiter: str | None) -> Delimited:
        char = SPECIAL.get(delimiter or ",", delimiter or ",")
        kinds = [type for _, type in columns]
        return cls(char, tuple(map(_reader, kinds)), tuple(WRITERS.get(base(kind), str) for kind in kinds))

    def dumps(self, row: Row | None) -> bytes | None:
        if row is None or not self.writers:
            return None
        texts = []
        for number, (write, value) in enumerate(zip(self.writers, row, strict=True)):
            texts.append("" if value is None else self._quoted(write(value), number == 0))
        return self.delimiter.join(texts).encode()

    def _quoted(self, text: str, first: bool) -> str:
        """Quote a value where a reader could take it for something else, as Commons CSV does."""
        if not text:
            return '""' if first else ""
        char = text[0]
        odd = not (char.isascii() and char.isalnum()) if first else char <= "#"
        if odd or text[-1] <= " " or any(each in text for each in (self.delimiter, '"', "\n", "\r")):
            doubled = text.replace('"', '""')
            return f'"{doubled}"'
        return text

    def loads(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            lines = list(csv.reader([data.decode()], delimiter=self.delimiter, strict=True))
            texts = lines[0] if lines else [""]
            if len(texts) != len(self.readers):
                raise ValueError(f"Unexpected field count, csvFields:{len(texts)} schemaFields:{len(self.readers)}")
            return tuple(read(text) if text else None for read, text in zip(self.readers, texts, strict=True))
        except (ValueError, InvalidOperation, csv.Error) as error:
            raise SerdeError(f"Error deserializing DELIMITED data: {error}") from None
