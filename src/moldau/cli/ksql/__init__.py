"""ksqlDB's own command lines: `ksql`, `ksql-migrations` and `ksql-test-runner`, as scripts and as `moldau ksql ...`.

Each tool is a module with `run(arguments) -> int`. Only the tool that is used is imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import PurePath

TOOLS = {
    "ksql": "moldau.cli.ksql.shell",
    "ksql-migrations": "moldau.cli.ksql.migrations",
    "ksql-test-runner": "moldau.cli.ksql.test_runner",
}


def main() -> None:
    """Run the tool that the script is named after: the entry point of all scripts."""
    sys.exit(run(PurePath(sys.argv[0]).name, sys.argv[1:]))


def run(name: str, arguments: list[str]) -> int:
    """Run a tool and return its exit code; KeyError if there is none of this name."""
    return import_module(TOOLS[name.removesuffix(".sh")]).run(arguments)
