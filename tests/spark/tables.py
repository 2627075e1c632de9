"""Tables in pages of docs/, each between two marks. A row is known by its first cell, and those that a run did not make
again stay: what takes long can be run in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

Cells = Sequence[object]
SUM = "all"


def put(page: Path, name: str, head: Sequence[str], rows: Iterable[Cells], *, sums: bool = False) -> None:
    """Rows into the table of a page. With `sums` it is sorted by its first column, and a last row has the sums of all
    others.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = page.read_text().split(begin)
    text, after = rest.split(end)
    found = list({str(row[0]): row for row in [*kept(text, head), *rows]}.values())
    if sums:
        found = with_sums(found)
    page.write_text(f"{before}{begin}\n{markdown(head, found)}\n{end}{after}")


def kept(text: str, head: Sequence[str]) -> list[Cells]:
    """The rows of a table, without its sums; none where it has other columns than these."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()]
    return [row for row in lines[2:] if row[0] != SUM] if lines and lines[0] == list(head) else []


def with_sums(rows: Iterable[Cells]) -> list[Cells]:
    ordered = sorted(rows, key=lambda row: int(str(row[0])))
    columns = zip(*(row[1:] for row in ordered), strict=True)
    return [*ordered, [SUM, *(f"{sum(map(number, column)):,}" for column in columns)]]


def number(cell: object) -> int:
    return int(str(cell).replace(",", ""))


def markdown(head: Sequence[str], rows: Iterable[Cells]) -> str:
    return "\n".join([line(head), "|" + "---|" * len(head), *(line(row) for row in rows)])


def line(cells: Cells) -> str:
    return f"| {' | '.join(map(str, cells))} |"
