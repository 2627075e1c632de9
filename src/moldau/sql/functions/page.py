"""Makes the page docs/sql-functions.md from the rows of functions and their examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .registry import REGISTRY, Row
from .signatures import parameter_text

HEAD = """\
# SQL functions

<!-- Made by `python -m moldau.sql.functions.page` (make docs). Change src/moldau/sql/functions instead. -->

The functions have ksqlDB's names, signatures and results. A null argument gives null unless the description says
otherwise. A call that fails gives null and an entry in the processing log. `T...` is a parameter that may occur any
number of times; a single capital letter is any type, the same in all places; DECIMAL is one of any size. Positions
count from 1. The examples are executed by the tests; their values are shown as JSON, times as numbers. Those of
aggregates and table functions name the rows that they are given; what a table function makes of a row is a list.
"""
KINDS = (
    ("scalar", "Functions of one row"),
    ("aggregate", "Aggregates"),
    ("table", "Table functions"),
)


def examples() -> list[tuple[str, str]]:
    """Return the expressions of examples.txt with their values as JSON."""
    lines = (Path(__file__).parent / "examples.txt").read_text().splitlines()
    pairs = (line.rpartition(" => ") for line in lines if line and not line.startswith("#"))
    return [(expression, value) for expression, _, value in pairs]


class GroupExample(NamedTuple):
    """A call of an aggregate or a table function: its columns, the rows that it is given, and its value as JSON."""

    call: str
    columns: str
    rows: str
    value: str


def group_examples() -> list[GroupExample]:
    """Return the examples of functions of several rows, or that give several: a list of the values of all rows."""
    lines = (Path(__file__).parent / "group_examples.txt").read_text().splitlines()
    pairs = (line.rpartition(" => ") for line in lines if line and not line.startswith("#"))
    return [GroupExample._make((*given.split(" | "), value)) for given, _, value in pairs]


def signatures(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        result = parameter_text(row.signature.result)
        yield f"`{row.signature} -> {result}`"


def page() -> Iterator[str]:
    yield HEAD
    shown = examples() + [(one.call, f"{one.value} of {one.rows}") for one in group_examples()]
    for kind, title in KINDS:
        yield f"## {title}\n"
        for name in sorted(REGISTRY.rows):
            rows = REGISTRY.rows[name]
            if REGISTRY.kind(name) != kind:
                continue
            yield f"### {name}\n"
            yield next(row.doc for row in rows if row.doc) + "\n"
            yield from (f"- {each}" for each in signatures(rows))
            mine = [(each, value) for each, value in shown if each.startswith(f"{name}(")]
            if mine:
                yield "\n```sql"
                yield from (f"{each}  -- {value}" for each, value in mine)
                yield "```"
            yield ""


if __name__ == "__main__":
    sys.stdout.write("\n".join(page()).rstrip() + "\n")
