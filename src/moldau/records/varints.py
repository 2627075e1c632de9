"""Varints of small numbers in a table that grows as it is needed: lengths and offsets of records are mostly small."""

from __future__ import annotations

from moldau.wire.records import zigzag

MOST = 1 << 16  # numbers that are kept
FIRST = 1 << 12

_known: list[bytes] = []
_as_text: list[str] = []


def table(least: int) -> list[bytes]:
    """The varints of 0, 1, 2 ... for at least so many numbers; fewer than MOST are asked for."""
    assert least <= MOST
    if len(_known) < least:
        end = min(MOST, max(FIRST, 2 * least))
        _known.extend(map(zigzag, range(len(_known), end)))
    return _known


def text_table(least: int) -> list[str]:
    """The same as characters of Latin-1."""
    known = table(least)
    _as_text.extend([varint.decode("latin-1") for varint in known[len(_as_text) :]])
    return _as_text
