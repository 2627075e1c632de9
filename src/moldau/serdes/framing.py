"""Confluent's wire format: how bytes name the schema that they were written with.

Prefix: magic 0, the id in four bytes, then the payload. Header: `__key_schema_id` or `__value_schema_id` carries
magic 1 and the schema's GUID in sixteen bytes, and the record's bytes are the payload alone. Protobuf adds, behind id
or GUID, which message of the file it is: a path of indexes, as zigzag varints behind their number; a single 0 stands
for the path [0].
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from moldau.wire.errors import WireError
from moldau.wire.numbers import varint, zigzag

from .context import Context, SerdeError

ID, GUID = 0, 1
ID_SIZE, GUID_SIZE = 5, 17
MAX_INDEXES = 64  # a message nested deeper than this is not believed
SCHEMA_HEADER = {"key": "__key_schema_id", "value": "__value_schema_id"}


@dataclass(frozen=True, slots=True)
class SchemaRef:
    """A schema as a record names it: by id or by GUID, and for Protobuf the path to the message."""

    id: int | None = None
    guid: UUID | None = None
    indexes: tuple[int, ...] | None = None

    def prefix(self) -> bytes:
        if self.id is None:
            raise SerdeError("the schema has no id: it was not registered")
        return struct.pack(">bI", ID, self.id) + self.path()

    def header(self) -> bytes:
        if self.guid is None:
            raise SerdeError(
                "the registry gave no GUID for the schema, which the header needs: use schema.id.in=prefix"
            )
        return bytes((GUID,)) + self.guid.bytes + self.path()

    def path(self) -> bytes:
        if self.indexes is None:
            return b""
        if self.indexes == (0,):
            return b"\0"
        return b"".join(zigzag(number) for number in (len(self.indexes), *self.indexes))


def frame(ref: SchemaRef, payload: bytes, context: Context, *, in_header: bool) -> bytes:
    """Return the bytes of the record; with `in_header` the context's headers get the schema."""
    if not in_header:
        return ref.prefix() + payload
    context.headers.append((SCHEMA_HEADER[context.field], ref.header()))
    return payload


def unframe(data: bytes, context: Context, *, indexes: bool = False) -> tuple[SchemaRef, bytes]:
    """Return the schema, from the header if there is one, otherwise from the prefix; and the payload."""
    carried = context.header(SCHEMA_HEADER[context.field])
    if carried is not None:
        return read(carried, indexes)[0], data
    ref, position = read(data, indexes)
    return ref, data[position:]


def read(data: bytes, indexes: bool) -> tuple[SchemaRef, int]:
    magic = data[0] if data else None
    if magic == ID and len(data) >= ID_SIZE:
        id, guid, position = int.from_bytes(data[1:ID_SIZE], "big"), None, ID_SIZE
    elif magic == GUID and len(data) >= GUID_SIZE:
        id, guid, position = None, UUID(bytes=bytes(data[1:GUID_SIZE])), GUID_SIZE
    else:
        raise SerdeError(
            f"{bytes(data[:8])!r} does not begin with a schema id: it was not written with a schema registry"
        )
    if not indexes:
        return SchemaRef(id, guid), position
    path, position = read_path(data, position)
    return SchemaRef(id, guid, path), position


def read_path(data: bytes, position: int) -> tuple[tuple[int, ...], int]:
    count, position = read_zigzag(data, position)
    if not 0 <= count <= MAX_INDEXES:
        raise SerdeError(f"a message index of {count} steps is not valid")
    path: list[int] = []
    for _ in range(count):
        index, position = read_zigzag(data, position)
        path.append(index)
    return tuple(path) or (0,), position


def read_zigzag(data: bytes, position: int) -> tuple[int, int]:
    try:
        n, position = varint(data, position)
    except IndexError:
        raise SerdeError("the bytes end within the message index") from None
    except WireError:
        raise SerdeError("the message index is not a valid number") from None
    return (n >> 1) ^ -(n & 1), position
