"""A run of the SQL editor on a server: answers, rows as they come, the end of a query that waits, refusals."""

from __future__ import annotations

from moldau.console.sql_run import Run
from moldau.sql.shell.remote import Scope
from moldau.testing import eventually
from moldau.testing.sql import EARLIEST, Ksql


def started(ksql: Ksql, *statements: str) -> Run:
    return Run(ksql.url, statements, Scope(dict(EARLIEST))).start()


def test_rows_come_until_the_run_is_stopped(ksql: Ksql) -> None:
    ksql.execute("CREATE STREAM edited (v INT) WITH (kafka_topic='edited', value_format='JSON', partitions=1);")
    run = started(ksql, "SHOW TYPES", "SELECT v, v * 2 AS w FROM edited EMIT CHANGES", "SHOW STREAMS")
    eventually(lambda: run.columns == ["V", "W"])
    assert any("Type Name" in line for line, _ in run.lines)
    for number in (1, 2):
        ksql.execute(f"INSERT INTO edited VALUES ({number});")
        eventually(lambda: run.count == number)  # noqa: B023
    assert [values for _, values in run.rows] == [[1, 2], [2, 4]] and not run.done
    run.stop()
    eventually(lambda: run.done)
    assert not any("EDITED" in line for line, _ in run.lines)


def test_refusal_ends_the_run_and_is_explained(ksql: Ksql) -> None:
    ksql.execute("CREATE STREAM typed (amount INT) WITH (kafka_topic='typed', value_format='JSON', partitions=1);")
    run = started(ksql, "SELECT amont FROM typed EMIT CHANGES", "SHOW TYPES")
    eventually(lambda: run.done)
    assert ("       ^^^^^", "hint") in run.lines and run.lines[-1] == ("Did you mean AMOUNT?", "hint")
    away = Run("http://127.0.0.1:1", ["SELECT 1 FROM x"], Scope()).start()
    eventually(lambda: away.done)
    assert "does not answer" in away.lines[-1][0]
