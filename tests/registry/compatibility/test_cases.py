"""Confluent's own cases of differences between schemas, which stand outside of the project (their licence is not ours).

A case has two schemas, the differences that must be found, and whether they are compatible.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.registry.compatibility import json_check, protobuf_check
from moldau.registry.compatibility.differences import Difference
from moldau.registry.compatibility.json_rules import LENIENT, STRICT
from moldau.serdes.schemas import Parsed, Reference, parse
from tests import needs

Case = dict[str, Any]
JSON_FILES = (
    "diff-schema-examples",
    "diff-schema-examples-2020-12",
    "diff-combined-schema-examples",
    "diff-combined-schema-examples-2020-12",
)


def cases(name: str) -> tuple[Path, list[Case]]:
    folder = needs.find("schema-cases").path
    assert folder is not None
    path = folder / f"{name}.json"
    return path.parent, json.loads(path.read_text())


def json_side(case: Case, side: str) -> Parsed:
    return parse("JSON", json.dumps(case[f"{side}_schema"]), new=True)


def protobuf_side(folder: Path, case: Case, side: str) -> Parsed:
    text = case[f"{side}_schema"]
    if text.endswith(".proto"):
        path = folder / text
        if not path.exists():
            pytest.skip(f"the cases come without {text}")
        text = path.read_text()
    references = [Reference(**reference) for reference in case.get(f"{side}_references", [])]
    given = {entry["name"]: entry.get("dependency") for entry in case.get(f"{side}_dependencies", [])}
    return parse("PROTOBUF", text, references, {name: inner for name, inner in given.items() if inner}, new=True)


def wrong(case: Case, found: list[Difference], allowed: frozenset[str], expected: bool | None) -> str | None:
    told = sorted(map(str, found))
    fits = all(difference.type in allowed for difference in found)
    if told == sorted(case["changes"]) and expected in (fits, None):
        return None
    return f"{case['description']}: found {told} ({fits}), not {sorted(case['changes'])} ({expected})"


def check(name: str, run: Callable[[Path, Case], list[str | None]]) -> None:
    folder, found = cases(name)
    assert found
    problems = [problem for case in found for problem in run(folder, case) if problem]
    assert not problems, f"{len(problems)} of {len(found)}:\n" + "\n".join(problems)


@pytest.mark.needs("schema-cases")
@pytest.mark.parametrize("name", JSON_FILES)
def test_differences_of_json_schemas_are_those_of_confluent(name: str) -> None:
    def run(_: Path, case: Case) -> list[str | None]:
        found = json_check.differences(json_side(case, "original"), json_side(case, "update"))
        verdicts = ((STRICT, case["compatible"]), (LENIENT, case.get("compatible_lenient")))
        return [wrong(case, found, allowed, expected) for allowed, expected in verdicts]

    check(f"json-schema-provider/{name}", run)


@pytest.mark.needs("schema-cases")
@pytest.mark.parametrize("name", ["diff-schema-examples", "diff-schema-examples-with-meta"])
def test_differences_of_protobuf_schemas_are_those_of_confluent(name: str) -> None:
    def run(folder: Path, case: Case) -> list[str | None]:
        old, new = (protobuf_side(folder, case, side) for side in ("original", "update"))
        return [wrong(case, protobuf_check.differences(old, new), protobuf_check.COMPATIBLE, case["compatible"])]

    check(f"protobuf-provider/{name}", run)
