"""Records as pages show them. Their content is hostile: it is cut, and never trusted to be text or harmless."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.client import Record
from moldau.console.model import figures

SHORT = 160  # characters in a list
LONG = 100_000  # characters in full
KEPT = 256 << 10  # bytes of a key or value that a page keeps
DECODED = 1 << 20  # larger ones are not decoded
HEX_BYTES = 4096
HEX_ROW = 16
TREE_NODES = 2000
TREE_DEPTH = 60
HEADERS = 200


@dataclass(frozen=True, slots=True)
class Part:
    """A key or a value: its first bytes, its full size, and its meaning.

    `document` is the decoded JSON if `kind` is json. `note` says how it was decoded, or why it was not.
    """

    kind: str  # null, json, text, bytes
    text: str
    data: bytes
    size: int
    document: Any = None
    note: str = ""

    @property
    def is_cut(self) -> bool:
        return self.size > len(self.data) or len(self.text) > LONG

    @property
    def short(self) -> str:
        """Return its first line."""
        line = self.text[: SHORT + 1].replace("\n", "⏎")
        return line[:SHORT] + "…" if len(line) > SHORT or self.is_cut else line

    @property
    def long(self) -> str:
        """Return as much of it as a page shows."""
        return self.text[:LONG]

    @property
    def about(self) -> str:
        """Return its size, how much of it is shown, and the note."""
        cut = f", of which the first {figures.size(min(len(self.data), LONG))} are shown" if self.is_cut else ""
        return " · ".join(filter(None, (f"{figures.size(self.size)}{cut}", self.note)))


NULL = Part("null", "null", b"", 0)


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a partition, as a page keeps it."""

    partition: int
    offset: int
    timestamp: int
    key: Part
    value: Part
    headers: tuple[tuple[str, str], ...]

    @property
    def id(self) -> str:
        return f"{self.partition}-{self.offset}"

    def cells(self) -> dict[str, Any]:
        """Return the record as a row of a table."""
        return {
            "id": self.id,
            "partition": self.partition,
            "offset": self.offset,
            "time": figures.moment(self.timestamp),
            "key": self.key.short,
            "value": self.value.short,
            "size": figures.size(self.key.size + self.value.size),
        }

    def facts(self) -> dict[str, Any]:
        """Return the record for an export, with JSON as JSON."""
        return {
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": _plain(self.key),
            "value": _plain(self.value),
            "headers": [list(pair) for pair in self.headers],
        }


def _plain(part: Part) -> Any:
    return None if part.kind == "null" else part.document if part.kind == "json" else part.text


def clean(text: str) -> str:
    """Return text that UTF-8 can encode: lone surrogates, which JSON may contain, are replaced."""
    return text.encode("utf-8", "replace").decode()


def plain(data: bytes | None) -> Part:
    """Interpret bytes without a schema: as JSON, as text if they are UTF-8, or as bytes."""
    if data is None:
        return NULL
    kept, size = bytes(data[:KEPT]), len(data)
    if size <= DECODED and data[:1] in (b"{", b"["):
        try:
            return from_document(json.loads(data), kept, size, "JSON")
        except (ValueError, RecursionError):
            pass
    try:
        text = kept.decode()
    except UnicodeDecodeError as error:
        if error.start < len(kept) - 3 or size == len(kept):
            return Part("bytes", kept[:SHORT].hex(" "), kept, size, note="not UTF-8")
        text = kept[: error.start].decode()  # only the last character was cut
    return Part("text", text, kept, size)


def from_document(document: Any, kept: bytes, size: int, note: str) -> Part:
    """Return a decoded part; RecursionError if it nests too deeply to be serialized."""
    text = clean(json.dumps(document, ensure_ascii=False, default=str))
    return Part("json", text, kept, size, document, note)


def headers(record: Record) -> tuple[tuple[str, str], ...]:
    """Return names and values of headers as text."""
    return tuple((clean(name), plain(value).short) for name, value in record.headers[:HEADERS])


def hex_rows(data: bytes) -> str:
    """Format bytes as a hex dump, sixteen per line."""
    lines = []
    for at in range(0, min(len(data), HEX_BYTES), HEX_ROW):
        piece = data[at : at + HEX_ROW]
        seen = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in piece)
        lines.append(f"{at:08x}  {piece.hex(' '):<47}  {seen}")
    more = f"\n… {figures.size(len(data) - HEX_BYTES)} more" if len(data) > HEX_BYTES else ""
    return "\n".join(lines) + more


def tree(document: Any) -> list[dict[str, Any]]:
    """Return the nodes of a document, each with id and label. If there are too many, the last node says so."""
    left = [TREE_NODES]

    def node(name: str, value: Any, path: str, depth: int) -> dict[str, Any]:
        left[0] -= 1
        made: dict[str, Any] = {"id": path, "label": _label(name, value)}
        inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        if inner and depth < TREE_DEPTH:
            made["children"] = children(inner, path, depth)
        return made

    def children(inner: Iterable[tuple[Any, Any]], path: str, depth: int) -> list[dict[str, Any]]:
        found = []
        for number, (name, value) in enumerate(inner):
            if left[0] <= 0:
                found.append({"id": f"{path}/…", "label": "… and more"})
                break
            found.append(node(str(name), value, f"{path}/{number}", depth + 1))
        return found

    return [node("", document, "", 0)]


def _label(name: str, value: Any) -> str:
    match value:
        case Mapping():
            shown = f"{{{len(value)}}}"
        case list():
            shown = f"[{len(value)}]"
        case _:
            shown = json.dumps(value, ensure_ascii=False, default=str)
    text = f"{name}: {shown}" if name else shown
    return clean(text if len(text) <= SHORT else text[:SHORT] + "…")


def json_lines(rows: Sequence[Row]) -> bytes:
    """Return one JSON document per line."""
    return b"".join(clean(json.dumps(row.facts(), ensure_ascii=False, default=str)).encode() + b"\n" for row in rows)


COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")


def as_csv(rows: Sequence[Row]) -> bytes:
    """Return one line per record. Anything that a spreadsheet would take for a formula gets a leading quote."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        facts = row.facts()
        texts = [facts[name] if isinstance(facts[name], str) else _dumped(facts[name]) for name in COLUMNS[3:]]
        writer.writerow([row.partition, row.offset, row.timestamp, *map(_harmless, texts)])
    return clean(out.getvalue()).encode()


def _dumped(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _harmless(text: str) -> str:
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text
