"""The service in memory: commands, what SHOW and DESCRIBE answer, and queries that are paused, ended or fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from moldau.client import ClientError, Error
from moldau.operators.record import Produced
from moldau.sql.functions.registry import REGISTRY
from moldau.sql.server.errors import ServerError
from moldau.sql.server.service import Request, Service
from moldau.sql.server.topics import Checkpoints, MemoryTopics, Positions
from moldau.sql.steps import Run

PAY = "CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', value_format='JSON', partitions=2);"
SPEND = "CREATE TABLE spend AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(MemoryTopics(), settings={"auto.offset.reset": "earliest"}, clock=lambda: 1_000)
    yield made
    made.close()


def do(service: Service, *statements: str, **properties: Any) -> list[dict[str, Any]]:
    return service.execute(Request(" ".join(statements), properties))


def refusal(service: Service, text: str) -> ServerError:
    with pytest.raises(ServerError) as caught:
        do(service, text)
    return caught.value


def settle(service: Service) -> None:
    for _ in range(100):
        if not service.work():
            return
    raise AssertionError("the queries do not come to rest")


def pulled(service: Service, text: str) -> list[list[Any]]:
    settle(service)
    return [row.columns for row in service.query(Request(text)).poll()]


def test_statement_is_there_entirely_or_not_at_all(service: Service) -> None:
    do(service, PAY)
    error = refusal(service, "CREATE TABLE t AS SELECT card, nothing(amount) AS n FROM pay GROUP BY card;")
    assert (error.code, error.status) == (40001, 400)
    assert error.statement is not None and error.statement.startswith("CREATE TABLE t")
    assert set(service.engine.catalogue.sources) == {"PAY"} and service.topics.names() == ["pay"]
    assert service.running == {}


def test_sources_with_other_partitions_cannot_be_joined(service: Service) -> None:
    do(
        service,
        PAY,
        "CREATE STREAM seen (card STRING KEY) WITH (kafka_topic='seen', value_format='JSON', partitions=3);",
    )
    text = "CREATE STREAM j AS SELECT pay.card, amount FROM pay JOIN seen WITHIN 1 HOUR ON pay.card = seen.card;"
    assert (
        "the number of partitions don't match. `PAY` partitions = 2; `SEEN` partitions = 3."
        in refusal(service, text).message
    )
    assert service.topics.names() == ["pay", "seen"]


def test_statements_before_a_refusal_keep_their_answers(service: Service) -> None:
    error = refusal(service, PAY + "DROP TABLE nothing;")
    assert [entity["@type"] for entity in error.entities] == ["currentStatus"]
    assert "PAY" in service.engine.catalogue.sources


def test_missing_topic_is_refused_with_what_to_do(service: Service) -> None:
    error = refusal(service, "CREATE STREAM s (a INT) WITH (kafka_topic='none', value_format='JSON');")
    assert "Topic 'none' does not exist." in error.message and "PARTITIONS=1" in error.message


def test_explain_says_what_a_replacement_would_do(service: Service) -> None:
    do(service, PAY, SPEND, "CREATE TABLE rich AS SELECT * FROM spend WHERE total > 9;")
    more = SPEND.replace("CREATE", "EXPLAIN CREATE OR REPLACE").replace("AS total", "AS total, MAX(amount) AS most")
    said = [warning["message"] for warning in do(service, more)[0]["warnings"]]
    assert said == [
        "This would replace the query CTAS_SPEND_1. Its state: built anew from the records since the query began.",
        "Queries that read SPEND: CTAS_RICH_2.",
    ]
    assert [name for name, _ in service.engine.catalogue.source("SPEND").schema.value] == ["TOTAL"]
    same = do(service, SPEND.replace("CREATE", "EXPLAIN CREATE OR REPLACE"))[0]
    assert same["warnings"][0]["message"] == "SPEND would stay as it is."
    assert do(service, more, **{"ksql.dialect": "strict"})[0]["warnings"] == []
    known = service.engine.queries
    known["CTAS_SPEND_1"] = replace(known["CTAS_SPEND_1"], run=Run("spark"))
    assert "the aggregate functions of a query on Spark" in refusal(service, more).message


def test_query_has_the_number_of_its_command(service: Service) -> None:
    answers = do(service, PAY, SPEND)
    assert answers[1]["commandStatus"] == {
        "status": "SUCCESS",
        "message": "Created query with ID CTAS_SPEND_1",
        "queryId": "CTAS_SPEND_1",
    }
    assert answers[1]["commandId"] == "table/SPEND/create"
    assert service.topics.partitions("SPEND") == 2


def test_paused_query_stops_and_goes_on_where_it_was(service: Service) -> None:
    do(service, PAY, SPEND, "INSERT INTO pay VALUES ('a', 1);")
    assert pulled(service, "SELECT * FROM spend;") == [["a", 1]]
    do(service, "PAUSE CTAS_SPEND_1; INSERT INTO pay VALUES ('a', 2);")
    assert pulled(service, "SELECT * FROM spend;") == [["a", 1]]
    assert do(service, "SHOW QUERIES;")[0]["queries"][0]["state"] == "PAUSED:1"
    do(service, "RESUME CTAS_SPEND_1;")
    assert pulled(service, "SELECT * FROM spend;") == [["a", 3]]


def test_results_that_kafka_does_not_take_are_written_once_later(service: Service) -> None:
    do(service, PAY, "CREATE STREAM more AS SELECT card, amount + 1 AS amount FROM pay;")
    topics, refusals = service.topics, [True, False, True, False]
    take = topics.append

    def append(written: Any) -> None:
        if refusals.pop():
            raise ClientError(Error.REQUEST_TIMED_OUT, "not now")
        take(written)

    take([Produced("pay", 0, b"a", b'{"AMOUNT":%d}' % number, number) for number in range(3)])
    with patch.object(MemoryTopics, "append", lambda _, written: append(written)):
        service.work()
        take([Produced("pay", 0, b"a", b'{"AMOUNT":3}', 3)])
        with pytest.raises(ClientError):
            service.work()
        service.work()
    assert [row[1] for row in pulled(service, "SELECT * FROM more;")] == [1, 2, 3, 4] and refusals == [True]


def test_source_can_be_dropped_only_when_nobody_reads_it(service: Service) -> None:
    do(service, PAY, SPEND)
    assert (
        "The following streams and/or tables read from this source: [SPEND]"
        in refusal(service, "DROP STREAM pay;").message
    )
    do(service, "TERMINATE CTAS_SPEND_1;")
    assert service.running == {}
    do(service, "DROP TABLE spend DELETE TOPIC; DROP STREAM pay;")
    assert service.engine.catalogue.sources == {} and service.topics.names() == ["pay"]
    assert refusal(service, "TERMINATE CTAS_SPEND_1;").message == "Unknown queryId: CTAS_SPEND_1"


def test_variables_and_properties_hold_for_the_statements_after_them(service: Service) -> None:
    shown = do(service, "DEFINE place = 'pay';", PAY.replace("'pay'", "'${place}'"), "SHOW VARIABLES;")
    assert shown[1]["variables"] == [{"name": "PLACE", "value": "pay"}]
    assert service.engine.catalogue.sources["PAY"].topic == "pay"
    do(service, "SET 'auto.offset.reset' = 'latest';", "INSERT INTO pay VALUES ('a', 1);", SPEND)
    do(service, "INSERT INTO pay VALUES ('a', 5);")
    assert pulled(service, "SELECT * FROM spend;") == [["a", 5]]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SHOW STREAMS;", "streams"),
        ("SHOW TABLES EXTENDED;", "source_descriptions"),
        ("SHOW TOPICS;", "kafka_topics"),
        ("SHOW ALL TOPICS EXTENDED;", "kafka_topics_extended"),
        ("SHOW QUERIES EXTENDED;", "query_descriptions"),
        ("SHOW FUNCTIONS;", "function_names"),
        ("SHOW TYPES;", "type_list"),
        ("SHOW PROPERTIES;", "properties"),
        ("DESCRIBE spend EXTENDED;", "sourceDescription"),
        ("DESCRIBE STREAMS;", "source_descriptions"),
        ("DESCRIBE FUNCTION sum;", "describe_function"),
        ("EXPLAIN CTAS_SPEND_1;", "queryDescription"),
        ("EXPLAIN SELECT card FROM pay EMIT CHANGES;", "queryDescription"),
    ],
)
def test_answer_has_its_type(service: Service, statement: str, kind: str) -> None:
    do(service, PAY, SPEND)
    (answer,) = do(service, statement)
    assert answer["@type"] == kind and answer["statementText"] == statement


def test_description_has_columns_queries_and_topic(service: Service) -> None:
    do(service, PAY, SPEND)
    described = do(service, "DESCRIBE spend EXTENDED;")[0]["sourceDescription"]
    assert [(f["name"], f["schema"]["type"], f.get("type")) for f in described["fields"]] == [
        ("CARD", "STRING", "KEY"),
        ("TOTAL", "INTEGER", None),
    ]
    assert [query["id"] for query in described["writeQueries"]] == ["CTAS_SPEND_1"]
    assert (described["topic"], described["partitions"]) == ("SPEND", 2)


def test_function_is_described_with_names_and_words_of_types(service: Service) -> None:
    described = do(service, "DESCRIBE FUNCTION concat;")[0]
    (of_text,) = [one for one in described["functions"] if one["returnType"] == "VARCHAR"]
    assert [(one["type"], one["isVariadic"]) for one in of_text["arguments"]] == [("VARCHAR", True)]
    assert all(one["name"] for variation in described["functions"] for one in variation["arguments"])
    for name in REGISTRY.rows:
        text = str(do(service, f"DESCRIBE FUNCTION {name};"))
        assert "(name=" not in text and "object at" not in text


def test_push_query_is_explained_and_listed_as_what_was_asked(service: Service) -> None:
    do(service, PAY)
    explained = do(service, "EXPLAIN SELECT card FROM pay WHERE amount > 1 EMIT CHANGES;")[0]["queryDescription"]
    assert explained["statementText"] == "SELECT card FROM pay WHERE amount > 1 EMIT CHANGES;"
    assert (explained["sinks"], explained["queryType"], explained["consumerGroupId"]) == ([], "PUSH", None)
    assert "Sink:" not in explained["topology"]
    assert [line.split()[2] for line in explained["executionPlan"].splitlines()] == ["PROJECT", "FILTER", "SOURCE"]
    results = service.query(Request("SELECT card FROM pay EMIT CHANGES;"))
    rows = do(service, "SHOW QUERIES;")[0]["queries"]
    results.close()
    assert [(row["queryString"], row["queryType"]) for row in rows] == [("SELECT card FROM pay EMIT CHANGES;", "PUSH")]


def test_plan_of_a_query_begins_with_its_sink(service: Service) -> None:
    do(service, PAY, SPEND)
    lines = do(service, "EXPLAIN CTAS_SPEND_1;")[0]["queryDescription"]["executionPlan"].splitlines()
    names = [line.split("[ ")[1].split(" ]")[0] for line in lines]
    assert names == ["SINK", "PROJECT", "AGGREGATE", "GROUP_BY", "PROJECT", "SOURCE"]
    assert lines[0].endswith("| Logger: CTAS_SPEND_1.SPEND") and lines[-1].endswith("CTAS_SPEND_1.KsqlTopic.Source")
    assert [len(line) - len(line.lstrip("\t")) for line in lines] == [0, 2, 4, 6, 8, 10]


def test_properties_say_who_may_set_them_and_keep_secrets(service: Service) -> None:
    service.settings |= {"ksql.schema.registry.basic.auth.user.info": "me:hunter2", "sasl.jaas.config": "hunter2"}
    shown = do(service, "SET 'auto.offset.reset'='latest'; SHOW PROPERTIES;")[-1]
    rows = {row["name"]: row for row in shown["properties"]}
    assert rows["ksql.streams.auto.offset.reset"]["value"] == "latest"
    assert shown["overwrittenProperties"] == ["ksql.streams.auto.offset.reset"]
    assert rows["ksql.streams.auto.offset.reset"]["editable"] and not rows["ksql.service.id"]["editable"]
    assert rows["ksql.udfs.enabled"]["value"] == "true"
    assert "hunter2" not in str(shown)


def test_query_belongs_to_the_other_endpoint(service: Service) -> None:
    assert refusal(service, "SELECT * FROM pay;").code == 40002


def test_query_that_fails_stops_alone(service: Service) -> None:
    do(service, PAY, SPEND, "CREATE STREAM copy AS SELECT * FROM pay;")

    def broken(raws: Any) -> None:
        raise RuntimeError("no luck")

    service.running["CTAS_SPEND_1"].driver.feed = broken  # type: ignore[method-assign]
    do(service, "INSERT INTO pay VALUES ('a', 1);")
    settle(service)
    states = {row["id"]: row["state"] for row in do(service, "SHOW QUERIES;")[0]["queries"]}
    assert states == {"CTAS_SPEND_1": "ERROR:1", "CSAS_COPY_2": "RUNNING:1"}
    assert sum(service.topics.ends("COPY").values()) == 1


class Noted(Checkpoints):
    """Checkpoints that outlive a service."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[dict[str, Positions], dict[str, Positions]]] = {}

    def load(self, application: str) -> tuple[dict[str, Positions], dict[str, Positions]]:
        return self.known.get(application, ({}, {}))

    def save(self, application: str, origins: Any, done: Any) -> None:
        self.known[application] = (dict(origins), {topic: dict(parts) for topic, parts in done.items()})


