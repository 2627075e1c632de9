"""The message table: text rows under `tables/`, read into Message, Struct and Field when they are asked for.
(Tuples with names: a dataclass takes a millisecond to make, and a broker starts in few.)

Only the head lines are indexed at first use; a block is parsed when its message is first wanted.
tables/clients.txt opens with an explanation of the rows.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from typing import Any, Final, NamedTuple

TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
TABLES = ("clients", "cluster", "data", *TOPICS)

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
ZERO: dict[str, Any] = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "uuid": bytes(16)}

NEW: Final = "a new struct"  # the default of a struct that is always sent, or could be null but is not
SCALARS = {*FIXED, "string", "bytes", "records"}

Range = tuple[int, int]  # first and last version, both included


class Field(NamedTuple):
    """One row. `type` is a FIXED key, string, bytes, records, or a struct's name, with `[]` before it if an array."""

    name: str
    type: str
    versions: Range
    nullable: Range | None
    tag: int | None
    default: Any
    ignorable: bool
    inflexible: bool
    struct: Struct | None

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def item(self) -> str:
        """Return the type of an array's elements, or of the field itself."""
        return self.type.removeprefix("[]")

    def at(self, version: int) -> bool:
        return self.versions[0] <= version <= self.versions[1]

    def nullable_at(self, version: int) -> bool:
        return self.nullable is not None and self.nullable[0] <= version <= self.nullable[1]


class Struct(NamedTuple):
    """Fields under a name; `name` is that of its class in `messages`."""

    name: str
    fields: tuple[Field, ...]


class Message(NamedTuple):
    """A block. `kind` is Kafka's word for it; `table` is the file it stands in, for a record the name of its topic.

    `structs` are all the structs in it, inner ones first. As `heads` gives it, it has no fields and structs yet.
    """

    table: str
    name: str
    kind: str
    key: int
    versions: Range
    flexible: int | None
    unstable: bool
    fields: tuple[Field, ...] = ()
    structs: tuple[Struct, ...] = ()

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible


HEAD = re.compile(
    r"^(?P<name>\w+)  (?P<kind>[a-z-]+)(?:  key (?P<key>\d+))?  v(?P<low>\d+)(?:-(?P<high>\d+))?"
    r"(?:  flexible (?P<flexible>\d+)\+)?(?P<unstable>  unstable)?\n",
    re.MULTILINE,
)
ROW = re.compile(
    r"(?P<indent> +)(?P<name>\w+) +(?P<type>\S+)"
    r"(?: +v(?P<low>\d+)(?P<open>\+|-(?P<high>\d+))?)?"
    r"(?: +(?P<null>nullable)(?: v(?P<null_low>\d+)(?P<null_open>\+|-(?P<null_high>\d+))?)?)?"
    r"(?: +tag (?P<tag>\d+))?(?: +default (?P<default>\S+))?"
    r"(?: +(?P<ignorable>ignorable))?(?: +(?P<inflexible>inflexible))?"
)


@cache
def heads() -> dict[str, tuple[Message, str]]:
    """Return each message's head and the text of its rows, not yet parsed."""
    index: dict[str, tuple[Message, str]] = {}
    for table in TABLES:
        text = (pkgutil.get_data(__package__ or "", f"tables/{table}.txt") or b"").decode()
        found = list(HEAD.finditer(text))
        ends = [m.start() for m in found[1:]] + [len(text)]
        for m, end in zip(found, ends, strict=True):
            index[m["name"]] = _head(table, m), text[m.end() : end]
    return index


@cache
def by_key() -> dict[tuple[str, int], Message]:
    """Return requests and responses by kind and API key."""
    return {(head.kind, head.key): head for head, _ in heads().values() if head.kind in ("request", "response")}


@cache
def records(topic: str) -> dict[tuple[str, int], Message]:
    """Return the records of an internal topic by kind (metadata, coordinator-key, coordinator-value) and number."""
    return {(head.kind, head.key): head for head, _ in heads().values() if head.table == topic}


def _head(table: str, m: re.Match[str]) -> Message:
    low = int(m["low"])
    return Message(
        table=table,
        name=m["name"],
        kind=m["kind"],
        key=-1 if m["key"] is None else int(m["key"]),
        versions=(low, int(m["high"] or low)),
        flexible=None if m["flexible"] is None else int(m["flexible"]),
        unstable=m["unstable"] is not None,
    )


@cache
def message(name: str) -> Message:
    """Parse the block of a message. KeyError if the table has none of that name."""
    head, text = heads()[name]
    rows = [_row(name, line) for line in text.splitlines() if line and not line.startswith("#")]
    structs: dict[str, Struct] = {}
    i = 0
    while i < len(rows) and rows[i]["name"] == "struct":
        fields, after = _fields(name, rows, i + 1, head.versions, structs)
        structs[rows[i]["type"]] = Struct(f"{name}_{rows[i]['type']}", fields)
        i = after
    fields, _ = _fields(name, rows, i, head.versions, structs)
    return head._replace(fields=fields, structs=tuple(structs.values()))


def _row(name: str, line: str) -> re.Match[str]:
    m = ROW.fullmatch(line)
    if m is None:
        raise ValueError(f"{name}: cannot read the row {line!r}")
    return m


def _fields(
    name: str, rows: list[re.Match[str]], i: int, within: Range, structs: dict[str, Struct]
) -> tuple[tuple[Field, ...], int]:
    """Parse the rows from `i` that share its indent, with their children; return also the index after them."""
    fields: list[Field] = []
    depth = len(rows[i]["indent"]) if i < len(rows) else 0
    while i < len(rows) and len(rows[i]["indent"]) == depth:
        row = rows[i]
        versions = _range(row, "", within)
        i += 1
        item = row["type"].removeprefix("[]")
        if i < len(rows) and len(rows[i]["indent"]) > depth:
            inner, i = _fields(name, rows, i, versions, structs)
            structs[item] = Struct(f"{name}_{item}", inner)
        if item not in SCALARS and item not in structs:
            raise ValueError(f"{name}: no struct {item} stands before the row {row[0]!r}")
        fields.append(_field(row, versions, structs.get(item)))
    return tuple(fields), i


def _range(row: re.Match[str], prefix: str, within: Range) -> Range:
    if row[prefix + "low"] is None:
        return within
    low = int(row[prefix + "low"])
    if row[prefix + "open"] == "+":
        return low, within[1]
    return low, int(row[prefix + "high"] or low)


def _field(row: re.Match[str], versions: Range, struct: Struct | None) -> Field:
    return Field(
        name=row["name"],
        type=row["type"],
        versions=versions,
        nullable=_range(row, "null_", versions) if row["null"] else None,
        tag=None if row["tag"] is None else int(row["tag"]),
        default=_default(row, struct is not None),
        ignorable=row["ignorable"] is not None,
        inflexible=row["inflexible"] is not None,
        struct=struct,
    )


def _default(row: re.Match[str], is_struct: bool) -> Any:
    """Return the default of a field. None stands for null, and for a tagged struct that is not sent."""
    kind, text = row["type"], row["default"]
    if text == "null":
        return None
    if kind.startswith("[]"):
        return ()
    if is_struct:
        return None if row["tag"] is not None and not row["null"] else NEW
    if kind == "records":
        return None if row["null"] else b""
    if text is None:
        return ZERO.get(kind, 0)
    if kind == "bool":
        return text == "true"
    return int(text, 0) if kind in FIXED else text
