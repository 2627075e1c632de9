"""Tests of SQL in SQL, triples of files, and the examples, run by `moldau sql test` and `ksql-test-runner`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.cli import ksql as tools
from moldau.sql.cases.files import NotCases
from moldau.sql.tools.sql_tests import check_sql, read_sql_tests
from tests.cli.running import Moldau

EXAMPLES = Path(__file__).parents[3] / "examples" / "sql"
SPEND = """
CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', value_format='JSON', partitions=4);
CREATE TABLE spend WITH (kafka_topic='S') AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;
"""
FED = SPEND + "INSERT INTO pay (card, amount) VALUES ('visa', 40);\nINSERT INTO pay VALUES ('visa', 2);\n"


def outcome(tmp_path: Path, text: str) -> str:
    """Return why a test fails; nothing if it passes."""
    file = tmp_path / "one.sql"
    file.write_text(f"--@test: one\n{text}")
    (test,) = read_sql_tests(file)
    found = check_sql(test)
    assert found.passed is not bool(found.reason)
    return found.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (FED + "ASSERT VALUES spend (card, total) VALUES ('visa', 40); ASSERT VALUES spend (total) VALUES (42);", ""),
        (FED + "ASSERT VALUES spend (card, total) VALUES ('visa', 41);", "SPEND.TOTAL is 40 instead of 41"),
        (FED + "ASSERT VALUES spend (sum) VALUES (40);", "SPEND has no column SUM"),
        (SPEND + "ASSERT VALUES spend (total) VALUES (40);", "SPEND has only 0 records"),
        (FED + "ASSERT NULL VALUES spend (card) KEY ('visa');", "and not a tombstone"),
        (
            SPEND
            + "ASSERT TABLE spend (card STRING PRIMARY KEY, total INT) WITH (kafka_topic='S', value_format='JSON');",
            "",
        ),
        (
            SPEND + "ASSERT TABLE spend (card STRING PRIMARY KEY, n INT) WITH (kafka_topic='S', format='JSON');",
            "SPEND has the schema",
        ),
        ("SET 'ksql.x'='1'; DEFINE t = 'pay';\nCREATE STREAM ${t} (a INT) WITH (kafka_topic='x', format='JSON');", ""),
        (SPEND + "CREATE STREAM pay (a INT) WITH (kafka_topic='x', format='JSON');", "refused: "),
        ("--@expected.message: same name already exists\n" + SPEND + SPEND, ""),
        ("--@expected.message: something else\n" + SPEND + SPEND, "expected: something else"),
        ("--@expected.error: io.confluent.ksql.util.KsqlException\n" + SPEND, "not refused"),
        ("RUN SCRIPT 'one.sql';", "may run each other"),
    ],
)
def test_sql_test_tells_what_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    found = outcome(tmp_path, text)
    assert reason in found and bool(found) is bool(reason)


def test_tombstone_of_a_table_is_asserted(tmp_path: Path) -> None:
    text = """
        CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (kafka_topic='t', format='JSON');
        CREATE TABLE big AS SELECT id, v FROM t WHERE v > 10;
        INSERT INTO t VALUES (1, 11); INSERT INTO t VALUES (1, 9);
        ASSERT VALUES big (id, v) VALUES (1, 11); ASSERT NULL VALUES big (id) KEY (1);
    """
    assert outcome(tmp_path, text) == ""


def test_examples_pass_and_are_linted(tmp_path: Path) -> None:
    moldau = Moldau("127.0.0.1:1", tmp_path)
    assert "5 of 5 cases passed." in moldau("sql", "test", str(EXAMPLES))
    files = [str(file) for file in sorted(EXAMPLES.glob("*.sql")) if file.name != "tests.sql"]
    assert len(files) == 4 and moldau("sql", "lint", *files) == ""


@pytest.fixture
def triple(tmp_path: Path) -> Path:
    folder = tmp_path / "spend"
    folder.mkdir()
    (folder / "statements.sql").write_text(SPEND)
    records = [{"topic": "pay", "key": "visa", "value": {"amount": amount}} for amount in (40, 2)]
    (folder / "input.json").write_text(json.dumps({"inputs": records}))
    totals = [{"topic": "S", "key": "visa", "value": {"TOTAL": total}} for total in (40, 42)]
    (folder / "output.json").write_text(json.dumps({"outputs": totals}))
    return folder


def test_triple_is_run_by_both_tools(triple: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-s", str(triple / "statements.sql"), "-i", str(triple / "input.json")]
    assert tools.run("ksql-test-runner", [*words, "-o", str(triple / "output.json")]) == 0
    assert capsys.readouterr().out == "\t >>> Test passed!\n"
    moldau = Moldau("127.0.0.1:1", tmp_path)
    assert "ok   spend: statements" in moldau("sql", "test", str(tmp_path))
    (triple / "output.json").write_text('{"outputs": [{"topic": "S", "key": "visa", "value": {"TOTAL": 7}}]}')
    assert tools.run("ksql-test-runner", [*words, "-o", str(triple / "output.json")]) == 1
    assert capsys.readouterr().out.startswith("\t >>>>> Test failed: ")
    assert moldau.run("sql", "test", str(tmp_path)).code == 3


def test_test_runner_runs_sql_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tools.run("ksql-test-runner", ["-td", str(EXAMPLES / "tests.sql")]) == 0
    assert tools.run("ksql-test-runner", ["-s", str(EXAMPLES / "tests.sql")]) == 0
    assert capsys.readouterr().out.count("Test passed!") == 10
    for words in (["-s", str(EXAMPLES / "vip_users.sql")], [], ["-s", "/nowhere", "-o", "/nowhere"]):
        assert tools.run("ksql-test-runner", words) == 1
    with pytest.raises(NotCases):
        read_sql_tests(EXAMPLES / "vip_users.sql")
