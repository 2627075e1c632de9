"""Statements that ask others (ASSERT, connectors, PRINT), that replace queries, and those beyond ksqlDB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.operators.record import Produced
from moldau.serdes.registry import RegistryError, Schema
from moldau.sql.functions.python_functions import unload
from moldau.sql.local_registry import LocalRegistry
from moldau.sql.parser import parse
from moldau.sql.plan_json import decoded, encoded
from moldau.sql.printer import statement_text
from moldau.sql.server.limits import Admission, Limits
from moldau.sql.server.printing import NOTHING_YET, Guess, Printing, candidates
from moldau.sql.server.service import Request, Service
from moldau.sql.server.topics import MemoryTopics
from moldau.sql.shell import entities
from moldau.sql.tree import PrintTopic
from tests.sql.test_service import PAY, SPEND, do, refusal, settle

USERS = (
    "CREATE TABLE users (id INT PRIMARY KEY, name STRING, town INT) WITH (kafka_topic='users', format='JSON',"
    " partitions=1);"
)
TOWNS = (
    "CREATE TABLE towns (id INT PRIMARY KEY, title STRING, land INT) WITH (kafka_topic='towns', format='JSON',"
    " partitions=1);"
)
LANDS = "CREATE TABLE lands (id INT PRIMARY KEY, label STRING) WITH (kafka_topic='lands', format='JSON', partitions=1);"
QUICK = {"ksql.assert.topic.default.timeout.ms": "0", "ksql.assert.schema.default.timeout.ms": "0"}  # ms


@pytest.fixture
def service() -> Iterator[Service]:
    settings = {"auto.offset.reset": "earliest", **QUICK}
    made = Service(MemoryTopics(), LocalRegistry(), settings, clock=lambda: 1_000)
    yield made
    made.close()


def pulled(service: Service, text: str) -> list[list[Any]]:
    settle(service)
    results = service.query(Request(text))
    found = [row.columns for row in results.poll()]
    results.close()
    return found


def pushed(service: Service, text: str, **properties: Any) -> list[list[Any]]:
    results = service.query(Request(text, {"auto.offset.reset": "earliest", **properties}))
    found = [row.columns for _ in range(3) for row in ([] if results.done else results.poll())]
    results.close()
    return found


# ASSERT


def test_assertion_about_a_topic(service: Service) -> None:
    do(service, PAY)
    answer = do(service, "ASSERT TOPIC pay WITH (PARTITIONS=2, REPLICAS=1);", "ASSERT NOT EXISTS TOPIC other;")
    assert [(each["@type"], each["topicName"], each["exists"]) for each in answer] == [
        ("assert_topic", "pay", True),
        ("assert_topic", "other", False),
    ]
    for text, message in (
        ("ASSERT TOPIC other;", "Topic other does not exist"),
        ("ASSERT NOT EXISTS TOPIC pay;", "Topic pay exists"),
        ("ASSERT TOPIC pay WITH (PARTITIONS=3);", "For config partitions, expected 3 got 2"),
        ("ASSERT TOPIC pay WITH (COLOUR=3);", "Cannot assert topic property COLOUR"),
    ):
        error = refusal(service, text)
        assert (error.code, error.status) == (41700, 417) and message in error.message


def test_assertion_about_a_schema(service: Service) -> None:
    service.registry.register("pay-value", Schema("AVRO", '"string"'), False)
    answer = do(service, "ASSERT SCHEMA SUBJECT 'pay-value' ID 1;", "ASSERT NOT EXISTS SCHEMA ID 7;")
    assert [(each["subject"], each["id"], each["exists"]) for each in answer] == [
        ("pay-value", 1, True),
        (None, 7, False),
    ]
    assert refusal(service, "ASSERT SCHEMA SUBJECT other;").message == "Schema with subject name other does not exist"
    assert refusal(service, "ASSERT NOT EXISTS SCHEMA ID 1;").code == 41700
    assert "needs a schema registry" in refusal(Service(MemoryTopics()), "ASSERT SCHEMA ID 1;").message


def test_schemas_come_with_their_source_and_go_with_its_topic(service: Service) -> None:
    registry = service.registry
    do(
        service,
        "CREATE STREAM bought (k INT KEY, amount INT) WITH (kafka_topic='bought', format='AVRO', partitions=1);",
        "CREATE TABLE sums WITH (value_format='JSON_SR') AS SELECT k, SUM(amount) AS total FROM bought GROUP BY k;",
    )
    assert set(registry.subjects) == {"bought-key", "bought-value", "SUMS-key", "SUMS-value"}
    assert json.loads(registry.latest("bought-value").schema.text)["fields"][0]["name"] == "AMOUNT"
    again = "CREATE STREAM same (k INT KEY, cost INT) WITH (kafka_topic='bought', format='AVRO');"
    do(service, again)
    assert len(registry.subjects["bought-value"]) == 1, "a subject that is there keeps its schemas"
    do(service, "DROP TABLE sums DELETE TOPIC; DROP STREAM same;")
    assert set(registry.subjects) == {"bought-key", "bought-value"}


def test_source_whose_schema_is_not_taken_is_not_made(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RegistryError("not today", 409, 409)

    do(service, PAY)
    before = service.topics.names()
    monkeypatch.setattr(LocalRegistry, "register", refuse)
    for text in (
        "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='AVRO', partitions=1);",
        "CREATE STREAM s WITH (value_format='PROTOBUF') AS SELECT * FROM pay;",
    ):
        assert refusal(service, text).message == "Could not register schema for topic: not today"
    assert service.topics.names() == before and set(service.engine.catalogue.sources) == {"PAY"}
    alone = Service(MemoryTopics())
    text = "CREATE STREAM s (v INT) WITH (kafka_topic='s', value_format='AVRO', partitions=1);"
    assert "without configuring 'ksql.schema.registry.url'" in refusal(alone, text).message


def test_assertion_waits_until_its_time_is_over(service: Service) -> None:
    calls: list[str] = []

    class Slow(MemoryTopics):
        def partitions(self, topic: str) -> int:
            calls.append(topic)
            return 1 if len(calls) > 2 else 0

    service.topics = Slow()
    assert do(service, "ASSERT TOPIC late TIMEOUT 10 MINUTES;")[0]["exists"] is True
    assert len(calls) == 3


# PRINT


def lines(statement: PrintTopic, topics: MemoryTopics, registry: Any = None) -> list[str]:
    return Printing.of(statement, topics, registry).poll()


def test_print_names_the_formats_that_fit(service: Service) -> None:
    topics = MemoryTopics()
    topics.append([Produced("t", None, b"k", b'{"a": 12}', 86_400_000), Produced("t", None, None, None, 86_400_001)])
    assert lines(PrintTopic("t", True), topics) == [
        "Key format: KAFKA_STRING",
        "Value format: JSON or KAFKA_STRING",
        'rowtime: 1970/01/02 00:00:00.000 Z, key: k, value: {"a": 12}, partition: 0',
        "rowtime: 1970/01/02 00:00:00.001 Z, key: <null>, value: <null>, partition: 0",
    ]
    assert lines(PrintTopic("t", True, 2, 1), topics)[-1].startswith("rowtime: 1970/01/02 00:00:00.000 Z")
    assert lines(PrintTopic("t", False), topics) == []


def test_print_ends_at_its_limit_and_goes_on_where_it_was() -> None:
    topics = MemoryTopics()
    topics.append([Produced("t", None, None, str(n).encode(), n) for n in range(3)])
    printing = Printing.of(PrintTopic("t", True, None, 4), topics, None)
    assert len(printing.poll()) == 5 and not printing.done  # two lines of formats
    assert printing.said["Key"] == NOTHING_YET
    topics.append([Produced("t", None, None, b"9", 9), Produced("t", None, None, b"10", 10)])
    assert [line.split("value: ")[1] for line in printing.poll()] == ["9, partition: 0"] and printing.done


@pytest.mark.parametrize(
    ("data", "names", "text"),
    [
        (b"\0\0\0\5", "KAFKA_INT or KAFKA_STRING", "5"),
        (b"\0\0\0\0\0\0\0\5", "KAFKA_BIGINT or KAFKA_DOUBLE or KAFKA_STRING", "5"),
        (b"ab" + (1_600_000_000_000).to_bytes(8, "big"), "HOPPING(KAFKA_STRING) or TUMBLING(KAFKA_STRING)", "[ab@16"),
        (b"\xff", "UNRECOGNIZED_BYTES", "\\xFF"),
    ],
)
def test_bytes_are_shown_by_the_first_format_that_reads_them(data: bytes, names: str, text: str) -> None:
    guess = Guess(candidates(None, "key"))
    assert guess.text(data).startswith(text) and guess.names == names


def test_print_reads_what_has_a_schema() -> None:
    registry = LocalRegistry()
    schema = {"type": "record", "name": "R", "fields": [{"name": "A", "type": "int"}]}
    registry.register("t-value", Schema("AVRO", json.dumps(schema)), False)
    guess = Guess(candidates(registry, "value"))
    assert guess.text(b"\0\0\0\0\1\4") == '{"A": 2}' and guess.names.startswith("AVRO")


# CREATE OR REPLACE


def test_query_is_replaced_under_its_id(service: Service) -> None:
    do(service, PAY, "CREATE STREAM big AS SELECT * FROM pay WHERE amount > 10;", "INSERT INTO pay VALUES ('a', 5);")
    do(service, "INSERT INTO pay VALUES ('a', 11);")
    settle(service)
    answer = do(service, "CREATE OR REPLACE STREAM big AS SELECT card, amount, card + '!' AS c FROM pay;")[0]
    assert answer["commandStatus"]["queryId"] == "CSAS_BIG_1"
    do(service, "INSERT INTO pay VALUES ('a', 6);")
    assert pulled(service, "SELECT * FROM big;") == [["a", 11, None], ["a", 6, "a!"]]
    assert set(service.running) == {"CSAS_BIG_1"}
    assert [row["id"] for row in do(service, "DESCRIBE pay;")[0]["sourceDescription"]["readQueries"]] == ["CSAS_BIG_1"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (SPEND, "SELECT card, MAX(amount) AS total FROM pay GROUP BY card", "aggregate functions. Values differ"),
        (SPEND, "SELECT card, COUNT(*) AS total FROM pay GROUP BY card", "The following columns are changed, missing"),
        (SPEND, "SELECT amount, SUM(amount) AS total FROM pay GROUP BY amount", "Key columns must be identical"),
        (
            "CREATE TABLE spend AS SELECT card, COUNT(*) AS n FROM pay WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY card;",
            "SELECT card, COUNT(*) AS n FROM pay WINDOW TUMBLING (SIZE 1 HOUR) WHERE amount > 0 GROUP BY card",
            "Upgrades not yet supported for StreamWindowedAggregate",
        ),
    ],
)
def test_replacement_that_state_does_not_fit_is_refused(
    service: Service, before: str, after: str, message: str
) -> None:
    do(service, PAY, before)
    assert message in refusal(service, f"CREATE OR REPLACE TABLE spend AS {after};").message
    assert service.engine.queries["CTAS_SPEND_1"].text.startswith("CREATE TABLE SPEND")


def test_replacement_of_a_join_or_of_another_source_is_refused(service: Service) -> None:
    do(service, PAY, PAY.replace("STREAM pay", "STREAM pay2").replace("'pay'", "'pay2'"), USERS)
    do(service, "CREATE STREAM a AS SELECT * FROM pay;")
    assert (
        "matching topicName. Values differ: pay vs. pay2"
        in refusal(service, "CREATE OR REPLACE STREAM a AS SELECT * FROM pay2;").message
    )
    joined = "SELECT p.card, p.amount, q.amount AS other FROM pay p JOIN pay2 q WITHIN 1 HOUR ON p.card = q.card"
    do(service, f"CREATE STREAM j AS {joined};")
    assert refusal(service, f"CREATE OR REPLACE STREAM j AS {joined} WHERE p.amount > 1;").message == (
        "Upgrades not yet supported for StreamStreamJoin"
    )


def test_source_may_only_get_more_columns(service: Service) -> None:
    do(service, PAY)
    make = "CREATE OR REPLACE STREAM pay (card STRING KEY, {}) WITH (kafka_topic='pay', value_format='{}');"
    do(service, make.format("amount INT, more INT", "JSON"))
    assert "[`MORE` INTEGER]" in refusal(service, make.format("amount INT", "JSON")).message
    assert (
        "has valueFormat = JSON which is not upgradeable to AVRO"
        in refusal(service, make.format("amount INT, more INT", "AVRO")).message
    )


# Functions, system settings, connectors


def test_function_comes_from_a_file_of_the_folder(service: Service, tmp_path: Path) -> None:
    file = "from moldau.sql import scalar\n@scalar\ndef twice_of_it(n: int) -> int:\n    return n * {}\n"
    (tmp_path / "f.py").write_text(file.format(2), "utf-8")
    (tmp_path.parent / "outside.py").write_text(file.format(9), "utf-8")
    assert "no folder of functions" in refusal(service, "CREATE FUNCTION twice_of_it FROM 'f.py';").message
    sneaking = f"SET 'ksql.extension.dir'='{tmp_path}'; CREATE FUNCTION twice_of_it FROM 'f.py';"
    assert "prohibited by the KSQL server" in refusal(service, sneaking).message
    service.engine.folder = str(tmp_path)
    try:
        do(service, "CREATE FUNCTION twice_of_it FROM 'f.py';", PAY, "INSERT INTO pay VALUES ('a', 4);")
        assert pulled(service, "SELECT twice_of_it(amount) FROM pay;") == [[8]]
        assert "already" in refusal(service, "CREATE FUNCTION twice_of_it FROM 'f.py';").message
        (tmp_path / "f.py").write_text(file.format(3), "utf-8")
        do(service, "CREATE OR REPLACE FUNCTION twice_of_it FROM 'f.py';")
        assert pulled(service, "SELECT twice_of_it(amount) FROM pay;") == [[12]]
        do(service, "CREATE STREAM s AS SELECT card, twice_of_it(amount) AS t FROM pay;")
        assert "[CSAS_S_3] call it" in refusal(service, "DROP FUNCTION twice_of_it;").message
        do(service, "TERMINATE ALL;", "DROP FUNCTION twice_of_it;", "DROP FUNCTION IF EXISTS twice_of_it;")
        assert "TWICE_OF_IT" in refusal(service, "EXPLAIN SELECT twice_of_it(amount) FROM pay;").message.upper()
        for name, text in (
            ("FROM '../outside.py'", "without a path"),
            ("FROM 'none.py'", "no file none.py"),
            ("x FROM 'f.py'", "declares no function"),
        ):
            statement = f"CREATE FUNCTION {'' if name[0] == 'x' else 'twice_of_it '}{name};"
            assert text in refusal(service, statement).message
        assert (
            "There is a function ABS already" in refusal(service, "CREATE FUNCTION abs FROM 'f.py';").message
            or "declares no function ABS" in refusal(service, "CREATE FUNCTION abs FROM 'f.py';").message
        )
        service.settings["ksql.udfs.enabled"] = "false"
        assert "switched off" in refusal(service, "CREATE FUNCTION twice_of_it FROM 'f.py';").message
    finally:
        unload("TWICE_OF_IT")


def test_system_setting_is_altered_for_all_requests(service: Service) -> None:
    do(service, PAY, SPEND, "ALTER SYSTEM 'ksql.query.pull.table.scan.enabled'='false';")
    assert "Missing WHERE clause" in refused_query(service, "SELECT * FROM spend;")
    assert "read when a server starts" in refusal(service, "ALTER SYSTEM 'ksql.service.id'='x';").message


def test_statements_about_connectors_need_connect(service: Service) -> None:
    for text in ("SHOW CONNECTORS;", "DROP CONNECTOR x;", "DESCRIBE CONNECTOR x;", "SHOW CONNECTOR PLUGINS;"):
        assert "'ksql.connect.url'" in refusal(service, text).message
    service.settings["ksql.connect.url"] = "http://127.0.0.1:1"
    assert "No worker at http://127.0.0.1:1" in refusal(service, "SHOW CONNECTORS;").message


# Beyond ksqlDB


def test_statements_beyond_ksqldb_print_as_they_parse() -> None:
    for text in (
        "WITH a AS (SELECT * FROM s WHERE x > 1), b AS (SELECT y FROM a) SELECT * FROM b EMIT CHANGES LIMIT 3;",
        "SELECT DISTINCT a, b FROM s WINDOW TUMBLING (SIZE 1 HOUR) EMIT CHANGES;",
        "CREATE STREAM x AS SELECT a FROM s UNION ALL SELECT b FROM (SELECT c AS b FROM t) AS u EMIT CHANGES;",
        "CREATE OR REPLACE VIEW v AS SELECT a FROM s;",
        "DROP VIEW IF EXISTS v;",
        "DELETE FROM t WHERE k = 1 AND l = 'x';",
        "CREATE FUNCTION IF NOT EXISTS f FROM 'x.py';",
        "DROP FUNCTION f;",
    ):
        printed = statement_text(parse(text)[0])
        assert statement_text(parse(printed)[0]) == printed


def test_subquery_becomes_a_part_of_the_query_around_it(service: Service) -> None:
    do(service, PAY, *(f"INSERT INTO pay VALUES ('{c}', {n});" for c, n in (("a", 1), ("b", 20), ("a", 30))))
    text = (
        "WITH large AS (SELECT card AS c, amount * 2 AS twice FROM pay WHERE amount > 10) "
        "SELECT x.c, x.twice + 1 AS more, ROWTIME FROM large x WHERE x.c = 'a' EMIT CHANGES LIMIT 1;"
    )
    assert pushed(service, text) == [["a", 61, 1_000]]
    do(
        service,
        "CREATE TABLE sums AS SELECT c, SUM(twice) AS s FROM (SELECT card AS c, amount * 2 AS twice FROM pay)"
        " AS d GROUP BY c EMIT CHANGES;",
    )
    assert sorted(pulled(service, "SELECT * FROM sums;")) == [["a", 62], ["b", 40]]
    assert pushed(service, "SELECT * FROM (SELECT amount AS n, card FROM pay) d EMIT CHANGES LIMIT 1;") in (
        [[1, "a"]],
        [[20, "b"]],
    )
    assert "Column 'AMOUNT' cannot be resolved" in refused_query(
        service, "SELECT amount FROM (SELECT card FROM pay) d EMIT CHANGES;"
    )
    assert "has aggregates" in refused_query(
        service, "SELECT * FROM (SELECT card, COUNT(*) AS n FROM pay GROUP BY card) d EMIT CHANGES;"
    )


def refused_query(service: Service, text: str) -> str:
    with pytest.raises(Exception) as caught:
        service.query(Request(text))
    return str(caught.value)


def test_subquery_is_a_side_of_a_join(service: Service) -> None:
    do(service, USERS, TOWNS, "INSERT INTO users VALUES (1, 'ann', 5);", "INSERT INTO towns VALUES (1, 'x', 2);")
    do(
        service,
        "CREATE TABLE j AS SELECT u.id AS id, u.loud AS loud, t.title AS title FROM"
        " (SELECT id, UCASE(name) AS loud FROM users WHERE town > 3) u JOIN towns t ON u.id = t.id;",
    )
    do(service, "INSERT INTO users VALUES (2, 'bob', 1);", "INSERT INTO towns VALUES (2, 'y', 2);")
    assert pulled(service, "SELECT * FROM j;") == [[1, "ANN", "x"]]
    text = (
        "CREATE TABLE k AS SELECT t.id, t.title FROM towns t LEFT JOIN (SELECT id FROM users WHERE town > 3) u"
        " ON t.id = u.id;"
    )
    assert "would apply too late" in refusal(service, text).message


def test_view_is_a_name_for_a_query(service: Service) -> None:
    do(service, PAY, "CREATE VIEW large AS SELECT card, amount FROM pay WHERE amount > 10;")
    do(service, "CREATE VIEW larger AS SELECT * FROM large WHERE amount > 20;")
    do(service, "CREATE STREAM out AS SELECT * FROM larger;", "INSERT INTO pay VALUES ('a', 15);")
    do(service, "INSERT INTO pay VALUES ('a', 25);")
    assert pulled(service, "SELECT * FROM out;") == [["a", 25]]
    assert pulled(service, "SELECT * FROM large;") == [["a", 15], ["a", 25]]
    assert service.topics.names() == ["OUT", "pay"]
    assert "the views [LARGER] read it" in refusal(service, "DROP VIEW large;").message
    assert "A view with the same name" in refusal(service, "CREATE STREAM large AS SELECT * FROM pay;").message
    assert "A stream with the same name" in refusal(service, "CREATE VIEW pay AS SELECT * FROM out;").message
    assert "cannot read itself" in refusal(service, "CREATE VIEW v AS SELECT * FROM v;").message
    do(service, "DROP VIEW larger; DROP VIEW large; DROP VIEW IF EXISTS large;")
    assert "does not exist" in refusal(service, "DROP VIEW large;").message


def test_union_all_has_the_rows_of_both(service: Service) -> None:
    do(service, PAY, PAY.replace("STREAM pay", "STREAM pay2").replace("'pay'", "'pay2'"))
    do(service, "CREATE STREAM all_of AS SELECT * FROM pay UNION ALL SELECT card, amount * 10 AS amount FROM pay2;")
    do(service, "INSERT INTO pay VALUES ('a', 1);", "INSERT INTO pay2 VALUES ('b', 2);")
    assert sorted(pulled(service, "SELECT * FROM all_of;")) == [["a", 1], ["b", 20]]
    assert set(service.engine.queries) == {"CSAS_ALL_OF_2", "CSAS_ALL_OF_UNION1_2"}
    found = pushed(service, "SELECT card FROM pay UNION ALL SELECT card FROM pay2 EMIT CHANGES LIMIT 2;")
    assert sorted(found) == [["a"], ["b"]] and service.pushes == {}
    assert "columns of the same types" in refused_query(
        service, "SELECT card FROM pay UNION ALL SELECT amount FROM pay2 EMIT CHANGES;"
    )
    assert service.pushes == {}
    do(service, "DROP STREAM all_of;")
    assert service.engine.queries == {}


def test_distinct_rows_of_a_window(service: Service) -> None:
    do(service, PAY)
    query = "SELECT DISTINCT card, amount FROM pay WINDOW TUMBLING (SIZE 1 HOUR)"
    do(service, f"CREATE TABLE d WITH (key_format='JSON') AS {query};")
    do(service, *(f"INSERT INTO pay VALUES ('a', {n});" for n in (1, 1, 2)))
    assert sorted(pulled(service, "SELECT card, amount, occurrences FROM d;")) == [["a", 1, 2], ["a", 2, 1]]
    assert "needs EMIT FINAL" in refused_query(
        service, "SELECT DISTINCT card FROM pay WINDOW TUMBLING (SIZE 1 HOUR) EMIT CHANGES;"
    )
    assert "needs a WINDOW" in refusal(service, "CREATE TABLE e AS SELECT DISTINCT card FROM pay;").message


def test_sliding_windows_hold_what_is_near_each_other(service: Service) -> None:
    query = "SELECT card, SUM(amount) AS total FROM pay WINDOW SLIDING (SIZE 10 SECONDS, GRACE PERIOD 1 HOUR)"
    do(service, PAY, f"CREATE TABLE near AS {query} GROUP BY card;")
    for at, amount in ((20_000, 1), (25_000, 2), (40_000, 4)):
        do(service, f"INSERT INTO pay (rowtime, card, amount) VALUES ({at}, 'a', {amount});")
    assert sorted(pulled(service, "SELECT windowstart, windowend, total FROM near WHERE card = 'a';")) == [
        [10_000, 20_000, 1],
        [15_000, 25_000, 3],
        [20_001, 30_001, 2],
        [30_000, 40_000, 4],
    ]
    assert "SLIDING ( SIZE 10 SECONDS" in service.engine.queries["CTAS_NEAR_1"].text


def test_several_foreign_key_joins_in_one_query(service: Service) -> None:
    text = (
        "CREATE TABLE all3 AS SELECT u.id, u.name, t.title, l.label FROM users u JOIN towns t ON u.town = t.id"
        " JOIN lands l ON t.land = l.id;"
    )
    do(service, USERS, TOWNS, LANDS, text)
    do(service, "INSERT INTO users VALUES (1, 'ann', 5);", "INSERT INTO lands VALUES (7, 'CZ');")
    do(service, "INSERT INTO towns VALUES (5, 'Tabor', 7);")
    assert pulled(service, "SELECT * FROM all3;") == [[1, "ann", "Tabor", "CZ"]]
    do(service, "INSERT INTO lands VALUES (7, 'Cesko');")
    assert pulled(service, "SELECT * FROM all3;") == [[1, "ann", "Tabor", "Cesko"]]
    service.settings["ksql.dialect"] = "strict"
    assert "as part of n-way joins" in refusal(service, text.replace("all3", "b")).message


def test_delete_writes_a_tombstone(service: Service) -> None:
    do(service, USERS, "CREATE TABLE copy AS SELECT * FROM users;", "INSERT INTO users VALUES (1, 'ann', 5);")
    assert pulled(service, "SELECT id FROM copy;") == [[1]]
    do(service, "DELETE FROM users WHERE id = 1;")
    assert pulled(service, "SELECT id FROM copy;") == []
    for text in ("DELETE FROM users WHERE name = 'x';", "DELETE FROM users WHERE id > 1;"):
        assert "of the form ID = ..." in refusal(service, text).message
    assert "A query fills COPY" in refusal(service, "DELETE FROM copy WHERE id = 1;").message


def test_table_with_a_history(service: Service) -> None:
    users = USERS.replace("partitions=1", "partitions=1, history='90 minutes'")
    do(
        service,
        PAY,
        users,
        "CREATE TABLE totals WITH (history='1 day') AS SELECT card, SUM(amount) FROM pay GROUP BY card;",
    )
    for name, length in (("users", "90 MINUTES"), ("totals", "1 DAY")):
        described = do(service, f"DESCRIBE {name} EXTENDED;")[0]
        assert described["sourceDescription"]["history"] == length
        assert any(line.split() == ["History", ":", *length.split()] for line in entities.lines(described))
    assert decoded(encoded(service.engine.catalogue.sources["USERS"])) == service.engine.catalogue.sources["USERS"]
    assert "history" not in do(service, "DESCRIBE pay EXTENDED;")[0]["sourceDescription"]
    service.settings["ksql.dialect"] = "strict"
    other = users.replace("TABLE users", "TABLE others")
    assert "Invalid config variable(s) in the WITH clause: HISTORY" in refusal(service, other).message


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT * FROM pay;",
        "DELETE FROM pay WHERE card = 'a';",
        "CREATE STREAM s AS SELECT * FROM (SELECT * FROM pay) p;",
        "CREATE STREAM s AS SELECT * FROM pay UNION ALL SELECT * FROM pay;",
        "CREATE TABLE s AS SELECT DISTINCT card FROM pay WINDOW TUMBLING (SIZE 1 HOUR);",
        "CREATE TABLE s AS SELECT card, COUNT(*) FROM pay WINDOW SLIDING (SIZE 1 HOUR) GROUP BY card;",
    ],
)
def test_strict_dialect_refuses_what_ksqldb_lacks(service: Service, text: str) -> None:
    do(service, PAY)
    service.settings["ksql.dialect"] = "strict"
    assert "ksql.dialect=strict" in refusal(service, text).message


# Full SQL in pull queries


@pytest.fixture
def shop(service: Service) -> Service:
    do(service, PAY, USERS, "CREATE TABLE people AS SELECT * FROM users;")
    do(
        service,
        "CREATE TABLE sums AS SELECT card, SUM(amount) AS total, COLLECT_LIST(amount) AS l FROM pay GROUP BY card;",
    )
    do(service, *(f"INSERT INTO pay VALUES ('{c}', {n});" for c, n in (("1", 10), ("2", 5), ("2", 7), ("3", 1))))
    do(service, "INSERT INTO users VALUES (1, 'ann', 5);", "INSERT INTO users VALUES (2, 'bob', 6);")
    settle(service)
    return service


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT SUM(total) AS s, COUNT(*) AS n FROM sums;", [[23, 3]]),
        ("SELECT card FROM sums ORDER BY total DESC LIMIT 2;", [["2"], ["1"]]),
        ("SELECT total > 5 AS big, MAX(total) AS m FROM sums GROUP BY 1 ORDER BY 1;", [[False, 1], [True, 12]]),
        (
            "SELECT p.name, s.total FROM people p JOIN sums s ON CAST(p.id AS VARCHAR) = s.card ORDER BY 1;",
            [["ann", 10], ["bob", 12]],
        ),
        ("SELECT name FROM people WHERE id = (SELECT MAX(id) FROM people);", [["bob"]]),
        ("WITH a AS (SELECT `CARD` AS c, l FROM sums) SELECT c, l[1] AS first FROM a WHERE len(l) > 1;", [["2", 5]]),
        ("SELECT card, RANK() OVER (ORDER BY total) AS r FROM sums ORDER BY r LIMIT 1;", [["3", 1]]),
        ("SELECT DISTINCT ROWTIME FROM sums;", [[1_000]]),
    ],
)
def test_full_sql_over_tables(shop: Service, text: str, rows: list[list[Any]]) -> None:
    assert pulled(shop, text) == rows


def test_full_sql_has_limits_and_no_way_out(shop: Service, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n", "utf-8")
    for text in (
        f"SELECT * FROM sums, read_csv('{tmp_path}/secret.csv');",
        f"SELECT s.* FROM sums s JOIN '{tmp_path}/secret.csv' x ON true;",
        f"SELECT card, (SELECT content FROM read_text('{tmp_path}/secret.csv')) FROM sums;",
    ):
        assert "secret" not in refused_query(shop, text).replace(str(tmp_path), "").replace("secret.csv", "")
    assert "Pull queries don't support JOIN" in refused_query(shop, "SELECT * FROM sums s JOIN nowhere n ON s.a = n.a;")
    assert "is a stream" in refused_query(shop, "SELECT COUNT(*) FROM sums, pay;")
    shop.admission = Admission(Limits(pull_rows=2))
    assert "more than 2 rows" in refused_query(shop, "SELECT card FROM sums ORDER BY 1;")
    shop.settings["ksql.dialect"] = "strict"
    assert "Full SQL" not in refused_query(shop, "SELECT card FROM sums ORDER BY 1;")


def test_full_sql_sees_changes(shop: Service) -> None:
    assert pulled(shop, "SELECT SUM(total) AS s FROM sums GROUP BY ALL;") == [[23]]
    do(shop, "INSERT INTO pay VALUES ('9', 100);")
    assert pulled(shop, "SELECT SUM(total) AS s FROM sums GROUP BY ALL;") == [[123]]
