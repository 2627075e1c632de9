"""Comparing the plans of cases with recorded ones: query ids, the schemas of steps, and the topology to the letter.

A file of plans has a JSON document a line: file, name, format, queries, schemas and topology, as ksqlDB recorded them.
"""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moldau.sql.cases.files import Case, NotCases
from moldau.sql.cases.running import queries_of
from moldau.sql.functions import cases as case_functions
from moldau.sql.lowering import describe

Plans = dict[tuple[str, str], dict[str, Any]]  # (file, name with its format) -> document
COMPARED = ("schema", "keyFormat", "valueFormat")


def read_plans(file: Path) -> Plans:
    """Read a file of plans, which may be compressed. Of several plans of a case the last one counts."""
    found: Plans = {}
    try:
        data = file.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
        for line in text.splitlines():
            document = json.loads(line)
            name = document["name"] if document["format"] is None else f"{document['name']} - {document['format']}"
            found[document["file"].removesuffix(".json"), name] = document
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise NotCases(f"{file} is not a file of plans: {type(error).__name__}: {error}") from None
    return found


def differences(case: Case, plans: Plans) -> list[str]:
    """Say how the plans of a case differ from the recorded ones; nothing is recorded for some cases."""
    recorded = plans.get((case.file, case.name))
    if recorded is None or case.expected is not None:
        return []
    case_functions.install()
    try:
        return _differences(case, recorded)
    finally:
        case_functions.uninstall()


def _differences(case: Case, recorded: Mapping[str, Any]) -> list[str]:
    queries, registry = queries_of(case)
    ids = [query.query_id for query in queries]
    if ids != recorded["queries"]:
        return [f"queries {ids} instead of {recorded['queries']}"]
    found: list[str] = []
    schemas: dict[str, Any] = {}
    topology = ""
    for query in queries:
        topology, made = describe(query, registry)
        schemas |= {
            name: (schema.text(), formats.key.name, formats.value.name) for name, (schema, formats) in made.items()
        }
    found += _schema_differences(recorded["schemas"], schemas)
    if topology.split() != recorded["topology"].split():
        found.append(_first_difference(recorded["topology"], topology))
    return found


def _schema_differences(recorded: Mapping[str, Any], schemas: Mapping[str, tuple[str, str, str]]) -> list[str]:
    found: list[str] = []
    for name, wanted in recorded.items():
        mine = schemas.get(name)
        if mine is None:
            found.append(f"there is no step {name}")
            continue
        formats = [(wanted.get(side) or {}).get("format") for side in COMPARED[1:]]
        pairs = zip((wanted["schema"], *formats), mine, COMPARED, strict=True)
        for expected, actual, what in pairs:
            if expected is not None and expected != actual:
                found.append(f"{name}: {what} {actual} instead of {expected}")
    return found


def _first_difference(wanted: str, mine: str) -> str:
    lines = difflib.unified_diff(wanted.split("\n"), mine.split("\n"), "recorded", "topology", lineterm="", n=0)
    return "topology: " + " / ".join(line.strip() for line in list(lines)[3:7])
