"""Pull queries at a moment: AS OF one in the past, WAIT UNTIL one in the future."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.client import Client, Record, build
from moldau.operators.record import Raw
from moldau.sql.errors import ParseError
from moldau.sql.parser import parse
from moldau.sql.printer import statement_text
from moldau.sql.server.broker_topics import BrokerTopics, first_gap
from moldau.sql.server.errors import ServerError
from moldau.sql.server.materialized import View
from moldau.sql.server.service import Request, Service
from moldau.sql.server.topics import MemoryTopics, Positions
from moldau.sql.tree import QueryStatement, Table
from moldau.testing import Broker
from moldau.testing.sql import Ksql
from moldau.wire.records import Batch
from tests.sql.test_service import PAY, SPEND, do, pulled, refusal, settle

TIMES = ((10, "a", 1), (20, "b", 5), (30, "a", 2), (40, "b", 7))


class Compacted(MemoryTopics):
    """Topics whose records may have been removed from an offset on."""

    gaps: Positions = {}  # noqa: RUF012
    lag_ms = 0

    def uncompacted_ms(self, topic: str) -> int:
        return self.lag_ms

    def read_closely(self, topic: str, positions: Positions) -> tuple[list[Raw], Positions]:
        return self.read(topic, positions), self.gaps


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(Compacted(), settings={"auto.offset.reset": "earliest"}, clock=lambda: 1_000)
    do(made, PAY.replace("partitions=2", "partitions=1"), SPEND)
    for time, card, amount in TIMES:
        do(made, f"INSERT INTO pay (ROWTIME, card, amount) VALUES ({time}, '{card}', {amount});")
    settle(made)
    yield made
    made.close()


def refused(service: Service, text: str, **properties: Any) -> str:
    with pytest.raises(ServerError) as caught:
        service.query(Request(text, properties))
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t AS OF TIMESTAMP '2026-01-31T12:00:00' WHERE k = 1;",
        "SELECT * FROM t AS OF TIMESTAMP 1700000000000 x WHERE x.k = 1;",
        "SELECT * FROM t AS OF OFFSET 7 AS x;",
        "SELECT * FROM t AS OF OFFSET (7, 0);",
        "SELECT * FROM t AS OF OFFSET 7 WAIT UNTIL LATEST;",
        "SELECT * FROM t AS OF OFFSET 7 WHERE k = 1 LIMIT 3 WAIT UNTIL pay OFFSET 4;",
        "SELECT * FROM t AS OF OFFSET 7 WAIT UNTIL latest PARTITION 0 OFFSET 4 TIMEOUT 2 SECONDS;",
    ],
)
def test_clauses_print_as_they_parse(text: str) -> None:
    parsed = parse(text)[0]
    assert isinstance(parsed, QueryStatement) and isinstance(parsed.query.source, Table)
    assert parsed.query.source.as_of is not None
    assert parse(statement_text(parsed))[0] == parsed


def test_of_is_an_alias_without_a_moment() -> None:
    parsed = parse("SELECT of.a FROM t AS OF WHERE of.a = 1;")[0]
    assert isinstance(parsed, QueryStatement) and parsed.query.source == Table("T", "OF")
    with pytest.raises(ParseError):
        parse("SELECT * FROM t AS OF TIMESTAMP x;")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT * FROM spend AS OF TIMESTAMP 9;", []),
        ("SELECT * FROM spend AS OF TIMESTAMP 10;", [["a", 1]]),
        ("SELECT * FROM spend AS OF TIMESTAMP 35;", [["a", 3], ["b", 5]]),
        ("SELECT total FROM spend AS OF TIMESTAMP '1970-01-01T00:00:00.030' s WHERE s.card = 'b';", [[5]]),
        ("SELECT * FROM spend AS OF OFFSET 1;", [["a", 1], ["b", 5]]),
        ("SELECT * FROM spend AS OF OFFSET 99;", [["a", 3], ["b", 12]]),
        # full SQL: the table beside its past
        (
            "SELECT n.card, n.total - spend.total AS more FROM spend n JOIN spend AS OF TIMESTAMP 25 ON"
            " n.card = spend.card ORDER BY 1;",
            [["a", 2], ["b", 7]],
        ),
        ("SELECT SUM(total) AS s FROM spend AS OF TIMESTAMP 25 ORDER BY 1;", [[6]]),
        ("SELECT MAX(d.total) AS m FROM (SELECT * FROM spend AS OF OFFSET (2)) d;", [[5]]),
    ],
)
def test_table_is_read_as_it_was(service: Service, text: str, rows: list[list[Any]]) -> None:
    assert pulled(service, text) == rows
    assert pulled(service, "SELECT * FROM spend;") == [["a", 3], ["b", 12]]


def test_past_that_was_compacted_away_is_refused(service: Service) -> None:
    assert isinstance(service.topics, Compacted)
    service.topics.gaps = {0: 1}
    for text in (
        "SELECT * FROM spend AS OF TIMESTAMP 25;",
        "SELECT * FROM spend AS OF OFFSET 1;",
        "SELECT COUNT(*) FROM spend AS OF TIMESTAMP 25 ORDER BY 1;",
    ):
        assert "The past of SPEND is not known any more: records of partition 0" in refused(service, text)
    assert pulled(service, "SELECT * FROM spend AS OF OFFSET 0;") == [["a", 1]]  # the gap is after it
    service.topics.lag_ms = 974  # it is 1000
    assert "not known" in refused(service, "SELECT * FROM spend AS OF TIMESTAMP 25;")
    service.topics.lag_ms = 975
    assert pulled(service, "SELECT * FROM spend AS OF TIMESTAMP 25;") == [["a", 1], ["b", 5]]
    assert pulled(service, "SELECT * FROM spend AS OF OFFSET 1;") == [["a", 1], ["b", 5]]
    assert pulled(service, "SELECT * FROM spend AS OF TIMESTAMP 40;") == [["a", 3], ["b", 12]]  # this is the present


def test_moments_of_other_queries_are_refused(service: Service) -> None:
    do(service, "CREATE VIEW v AS SELECT * FROM spend;")
    assert "V is a view" in refused(service, "SELECT * FROM v AS OF TIMESTAMP 1;")
    assert "PAY is a stream" in refused(service, "SELECT * FROM pay AS OF TIMESTAMP 1;")
    assert "an offset of each partition" in refused(service, "SELECT * FROM spend AS OF OFFSET (1, 2);")
    assert "'noon' is not a time" in refused(service, "SELECT * FROM spend AS OF TIMESTAMP 'noon';")
    assert "pull queries only" in refused(service, "SELECT * FROM spend AS OF TIMESTAMP 1 EMIT CHANGES;")
    table = "CREATE TABLE x AS SELECT * FROM spend AS OF TIMESTAMP 1;"
    assert "pull queries only" in refusal(service, table).message
    strict = {"ksql.dialect": "strict"}
    assert "not a part of ksqlDB" in refused(service, "SELECT * FROM spend AS OF OFFSET 1;", **strict)
    assert "not a part of ksqlDB" in refused(service, "SELECT * FROM spend WAIT UNTIL LATEST;", **strict)
    assert "pull queries only" in refused(service, "SELECT * FROM spend EMIT CHANGES WAIT UNTIL LATEST;")
    assert "pull queries only" in refusal(service, table.replace("AS OF TIMESTAMP 1", "WAIT UNTIL LATEST")).message


@contextmanager
def at_work(service: Service) -> Iterator[None]:
    """Let the queries of a service work in another thread."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.001):
            service.work()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("until", ["LATEST", "pay OFFSET 4", "pay PARTITION 0 OFFSET 4"])
