"""Reading files of cases: one case for each format that a case names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

VERSION = (8, 0, 0)  # the version of ksqlDB whose cases apply


@dataclass(frozen=True, slots=True)
class Case:
    """A case with its formats filled in."""

    file: str
    name: str
    statements: tuple[str, ...]
    inputs: tuple[dict[str, Any], ...] = ()
    outputs: tuple[dict[str, Any], ...] = ()
    topics: tuple[dict[str, Any], ...] = ()
    properties: dict[str, Any] = field(default_factory=dict)
    post: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.statements)


class NotCases(ValueError):
    """A file that has no cases in it: one sentence."""


def read_file(file: Path) -> list[Case]:
    """Return the cases of a file, in order."""
    try:
        document = json.loads(file.read_text("utf-8"), parse_float=Decimal)
        nodes = document["tests"]
        return [case for node in nodes for case in _expanded(file.stem, node)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotCases(f"{file} is not a file of cases: {type(error).__name__}: {error}") from None


def _expanded(file: str, node: dict[str, Any]) -> Iterator[Case]:
    if node.get("enabled") is False or not _applies(node):
        return
    for name, filled in expanded(node):
        yield Case(
            file,
            name,
            tuple(filled["statements"]),
            tuple(filled.get("inputs", ())),
            tuple(filled.get("outputs", ())),
            tuple(filled.get("topics", ())),
            dict(filled.get("properties", {})),
            dict(filled.get("post", {})),
            filled.get("expectedException"),
        )


def expanded(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of a case and its document, for each format that it names."""
    for format_ in node.get("format", [None]):
        if format_ is None:
            yield node["name"], node
        else:
            yield f"{node['name']} - {format_}", _filled(node, format_)


def _applies(node: dict[str, Any]) -> bool:
    most = node.get("versions", {}).get("max")
    return most is None or tuple(int(part) for part in str(most).split(".")[:3]) >= VERSION


def _filled(value: Any, format_: str) -> Any:
    if isinstance(value, str):
        return value.replace("{FORMAT}", format_)
    if isinstance(value, list):
        return [_filled(item, format_) for item in value]
    if isinstance(value, dict):
        return {_filled(key, format_): _filled(item, format_) for key, item in value.items()}
    return value
