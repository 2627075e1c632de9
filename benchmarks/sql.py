"""`python -m benchmarks.sql`: the SQL server on one broker, without Spark. Writes docs/benchmarks-sql.md."""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import typer

from benchmarks import sql_page
from benchmarks.sql_page import SERVER
from moldau.admin import topics
from moldau.client import Client, Record, build
from moldau.sql.engine import Engine
from moldau.testing import broker
from moldau.testing.sql import sql_server
from moldau.topicstore import append

KEYS, MANY, BATCH = 100_000, 1_000_000, 2_000
PULLS, CALLERS, ROUNDS, STATEMENTS = 4_000, 8, 20, 500
WAIT_S = 120.0


def statements_per_s() -> float:
    """Parse and analyse a filter, an aggregate and a join, again and again; return how many in a second of CPU time."""
    engine = Engine()
    engine.execute_text(
        "CREATE STREAM pay (card STRING KEY, amount INT, shop STRING) WITH (kafka_topic='pay', value_format='JSON');"
        "CREATE TABLE shops (name STRING PRIMARY KEY, town STRING) WITH (kafka_topic='shops', value_format='JSON');"
    )
    texts = [
        "CREATE STREAM large{} AS SELECT card, UCASE(shop) AS shop FROM pay WHERE amount > 5;",
        "CREATE TABLE spend{} AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;",
        "CREATE STREAM joined{} AS SELECT p.shop, p.amount, s.town FROM pay p JOIN shops s ON p.shop = s.name;",
    ]
    began = time.process_time()
    for number in range(STATEMENTS):
        engine.execute_text(texts[number % len(texts)].format(number))
    return STATEMENTS / (time.process_time() - began)


def fill(client: Client, topic: str, keys: int) -> None:
    """Write the rows of a table with so many keys."""
    for first in range(0, keys, BATCH):
        append(client, topic, 0, build([row(number) for number in range(first, first + BATCH)]))


def row(number: int) -> Record:
    return Record(0, number, b"k%d" % number, b'{"TOTAL":%d,"TOWN":"t%d"}' % (number, number % 50))


def rows_of(http: httpx.Client, text: str) -> list[list[object]]:
    lines = http.post("/query-stream", json={"sql": text}).raise_for_status().text.splitlines()
    return [json.loads(line) for line in lines[1:]]


def calls(url: str, callers: int, call: Callable[[http.client.HTTPConnection, int], None]) -> str:
    """Let callers send requests, and return how many there are in a second, and the 99th percentile."""

    def caller(which: int) -> list[float]:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_S)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        took = []
        for number in range(which, PULLS, callers):
            began = time.perf_counter()
            call(connection, number)
            took.append(time.perf_counter() - began)
        connection.close()
        return took

    began = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        took = [one for found in pool.map(caller, range(callers)) for one in found]
    rate = PULLS / (time.perf_counter() - began)
    return f"{rate:,.0f}/s, p99 {statistics.quantiles(took, n=100)[98] * 1000:.1f} ms"


def pull(connection: http.client.HTTPConnection, number: int) -> None:
    key = number * 7919 % KEYS
    body = json.dumps({"sql": f"SELECT total FROM spend WHERE id = 'k{key}';"})
    connection.request("POST", "/query-stream", body, {"Content-Type": "application/json"})
    found = connection.getresponse().read().splitlines()
    assert found[1:] == [b"[%d]" % key], found


def info(connection: http.client.HTTPConnection, number: int) -> None:
    connection.request("GET", "/info")
    assert b"KsqlServerInfo" in connection.getresponse().read()


def grouped(http: httpx.Client, table: str, before: Callable[[], object]) -> str:
    took = []
    for _ in range(ROUNDS):
        before()
        began = time.perf_counter()
        found = rows_of(http, f"SELECT town, SUM(total) AS s FROM {table} GROUP BY town ORDER BY town;")
        took.append(time.perf_counter() - began)
        assert len(found) == 50, len(found)
    return f"{statistics.median(took) * 1000:,.0f} ms"


