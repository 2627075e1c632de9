"""Structs as JSON by a function for each schema: a field of the expected class is written and read in place.

All others (nulls, logical types, what is nested, what does not fit) go through the converter, which has the rules.
Nothing of a schema becomes a part of the code but as a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.connect import data
from moldau.connect.data import Schema, Struct, Type

# How a value of a plain type is written, where it has the class that the type has in Python.
WRITTEN = {
    **dict.fromkeys(data.BITS, ("int", "str({0})")),
    Type.STRING: ("str", "quoted({0})"),
    Type.BOOLEAN: ("bool", "('true' if {0} else 'false')"),
}


def struct_writer(
    schema: Schema, text: Callable[[Schema, Any], str], quoted: Callable[[str], str]
) -> Callable[[tuple[Any, ...]], str]:
    """Make the function that writes the values of a struct; `text` writes those that have to be looked at."""
    names: dict[str, Any] = {"text": text, "quoted": quoted}
    parts: list[str] = []
    for at, place in enumerate(schema.fields):
        names |= {f"s{at}": place.schema, f"k{at}": f"{',' if at else '{'}{quoted(place.name)}:"}
        made = f"text(s{at}, v{at})"
        if place.schema.name is None and place.schema.type in WRITTEN:
            kind, plain = WRITTEN[place.schema.type]
            made = f"{plain.format(f'v{at}')} if v{at}.__class__ is {kind} else {made}"
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


def _function(argument: str, body: list[str], names: dict[str, Any]) -> Callable[[Any], Any]:
    text = f"def run({argument}):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(text, "<a struct as JSON>", "exec"), names)
    return names["run"]
