"""Persistent queries on Spark: statements become flows that run, pause, fail alone, move and go without a trace."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.admin import groups, topics
from moldau.flows.overview import overviews
from moldau.sql.server.describing import revision_of
from moldau.testing import eventually

from .conftest import Cluster
from .sql_cases import OWN, STEPS, Live, covering
from .sql_servers import PATIENCE_S, Server, forget_service
from .test_flows import working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SPEND = "SELECT card, SUM(amount) AS total, COUNT(*) AS n FROM pay{} GROUP BY card;"


@contextmanager
def servers(cluster: Cluster, count: int) -> Iterator[tuple[str, list[Server], ExitStack]]:
    service_id = f"s{uuid.uuid4().hex[:8]}_"
    try:
        with ExitStack() as stack:
            yield service_id, [Server(cluster.client, service_id, stack) for _ in range(count)], stack
    finally:
        forget_service(cluster.client, service_id)  # or workers of other tests would run its queries


def running(cluster: Cluster) -> set[str]:
    """Return the flows that run, as commands and the console list them."""
    return {row.name for row in overviews({}, cluster.client, with_queries=True) if row.state == "running"}


def replaced(server: Server, text: str) -> None:
    """Replace a query, and wait until a batch was with what it is now."""
    query = server.query_id(f"CREATE OR REPLACE {text}")
    group, wanted = server.groups()[query], revision_of(server.service.engine.queries[query], server.service)

    def is_carried() -> bool:
        said = server.service.states.of(group)
        return said is not None and (said.revision, said.state) == (wanted, "running")

    eventually(is_carried, PATIENCE_S, f"{query} to run as it is now")


@pytest.mark.timeout(1200)
def test_statements_run_on_spark_and_leave_nothing(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    source = cluster.topic(4)
    with servers(cluster, 2) as (service_id, (one, two), stack):
        one.do(f"CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='{source}', value_format='JSON');")
        large = two.query_id(
            f"CREATE STREAM large WITH (kafka_topic='{source}-l') AS SELECT * FROM pay WHERE amount > 5;"
        )
        assert two.states() == {large: "UNRESPONSIVE:1"}
        with working("first", cluster, tmp_path, spark):
            spend = one.query_id(f"CREATE TABLE spend WITH (kafka_topic='{source}-s') AS {SPEND.format('')}")
            two.do(*(f"INSERT INTO pay VALUES ('c{number % 3}', {number});" for number in range(12)))
            two.await_rows("SELECT * FROM spend;", ["c0", 18, 4], ["c1", 22, 4], ["c2", 26, 4])
            one.await_rows("SELECT amount FROM large;", *([number] for number in range(6, 12)))
            assert one.states() == {large: "RUNNING:1", spend: "RUNNING:1"}
            names = {*one.groups().values()}
            eventually(lambda: names <= running(cluster), PATIENCE_S, "both queries among those that run")
            # What ends a whole batch, such as a record that is too large for its topic, ends its own query.
            topics.create(cluster.client, [topics.NewTopic(f"{source}-x", 4, 1, {"max.message.bytes": "1500"})])
            listed = f"CREATE TABLE listed WITH (kafka_topic='{source}-x') AS SELECT card, "
            listed = one.query_id(f"{listed}COLLECT_LIST(RPAD(card, 900, 'x')) AS l FROM pay GROUP BY card;")
            one.await_state(listed, "ERROR:1")
            (error,) = one.do(f"EXPLAIN {listed};")[-1]["queryDescription"]["queryErrors"]
            assert error["errorMessage"].startswith(f"RuntimeError: A record for topic {source}-x has ")
            one.do(f"TERMINATE {listed};", "DROP TABLE listed DELETE TOPIC;")
            # What is paused does nothing until it is resumed; the others go on.
            one.do(f"PAUSE {spend};")
            eventually(lambda: two.said(spend) == "paused", PATIENCE_S, "the pause")
            two.do("INSERT INTO pay VALUES ('c0', 100);")
            one.await_rows("SELECT amount FROM large WHERE amount > 11;", [100])
            assert two.pulled("SELECT n FROM spend WHERE card = 'c0';") == [[4]]
        two.await_state(large, "UNRESPONSIVE:1")
        # Another worker goes on with the state, exactly once.
        with working("second", cluster, tmp_path, spark):
            two.do(f"RESUME {spend};")
            one.await_rows("SELECT * FROM spend WHERE card = 'c0';", ["c0", 118, 5])
            changes = [row for part in range(4) for row in cluster.committed_rows(f"{source}-s", part)]
            assert sorted(json.loads(value or b"")["N"] for _, value, _ in changes) == [*sorted([1, 2, 3, 4] * 3), 5]
            third = Server(cluster.client, service_id, stack)
            assert one.catalogue() == two.catalogue() == third.catalogue()
            # What is replaced goes on with its state, from the next batch on.
            replaced(one, f"TABLE spend WITH (kafka_topic='{source}-s') AS {SPEND.format(' WHERE amount < 1000')}")
            replaced(two, f"STREAM large WITH (kafka_topic='{source}-l') AS SELECT * FROM pay WHERE amount > 1000;")
            one.do("INSERT INTO pay VALUES ('c0', 5000);", "INSERT INTO pay VALUES ('c0', 60);")
            two.await_rows("SELECT * FROM spend WHERE card = 'c0';", ["c0", 178, 6])
            one.await_rows("SELECT amount FROM large WHERE amount > 11;", [100], [5000])
            # Both queries of a statement run, in one lane.
            both = "SELECT * FROM pay WHERE amount = 70 UNION ALL SELECT * FROM pay WHERE amount = 6000;"
            one.do(f"CREATE STREAM both WITH (kafka_topic='{source}-b') AS {both}")
            one.do("INSERT INTO pay VALUES ('c0', 70);", "INSERT INTO pay VALUES ('c0', 6000);")
            two.await_rows("SELECT amount FROM both;", [70], [6000])
            # What is terminated leaves nothing but its output, which goes with its source.
            union = [query for query in one.groups() if "BOTH" in query]
            one.do(*(f"TERMINATE {query};" for query in union))
            one.do(f"TERMINATE {spend};", "DROP TABLE spend DELETE TOPIC;", f"TERMINATE {large};")
            eventually(lambda: not any(map(one.said, (large, spend, *union))), PATIENCE_S, "the removal")
        prefix = f"_confluent-ksql-{service_id}query_"
        left = [topic.name for topic in topics.listed(cluster.client)]
        assert f"{source}-s" not in left and f"{source}-l" in left
        assert not [name for name in left if name.startswith(prefix)]
        assert not [group.id for group in groups.listed(cluster.client) if group.id.startswith(prefix)]


@pytest.mark.timeout(1200)
def test_every_kind_of_step_gives_what_the_local_runtime_gives(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    service_id = f"c{uuid.uuid4().hex[:8]}_"
    cases = covering([OWN], service_id)
    assert {step for case in cases for step in case.steps} == set(STEPS)
    live = Live(cluster.client, cases, service_id)
    try:
        with working("cases", cluster, tmp_path, spark):
            live.feed(lambda: None)
        assert live.differences() == []
    finally:
        forget_service(cluster.client, service_id)


@pytest.mark.timeout(1200)
def test_stream_finds_what_a_table_with_a_history_had_at_the_time_of_its_record(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Records that come late find the value of their time, in a later batch and on another worker, too."""
    prices, sales = cluster.topic(2), cluster.topic(2)
    began = time.time_ns() // 1_000_000 - 1_800_000

    def price(at: int, value: int) -> str:
        return f"INSERT INTO prices (item, price, ROWTIME) VALUES ('tea', {value}, {began + at});"

    def sale(at: int) -> str:
        return f"INSERT INTO sales (item, moment, ROWTIME) VALUES ('tea', {at}, {began + at});"

    with servers(cluster, 1) as (_, (server,), _):
        server.do(
            "CREATE TABLE prices (item STRING PRIMARY KEY, price INT) "
            f"WITH (kafka_topic='{prices}', value_format='JSON', HISTORY='1 hour');",
            f"CREATE STREAM sales (item STRING KEY, moment INT) WITH (kafka_topic='{sales}', value_format='JSON');",
            f"CREATE STREAM priced WITH (kafka_topic='{sales}-p') AS "
            "SELECT s.item AS item, s.moment AS moment, p.price AS price FROM sales s "
            "JOIN prices p ON s.item = p.item;",
        )
        found = "SELECT moment, price FROM priced;"
        with working("first", cluster, tmp_path, spark):
            server.do(price(1_000, 1), price(3_000, 3), sale(4_000))
            server.await_rows(found, [4_000, 3])
            server.do(sale(2_000), sale(500))  # before the first price there is none
            server.await_rows(found, [2_000, 1], [4_000, 3])
            server.do(price(1_500, 2), sale(4_001))
            server.await_rows(found, [2_000, 1], [4_000, 3], [4_001, 3])
            server.do(sale(2_001), sale(1_200))
            server.await_rows(found, [1_200, 1], [2_000, 1], [2_001, 2], [4_000, 3], [4_001, 3])
        with working("second", cluster, tmp_path, spark):
            server.do(sale(1_201), sale(2_002), sale(4_002))
            late, now = (
                ([1_200, 1], [1_201, 1], [2_000, 1], [2_001, 2], [2_002, 2]),
                ([4_000, 3], [4_001, 3], [4_002, 3]),
            )
            server.await_rows(found, *late, *now)
