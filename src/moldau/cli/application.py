"""The typer application over the rows of COMMANDS; importing this imports typer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated

import typer

from moldau import __version__
from moldau.cli import COMMANDS, COMPLETING


def application(arguments: list[str]) -> typer.Typer:
    """All commands by name and help; only the one that was asked for is imported, or that is being typed."""
    typed = _typed(os.environ) if COMPLETING in os.environ else arguments
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_CONTEXT)
    app.callback()(_root)
    for command in COMMANDS:
        asked = typed[:1] == [command.name]
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


def _typed(environment: Mapping[str, str]) -> list[str]:
    """The words behind `moldau` on the line that a shell completes: bash, zsh and fish tell them in different ways."""
    line = environment.get("_TYPER_COMPLETE_ARGS") or environment.get("COMP_WORDS") or ""
    return line.replace("\n", " ").split()[1:]


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
