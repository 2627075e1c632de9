"""Requests that cost as much as their bytes can, made from the table: nothing but the shortest elements."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from moldau.wire import schema
from moldau.wire.codec_read import NUMBERS
from moldau.wire.codec_source import least_size, split
from moldau.wire.codec_write import uvarint
from moldau.wire.schema import FIXED, Field, Message, Struct

Path = tuple[Field, ...]  # from the message down to an array

REQUESTS = sorted(head.name for head, _ in schema.heads().values() if head.kind == "request")


def cases(name: str) -> Iterator[tuple[int, Path]]:
    """Each array of each version of a message."""
    spec = schema.message(name)
    for version in range(spec.versions[0], spec.versions[1] + 1):
        for path in arrays(spec, version):
            yield version, path


def arrays(owner: Message | Struct, version: int, above: Path = ()) -> Iterator[Path]:
    for field in owner.fields:
        if field.at(version):
            path = (*above, field)
            if field.is_array:
                yield path
            if field.struct is not None:
                yield from arrays(field.struct, version, path)


def charge(field: Field, version: int, count: int) -> int:
    """What an array counts of the elements that a request may have."""
    if field.item in FIXED and field.item != "uuid":
        return -(-count // NUMBERS)
    inner = split(field.struct, version)[0] if field.struct else []
    return count * max(1, sum(f.is_array for f in inner))


class Frame(NamedTuple):
    """The body of a request in which one array has so many `elements`, and each array above it `above`."""

    spec: Message
    version: int
    path: Path
    elements: int
    above: int = 1
    filled: bool = False
    """Whether strings have two bytes and numbers are large, so that each is an object of its own."""
    tail: bytes = b"\0"
    """The tagged fields at the end of the message."""

    @property
    def flexible(self) -> bool:
        return self.spec.is_flexible(self.version)

    def body(self) -> bytes:
        return self.fields(self.spec, self.path) + self.tags(self.spec, self.path, self.tail)

    def fields(self, owner: Message | Struct, path: Path) -> bytes:
        return b"".join(self.value(field, path) for field in split(owner, self.version)[0])

    def tags(self, owner: Message | Struct, path: Path, tail: bytes = b"\0") -> bytes:
        if not self.flexible:
            return b""
        if not path or path[0].tag is None or path[0] not in owner.fields:
            return tail
        value = self.value(path[0], path)
        return b"\1" + uvarint(path[0].tag) + uvarint(len(value)) + value

    def value(self, field: Field, path: Path) -> bytes:
        below = path[1:] if path and path[0] is field else ()
        if field.is_array:
            count = 0 if path[:1] != (field,) else self.above if any(f.is_array for f in below) else self.elements
            return self.length(field, count) + (self.element(field, below) * count if count else b"")
        mark = b"\1" if field.struct and field.nullable_at(self.version) else b""
        return mark + self.element(field, below)

    def element(self, field: Field, below: Path) -> bytes:
        if field.struct is not None:
            return self.fields(field.struct, below) + self.tags(field.struct, below)
        if field.item in FIXED:
            width = struct.calcsize(">" + FIXED[field.item])
            return bytes([self.filled if field.item == "bool" else 0x11 * self.filled]) * width
        text = b"ab" if self.filled else b""
        return self.length(field, len(text), of_text=field.item == "string") + text

    def length(self, field: Field, size: int, of_text: bool = False) -> bytes:
        if self.flexible and not field.inflexible:
            return uvarint(size + 1)
        return struct.pack(">h" if of_text else ">i", size)


def widest(spec: Message, version: int, path: Path, size: int) -> Frame:
    """One array as long as fits `size` bytes."""
    element = least_size(path[-1].item, path[-1], version, spec.is_flexible(version))
    return Frame(spec, version, path, size // element)


def latest_refusal(spec: Message, version: int, path: Path, bound: int) -> Frame | None:
    """As many elements as may be, then more: in a second array, or of tagged fields. None if nothing can follow."""
    array, above = path[-1], sum(f.is_array for f in path) - 1
    one = charge(array, version, NUMBERS)
    frame = Frame(spec, version, path, (bound - 40) * NUMBERS // one, filled=True)
    if spec.is_flexible(version) and path[0].tag is None:
        return frame._replace(tail=uvarint(bound) + b"\x7f\0" * bound)
    return frame._replace(above=2) if above else None
