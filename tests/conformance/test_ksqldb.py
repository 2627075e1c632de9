"""Clients of ksqlDB beside the SQL server: create, insert, stream in, pull, push and close, each in its own way."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.services import Service, unique

WAIT_S = 120.0


@pytest.fixture(scope="module")
def server(bootstrap: str) -> Iterator[Service]:
    place = ("--bootstrap-servers", bootstrap, "--listen", "127.0.0.1:0")
    service_id = f"ksql.service.id={unique('clients')}_"
    settings = (service_id, "ksql.streams.auto.offset.reset=earliest", "ksql.runtime=local")
    started = Service("sql", "server", *place, settings=settings)
    yield started
    started.stop()


def fresh(name: str) -> str:
    """Return a name for a stream that no other test has."""
    return unique(name).upper().replace("-", "_")


def made(name: str) -> str:
    stream = f"CREATE STREAM {name} (id INT KEY, v STRING) WITH (kafka_topic='{name}', format='JSON', partitions=1);"
    return f"{stream} CREATE TABLE {name}_t AS SELECT id, COUNT(*) AS n FROM {name} GROUP BY id;"


def until(ask: Callable[[], Any], enough: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not enough(found := ask()):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_python_client(server: Service) -> None:
    from ksqldb import KSQLdbClient

    client, name = KSQLdbClient(server.url), fresh("py")
    created = client.ksql(made(name))
    assert [each["commandStatus"]["status"] for each in created] == ["SUCCESS", "SUCCESS"]
    assert {row["name"] for row in client.get_properties()} >= {"ksql.service.id"}
    rows = [{"ID": 1, "V": "a"}, {"ID": 2, "V": "b"}]
    assert client.inserts_stream(name, rows) == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    pulled = until(
        lambda: client.query_sync(f"SELECT id, n FROM {name}_t WHERE id = 2;", timeout=60), lambda found: len(found) > 1
    )
    assert pulled[0]["columnNames"] == ["ID", "N"] and pulled[1] == [2, 1]

    async def pushed() -> list[Any]:
        found: list[Any] = []
        async for row in client.query_async(f"SELECT * FROM {name} EMIT CHANGES;", timeout=60):
            found.append(row)
            if len(found) == 3:
                assert await asyncio.to_thread(client.close_query, found[0]["queryId"])
        return found

    assert asyncio.run(pushed())[1:] == [[1, "a"], [2, "b"]]


@pytest.fixture(scope="module")
def walk(server: Service) -> dict[str, Any]:
    """Walk through both clients of Node once; the tests below judge the steps."""
    program = (needs.find("ksqldb-clients").path or Path()) / "walk.js"
    command = ["node", program, server.url, fresh("node")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.needs("node", "npm", "ksqldb-clients")
def test_ksqldb_js(walk: dict[str, Any]) -> None:
    steps = walk["ksqldb-js"]
    assert (steps["info"], steps["created"], steps["table"]) == ("RUNNING", "SUCCESS", "SUCCESS")
    assert steps["inserted"] == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert steps["pulled"] == [[2, 1]] and steps["pushed"] == [1, "a"]
    assert steps["closed"] == "terminate_query" and steps["refused"] == "ksqlDBError"


@pytest.mark.needs("node", "npm", "ksqldb-clients")
def test_ksqldb_client(walk: dict[str, Any]) -> None:
    steps = walk["ksqldb-client"]
    assert [steps[name] for name in ("created", "table", "inserted", "closed", "ended")] == [200] * 5
    assert steps["pulled"] == [{"ID": 1, "N": 1}] and steps["streams"] is True and steps["refused"] == 40001


@pytest.mark.needs("curl")
@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_curl(server: Service, version: str) -> None:
    def curl(path: str, body: str) -> str:
        command = ["curl", "-sS", version, "--noproxy", "*", "--data-binary", body, f"{server.url}{path}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout

    name = fresh("curl")
    assert len(json.loads(curl("/ksql", json.dumps({"ksql": made(name)})))) == 2
    inserted = curl("/inserts-stream", f'{{"target": "{name}"}}\n{{"ID": 1, "V": "a"}}\n')
    assert json.loads(inserted) == {"status": "ok", "seq": 0}
    query = json.dumps({"sql": f"SELECT n FROM {name}_t WHERE id = 1;"})
    assert until(lambda: curl("/query-stream", query).splitlines()[1:], bool) == ["[1]"]
    pushed = curl("/query-stream", json.dumps({"sql": f"SELECT v FROM {name} EMIT CHANGES LIMIT 1;"})).splitlines()
    assert pushed[1] == '["a"]'
