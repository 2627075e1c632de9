"""The table that several of Kafka's tools print: columns padded with blanks, a tab behind each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The lines of a table, with its headers."""
    cells = [list(headers), *([str(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    return "\n".join("".join(f"{text:<{width}}\t" for text, width in zip(row, widths, strict=True)) for row in cells)
