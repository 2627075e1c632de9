"""The page docs/cli.md: made from the commands, its tour runs, and every example is one that the commands take."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from moldau.cli import COMMANDS
from moldau.cli.application import application
from moldau.cli.page import TOUR, markdown, verbs
from moldau.testing import Broker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
EXAMPLES = re.findall(
    r"^(?:echo [^|]*\| )?(moldau (?!kafka-).*)$", markdown().partition("## moldau up")[2], re.MULTILINE
)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == markdown(), "run make docs"


def test_the_tour_runs(kafka: Broker, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "MOLDAU_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    script = f'moldau() {{ {sys.executable} -m moldau "$@"; }}\n{TOUR}'
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], capture_output=True, text=True, timeout=500, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in TOUR.splitlines():
        if line.startswith("# "):
            assert line.removeprefix("# ") in done.stdout.splitlines()


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_understood(example: str) -> None:
    """Parsed as the shell and typer do; nothing is run."""
    line = re.split(r" [|<>] | \|\| ", example)[0]
    name, *words = shlex.split(line, comments=True)[1:]
    command = get_command(application([name, *words])).commands[name]  # type: ignore[attr-defined]
    while hasattr(command, "commands"):
        verb, *words = words
        command = command.commands[verb]
    command.make_context(name, words).close()


def test_every_verb_has_examples_and_a_sentence() -> None:
    for row in COMMANDS:
        command = get_command(application([row.name])).commands[row.name]  # type: ignore[attr-defined]
        for name, verb in verbs(command, row.name):
            assert verb.help and verb.help.strip().split("\n")[0].rstrip()[-1] in ".:", name
            if row.name not in ("settings", "registry", "rest", "connect"):
                assert "moldau" in (verb.epilog or ""), name
