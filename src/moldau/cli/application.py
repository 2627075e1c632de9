"""The typer application over the rows of COMMANDS; importing this imports typer."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated

import typer

from moldau import __version__
from moldau.cli import COMMANDS

COMPLETING = "_MOLDAU_COMPLETE"  # set by the shell while it completes a line


def application(arguments: list[str]) -> typer.Typer:
    """All commands by name and help; only the one that was asked for is imported, or all to complete a line."""
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_CONTEXT)
    app.callback()(_root)
    for command in COMMANDS:
        asked = COMPLETING in os.environ or arguments[:1] == [command.name]
        module = import_module(command.module) if asked else None
        cli = module.cli if module else _unasked
        if isinstance(cli, typer.Typer):
            app.add_typer(cli, name=command.name, help=command.help, rich_help_panel=command.panel)
        else:
            app.command(
                command.name,
                help=command.help if module is None else None,  # its own says more
                epilog=getattr(module, "EPILOG", None),
                rich_help_panel=command.panel,
            )(cli)
    return app


_CONTEXT = {"help_option_names": ["-h", "--help"]}


def _unasked() -> None:
    """Stands in the list for a command that was not asked for."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"moldau {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A streaming platform for Python teams: a Kafka-compatible log, and a pipeline on top."""
