"""`python -m moldau.spark.page` writes docs/spark-options.md from the tables of options and settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from moldau.spark.options import Option
from moldau.spark.session import EVERYWHERE, LOCAL
from moldau.spark.sink.options import TABLE as SINK
from moldau.spark.source.options import TABLE


def page() -> str:
    return "\n".join(
        [
            '# Options of `format("moldau")`',
            "",
            "Made from the tables in `src/moldau/spark` by `make docs`. Letters of options may be of any case; those",
            "that begin with `kafka.` go to the [client](client.md), those with `schema.registry.` to the registry's.",
            "",
            "## Reading",
            *rows(TABLE),
            "",
            "## Writing",
            *rows(SINK),
            "",
            "## Settings of the session",
            "| setting | value | why |",
            "|---|---|---|",
            *(f"| {row.name} | {row.value} | {row.reason} |" for row in EVERYWHERE),
            *(f"| {row.name} | {row.value} | on one machine: {row.reason} |" for row in LOCAL),
            "",
        ]
    )


def rows(table: Iterable[Option]) -> Iterator[str]:
    yield from ("| option | default | meaning |", "|---|---|---|")
    for row in table:
        default = "" if row.default is None else str(row.default).lower()
        yield f"| {row.name} | {default} | {row.meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
