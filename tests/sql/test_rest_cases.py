"""Cases of our own in the form of ksqlDB's REST cases: pull queries, push queries and INSERT VALUES, run in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.sql.server.rest_cases import RestCase, check_rest, read_rest_file

FOLDER = Path(__file__).parent / "rest"
CASES = [case for file in sorted(FOLDER.glob("*.json")) for case in read_rest_file(file)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.name}")
def test_case_passes(case: RestCase) -> None:
    outcome = check_rest(case)
    assert outcome.passed, outcome.reason


STATEMENTS = [
    "CREATE STREAM s (k INT KEY, v INT) WITH (kafka_topic='s', value_format='JSON', partitions=1);",
    "SELECT v FROM s EMIT CHANGES LIMIT 1;",
]
INPUTS = [{"topic": "s", "key": 1, "value": {"v": 2}, "timestamp": 5}]
HEADER = {"header": {"schema": "`V` INTEGER"}}
END = {"finalMessage": "Limit Reached"}
WRONG = {
    "a row": [HEADER, {"row": {"columns": [3]}}, END],
    "a schema": [{"header": {"schema": "`V` BIGINT"}}, {"row": {"columns": [2]}}, END],
    "no end": [HEADER, {"row": {"columns": [2]}}],
    "a row too many": [HEADER, {"row": {"columns": [2]}}, {"row": {"columns": [2]}}, END],
}


@pytest.mark.parametrize("rows", WRONG.values(), ids=WRONG)
def test_case_that_expects_something_else_fails(rows: list[object], tmp_path: Path) -> None:
    responses = [{"admin": {"@type": "currentStatus"}}, {"query": rows}]
    node = {"name": "wrong", "statements": STATEMENTS, "inputs": INPUTS, "responses": responses}
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"tests": [node]}))
    assert not check_rest(read_rest_file(file)[0]).passed


@pytest.mark.parametrize("expected", [{"message": "another"}, {"message": "", "status": 500}])
def test_case_that_expects_another_refusal_fails(expected: dict[str, object], tmp_path: Path) -> None:
    node = {"name": "wrong", "statements": ["SELECT * FROM nowhere;"], "expectedError": expected}
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"tests": [node]}))
    assert not check_rest(read_rest_file(file)[0]).passed
