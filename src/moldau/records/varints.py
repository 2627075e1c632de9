"""Varints of small numbers in a table that grows as it is needed: lengths and offsets of records are mostly small."""

from __future__ import annotations

from moldau.wire.records import zigzag

MOST = 1 << 16  # numbers that are kept
FIRST = 1 << 12

_known: list[bytes] = []


def table(least: int) -> list[bytes]:
    """The varints of 0, 1, 2 ... for at least so many numbers; fewer than MOST are asked for."""
    assert least <= MOST
    if len(_known) < least:
        end = min(MOST, max(FIRST, 2 * least))
        _known.extend(map(zigzag, range(len(_known), end)))
    return _known