@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("SELECT total FROM rich WHERE card = 'z'", [100]),
        ("SELECT total FROM (SELECT * FROM rich) r WHERE r.card = 'z'", [100]),
        ("SELECT MAX(r.total) AS m FROM rich r JOIN spend s ON r.card = s.card", [100]),
    ],
)
def test_query_waits_for_its_own_writes(service: Service, until: str, query: str, row: list[Any]) -> None:
    do(service, "CREATE TABLE rich AS SELECT * FROM spend WHERE total > 9;")
    do(service, "INSERT INTO pay VALUES ('z', 100);")
    assert "has not come so far" in refused(service, f"{query} WAIT UNTIL {until} TIMEOUT 0 SECONDS;")
    with at_work(service):
        found = service.query(Request(f"{query} WAIT UNTIL {until} TIMEOUT 60 SECONDS;")).poll()
    assert [one.columns for one in found] == [row]


def test_what_cannot_come_is_not_waited_for(service: Service) -> None:
    do(service, "CREATE STREAM other (k INT KEY, v INT) WITH (kafka_topic='other', format='JSON', partitions=2);")
    select = "SELECT * FROM spend WAIT UNTIL"
    assert "no record at the offset 9" in refused(service, f"{select} pay OFFSET 9 TIMEOUT 0 SECONDS;")
    assert "none with the number 7" in refused(service, f"{select} pay PARTITION 7 OFFSET 0;")
    assert "OTHER has 2 partitions" in refused(service, f"{select} other OFFSET 0;")
    assert "NOWHERE" in refused(service, f"{select} nowhere OFFSET 0;")
    do(service, "INSERT INTO other VALUES (1, 1);")
    where = next(at for at, end in service.topics.ends("other").items() if end)
    assert "SPEND is not made from it" in refused(service, f"{select} other PARTITION {where} OFFSET 0;")
    do(service, "PAUSE CTAS_SPEND_1;")
    assert "CTAS_SPEND_1 is paused" in refused(service, f"{select} LATEST;")


