"""Rows of JSON objects and objects of rows, by generated functions: one expression for each column.

A value that is of its column's type already is taken as it is; anything else goes to the column's own function. Which
name of a document belongs to which column depends on the names of the document alone, in their order: it is found out
once for each spelling. The source consists of generated names and of nothing that a user wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

from moldau.java.times import MS_PER_DAY

from ..tree import Type
from ..types import base
from .rows import Row

MOST_SPELLINGS = 1000
SMALL, LARGE = f"{-(1 << 31)} <= v <= {(1 << 31) - 1}", f"{-(1 << 63)} <= v <= {(1 << 63) - 1}"
# What is right as it is. None goes to the column's own function.
RIGHT = {
    "BOOLEAN": "v.__class__ is bool",
    "INTEGER": f"v.__class__ is int and {SMALL}",
    "BIGINT": f"v.__class__ is int and {LARGE}",
    "DATE": f"v.__class__ is int and {SMALL}",
    "TIME": f"v.__class__ is int and 0 <= v <= {MS_PER_DAY}",
    "TIMESTAMP": f"v.__class__ is int and {LARGE}",
    "STRING": "v.__class__ is str",
}
NUMBERS = ("INTEGER", "BIGINT", "DATE", "TIME", "TIMESTAMP")  # written as Python writes them

Getter = Callable[[dict[str, Any]], Sequence[Any]]


def row_reader(columns: Sequence[tuple[str, Type]], readers: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Row]:
    """Return a function of an object. A column is the member of its name, or else of that name in upper case; if all
    members are there under their own names, only these count.
    """
    names = [name for name, _ in columns]
    make = _converter([base(type) for _, type in columns], readers)
    known: dict[tuple[str, ...], Getter] = {}

    def read(value: dict[str, Any]) -> Row:
        spelling = tuple(value)
        getter = known.get(spelling)
        if getter is None:
            getter = _getter(names, spelling)
            if len(known) < MOST_SPELLINGS:
                known[spelling] = getter
        return make(*getter(value))

    return read


def _getter(names: list[str], spelling: tuple[str, ...]) -> Getter:
    if set(names) <= set(spelling):
        found: list[str | None] = list(names)
    else:
        upper = {key.upper(): key for key in spelling}
        found = [name if name in spelling else upper.get(name) for name in names]
    if None not in found and len(found) > 1:
        return itemgetter(*found)
    return lambda value: [None if key is None else value[key] for key in found]


def _converter(types: Sequence[str], readers: Sequence[Callable[[Any], Any]]) -> Callable[..., Row]:
    given: dict[str, Any] = {f"read{at}": one for at, one in enumerate(readers)}
    given["Decimal"] = Decimal
    values = [f"v{at}" for at in range(len(types))]
    parts: list[str] = []
    for at, (type, value) in enumerate(zip(types, values, strict=True)):
        if type == "DOUBLE":
            parts.append(f"float({value}) if {value}.__class__ is Decimal else read{at}({value})")
        elif type in RIGHT:
            right = RIGHT[type].replace("v", value)
            parts.append(f"{value} if {right} else read{at}({value})")
        else:
            parts.append(f"read{at}({value})")
    exec(f"def make({', '.join(values)}): return ({''.join(f'{part}, ' for part in parts)})", given)
    return given["make"]


def list_reader(type: Type, of_item: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    """Return a function that reads the items of an array."""
    right = RIGHT.get(base(type))
    if right is None:
        return lambda value: [of_item(v) for v in value]
    return eval(f"lambda value: [v if {right} else of_item(v) for v in value]", {"of_item": of_item})


def object_writer(
    columns: Sequence[tuple[str, Type]],
    writers: Sequence[Callable[[Any], str]],
    quoted: Callable[[str], str],
) -> Callable[[Row], str]:
    """Return a function that writes a row as an object."""
    if not columns:
        return lambda row: "{}"
    given: dict[str, Any] = {f"write{at}": one for at, one in enumerate(writers)}
    given["quoted"] = quoted
    parts: list[str] = []
    for at, (name, type) in enumerate(columns):
        given[f"name{at}"] = ("," if at else "{") + quoted(name) + ":"
        match base(type):
            case "STRING":
                written = f"'null' if v{at} is None else quoted(v{at})"
            case kind if kind in NUMBERS:
                written = f"'null' if v{at} is None else v{at}"
            case _:
                written = f"write{at}(v{at})"
        parts.append(f"{{name{at}}}{{{written}}}")
    values = "".join(f"v{at}, " for at in range(len(columns)))
    exec(f'def write(row):\n    {values} = row\n    return f"{"".join(parts)}}}}}"', given)
    return given["write"]
