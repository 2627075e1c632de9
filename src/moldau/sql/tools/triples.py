"""The files of `ksql-test-runner`: statements, the records that go in, and those that must come out."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from moldau.sql.cases.files import Case, NotCases

NAMES = ("statements.sql", "input.json", "output.json")  # of a triple in a folder


def triple(statements: Path, inputs: Path | None, outputs: Path) -> Case:
    """Read a triple as a case; a file without inputs is one whose statements bring their own."""
    try:
        text = statements.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotCases(f"{statements} cannot be read: {error}") from None
    records = () if inputs is None else _records(inputs, "inputs")
    return Case(statements.parent.name, statements.stem, (text,), records, _records(outputs, "outputs"))


def in_folder(folder: Path) -> Case | None:
    """Return the triple of a folder, if it has one."""
    statements, inputs, outputs = (folder / name for name in NAMES)
    if not (statements.exists() and outputs.exists()):
        return None
    return triple(statements, inputs if inputs.exists() else None, outputs)


def _records(file: Path, name: str) -> tuple[dict[str, Any], ...]:
    try:
        found = json.loads(file.read_text("utf-8"), parse_float=Decimal)[name]
        if not all(isinstance(one, dict) and "topic" in one for one in found):
            raise ValueError("a record without a topic")
        return tuple(found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotCases(f"{file} has no records in '{name}': {type(error).__name__}: {error}") from None
