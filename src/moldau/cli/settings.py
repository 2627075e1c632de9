"""`moldau settings`: prints the settings as a table, as JSON or as the page docs/settings.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal

import typer

from moldau.cli.options import argument, flag, option
from moldau.cli.output import Output, pick, write
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
Scope = Literal[
    "broker", "topic", "group", "client", "client-metrics", "quota", "ip", "http", "registry", "rest", "sql", "connect"
]


def cli(
    name: str | None = argument("A name, a part of a name, or a pattern with *.", None),
    scope: Scope | None = option("--scope", "Only settings with this scope."),
    output: Output = option("--output -o", "Choose how the result is written.", "table"),
    as_page: bool = flag("--markdown", "Print all settings as the page docs/settings.md."),
) -> None:
    """Show settings: type, default, allowed values, and whether they can change while the broker runs."""
    if as_page:
        print(markdown(), end="")
        return
    settings = find(name, scope)
    if not settings:
        _reject(name or "")
    if output != "table":
        write(output, [as_dict(row) for row in settings])
    elif len({row.name for row in settings}) == 1:
        _print_cards(settings)
    else:
        _print_table(settings)


def find(name: str | None, scope: str | None) -> list[Row]:
    """Return the settings with this name, or else those that match it as a pattern or as a part of their name."""
    candidates = [row for kind, named in table().items() if scope in (None, kind) for row in named.values()]
    if name is None:
        return candidates
    exact = [row for row in candidates if row.name == name]
    pattern = name if any(sign in name for sign in "*?[") else f"*{name}*"
    return exact or [row for row in candidates if fnmatchcase(row.name, pattern)]


def as_dict(row: Row) -> dict[str, Any]:
    """Return the facts of a setting for programs."""
    return {
        **pick(row, "name", "scope", "type", "default", "kafka_default"),
        "allowed": allowed(row),
        "importance": row.importance,
        "changes": MODES[row.mode],
        "synonyms": [link.removeprefix("=") for link in row.chain],
        "sensitive": row.sensitive,
        "documentation": row.doc,
    }


def _reject(name: str) -> None:
    near = get_close_matches(name, [row.name for row in find(None, None)], n=1)
    hint = f" Did you mean {near[0]}?" if near else " `moldau settings` lists them all."
    print(f"moldau settings: no setting matches {name!r}.{hint}", file=sys.stderr)
    raise typer.Exit(1)


def _print_cards(settings: Iterable[Row]) -> None:
    for number, row in enumerate(settings):
        facts = {key.replace("_", " "): value for key, value in as_dict(row).items() if value not in (None, "", [])}
        if row.kafka_default == row.default:
            facts.pop("kafka default", None)
        width = max(map(len, facts))
        print("\n" if number else "", end="")
        for key, value in facts.items():
            print(f"{key:<{width}}  {', '.join(value) if isinstance(value, list) else value}")


def _print_table(settings: Iterable[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console() if sys.stdout.isatty() else Console(width=1000)  # one line a setting, for grep
    listing = Table(
        "setting", "scope", "type", "default", "allowed", "changes", "documentation", box=None, pad_edge=False
    )
    for row in settings:
        cells = (row.name, row.scope, row.type, row.default or "", allowed(row), MODES[row.mode], row.doc)
        listing.add_row(*(cell.replace("[", "\\[") for cell in cells))
    console.print(listing)
