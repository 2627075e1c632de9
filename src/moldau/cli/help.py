"""The text of `moldau --help`, made from COMMANDS alone: importing typer and rich takes seven times as long."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator

from moldau.cli import COMMANDS, kafka

WIDEST = 100
OPTIONS = {
    "-h, --help": "Show this; after a command, its options and examples.",
    "--version": "Print the version.",
    "--install-completion": "Let the shell complete commands, topics and groups.",
    "--show-completion": "Print what --install-completion would install.",
}
HEAD = "A streaming platform for Python teams: a Kafka-compatible log, and a pipeline on top."
TAIL = (
    "Every command has examples: moldau topic create --help. Commands connect to 127.0.0.1:9092, or to the brokers "
    "of --bootstrap-servers or a profile: moldau profile --help."
)


def show() -> None:
    """Print the text."""
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    fancy = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print("\n".join(lines(width, fancy)))


def lines(width: int, fancy: bool) -> Iterator[str]:
    """Yield the lines."""
    bold, plain = ("\x1b[1m", "\x1b[0m") if fancy else ("", "")
    yield f"Usage: moldau COMMAND [ARGUMENTS] [OPTIONS]\n\n{textwrap.fill(HEAD, width)}"
    panels = dict.fromkeys(command.panel for command in COMMANDS)
    sections = {panel: {row.name: row.help for row in COMMANDS if row.panel == panel} for panel in panels}
    left = max(len(name) for rows in (*sections.values(), OPTIONS) for name in rows) + 4
    for panel, rows in (*sections.items(), ("Options", OPTIONS)):
        yield f"\n{bold}{panel}{plain}"
        for name, text in rows.items():
            yield textwrap.fill(text, width, initial_indent=f"  {name:<{left - 2}}", subsequent_indent=" " * left)
    yield f"\n{bold}Kafka's own command lines{plain}"
    yield textwrap.fill(
        ", ".join(kafka.TOOLS), width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    yield f"\n{textwrap.fill(TAIL, width)}"