def test_query_that_starts_again_has_its_state_and_writes_nothing_twice() -> None:
    topics, noted = MemoryTopics(), Noted()
    topics.create("pay", 2, 1, {})
    topics.append([Produced("pay", None, b"a", b'{"AMOUNT": 100}', 0)])  # before the query: it begins at the latest
    first = Service(topics, checkpoints=noted)
    do(first, PAY, SPEND, "INSERT INTO pay VALUES ('a', 1);")
    settle(first)
    first.close()
    second = Service(topics, checkpoints=noted)
    do(second, PAY, SPEND, "INSERT INTO pay VALUES ('a', 2);")
    settle(second)
    written = [raw.value for raw in topics.read("SPEND", {})]
    assert written == [b'{"TOTAL":1}', b'{"TOTAL":3}']
    second.close()


def test_server_that_is_not_chosen_runs_no_queries_but_answers() -> None:
    topics = MemoryTopics()
    chosen, other = Service(topics, settings={"auto.offset.reset": "earliest"}), Service(topics, runs=lambda: False)
    for each in (chosen, other):
        do(each, PAY, SPEND)
    do(other, "INSERT INTO pay VALUES ('a', 4);")
    settle(chosen)
    assert other.running == {} and pulled(other, "SELECT * FROM spend WHERE card = 'a';") == [["a", 4]]
    chosen.close()