def batch(base: int, *offsets: int, last: int | None = None, **given: Any) -> Batch:
    rows = [Record(offset, 0, b"k", b"v", ()) for offset in offsets]
    delta = None if last is None else last - base
    return Batch(build(rows, base_offset=base, sparse=True, last_offset_delta=delta, **given))


@pytest.mark.parametrize(
    ("batches", "gap"),
    [
        ([batch(0, 0, 1), batch(2, 2, transactional=True, control=True), batch(3, 3)], None),
        ([batch(0, 0, 1), batch(4, 4)], 2),
        ([batch(1, 1), batch(2, 3, last=3)], 0),
        ([batch(0, 0), batch(1, 2, last=2)], 1),
        ([batch(0, 0, 1), batch(2, 2, last=4)], 2),
        ([], None),
    ],
)
def test_removed_records_leave_a_gap(batches: list[Batch], gap: int | None) -> None:
    assert first_gap(batches, 0) == gap


def test_view_reads_on_after_markers(service: Service) -> None:
    """A fetch may return nothing but markers, or records of aborted transactions, before the end of the topic."""

    class Marked(MemoryTopics):
        def read(self, topic: str, positions: Positions) -> list[Raw]:
            if positions.get(0, 0) == 0:
                positions[0] = 1
                return []
            return super().read(topic, positions)

    with service.pulls.up_to_date(service.engine.catalogue.source("SPEND")) as view:
        pass
    again = View(view.source, None)
    assert isinstance(service.topics, MemoryTopics)
    marked = Marked(logs=service.topics.logs)
    again.catch_up(marked, marked.ends(view.source.topic))
    assert sorted(row[0] for row in again.scan()) == [3, 12]


def test_moments_on_a_broker(ksql: Ksql, kafka_shared: Broker) -> None:
    ksql.execute(
        "CREATE STREAM was_pay (card STRING KEY, amount INT) WITH (kafka_topic='was-pay', value_format='JSON',"
        " partitions=2);"
        "CREATE TABLE was_spend AS SELECT card, SUM(amount) AS total FROM was_pay GROUP BY card;"
    )
    for time, card, amount in TIMES:
        ksql.execute(f"INSERT INTO was_pay (ROWTIME, card, amount) VALUES ({time}, '{card}', {amount});")
    ksql.until("SELECT total FROM was_spend WHERE card = 'b';", [[12]])
    ksql.until("SELECT total FROM was_spend WHERE card = 'a';", [[3]])
    assert sorted(ksql.rows("SELECT * FROM was_spend AS OF TIMESTAMP 25;")) == [["a", 1], ["b", 5]]
    ksql.execute("INSERT INTO was_pay VALUES ('c', 9);")
    wait = "SELECT total FROM was_spend WHERE card = 'c' WAIT UNTIL LATEST TIMEOUT 60 SECONDS;"
    assert ksql.rows(wait) == [[9]]
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as client:
        topics = BrokerTopics(client)
        topics.create("was-kept", 1, 1, {"min.compaction.lag.ms": "7"})
        assert (topics.uncompacted_ms("was-kept"), topics.uncompacted_ms("was-pay")) == (7, 0)
