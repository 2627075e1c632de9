"""`moldau settings`: the table as a person, a program and the documentation want it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from moldau.cli import settings as module
from moldau.cli.settings_page import markdown
from moldau.settings import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(module.cli)
    return CliRunner().invoke(app, list(arguments))


def names(*arguments: str) -> list[str]:
    return [row["name"] for row in json.loads(run(*arguments, "-o", "json").stdout)]


def test_the_page_of_settings_is_current() -> None:
    assert PAGE.read_text() == markdown(), "run make docs"


def test_the_page_is_what_the_command_prints() -> None:
    assert run("--markdown").stdout == markdown()


def test_all_settings_are_listed_once_a_line() -> None:
    lines = run().stdout.splitlines()
    assert len(lines) == 1 + sum(map(len, table().values()))
    assert any(line.startswith("segment.bytes ") and "1073741824" in line for line in lines)


def test_a_name_shows_all_about_it() -> None:
    shown = run("node.id").stdout
    assert "default        1\n" in shown and "Number of the node" in shown


def test_a_name_of_two_scopes_shows_both() -> None:
    assert [row["scope"] for row in json.loads(run("compression.type", "-o", "json").stdout)] == ["topic", "broker"]


def test_a_part_and_a_pattern_find_many() -> None:
    assert names("jitter", "--scope", "topic") == ["segment.jitter.ms"]
    assert names("log.roll.*") == ["log.roll.hours", "log.roll.jitter.hours", "log.roll.jitter.ms", "log.roll.ms"]


def test_json_tells_where_moldau_differs_from_kafka() -> None:
    [row] = json.loads(run("offsets.topic.replication.factor", "-o", "json").stdout)
    assert (row["default"], row["kafka_default"]) == ("1", "3")


@pytest.mark.parametrize(("word", "hint"), [("segmet.bytes", "Did you mean segment.bytes?"), ("zzz", "lists them all")])
def test_an_unknown_name_is_told_with_a_hint(word: str, hint: str) -> None:
    done = run(word)
    assert done.exit_code == 1 and hint in done.stderr