def loaded_s(http: httpx.Client, table: str, keys: int) -> float:
    """Return how long the first query of a table takes, which reads it."""
    began = time.perf_counter()
    assert rows_of(http, f"SELECT total FROM {table} WHERE id = 'k{keys - 1}';") == [[keys - 1]]
    return time.perf_counter() - began


def pushed_ms(http: httpx.Client, client: Client) -> tuple[float, float]:
    """Return the ms from a request to its first row, and from a record to its row."""
    first, later = [], []
    for _ in range(ROUNDS):
        append(client, "live", 0, build([Record(0, 0, b"a", b'{"X":1}')]))
        asked = {"sql": "SELECT x FROM live EMIT CHANGES;", "properties": {"auto.offset.reset": "earliest"}}
        began = time.perf_counter()
        with http.stream("POST", "/query-stream", json=asked) as answer:
            lines = answer.iter_lines()
            next(lines)
            next(lines)
            first.append(time.perf_counter() - began)
    asked = {"sql": "SELECT x FROM live EMIT CHANGES;", "properties": {"auto.offset.reset": "latest"}}
    with http.stream("POST", "/query-stream", json=asked) as answer:
        lines = answer.iter_lines()
        next(lines)
        for number in range(ROUNDS):
            began = time.perf_counter()
            append(client, "live", 0, build([Record(0, 0, b"a", b'{"X":%d}' % number)]))
            assert json.loads(next(lines)) == [number]
            later.append(time.perf_counter() - began)
    return statistics.median(first) * 1000, statistics.median(later) * 1000


def main(page: Annotated[bool, typer.Option(help="Write the page.")] = True) -> None:
    rate = statements_per_s()
    rows = [("parse and analyse a statement, CPU time", f"{rate:,.0f}/s", "300/s", "1,000/s")]
    with broker() as running, sql_server(running.bootstrap_servers) as server:
        client = Client({"bootstrap.servers": running.bootstrap_servers})
        with client, httpx.Client(base_url=server.url, timeout=WAIT_S, trust_env=False) as http:
            topics.create(client, [topics.NewTopic(name, 1, 1) for name in ("spend", "many", "live")])
            columns = "(id STRING PRIMARY KEY, total INT, town STRING)"
            server.execute(
                f"CREATE SOURCE TABLE spend {columns} WITH (kafka_topic='spend', value_format='JSON');"
                f"CREATE SOURCE TABLE many {columns} WITH (kafka_topic='many', value_format='JSON');"
                "CREATE STREAM live (k STRING KEY, x INT) WITH (kafka_topic='live', value_format='JSON');"
            )
            for table, keys in (("spend", KEYS), ("many", MANY)):
                fill(client, table, keys)
            loaded_s(http, "spend", KEYS)
            for callers, floor in ((1, "1,000/s, 20 ms"), (CALLERS, "1,000/s, 20 ms")):
                who = "1 caller" if callers == 1 else f"{callers} callers"
                rows.append(
                    (f"pull by key over HTTP, {KEYS:,} keys, {who}", calls(server.url, callers, pull), floor, "3,000/s")
                )
                rows.append((f"GET /info, {who}, for comparison", calls(server.url, callers, info), "", ""))
            rows.append((f"first query of a table of {MANY:,} rows", f"{loaded_s(http, 'many', MANY):.1f} s", "", ""))
            change = lambda: append(client, "many", 0, build([row(0)]))  # noqa: E731
            rows.append((f"GROUP BY over {MANY:,} rows", grouped(http, "many", lambda: None), "1,000 ms", "300 ms"))
            rows.append(("the same, after a row has changed", grouped(http, "many", change), "", ""))
            first, later = pushed_ms(http, client)
            rows.append(("push query: request to first row", f"{first:.0f} ms", "300 ms", "100 ms"))
            rows.append(("push query: record to row", f"{later:.0f} ms", "50 ms", "15 ms"))
    kept = sql_page.Kept.read()
    for what, figure, floor, aim in rows:
        kept.add(SERVER, what, figure, floor, aim)
    if page:
        sql_page.write()


if __name__ == "__main__":
    typer.run(main)
