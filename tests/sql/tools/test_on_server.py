"""Tools on a server: diff and apply, migrations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.cli import ksql as tools
from moldau.testing.sql import Ksql
from tests.cli.running import Moldau

FILE = """
CREATE TYPE apply_money AS DECIMAL(9, 2);
CREATE STREAM apply_pay (card STRING KEY, amount INT, m apply_money)
  WITH (kafka_topic='apply-pay', value_format='JSON', partitions=1);
CREATE STREAM apply_big AS SELECT card, amount FROM apply_pay WHERE amount > 100;
CREATE TABLE apply_spend AS SELECT card, SUM(amount) AS total FROM apply_big GROUP BY card;
"""


def test_file_is_compared_and_applied(ksql: Ksql, tmp_path: Path) -> None:
    file = tmp_path / "pay.sql"
    file.write_text(FILE)
    moldau = Moldau("127.0.0.1:1", tmp_path, MOLDAU_SQL_SERVER=ksql.url)

    def actions(verb: str) -> list[str]:
        return [row["action"] for row in json.loads(moldau.run("sql", verb, str(file), "-o", "json").out)]

    assert actions("diff") == ["create"] * 4
    assert "apply_pay" not in str(ksql.execute("SHOW STREAMS;")).lower()
    ksql.execute("CREATE TYPE apply_other AS STRUCT<a INT>;")  # so that the server's numbers are not those of the file
    applied = json.loads(moldau.run("sql", "apply", str(file), "-o", "json").out)
    assert [row["action"] for row in applied] == ["create"] * 4
    queries = {row["query"] for row in applied} - {""}
    assert queries == {one["id"] for one in ksql.execute("SHOW QUERIES;")[0]["queries"] if "_APPLY_" in one["id"]}
    done = moldau.run("sql", "diff", str(file))
    assert done.code == 0 and actions("diff") == ["unchanged"] * 4, done.out
    file.write_text(FILE.replace("> 100", "> 50"))
    done = moldau.run("sql", "diff", str(file))
    assert done.code == 3 and "CTAS_APPLY_SPEND" in done.out and actions("diff").count("replace") == 1, done.out
    file.write_text(FILE.replace("card, SUM(amount)", "amount, SUM(1)").replace("BY card", "BY amount"))
    done = moldau.run("sql", "apply", str(file))
    assert done.code == 3 and "Nothing was changed" in done.err and "Key columns must be identical" in done.out
    assert "does not answer" in moldau.run("sql", "diff", str(file), "--server", "http://127.0.0.1:1").err
    run = moldau.run("sql", "run", str(file), "-d", "x=1")
    assert run.code == 1 and "already registered" in run.out
    assert moldau.run("sql", "run", str(tmp_path / "nothing.sql")).code == 2
    assert moldau.run("sql", "--server", ksql.url, "run", str(file)).code == 2
    shown = moldau.run("sql", "-e", "SHOW ${what};", "-d", "what=STREAMS")
    assert shown.code == 0 and "APPLY_PAY" in shown.out
    assert moldau.run("sql", "-e", "SHOW NOTHING;").code == 1
    assert "without run" in moldau.run("sql", "-e", "SHOW STREAMS;", "run", str(file)).err


def test_migrations_are_applied_once_and_in_order(
    ksql: Ksql, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    config = project / "ksql-migrations.properties"

    def run(*words: str, code: int = 0) -> str:
        assert tools.run("ksql-migrations", list(words)) == code
        said = capsys.readouterr()
        return said.out + said.err

    def on(*words: str, code: int = 0) -> str:
        return run("-c", str(config), *words, code=code)

    assert "created successfully" in run("new-project", str(project), ksql.url)
    assert "exists already" in run("new-project", str(project), ksql.url, code=1)
    with config.open("a") as file:
        file.write("ksql.migrations.stream.topic.name=mig-events\nksql.migrations.table.topic.name=mig-versions\n")
    assert "initialize-metadata" in on("info", code=1)
    assert "initialized successfully" in on("initialize-metadata")
    on("create", "make payments")
    on("create", "use it")
    first, second = sorted((project / "migrations").iterdir())
    assert (first.name, second.name) == ("V000001__make_payments.sql", "V000002__use_it.sql")
    first.write_text(
        "CREATE STREAM mig_pay (card STRING KEY, note STRING)\n"
        "  WITH (kafka_topic='mig-pay', value_format='JSON', partitions=1);\n"
        "INSERT INTO mig_pay VALUES ('visa', '${note}; it''s');\n"
    )
    second.write_text("CREATE STREAM mig_wrong AS SELECT nothing FROM mig_pay;\n")
    assert "No migrations were actually applied" in on("apply", "--next", "--dry-run")
    assert "Successfully migrated" in on("apply", "-n", "-d", "note=hello")
    assert ksql.rows("SELECT note FROM mig_pay;") == [["hello; it's"]]
    assert "Current migration version: 1" in on("info")
    assert "NOTHING" in on("apply", "-a", code=1)
    assert "ERROR" in on("info") and "cannot be resolved" in on("info")
    second.write_text("CREATE STREAM mig_copy AS SELECT * FROM mig_pay;\n")
    assert "Successfully migrated" in on("apply", "--until", "2")
    assert on("info").count("MIGRATED") == 2 and "No eligible migrations" in on("apply", "-a")
    assert "validated" in on("validate")
    first.write_text("-- changed\n")
    assert "checksum" in on("validate", code=1)
    assert "cleaned successfully" in on("destroy-metadata") and "does not exist" in on("validate", code=1)
