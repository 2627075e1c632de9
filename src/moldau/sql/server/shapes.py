"""The shape of a query's text: the text with strings and small whole numbers cut out.

Two texts of one shape have the same tokens but for the values, so what was planned for one serves the other with other
values, where the values are only looked up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

STRING_SLOT, NUMBER_SLOT = "\0s", "\0n"
_PARTS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[A-Za-z0-9_@.]+""", re.DOTALL)
_SLOTS = re.compile(r"\0[sn]")
FEW_DIGITS = 9  # a number of so few digits is an INTEGER
FIRST_NUMBER = 900_000_000  # of the numbers that stand for slots
LONGEST = 10_000  # characters of a text that is worth it


class Shape(NamedTuple):
    """A text without its values, and the values as they are written."""

    text: str
    values: tuple[str, ...]


def shape_of(text: str) -> Shape | None:
    """Cut the values out of a text; None if it cannot be done safely, as with variables."""
    if len(text) > LONGEST or "${" in text or "\0" in text:
        return None
    values: list[str] = []

    def cut(match: re.Match[str]) -> str:
        part = match[0]
        if part[0] == "'":
            values.append(part)
            return STRING_SLOT
        if len(part) <= FEW_DIGITS and part.isdecimal() and part.isascii():
            values.append(part)
            return NUMBER_SLOT
        return part

    return Shape(_PARTS.sub(cut, text), tuple(values))


def filled(shape: str, values: Sequence[str]) -> str:
    """Put values into a shape."""
    left = iter(values)
    return _SLOTS.sub(lambda _: next(left), shape)


def stand_ins(shape: Shape) -> tuple[str, ...]:
    """Return values that are found again in a plan, one for each slot."""
    return tuple(f"'\1{at}'" if value[0] == "'" else str(FIRST_NUMBER + at) for at, value in enumerate(shape.values))


def value_of(written: str) -> str | int:
    """Return the value of a slot."""
    return written[1:-1].replace("''", "'") if written[0] == "'" else int(written)
