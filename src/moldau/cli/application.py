"""The typer application, built from the rows of COMMANDS; importing this imports typer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module

import typer

from moldau import __version__
from moldau.cli import COMMANDS, COMPLETING, Command
from moldau.cli.options import flag


def application(arguments: list[str]) -> typer.Typer:
    """Build the application from the names and help of all commands; import only the command that is used or typed."""
    typed = _typed(os.environ) if COMPLETING in os.environ else arguments
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=_CONTEXT)
    app.callback()(_root)
    for command in COMMANDS:
        is_used = typed[:1] == [command.name]
        module = import_module(_module(command, typed)) if is_used else None
        cli = module.cli if module else _placeholder
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


def _module(command: Command, typed: list[str]) -> str:
    """Return the module of a command, or of its verb, where a command that takes a file has verbs too."""
    return command.verbs.get(typed[1], command.module) if len(typed) > 1 else command.module


def _typed(environment: Mapping[str, str]) -> list[str]:
    """Return the words after `moldau` on the line that a shell completes; bash, zsh and fish pass them differently."""
    line = environment.get("_TYPER_COMPLETE_ARGS") or environment.get("COMP_WORDS") or ""
    return line.replace("\n", " ").split()[1:]


_CONTEXT = {"help_option_names": ["-h", "--help"]}


def _placeholder() -> None:
    """Stand in the list for a command that is not used."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"moldau {__version__}")
        raise typer.Exit


def _root(version: bool = flag("--version", "Print the version.", callback=_print_version, is_eager=True)) -> None:
    """A streaming platform for Python teams: a Kafka-compatible log, and a pipeline on top."""
