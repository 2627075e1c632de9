r"""Templates as kcat has them: `%t [%p] at offset %o: key %k: %s\n`, compiled to a function over a batch's records.

A token is a row: how it is formatted, and the expression over a record's fields o, t, k, v, h. `key` and `value` are
bytes already, decoded as the formats say; as they are, where they need no call.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.admin.mistakes import misused
from moldau.wire.records import Headers, Record
from moldau.wire.records.quick import Row


class Token(NamedTuple):
    """A token of a template: a conversion of bytes formatting, the expression for it, and what it means."""

    conversion: bytes
    expression: str
    meaning: str


TOKENS = {
    "s": Token(b"%b", "value", "the value"),
    "S": Token(b"%d", "-1 if v is None else len(v)", "its length in bytes, -1 for null"),
    "R": Token(b"%b", "length(-1 if v is None else len(v))", "the same as four bytes, big end first"),
    "k": Token(b"%b", "key", "the key"),
    "K": Token(b"%d", "-1 if k is None else len(k)", "its length in bytes, -1 for null"),
    "T": Token(b"%d", "t", "the timestamp in ms"),
    "h": Token(b"%b", "headers(h)", "the headers, name=value,..."),
    "t": Token(b"%b", "topic", "the topic"),
    "p": Token(b"%d", "partition", "the partition"),
    "o": Token(b"%d", "o", "the offset"),
}
KEY = 2  # where keys stand in records; values stand behind them
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}

# Lays out the records of a partition's batch.
Layout = Callable[[str, int, Iterable[Row]], bytes]
Part = Callable[[Record], bytes]


@dataclass(frozen=True, slots=True)
class AsItIs:
    """A part that is the key (2) or the value (3) of a record itself, or what stands for null."""

    index: int
    null: bytes

    def __call__(self, record: Record) -> bytes:
        found = record.key if self.index == KEY else record.value
        return self.null if found is None else found


_pieces = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|([^%\\]+)", re.DOTALL)
_length = struct.Struct(">i").pack


def compiled(text: str, key: Part, value: Part) -> Layout:
    """Compile a template; `key` and `value` return the bytes of a record's key and value."""
    conversion, expressions = b"", []
    for piece in _pieces.finditer(_whole(text)):
        token, code, escape, literal = piece.groups()
        if token == "%":
            conversion += b"%%"
        elif token is not None:
            row = TOKENS.get(token)
            if row is None:
                raise misused(f"-f has no %{token}: there are {', '.join('%' + name for name in TOKENS)} and %%.")
            conversion += row.conversion
            expressions.append(row.expression)
        else:
            conversion += _literal(_plain(code, escape, literal))
    return _function(conversion, expressions, key, value)


def delimited(delimiter: bytes, between: bytes | None, key: Part, value: Part) -> Layout:
    """Return a layout of values and delimiters, with keys in front if `between` is given."""
    if between is None:
        return _function(b"%b" + _literal(delimiter), ["value"], key, value)
    return _function(b"%b" + _literal(between) + b"%b" + _literal(delimiter), ["key", "value"], key, value)


def _whole(text: str) -> str:
    if re.search(r"(?<!%)(?:%%)*%$", text):
        raise misused("-f ends with a single %; write %% for one.")
    return text


def _plain(code: str | None, escape: str | None, literal: str) -> bytes:
    """Return the bytes of `\\x00`, of another escape, or of plain text."""
    if code is not None:
        return bytes.fromhex(code)
    return literal.encode() if escape is None else ESCAPES.get(escape, f"\\{escape}".encode())


def _literal(data: bytes) -> bytes:
    return data.replace(b"%", b"%%")


def _function(conversion: bytes, expressions: list[str], key: Part, value: Part) -> Layout:
    """Generate the function. Its source comes from the table above only; the template is a constant in it."""
    names: dict[str, Any] = {"line": conversion, "key": key, "value": value, "headers": headers, "length": _length}
    said = {"key": "key(r)", "value": "value(r)"}
    for name, letter, part in (("key", "k", key), ("value", "v", value)):
        if isinstance(part, AsItIs):
            said[name], names[f"no_{name}"] = f"no_{name} if {letter} is None else {letter}", part.null
    fields = ", ".join(said.get(text, text) for text in expressions)
    loop = "for r in records for o, t, k, v, h in (r,)" if "(r)" in fields else "for o, t, k, v, h in records"
    source = (
        "def lay_out(topic, partition, records):\n"
        "    topic = topic.encode()\n"
        f"    return b''.join([line % ({fields}{',' if fields else ''}) {loop}])\n"
    )
    exec(source, names)
    return names["lay_out"]


def headers(found: Headers) -> bytes:
    """Return `name=value,...`, with NULL for null, as kcat writes headers."""
    return b",".join(
        name.encode(errors="surrogateescape") + b"=" + (b"NULL" if value is None else value) for name, value in found
    )


def delimiter(text: str, option: str) -> bytes:
    r"""Parse a delimiter of the command line, with escapes such as `\n`, `\t` and `\x00`."""
    found = b""
    for piece in re.finditer(r"\\x([0-9a-fA-F]{2})|\\(.)|([^\\]+|\\$)", text, re.DOTALL):
        found += _plain(*piece.groups())
    if not found:
        raise misused(f"{option} must not be empty.")
    return found
