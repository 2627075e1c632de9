"""The frame of the command `moldau`: what is listed, what is imported, and what is said of a mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import pytest
import typer

from moldau import __version__
from moldau.cli import COMMANDS, Command
from moldau.cli.help import lines

MODULES = (
    "import sys; from moldau.cli import main\ntry: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
)


def moldau(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moldau", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", MODULES, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_help_lists_every_command_and_imports_none() -> None:
    done = moldau("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert command.name in done.stdout and command.help.split()[0] in done.stdout
    assert not {command.module for command in COMMANDS} & imported_by("--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_row_has_what_it_names(command: Command) -> None:
    for module in (command.module, *command.verbs.values()):
        cli = import_module(module).cli
        assert callable(cli) or isinstance(cli, typer.Typer)
    assert command.help.endswith(".") and command.name == command.module.rpartition(".")[2]
    if command.quick:
        assert callable(import_module(command.quick).run)


def test_help_needs_neither_typer_nor_rich() -> None:
    assert not {"typer", "rich"} & imported_by("--help")


@pytest.mark.parametrize("width", [60, 100])
def test_help_fits_the_terminal(width: int) -> None:
    assert all(len(line) <= width for page in lines(width, False) for line in page.splitlines())


@pytest.mark.parametrize(
    ("environment", "offered"),
    [
        ({"_MOLDAU_COMPLETE": "complete_bash", "COMP_WORDS": "moldau top", "COMP_CWORD": "1"}, {"topic"}),
        (
            {"_MOLDAU_COMPLETE": "complete_bash", "COMP_WORDS": "moldau topic de", "COMP_CWORD": "2"},
            {"describe", "delete"},
        ),
    ],
)
def test_the_shell_completes_commands(environment: dict[str, str], offered: set[str]) -> None:
    command = [sys.executable, "-m", "moldau"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert set(done.stdout.split()) == offered


def test_a_quick_command_is_reached_without_typer() -> None:
    # A setting that cannot be ends the broker before it starts.
    assert "typer" not in imported_by("broker", "--set", "num.partitions=0")


def test_the_version_is_printed() -> None:
    assert moldau("--version").stdout == f"moldau {__version__}\n"


def test_an_unknown_command_is_named() -> None:
    done = moldau("brokre")
    assert done.returncode == 2 and "brokre" in done.stderr
