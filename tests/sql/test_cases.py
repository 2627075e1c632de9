"""Query cases of our own, in the form of ksqlDB's: each step, each kind of join and each refusal, run in memory."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from moldau.sql.cases import Case, NotCases, check, read_file

FOLDER = Path(__file__).parent / "cases"
CASES = [case for file in sorted(FOLDER.glob("*.json")) for case in read_file(file)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.name}")
def test_case_passes(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # some cases have records that cannot be read
    outcome = check(case)
    assert outcome.passed, outcome.reason


STATEMENTS = [
    "CREATE STREAM s (k INT KEY, v INT) WITH (kafka_topic='s', value_format='JSON');",
    "CREATE STREAM o AS SELECT k, v + 1 AS w FROM s;",
]
INPUTS = [{"topic": "s", "key": 1, "value": {"v": 1}, "timestamp": 5}]
GOOD = {"topic": "O", "key": 1, "value": {"W": 2}, "timestamp": 5}

WRONG = {
    "a value": [{**GOOD, "value": {"W": 3}}],
    "a key": [{**GOOD, "key": 2}],
    "a timestamp": [{**GOOD, "timestamp": 6}],
    "a record too many": [GOOD, GOOD],
    "a column too many": [{**GOOD, "value": {"W": 2, "X": 1}}],
}


def made(tmp_path: Path, **parts: object) -> Case:
    file = tmp_path / "case.json"
    file.write_text(json.dumps({"tests": [{"name": "n", "statements": STATEMENTS, "inputs": INPUTS, **parts}]}))
    (case,) = read_file(file)
    return case


@pytest.mark.parametrize("what", WRONG)
def test_case_with_wrong_outputs_fails(what: str, tmp_path: Path) -> None:
    assert check(made(tmp_path, outputs=[GOOD])).passed
    assert not check(made(tmp_path, outputs=WRONG[what])).passed


def test_case_with_wrong_schema_fails(tmp_path: Path) -> None:
    for schema, passes in (("K INT KEY, W INT", True), ("K INT KEY, W BIGINT", False), ("K INT KEY, X INT", False)):
        sources = [{"name": "O", "type": "stream", "schema": schema}]
        outcome = check(made(tmp_path, outputs=[GOOD], post={"sources": sources}))
        assert outcome.passed is passes, schema


def test_case_that_is_not_refused_fails(tmp_path: Path) -> None:
    expected = {"type": "io.confluent.ksql.util.KsqlException", "message": "no"}
    outcome = check(made(tmp_path, outputs=[], expectedException=expected))
    assert not outcome.passed
    assert "not refused" in outcome.reason


def test_format_expands_to_one_case_each(tmp_path: Path) -> None:
    file = tmp_path / "formats.json"
    node = {"name": "f", "format": ["JSON", "DELIMITED"], "statements": ["value_format='{FORMAT}'"]}
    file.write_text(json.dumps({"tests": [node, {**node, "enabled": False}]}))
    assert [(c.name, c.text) for c in read_file(file)] == [
        ("f - JSON", "value_format='JSON'"),
        ("f - DELIMITED", "value_format='DELIMITED'"),
    ]


@pytest.mark.parametrize("text", ["[]", "{}", '{"tests": 1}', '{"tests": [1]}', "no json"])
def test_file_without_cases_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(NotCases, match="is not a file of cases"):
        read_file(file)
