"""pgoutput, version 1: the messages of a logical replication stream, decoded. Nothing here does I/O.

Transactions come whole, in the order of their commits: Begin, changes, Commit. A Relation describes a table before its
first change, and again after each change of its form.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from moldau.connect.connectors.cdc.postgres.types import UNCHANGED
from moldau.connect.errors import ConnectError

EPOCH_2000_US = 946_684_800_000_000
Values = list[Any]  # a text, None for null, or UNCHANGED, for each column
_BEGIN, _COMMIT = struct.Struct(">QqI"), struct.Struct(">BQQq")
_COUNT, _LENGTH, _COLUMN = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">Ii")


@dataclass(frozen=True, slots=True)
class Begin:
    final_lsn: int
    time_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    lsn: int
    end_lsn: int
    time_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type: int
    modifier: int
    in_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    id: int
    schema: str
    name: str
    identity: str  # of pg_class.relreplident: d(efault), n(othing), f(ull), i(ndex)
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A row: `op` is c, u or d. `old` is the key or, with replica identity FULL, the row before."""

    op: str
    relation: int
    old: Values | None
    new: Values | None
    is_whole: bool = False  # the old row is more than its key


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody wrote with pg_logical_emit_message."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Other:
    """A type or an origin, which events do not need."""


Decoded = Begin | Commit | Relation | Change | Truncate | Message | Other


def decode(data: bytes) -> Decoded:
    """Decode a message; ConnectError for one of a version that nobody asked for."""
    match data[0]:
        case 0x49:  # Insert
            return Change("c", _LENGTH.unpack_from(data, 1)[0], None, _tuple(data, 6)[0])
        case 0x55:  # Update
            return _update(data)
        case 0x44:  # Delete
            return Change("d", _LENGTH.unpack_from(data, 1)[0], _tuple(data, 6)[0], None, data[5] == 0x4F)
        case 0x42:
            lsn, at, xid = _BEGIN.unpack_from(data, 1)
            return Begin(lsn, at + EPOCH_2000_US, xid)
        case 0x43:
            _, lsn, end, at = _COMMIT.unpack_from(data, 1)
            return Commit(lsn, end, at + EPOCH_2000_US)
        case 0x52:
            return _relation(data)
        case 0x54:
            (count,) = _LENGTH.unpack_from(data, 1)
            return Truncate(struct.unpack_from(f">{count}I", data, 6))
        case 0x4D:
            (lsn,) = struct.unpack_from(">Q", data, 2)
            prefix, at = _text(data, 10)
            return Message(bool(data[1] & 1), lsn, prefix, data[at + 4 :])
        case 0x59 | 0x4F:
            return Other()
        case kind:
            raise ConnectError(f"The replication stream has a message of the unknown kind {chr(kind)}.")


def _update(data: bytes) -> Change:
    (relation,) = _LENGTH.unpack_from(data, 1)
    old, at = None, 5
    kind = data[at]
    if kind in (0x4B, 0x4F):
        old, at = _tuple(data, at + 1)
    new, _ = _tuple(data, at + 1)
    if old is not None and kind == 0x4F:
        new = [was if value is UNCHANGED else value for was, value in zip(old, new, strict=True)]
    return Change("u", relation, old, new, kind == 0x4F)


def _tuple(data: bytes, at: int) -> tuple[Values, int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    values: Values = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 0x74:
            (length,) = _LENGTH.unpack_from(data, at)
            at += 4
            values.append(data[at : at + length].decode())
            at += length
        else:
            values.append(None if kind == 0x6E else UNCHANGED)
    return values, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _relation(data: bytes) -> Relation:
    (number,) = _LENGTH.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns: list[RelationColumn] = []
    for _ in range(count):
        in_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        kind, modifier = _COLUMN.unpack_from(data, at)
        at += 8
        columns.append(RelationColumn(column, kind, modifier, in_key))
    return Relation(number, schema or "pg_catalog", name, identity, tuple(columns))
