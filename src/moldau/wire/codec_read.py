"""Emit the function that reads one version of a message.

It works on any buffer of bytes and checks before it believes: a length or a count that the rest of the input cannot
hold is refused before anything is made of it, so time and memory stay linear in the input.

An element of one byte still becomes an object of a hundred. So there is a second kind of reader, which counts: `left`
is how many elements of arrays and tagged fields the message may still have, and an array that has more is refused
before it is read. Four numbers count as one element, and a struct with several arrays counts once for each of them.
No element counts more than its bytes, so a message of few bytes is read without counting.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from moldau.wire.codec_source import LONGEST_STRING, Source, class_of, least_size, split
from moldau.wire.errors import WireError
from moldau.wire.schema import FIXED, NEW, Field, Message, Struct

Buffer = bytes | bytearray | memoryview

Read = Callable[[Buffer, int, int, int], tuple[Any, int]]
Body = Callable[[Source, str, Field, str, "Length"], None]

NUMBERS = 4  # that count as one element
TOO_MANY = "more elements than moldau.request.max.elements allows in one request"


def uvarint(data: Buffer, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits; return it and the position after it."""
    first = data[pos]
    return (first, pos + 1) if first < 0x80 else longer(data, pos + 1, first)


def longer(data: Buffer, pos: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte says that there is more."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, pos
    raise WireError("a varint is longer than 32 bits")


def skip_tags(data: Buffer, pos: int, size: int, count: int) -> int:
    """Pass over tagged fields of which none is known."""
    for _ in range(count):
        _, pos = uvarint(data, pos)
        length, pos = uvarint(data, pos)
        pos += length
        if pos > size:
            raise WireError("a tagged field is longer than what is left")
    return pos


def refuse(name: str, what: str) -> None:
    raise WireError(f"{name}: {what}")


SCOPE: dict[str, Any] = {
    "new": object.__new__,
    "unpack": struct.unpack_from,
    "uvarint": uvarint,
    "longer": longer,
    "skip_tags": skip_tags,
    "refuse": refuse,
}


def reader(spec: Message, version: int, counts: bool) -> Read:
    """Compile a function of the data, a position, the data's size and, if it counts, the most elements that are read.

    The function returns the message and the position after it.
    """
    s = Source("data, pos, size, left", dict(SCOPE), version, spec.is_flexible(version), counts)
    s.line("view = data if type(data) is memoryview else memoryview(data)")
    _struct(s, "out", spec)
    _flush(s)
    if not any("view[" in line for line in s.lines):
        del s.lines[0]
    s.line("return out, pos")
    return s.compile(f"read {spec.name}")


def _struct(s: Source, target: str, owner: Message | Struct) -> None:
    plain, tagged, absent = split(owner, s.version)
    s.line(f"{target} = new({s.name(class_of(owner), 'C')})")
    for field in (*absent, *tagged):
        s.line(f"{target}.{field.name} = {_default(s, field)}")
    for field in plain:
        _value(s, f"{target}.{field.name}", field, field.type)
    if s.flexible:
        _tags(s, target, tagged)


def _default(s: Source, field: Field) -> str:
    if field.default is NEW:
        assert field.struct is not None
        return s.name(class_of(field.struct), "C") + "()"
    return repr(field.default)


def _value(s: Source, target: str, field: Field, kind: str) -> None:
    if kind in FIXED:
        s.run.append((FIXED[kind], target))
    elif kind.startswith("[]"):
        _measured(s, target, field, kind, _array)
    elif field.struct is None:
        _measured(s, target, field, kind, _text if kind == "string" else _bytes)
    elif field.nullable_at(s.version) and not field.is_array:
        _optional_struct(s, target, field, field.struct)
    elif "." in target:
        inner = s.variable()
        _struct(s, inner, field.struct)
        s.line(f"{target} = {inner}")
    else:
        _struct(s, target, field.struct)


def _optional_struct(s: Source, target: str, field: Field, owner: Struct) -> None:
    """Emit a struct that may be null: null is -1 in line (KIP-893), but 0 in a tagged field."""
    mark, inner = s.variable(), s.variable()
    s.run.append(("b", mark))
    _flush(s)
    with s.under(f"if {mark} {'< 0' if field.tag is None else '== 0'}:"):
        s.line(f"{target} = None")
    with s.under("else:"):
        _struct(s, inner, owner)
        _flush(s)
        s.line(f"{target} = {inner}")


class Length(NamedTuple):
    """A length in a variable: `none` is what the variable holds for a length of zero, less than that means null."""

    variable: str
    none: int

    @property
    def size(self) -> str:
        return f"{self.variable} - 1" if self.none else self.variable


def _measured(s: Source, target: str, field: Field, kind: str, body: Body) -> None:
    """Emit a value after its length."""
    compact = s.flexible and not field.inflexible
    n = Length(s.variable(), int(compact))
    s.run.append(("B" if compact else "h" if kind == "string" else "i", n.variable))
    _flush(s)
    if compact or kind.startswith("[]"):
        _long_length(s, field, kind, n)
    if field.nullable_at(s.version) and kind == field.type:
        s.line(f"if {n.variable} < {n.none}: {target} = None")
        with s.under("else:"):
            body(s, target, field, kind, n)
    else:
        s.line(f"if {n.variable} < {n.none}: refuse({field.name!r}, 'null where none may be')")
        body(s, target, field, kind, n)


def _long_length(s: Source, field: Field, kind: str, n: Length) -> None:
    """Emit what only a length of more than a byte needs. Few elements need no check: each is checked as it is read."""
    with s.under(f"if {n.variable} > 127:"):
        if n.none:
            s.line(f"{n.variable}, pos = longer(data, pos, {n.variable})")
        if kind == "string":
            s.line(f"if {n.variable} > {LONGEST_STRING + 1}: refuse({field.name!r}, 'too long for a string')")
        elif kind.startswith("[]"):
            least = least_size(kind[2:], field, s.version, s.flexible)
            s.line(f"if ({n.size}) * {least} > size - pos: refuse({field.name!r}, 'more elements than bytes for them')")


def _text(s: Source, target: str, field: Field, kind: str, n: Length) -> None:
    _span(s, field, n.size)
    s.line(f"{target} = view[pos:end].tobytes().decode(); pos = end")


def _bytes(s: Source, target: str, field: Field, kind: str, n: Length) -> None:
    _span(s, field, n.size)
    s.line(f"{target} = view[pos:end]{'' if kind == 'records' else '.tobytes()'}; pos = end")


def _span(s: Source, field: Field, size: str) -> None:
    s.line(f"end = pos + {size}")
    s.line(f"if end > size: refuse({field.name!r}, 'longer than what is left')")


def _count(s: Source, name: str, number: str) -> None:
    if s.counts:
        s.line(f"left -= {number}")
        s.line(f"if left < 0: refuse({name!r}, {TOO_MANY!r})")


def _charge(field: Field, version: int, item: str, size: str) -> str:
    """Return what an array counts: an empty list in each element takes room too, numbers take less than structs."""
    if item in FIXED and item != "uuid":
        return f"({size} + {NUMBERS - 1}) // {NUMBERS}"
    inner = split(field.struct, version)[0] if field.struct else []
    lists = sum(f.is_array for f in inner)
    return f"({size}) * {lists}" if lists > 1 else size


def _array(s: Source, target: str, field: Field, kind: str, n: Length) -> None:
    item = kind[2:]
    _count(s, field.name, _charge(field, s.version, item, n.size))
    if item == "uuid":
        _span(s, field, f"({n.size}) * 16")
        s.line(f"{target} = [view[i:i + 16].tobytes() for i in range(pos, end, 16)]; pos = end")
    elif item in FIXED:
        code = FIXED[item]
        width = struct.calcsize(">" + code)
        s.line(f"{target} = list(unpack('>%d{code}' % ({n.size}), data, pos)); pos += ({n.size}) * {width}")
    else:
        _elements(s, target, field, item, n)


def _elements(s: Source, target: str, field: Field, item: str, n: Length) -> None:
    found, element = s.variable(), s.variable()
    s.line(f"{target} = {found} = []")
    with s.under(f"while {n.variable} > {n.none}:"):  # quicker than a range for the one or two that are usual
        s.line(f"{n.variable} -= 1")
        _value(s, element, field, item)
        _flush(s)
        s.line(f"{found}.append({element})")


def _tags(s: Source, target: str, tagged: list[Field]) -> None:
    count, tag, end = s.variable(), s.variable(), s.variable()
    s.run.append(("B", count))
    _flush(s)
    with s.under(f"if {count}:"):
        s.line(f"if {count} > 127: {count}, pos = longer(data, pos, {count})")
        _count(s, "tagged fields", count)
        if not tagged:
            s.line(f"pos = skip_tags(data, pos, size, {count})")
            return
        with s.under(f"for _ in range({count}):"):
            s.line(f"{tag}, pos = uvarint(data, pos); {end}, pos = uvarint(data, pos); {end} += pos")
            s.line(f"if {end} > size: refuse('tagged field', 'longer than what is left')")
            for i, field in enumerate(tagged):
                with s.under(f"{'elif' if i else 'if'} {tag} == {field.tag}:"):
                    _value(s, f"{target}.{field.name}", field, field.type)
                    _flush(s)
                    s.line(f"if pos != {end}: refuse({field.name!r}, 'not of the length it claims')")
            s.line(f"else: pos = {end}")


def _flush(s: Source) -> None:
    """Emit the read of the run."""
    only_byte = len(s.run) == 1 and s.run[0][0] == "B"
    cut = s.cut()
    if cut is None:
        return
    packer, targets = cut
    if only_byte:
        s.line(f"{targets[0]} = data[pos]; pos += 1")
    else:
        s.line(f"{', '.join(targets)}, = {s.name(packer.unpack_from, 'U')}(data, pos); pos += {packer.size}")