def test_format_that_needs_a_registry_is_refused_without_one(service: Service) -> None:
    service.topics.create("t", 1, 1, {})
    error = refusal(service, "CREATE STREAM t WITH (kafka_topic='t', value_format='AVRO');")
    assert "ksql.schema.registry.url" in error.message


def test_example_of_the_docs_does_what_they_say(service: Service) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql-server.md").read_text("utf-8")
    statements, answer = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("sql", "json"))
    do(service, statements)
    settle(service)
    results = service.query(Request("SELECT * FROM spend WHERE card = 'visa-1';"))
    header, row = json.loads(answer)
    assert header["header"]["schema"] == results.schema
    assert row["row"]["columns"] == results.poll()[0].columns


def test_two_thousand_columns_are_a_source_and_a_query(service: Service) -> None:
    columns = ", ".join(f"c{number} INT" for number in range(2_000))
    do(service, f"CREATE STREAM wide ({columns}) WITH (kafka_topic='w', format='JSON', partitions=1);")
    do(service, "CREATE STREAM copied AS SELECT * FROM wide;")
    service.topics.append([Produced("w", 0, None, b'{"C0":1,"C1999":2}', 5)])
    (row,) = pulled(service, "SELECT * FROM copied;")
    assert (len(row), row[0], row[1], row[-1]) == (2_000, 1, None, 2)


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a\\", "}, boom(", "v0", "row", "a\nb", "é", "{0}", "quoted"])
def test_name_with_any_letters_is_only_a_name(service: Service, name: str) -> None:
    """No text of a user reaches generated code: neither that of expressions nor that of JSON and aggregates."""
    do(
        service,
        f"CREATE STREAM odd (k STRING KEY, `{name}` STRING) WITH (kafka_topic='o', value_format='JSON', partitions=1);",
        f"CREATE TABLE kept AS SELECT k, LATEST_BY_OFFSET(UCASE(`{name}`)) AS `{name}`, COUNT(*) AS n "
        f"FROM odd WHERE `{name}` <> 'z' GROUP BY k;",
    )
    service.topics.append([Produced("o", 0, b"x", json.dumps({name: "y"}).encode(), 5)])
    assert pulled(service, f"SELECT `{name}`, n FROM kept WHERE k = 'x';") == [["Y", 1]]
