"""The command `moldau`: one noun a module, and a row for each here.

`moldau --help` imports none of them, and a command only its own. Importing typer takes as long as starting a broker,
so a noun may have a quick way in: a module with `run(arguments) -> int | None`, which is called before typer is
imported and may leave what it does not understand to typer by returning None.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """A noun. Its module has `cli`: a function with typer's annotations, or a typer.Typer with verbs."""

    name: str
    module: str
    help: str
    quick: str | None = None


COMMANDS = (
    Command("up", "moldau.cli.up", "Run the platform: broker, Schema Registry and REST Proxy."),
    Command("broker", "moldau.cli.broker", "Run a Kafka-compatible broker.", quick="moldau.cli.quick_broker"),
    Command("registry", "moldau.cli.registry", "Run a Schema Registry."),
    Command("rest", "moldau.cli.rest", "Run a REST Proxy."),
    Command("schema", "moldau.cli.schema", "Register, show, compare and delete schemas."),
    Command("settings", "moldau.cli.settings", "Show the settings of brokers, topics and groups."),
)


def main() -> None:
    """The entry point: ends the process with the command's exit code."""
    arguments = sys.argv[1:]
    code = _run_quickly(arguments)
    if code is not None:
        sys.exit(code)
    from moldau.cli.application import application

    application(arguments)(arguments, prog_name="moldau")


def _run_quickly(arguments: list[str]) -> int | None:
    for command in COMMANDS:
        if command.quick and arguments[:1] == [command.name]:
            return import_module(command.quick).run(arguments[1:])
    return None
