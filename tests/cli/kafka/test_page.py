"""docs/kafka-tools.md: made from the tables, and its examples run."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from moldau.cli import kafka
from moldau.cli.kafka.page import markdown
from tests.cli.kafka.running import Kafka, run

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PAGE = ROOT / "docs" / "kafka-tools.md"


def test_the_page_is_made_from_the_tables() -> None:
    assert PAGE.read_text() == markdown(), "run: python -m moldau.cli.kafka.page > docs/kafka-tools.md"


def test_the_examples_of_the_page_run(kafka_tools: Kafka) -> None:
    block = re.search(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    for line in block[1].replace("\\\n", "").splitlines():
        said, piped, command = line.rpartition(" | ")
        name, *words = shlex.split(command.replace("localhost:9092", kafka_tools.servers))
        stdin = shlex.split(said)[1] + "\n" if piped else ""
        done = run(name, *words, stdin=stdin)
        assert done.code == 0, f"{line}\n{done.out}{done.err}"


def test_every_tool_is_a_script_under_both_names() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    expected = {f"{name}{end}": "moldau.cli.kafka:main" for name in kafka.TOOLS for end in ("", ".sh")}
    assert {name: entry for name, entry in scripts.items() if name.startswith(("kafka-", "connect-"))} == expected
