"""Definitions as records of their topic: a name and a JSON document. `decode(encode(row))` is the row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.client import Record
from moldau.flows.definition import FORMAT, NO_SERIAL, Definition, Foreign, Wanted
from moldau.topicstore import Codec

TOPIC = "__moldau_flows"


@dataclass(frozen=True, slots=True)
class Gone:
    """A name that stands for nothing any more; also the record that changes nothing."""

    name: str


Row = Definition | Foreign | Gone
NOOP = Gone("")


def encode(row: Row) -> tuple[bytes, bytes | None]:
    if not isinstance(row, Definition):
        return row.name.encode(), None
    document = {
        "format": FORMAT,
        "kind": row.kind,
        "version": row.version,
        "what": row.what,
        "settings": row.settings,
        "wanted": row.wanted,
        "serial": row.serial,
        "revision": row.revision,
        "attempt": row.attempt,
        "changed_ms": row.changed_ms,
        "previous": row.previous,
        "topics": row.topics,
        "rollback": row.rollback,
        "note": row.note,
        "leaving": row.leaving,
        "begin": row.begin,
        "apart": row.apart,
    }
    return row.name.encode(), json.dumps(document, separators=(",", ":")).encode()


def decode(record: Record) -> Row:
    """Return what a record says; ValueError, KeyError or TypeError if it is none of ours."""
    name = bytes(record.key or b"").decode()
    if record.value is None:
        return Gone(name)
    document = json.loads(bytes(record.value))
    if document["format"] != FORMAT:
        return Foreign(name, int(document["format"]))
    return definition(name, document, record.offset)


def definition(name: str, document: Mapping[str, Any], offset: int) -> Definition:
    previous = document["previous"]
    serial = int(document["serial"])
    return Definition(
        name,
        str(document["kind"]),
        str(document["version"]),
        dict(document["what"]),
        {str(key): str(text) for key, text in document["settings"].items()},
        Wanted(document["wanted"]),
        offset if serial == NO_SERIAL else serial,
        int(document["revision"]),
        int(document["attempt"]),
        int(document["changed_ms"]),
        None if previous is None else (str(previous[0]), dict(previous[1])),
        tuple(map(str, document.get("topics", ()))),
        bool(document.get("rollback")),
        document.get("note"),
        document.get("leaving"),
        document.get("begin"),
        bool(document.get("apart")),
    )


CODEC: Codec[Row] = Codec(encode, decode)
