"""Structs as JSON by a function for each schema: a field of the expected class is written and read in place.

All others (nulls, logical types, what is nested, what does not fit) go through the converter, which has the rules.
Nothing of a schema becomes a part of the code but as a constant.

`struct_decoder` is the fastest way to read: msgspec knows the fields and their types. What it does not take, such as a
number with a fraction where an integer should be, is to be read by the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec

from moldau.connect import data
from moldau.connect.data import Schema, Struct, Type

# How a value of a plain type is written, where it has the class that the type has in Python.
WRITTEN = {
    **dict.fromkeys(data.BITS, ("int", "str({0})")),
    Type.STRING: ("str", "quoted({0})"),
    Type.BOOLEAN: ("bool", "('true' if {0} else 'false')"),
}


def struct_writer(
    schema: Schema,
    text: Callable[[Schema, Any], str],
    struct_text: Callable[[Schema, Struct], str],
    quoted: Callable[[str], str],
) -> Callable[[tuple[Any, ...]], str]:
    """Make the function that writes the values of a struct; `text` writes those that have to be looked at, and
    `struct_text` structs, which a converter may write in another way.
    """
    names: dict[str, Any] = {"text": text, "struct_text": struct_text, "quoted": quoted, "Struct": Struct}
    parts: list[str] = []
    for at, place in enumerate(schema.fields):
        names |= {f"s{at}": place.schema, f"k{at}": f"{',' if at else '{'}{quoted(place.name)}:"}
        made = f"text(s{at}, v{at})"
        if place.schema.name not in data.LOGICAL:
            if place.schema.type in WRITTEN:
                kind, plain = WRITTEN[place.schema.type]
                made = f"{plain.format(f'v{at}')} if v{at}.__class__ is {kind} else {made}"
            elif place.schema.type is Type.STRUCT:
                made = f"struct_text(s{at}, v{at}) if v{at}.__class__ is Struct else {made}"
        if place.schema.optional and place.schema.default is None:
            made = f"'null' if v{at} is None else {made}"
        parts.append(f"k{at}, {made}")
    taken = "".join(f"v{at}, " for at in range(len(parts)))
    body = [f"{taken}= values", f"return ''.join(({', '.join(parts)}, '}}'))"] if parts else ["return '{}'"]
    return _function("values", body, names)


def struct_reader(schema: Schema, value: Callable[[Schema, Any], Any]) -> Callable[[dict[str, Any]], Struct]:
    """Make the function that reads a struct from an object; `value` reads what has to be looked at."""

    def looked_at(at: int, found: Any) -> Any:
        place = schema.fields[at]
        made = value(place.schema, found)
        if made is None and not place.schema.optional:
            data.validate(place.schema, None, place.name)
        return made

    names: dict[str, Any] = {"Struct": Struct, "schema": schema, "looked_at": looked_at}
    body = ["get = found.get"]
    for at, place in enumerate(schema.fields):
        names[f"k{at}"] = place.name
        body.append(f"v{at} = get(k{at})")
        kind = place.schema.type if place.schema.name is None else None
        if kind is Type.STRING:
            body.append(f"if v{at}.__class__ is not str: v{at} = looked_at({at}, v{at})")
        elif kind in data.BITS:
            most = 1 << data.BITS[kind] - 1
            fits = f"v{at}.__class__ is int and {-most} <= v{at} < {most}"
            body.append(f"if not ({fits}): v{at} = looked_at({at}, v{at})")
        else:
            body.append(f"v{at} = looked_at({at}, v{at})")
    body.append(f"return Struct(schema, ({''.join(f'v{at}, ' for at in range(len(schema.fields)))}))")
    return _function("found", body, names)


class Typed(NamedTuple):
    """What a decoder reads a value as, and what makes Connect's of it; None if it is one already."""

    hint: Any
    turned: Callable[[Any], Any] | None = None


UNREAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # what a decoder raises
BITS = {kind: bits - 1 for kind, bits in data.BITS.items()}  # without that of the sign
SIMPLE: dict[Type, Any] = {
    **{kind: Annotated[int, msgspec.Meta(ge=-(1 << most), le=(1 << most) - 1)] for kind, most in BITS.items()},
    Type.STRING: str,
    Type.BOOLEAN: bool,
}
FLOATS: dict[Type, Callable[[float], float]] = {
    Type.FLOAT64: lambda value: value or 0.0,  # JSON has no negative zero
    Type.FLOAT32: lambda value: data.to_float32(value or 0.0),
}


def struct_decoder(schema: Schema, value: Callable[[Schema, Any], Any]) -> Callable[[bytes], Struct] | None:
    """Make the function that decodes a struct, which raises one of UNREAD; None if its schema needs the rules."""
    made = _struct_type(schema, value)
    if made is None or made.turned is None:
        return None
    decode, turned = msgspec.json.Decoder(made.hint).decode, made.turned
    return lambda found: turned(decode(found))


def _typed(schema: Schema, value: Callable[[Schema, Any], Any]) -> Typed | None:
    kind = schema.type
    if schema.name in data.LOGICAL:
        return Typed(str if schema.name == data.DECIMAL else SIMPLE[kind], partial(value, schema))
    if kind in SIMPLE:
        return Typed(SIMPLE[kind])
    if kind in FLOATS:
        return Typed(float, FLOATS[kind])
    if kind is Type.BYTES:
        return Typed(str, partial(value, schema))
    return _struct_type(schema, value) if kind is Type.STRUCT else _several(schema, value)


def _several(schema: Schema, value: Callable[[Schema, Any], Any]) -> Typed | None:
    """Return the type of an array or of a map by names."""
    inner, is_map = schema.value_schema, schema.type is Type.MAP
    named = not is_map or schema.key_schema is None or schema.key_schema.type is Type.STRING
    found = _typed(inner, value) if inner is not None and inner.default is None and named else None
    if inner is None or found is None:
        return None
    one = found.hint | None if inner.optional else found.hint
    hint: Any = dict[str, one] if is_map else list[one]
    if found.turned is None:
        return Typed(hint)
    turned = _unless_none(found.turned)
    if is_map:
        return Typed(hint, lambda values: {name: turned(each) for name, each in values.items()})
    return Typed(hint, lambda values: [turned(each) for each in values])


def _unless_none(turned: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else turned(value)


def _struct_type(schema: Schema, value: Callable[[Schema, Any], Any]) -> Typed | None:
    fields: list[tuple[str, Any, Any]] = []
    names: dict[str, Any] = {"Struct": Struct, "schema": schema, "astuple": msgspec.structs.astuple}
    body: list[str] = []
    for at, place in enumerate(schema.fields):
        found = _typed(place.schema, value)
        if found is None:
            return None
        may_lack = place.schema.optional or place.schema.default is not None
        hint = found.hint | None if may_lack else found.hint
        more = {"default": None} if may_lack else {}
        fields.append((f"v{at}", hint, msgspec.field(name=place.name, **more)))
        if found.turned is not None:
            names[f"t{at}"] = found.turned
            body.append(f"if v{at} is not None: v{at} = t{at}(v{at})")
        if place.schema.default is not None:
            names[f"d{at}"] = partial(value, place.schema, None)
            body.append(f"if v{at} is None: v{at} = d{at}()")
    try:
        kind = msgspec.defstruct("Row", fields, kw_only=True, forbid_unknown_fields=True, gc=False)
    except ValueError:  # a name that msgspec does not take
        return None
    taken = "".join(f"v{at}, " for at in range(len(fields)))
    whole = [f"{taken}= astuple(found)", *body, f"return Struct(schema, ({taken}))"]
    return Typed(kind, _function("found", whole if body else ["return Struct(schema, astuple(found))"], names))


def _function(argument: str, body: list[str], names: dict[str, Any]) -> Callable[[Any], Any]:
    text = f"def run({argument}):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(text, "<a struct as JSON>", "exec"), names)
    return names["run"]
