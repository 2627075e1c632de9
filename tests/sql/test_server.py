"""The server in a process of its own, on a real broker: endpoints, streams of rows and inserts, a second server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from moldau.client import Client, Fetcher, records
from moldau.operators.record import Produced
from moldau.sql.server.broker_topics import BrokerTopics
from moldau.testing import Broker
from tests.services import Service

WAIT_S = 60.0
EARLIEST = {"auto.offset.reset": "earliest"}
SERVICE_ID = "server_tests_"


class Sql:
    """A server and requests to it."""

    def __init__(self, broker: Broker, *options: str, service_id: str = SERVICE_ID) -> None:
        where = ("--bootstrap-servers", broker.bootstrap_servers, "--listen", "127.0.0.1:0")
        settings = (f"ksql.service.id={service_id}", "ksql.runtime=local")
        self.service = Service("sql", "server", *where, *options, settings=settings)
        self.http = self.service.http

    def do(self, text: str, after: int | None = None, **properties: Any) -> Any:
        """Execute statements, when the command with the number `after` has been executed."""
        body = {"ksql": text, "streamsProperties": {**EARLIEST, **properties}, "commandSequenceNumber": after}
        answer = self.http.post("/ksql", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def rows(self, text: str) -> list[Any]:
        """Return the parts of an answer of /query."""
        return self.http.post("/query", json={"ksql": text, "streamsProperties": EARLIEST}).json()

    def until(self, text: str, reached: Callable[[list[Any]], bool]) -> list[Any]:
        """Ask until an answer is as it should be."""
        deadline = time.monotonic() + WAIT_S
        while True:
            found = [part["row"]["columns"] for part in self.rows(text) if "row" in part]
            if reached(found):
                return found
            assert time.monotonic() < deadline, f"{text}: {found}"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def sql(kafka_shared: Broker) -> Iterator[Sql]:
    started = Sql(kafka_shared)
    yield started
    started.service.stop()


def test_server_tells_who_it_is(sql: Sql) -> None:
    about = sql.http.get("/", follow_redirects=True).json()["KsqlServerInfo"]
    assert about["ksqlServiceId"] == SERVICE_ID and about["serverStatus"] == "RUNNING"
    assert sql.http.get("/healthcheck").json()["isHealthy"] is True
    own = sql.http.get("/v1/metadata/id").json()
    assert own["scope"]["clusters"]["ksql-cluster"] == SERVICE_ID and own["id"] == ""
    assert sql.http.get("/v1/metadata").json()["clusterId"] == own
    assert sql.http.get("/is_valid_property/auto.offset.reset").json() is True
    assert sql.http.get("/is_valid_property/nonsense").json()["error_code"] == 40000


def test_statement_insert_pull_and_push(sql: Sql, kafka_shared: Broker) -> None:
    sql.do(
        "CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='t1', value_format='JSON', partitions=2);"
    )
    created = sql.do("CREATE TABLE spend1 AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;")[0]
    query_id = created["commandStatus"]["queryId"]
    assert query_id == f"CTAS_SPEND1_{created['commandSequenceNumber']}"
    assert sql.http.get("/status/table/SPEND1/create").json()["status"] == "SUCCESS"
    for amount in (1, 2, 3):
        sql.do(f"INSERT INTO pay VALUES ('a', {amount});")
    sql.until("SELECT total FROM spend1 WHERE card = 'a';", lambda rows: rows == [[6]])
    pushed = sql.rows("SELECT amount FROM pay EMIT CHANGES LIMIT 2;")
    assert pushed[0]["header"]["schema"] == "`AMOUNT` INTEGER" and pushed[-1] == {"finalMessage": "Limit Reached"}
    assert [part["row"]["columns"] for part in pushed[1:-1]] == [[1], [2]]
    sql.do(f"TERMINATE {query_id}; DROP TABLE spend1 DELETE TOPIC;")
    assert "SPEND1" not in [row["name"] for row in sql.do("SHOW TOPICS;")[0]["topics"]]


def test_command_topic_has_the_statements_in_order(sql: Sql, kafka_shared: Broker) -> None:
    sql.do("CREATE TYPE money AS DECIMAL(9, 2); DROP TYPE money;")
    topic = f"_confluent-ksql-{SERVICE_ID}_command_topic"
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as client:
        fetched = Fetcher(client).fetch({(topic, 0): 0})[topic, 0]
        found = [
            (record.key, json.loads(record.value or b"")) for batch in fetched.batches() for record in records(batch)
        ]
    keys = [key for key, _ in found]
    assert keys.index(b'"type/MONEY/drop"') == keys.index(b'"type/MONEY/create"') + 1
    assert found[keys.index(b'"type/MONEY/create"')][1]["statement"] == "CREATE TYPE money AS DECIMAL(9, 2);"


def test_rows_come_as_lines_while_the_query_runs(sql: Sql) -> None:
    sql.do("CREATE STREAM live (id INT KEY, v STRING) WITH (kafka_topic='t2', value_format='JSON', partitions=1);")
    with sql.http.stream("POST", "/query-stream", json={"sql": "SELECT * FROM live EMIT CHANGES;"}) as answer:
        lines = answer.iter_lines()
        header = json.loads(next(lines))
        assert (header["columnNames"], header["columnTypes"]) == (["ID", "V"], ["INTEGER", "STRING"])
        for number in (1, 2):
            sql.do(f"INSERT INTO live VALUES ({number}, 'x');")
            assert json.loads(next(lines)) == [number, "x"]
        assert sql.http.post("/close-query", json={"queryId": header["queryId"]}).status_code == 200
        assert [line for line in lines if line] == []
    assert sql.http.post("/close-query", json={"queryId": header["queryId"]}).status_code == 400


def test_inserts_are_acknowledged_one_by_one(sql: Sql) -> None:
    sql.do("CREATE STREAM fed (id INT KEY, v DECIMAL(4, 1)) WITH (kafka_topic='t3', format='JSON', partitions=1);")
    lines = ['{"target": "fed"}', '{"id": 1, "v": 2.5}', '{"ID": 2}', '{"id": 3, "other": 1}', '{"id": 4}']
    answer = sql.http.post("/inserts-stream", content="\n".join(lines))
    acknowledged = [json.loads(line) for line in answer.text.splitlines()]
    assert acknowledged[:2] == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert acknowledged[2]["status"] == "error" and "OTHER" in acknowledged[2]["message"].upper()
    assert len(acknowledged) == 3
    assert [part["row"]["columns"] for part in sql.rows("SELECT * FROM fed;") if "row" in part] == [[1, 2.5], [2, None]]
    assert sql.http.post("/inserts-stream", content='{"target": "nobody"}\n').json()["error_code"] == 40001


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/ksql", {"ksql": "CREATE NONSENSE;"}, 40001),
        ("/ksql", {"ksql": "SELECT * FROM x;"}, 40002),
        ("/ksql", {"nothing": 1}, 40000),
        ("/query", {"ksql": "SELECT * FROM nowhere;"}, 40001),
        ("/query-stream", {"sql": "SELECT * FROM nowhere EMIT CHANGES;"}, 40000),
        ("/query", {"ksql": "SHOW STREAMS;"}, 40001),
    ],
)
def test_refusal_has_its_code(sql: Sql, path: str, body: dict[str, Any], code: int) -> None:
    answer = sql.http.post(path, json=body)
    assert answer.status_code == 400 and answer.json()["error_code"] == code, answer.text


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b"[" * 2000])
def test_body_that_is_not_an_object_is_refused(sql: Sql, content: bytes) -> None:
    answer = sql.http.post("/ksql", content=content)
    assert answer.status_code == 400 and answer.json()["error_code"] == 40000


def created_types(server: Sql, name: str) -> list[int]:
    """Create five types one after the other, and return the numbers of the commands."""
    made = [server.do(f"CREATE TYPE {name}{number} AS STRUCT<a INT>;")[0] for number in range(5)]
    return [entity["commandSequenceNumber"] for entity in made]


def test_second_server_knows_all_and_takes_over(sql: Sql, kafka_shared: Broker) -> None:
    first = Sql(kafka_shared)  # with `sql` there are two; whichever runs the queries, nothing is lost or doubled
    try:
        first.do("CREATE STREAM both (k STRING KEY, v INT) WITH (kafka_topic='t4', value_format='JSON', partitions=2);")
        sql.do("CREATE TABLE sums AS SELECT k, SUM(v) AS s, COUNT(*) AS n FROM both GROUP BY k;")
        for number in range(10):
            (first if number % 2 else sql).do(f"INSERT INTO both VALUES ('k{number % 3}', {number});")
        wanted = [["k0", 18, 4], ["k1", 12, 3], ["k2", 15, 3]]
        for server in (first, sql):
            server.until("SELECT * FROM sums;", lambda rows: sorted(rows) == wanted)
        with ThreadPoolExecutor(2) as pool:  # statements that are sent to both come out in one order
            sent = list(pool.map(created_types, (first, sql), ("one", "two")))
        assert all(numbers == sorted(numbers) for numbers in sent) and len({*sent[0], *sent[1]}) == 10
        known = [server.do("SHOW TYPES;", after=max(*sent[0], *sent[1])) for server in (first, sql)]
        assert known[0] == known[1] and {"ONE4", "TWO4"} <= set(known[0][0]["types"])
    finally:
        first.service.stop()
    sql.do("INSERT INTO both VALUES ('k0', 100);")
    sql.until("SELECT * FROM sums WHERE k = 'k0';", lambda rows: rows == [["k0", 118, 5]])
    changes = sql.rows("SELECT k, n FROM sums EMIT CHANGES LIMIT 11;")
    assert sorted(part["row"]["columns"] for part in changes if "row" in part) == sorted(
        [["k0", n] for n in range(1, 6)] + [[k, n] for k in ("k1", "k2") for n in range(1, 4)]
    )


def test_headless_server_runs_a_file(kafka_shared: Broker, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(
        "SET 'auto.offset.reset' = 'earliest';\n"
        "CREATE STREAM alone (k STRING KEY, v INT) WITH (kafka_topic='t5', value_format='JSON', partitions=1);\n"
        "CREATE TABLE totals AS SELECT k, SUM(v) AS s FROM alone GROUP BY k;\n",
        "utf-8",
    )
    server = Sql(kafka_shared, "--queries-file", str(file), service_id="headless_")
    try:
        server.do("INSERT INTO alone VALUES ('a', 2); INSERT INTO alone VALUES ('a', 3);")
        server.until("SELECT s FROM totals WHERE k = 'a';", lambda rows: rows == [[5]])
        refused = server.http.post("/ksql", json={"ksql": "DROP TABLE totals;"}).json()
        assert refused["error_code"] == 40001 and "q.sql, and no others" in refused["message"]
    finally:
        server.service.stop()


def test_waiting_for_records_ends_with_the_first_one(kafka_shared: Broker) -> None:
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as client:
        topics = BrokerTopics(client)
        for name in ("news", "no-news"):
            topics.create(name, 2, 1, {})
        wanted = {name: topics.ends(name) for name in ("news", "no-news")}
        assert wanted["news"] == {0: 0, 1: 0} and topics.wait(wanted, 0.01) == set() == topics.wait({}, 0.01)
        found: list[set[str]] = []
        waiting = threading.Thread(target=lambda: found.append(topics.wait(wanted, 4 * WAIT_S)), daemon=True)
        waiting.start()
        topics.append([Produced("news", 1, b"k", b"v", 0)])
        waiting.join(2 * WAIT_S)
        assert found == [{"news"}]
        assert topics.wait({"nowhere": {0: 0}}, 0.01) == set()


def test_readers_of_topics_are_counted(sql: Sql, kafka_shared: Broker) -> None:
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as client:
        BrokerTopics(client).create("read_by_two", 2, 1, {})
    settings = {"bootstrap.servers": kafka_shared.bootstrap_servers, "group.id": "readers"}
    consumers = [Consumer(settings) for _ in range(2)]
    try:
        for consumer in consumers:
            consumer.subscribe(["read_by_two"])
        until = time.monotonic() + WAIT_S
        while not all(consumer.assignment() for consumer in consumers):
            assert time.monotonic() < until
            for consumer in consumers:
                consumer.poll(0.1)
        rows = {row["name"]: row for row in sql.do("SHOW TOPICS EXTENDED;")[0]["topics"]}
        assert rows["read_by_two"] == {
            "name": "read_by_two",
            "replicaInfo": [1, 1],
            "consumerCount": 2,
            "consumerGroupCount": 1,
        }
    finally:
        for consumer in consumers:
            consumer.close()


def test_a_result_that_is_too_large_ends_its_query_and_no_other(sql: Sql, kafka_shared: Broker) -> None:
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as client:
        BrokerTopics(client).create("LISTED", 1, 1, {"max.message.bytes": "2000"})
    sql.do(
        "CREATE STREAM many (k STRING KEY, v STRING) WITH (kafka_topic='many', value_format='JSON', partitions=1);"
        "CREATE TABLE listed AS SELECT k, COLLECT_LIST(v) AS l FROM many GROUP BY k;"
        "CREATE TABLE counted AS SELECT k, COUNT(*) AS n FROM many GROUP BY k;"
    )
    sql.do("".join(f"INSERT INTO many VALUES ('a', '{'x' * 500}');" for _ in range(6)))
    sql.until("SELECT n FROM counted WHERE k = 'a';", lambda rows: rows == [[6]])
    lengths = sql.until("SELECT ARRAY_LENGTH(l) FROM listed WHERE k = 'a';", lambda rows: rows == [[3]])
    assert lengths == [[3]], "what was small enough is there"
    listed = sql.do("DESCRIBE listed EXTENDED;")[0]["sourceDescription"]["writeQueries"][0]
    assert listed["state"] == "ERROR:1"
    errors = sql.do(f"EXPLAIN {listed['id']};")[0]["queryDescription"]["queryErrors"]
    assert "too large for the topic 'LISTED'" in errors[0]["errorMessage"]
