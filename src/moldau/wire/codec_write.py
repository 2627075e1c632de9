"""Emit the function that writes one version of a message.

It gathers pieces and joins them; a `records` value is handed on as it is, between the joined pieces around it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from moldau.wire.codec_source import LONGEST_STRING, Source, class_of, split
from moldau.wire.errors import Unwritable
from moldau.wire.numbers import uvarint
from moldau.wire.schema import FIXED, NEW, Field, Message, Struct

BYTE = tuple(bytes((i,)) for i in range(256))


def lacks(value: Any, version: int, names: tuple[str, ...]) -> None:
    default = type(value)()
    unsaid = [name for name in names if getattr(value, name) != getattr(default, name)]
    raise Unwritable(f"{type(value).__name__} v{version} cannot carry {', '.join(unsaid)}")


def refuse_long(name: str) -> None:
    raise Unwritable(f"{name}: too long for a string")


SCOPE: dict[str, Any] = {
    "pack": struct.pack,
    "uvarint": uvarint,
    "BYTE": BYTE,
    "lacks": lacks,
    "refuse_long": refuse_long,
}


def writer(spec: Message, version: int) -> Callable[[Any], list[Any]]:
    """Compile a function that encodes a message in chunks: one, or more if there are records in it."""
    s = Source("m", dict(SCOPE), version, spec.is_flexible(version))
    s.line("parts = []; put = parts.append; chunks = []")
    _struct(s, "m", spec)
    _flush(s)
    if any("chunks.append" in line for line in s.lines):
        s.line("if parts: chunks.append(b''.join(parts))")
        s.line("return chunks")
    else:
        s.lines[0] = s.lines[0].removesuffix("; chunks = []")
        s.line("return [b''.join(parts)]")
    return s.compile(f"write {spec.name}")


def _struct(s: Source, source: str, owner: Message | Struct) -> None:
    plain, tagged, absent = split(owner, s.version)
    unsaid = [f for f in absent if not f.ignorable]
    if unsaid:
        set_anyway = " or ".join(_differs(s, source, f) for f in unsaid)
        s.line(f"if {set_anyway}: lacks({source}, {s.version}, {tuple(f.name for f in unsaid)!r})")
    for field in plain:
        _value(s, f"{source}.{field.name}", field, field.type)
    if tagged:
        _tags(s, source, tagged)
    elif s.flexible:
        s.run.append(("x", ""))


def _differs(s: Source, source: str, field: Field) -> str:
    """Return an expression that tells whether the field differs from its default."""
    value = f"{source}.{field.name}"
    if field.struct is not None and not field.is_array and (field.default is NEW or field.nullable is None):
        other = f"{value} != {s.name(class_of(field.struct)(), 'D')}"
        return other if field.default is NEW else f"({value} is not None and {other})"
    if field.default is None:
        return f"{value} is not None"
    if field.is_array:
        return f"({value} is None or len({value}) > 0)"
    return f"{value} != {field.default!r}"


def _value(s: Source, source: str, field: Field, kind: str) -> None:
    if kind in FIXED:
        s.run.append((FIXED[kind], source))
    elif kind.startswith("[]") or field.struct is None:
        _measured(s, source, field, kind)
    elif field.nullable_at(s.version) and not field.is_array:
        _optional_struct(s, source, field, field.struct)
    elif "." in source:
        inner = s.variable()
        s.line(f"{inner} = {source}")
        _struct(s, inner, field.struct)
    else:
        _struct(s, source, field.struct)


def _optional_struct(s: Source, source: str, field: Field, owner: Struct) -> None:
    _flush(s)
    inner = s.variable()
    s.line(f"{inner} = {source}")
    with s.under(f"if {inner} is None:"):
        s.line("put(b'\\xff')" if field.tag is None else "put(b'\\x00')")
    with s.under("else:"):
        s.line("put(b'\\x01')")
        _struct(s, inner, owner)
        _flush(s)


def _measured(s: Source, source: str, field: Field, kind: str) -> None:
    """Emit a value after its length."""
    x, n = s.variable(), s.variable()
    compact = s.flexible and not field.inflexible
    s.line(f"{x} = {source}")
    count = f"{x} = {x}.encode(); {n} = len({x})" if kind == "string" else f"{n} = len({x})"
    count += " + 1" if compact else ""
    nullable = field.nullable_at(s.version) and kind == field.type
    if nullable:
        s.line(f"if {x} is None: {n} = {0 if compact else -1}")
        s.line(f"else: {count}")
    else:
        s.line(count)
    if compact:
        _compact_length(s, field, kind, n)
    else:
        s.run.append(("h" if kind == "string" else "i", n))
        _flush(s)
    _content(s, x, field, kind, f"{n} > {int(compact)}")


def _compact_length(s: Source, field: Field, kind: str, n: str) -> None:
    """Emit a length. Its first byte goes with the run before it; few lengths have a second."""
    s.run.append(("B", f"{n} if {n} < 128 else {n} & 127 | 128"))
    _flush(s)
    with s.under(f"if {n} > 127:"):
        if kind == "string":
            s.line(f"if {n} > {LONGEST_STRING + 1}: refuse_long({field.name!r})")
        s.line(f"put(uvarint({n} >> 7))")


def _content(s: Source, x: str, field: Field, kind: str, filled: str) -> None:
    item = kind[2:]
    if kind == "records":
        s.line(f"if {filled}: chunks.append(b''.join(parts)); chunks.append({x}); parts.clear()")
    elif not kind.startswith("[]"):
        s.line(f"if {filled}: put({x})")
    elif item == "uuid":
        s.line(f"if {filled}: put(b''.join({x}))")
    elif item in FIXED:
        s.line(f"if {filled}: put(pack('>%d{FIXED[item]}' % len({x}), *{x}))")
    else:
        element = s.variable()
        with s.under(f"if {filled}:"), s.under(f"for {element} in {x}:"):
            _value(s, element, field, item)
            _flush(s)


def _tags(s: Source, source: str, tagged: list[Field]) -> None:
    """Emit the tagged fields that differ from their defaults, in the order of their tags."""
    flags = [s.variable() for _ in tagged]
    for flag, field in zip(flags, tagged, strict=True):
        s.line(f"{flag} = {_differs(s, source, field)}")
    count = s.variable()
    s.line(f"{count} = {' + '.join(flags)}")
    s.run.append(("B", count))
    _flush(s)
    with s.under(f"if {count}:"):
        for flag, field in zip(flags, tagged, strict=True):
            with s.under(f"if {flag}:"):
                _tag(s, f"{source}.{field.name}", field)


def _tag(s: Source, source: str, field: Field) -> None:
    outer, pieces = s.variable(), s.variable()
    s.line(f"{outer} = put; {pieces} = []; put = {pieces}.append")
    _value(s, source, field, field.type)
    _flush(s)
    s.line(f"{pieces} = b''.join({pieces}); put = {outer}")
    s.line(f"put({uvarint(field.tag or 0)!r}); put(uvarint(len({pieces}))); put({pieces})")


def _flush(s: Source) -> None:
    """Emit the write of the run."""
    codes = "".join(code for code, _ in s.run)
    cut = s.cut()
    if cut is None:
        return
    packer, values = cut
    if not values:
        s.line(f"put({bytes(packer.size)!r})")
    elif codes == "B":
        s.line(f"put(BYTE[{values[0]}])")
    else:
        s.line(f"put({s.name(packer.pack, 'P')}({', '.join(values)}))")
