"""`moldau settings`: the table of settings as a table, as JSON or as the page docs/settings.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from moldau.cli.output import Output, write
from moldau.cli.settings_page import allowed, markdown
from moldau.settings import Row, table

MODES = {
    "-": "while running",
    "read-only": "at start only",
    "per-broker": "while running, for one broker",
    "cluster-wide": "while running",
    "per-listener": "while running, for one listener",
    "dynamic": "while running only",
    "unlisted": "at start only",
}


class Scope(StrEnum):
    """Whose settings."""

    broker = "broker"
    topic = "topic"
    group = "group"
    client = "client"
    client_metrics = "client-metrics"
    quota = "quota"
    ip = "ip"
    http = "http"
    registry = "registry"
    rest = "rest"


def cli(
    name: Annotated[str | None, typer.Argument(help="A name, a part of one, or a pattern with *.")] = None,
    scope: Annotated[Scope | None, typer.Option(help="Only settings of this kind.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How they are written.")] = Output.table,
    as_page: Annotated[bool, typer.Option("--markdown", help="The whole table as the page docs/settings.md.")] = False,
) -> None:
    """Show settings: type, default, what is allowed, and whether they change while the broker runs."""
    if as_page:
        print(markdown(), end="")
        return
    found = find(name, scope.value if scope else None)
    if not found:
        _complain_of(name or "")
    if output is not Output.table:
        write(output, [as_dict(row) for row in found])
    elif len({row.name for row in found}) == 1:
        _print_cards(found)
    else:
        _print_table(found)


def find(name: str | None, scope: str | None) -> list[Row]:
    """The rows that a word means: the name itself, else a pattern, else a part of the name."""
    candidates = [row for kind, named in table().items() if scope in (None, kind) for row in named.values()]
    if name is None:
        return candidates
    exact = [row for row in candidates if row.name == name]
    pattern = name if any(sign in name for sign in "*?[") else f"*{name}*"
    return exact or [row for row in candidates if fnmatchcase(row.name, pattern)]


def as_dict(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "scope": row.scope,
        "type": row.type,
        "default": row.default,
        "kafka_default": row.kafka_default,
        "allowed": allowed(row),
        "importance": row.importance,
        "changes": MODES[row.mode],
        "synonyms": [link.removeprefix("=") for link in row.chain],
        "sensitive": row.sensitive,
        "documentation": row.doc,
    }


def _complain_of(name: str) -> None:
    near = get_close_matches(name, [row.name for row in find(None, None)], n=1)
    hint = f" Did you mean {near[0]}?" if near else " `moldau settings` lists them all."
    print(f"moldau settings: there is no setting like {name!r}.{hint}", file=sys.stderr)
    raise typer.Exit(1)


def _print_cards(found: Iterable[Row]) -> None:
    for number, row in enumerate(found):
        facts = {key.replace("_", " "): value for key, value in as_dict(row).items() if value not in (None, "", [])}
        if row.kafka_default == row.default:
            facts.pop("kafka default", None)
        width = max(map(len, facts))
        print("\n" if number else "", end="")
        for key, value in facts.items():
            print(f"{key:<{width}}  {', '.join(value) if isinstance(value, list) else value}")


def _print_table(found: Iterable[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console() if sys.stdout.isatty() else Console(width=1000)  # a line each for grep
    listing = Table(
        "setting", "scope", "type", "default", "allowed", "changes", "documentation", box=None, pad_edge=False
    )
    for row in found:
        cells = (row.name, row.scope, row.type, row.default or "", allowed(row), MODES[row.mode], row.doc)
        listing.add_row(*(cell.replace("[", "\\[") for cell in cells))
    console.print(listing)
