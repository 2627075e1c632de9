"""The Elasticsearch sink: its requests to a server of the test, and documents in the real one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moldau.connect import data
from moldau.connect.connector import SinkContext
from moldau.connect.connectors.elasticsearch import ElasticsearchSink, mapping
from moldau.connect.data import STRING, Header, Instant, Record, Struct
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.shapes import Shape
from moldau.testing import Broker, eventually
from moldau.testing.connectors import connect
from moldau.testing.ports import free_port
from tests.connect.test_http import Place, place  # noqa: F401
from tests.services import unique

START_S = 300


class Indexing:
    """A task, and what it refused."""

    def __init__(self, url: str, **config: Any) -> None:
        self.refused: list[tuple[Any, str]] = []
        given = {"connection.url": url, "retry.backoff.ms": "0", "max.retries": "2", "read.timeout.ms": "60000"}
        [task] = ElasticsearchSink().task_configs({**given, **dotted(config)}, 1)

        def report(record: Record, error: Exception) -> None:
            self.refused.append((record.offset, str(error)))

        self.task = ElasticsearchSink().open(SinkContext(task, report, lambda _: False))

    def put(self, *values: Any, key: Any = "k", topic: str = "T", start: int = 0) -> None:
        self.task.put([record(value, start + n, key, topic) for n, value in enumerate(values)])


def dotted(config: dict[str, Any]) -> dict[str, str]:
    return {key.replace("_", "."): str(value) for key, value in config.items()}


def record(value: Any, offset: int, key: Any = "k", topic: str = "T") -> Record:
    schema, made = (value.schema, value) if isinstance(value, Struct) else Shape().take(value)
    headers = (Header("v", data.INT64, offset * 10),)
    return Record(topic, 3, None if key is None else STRING, key, schema, made, 77, headers, offset=offset)


def bulk(place: Place) -> list[Any]:  # noqa: F811
    """The lines of all bulk requests."""
    bodies = [body for _, path, body, _ in place.requests if path == "/_bulk"]
    return [json.loads(line) for body in bodies for line in body.splitlines()]


def taking(status: Callable[[Any], int] = lambda _: 201) -> Any:
    """Answer a bulk request, each document by itself."""

    def answer(method: str, path: str, body: str) -> tuple[int, Any]:
        actions = [json.loads(line) for line in body.splitlines()]
        heads = [one for one in actions if set(one) & {"index", "create", "update", "delete"} and len(one) == 1]
        targets = [next(iter(one.values())) for one in heads]
        return 200, {"items": [{"index": {**one, "status": status(one), "error": {"type": "x"}}} for one in targets]}

    return answer


def test_documents_have_the_key_as_id_and_the_offset_as_version(place: Place) -> None:  # noqa: F811
    place.answer = taking()
    one = Indexing(place.url, behavior_on_null_values="delete", schema_ignore="true", batch_size=2)
    one.put({"n": 1}, None, {"n": 3}, start=5)
    target = {"_index": "t", "_id": "k", "version_type": "external"}
    assert bulk(place) == [
        {"index": {**target, "version": 5}},
        {"n": 1},
        {"delete": {**target, "version": 6}},
        {"index": {**target, "version": 7}},
        {"n": 3},
    ]
    assert [path for _, path, _, _ in place.requests] == ["/_bulk", "/_bulk"]
    one.task.close()


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ({"key_ignore": "true"}, [{"index": {"_index": "t", "_id": "T+3+0"}}, {"n": 1}]),
        ({"topic_key_ignore": "T"}, [{"index": {"_index": "t", "_id": "T+3+0"}}, {"n": 1}]),
        (
            {"write_method": "upsert"},
            [{"update": {"_index": "t", "_id": "k", "retry_on_conflict": 5}}, {"doc": {"n": 1}, "doc_as_upsert": True}],
        ),
        (
            {"external_version_header": "v"},
            [{"index": {"_index": "t", "_id": "k", "version": 0, "version_type": "external"}}, {"n": 1}],
        ),
        (
            {"data_stream_type": "LOGS", "data_stream_dataset": "d"},
            [{"create": {"_index": "logs-d-t", "_id": "T+3+0"}}, {"n": 1, "@timestamp": 77}],
        ),
        (
            {"data_stream_type": "LOGS", "data_stream_dataset": "d", "data_stream_timestamp_field": "x,n"},
            [{"create": {"_index": "logs-d-t", "_id": "T+3+0"}}, {"n": 1, "@timestamp": 1}],
        ),
    ],
)
def test_ids_and_versions_can_be_others(place: Place, config: dict[str, Any], lines: list[Any]) -> None:  # noqa: F811
    place.answer = taking()
    one = Indexing(place.url, schema_ignore="true", **config)
    one.put({"n": 1})
    assert bulk(place) == lines
    one.task.close()


def test_all_that_a_transform_made_of_one_record_has_ids_of_its_own(place: Place) -> None:  # noqa: F811
    place.answer = taking()
    one = Indexing(place.url, schema_ignore="true", key_ignore="true")
    for _ in range(2):
        one.task.put([record({"n": n}, offset) for n, offset in enumerate((0, 1, 1, 1, 2))])
    ids = [line["index"]["_id"] for line in bulk(place) if "index" in line]
    assert ids == ["T+3+0", "T+3+1", "T+3+1+1", "T+3+1+2", "T+3+2"] * 2
    one.task.close()


def test_what_the_index_has_is_no_error_and_what_it_refuses_is_reported(place: Place) -> None:  # noqa: F811
    statuses = {0: 201, 1: 409, 2: 400, 3: 200}
    place.answer = taking(lambda target: statuses[target["version"]])
    one = Indexing(place.url, schema_ignore="true")
    one.put(*({"n": n} for n in range(4)))
    assert [offset for offset, _ in one.refused] == [2] and "answered 400" in one.refused[0][1]
    calm = Indexing(place.url, schema_ignore="true", behavior_on_malformed_documents="warn")
    calm.put(*({"n": n} for n in range(4)))
    assert calm.refused == []
    statuses[1] = 429
    with pytest.raises(RetriableError, match="1 documents"):
        calm.put(*({"n": n} for n in range(4)))
    for task in (one, calm):
        task.task.close()


def test_records_that_cannot_be_documents_are_reported(place: Place) -> None:  # noqa: F811
    place.answer = taking()
    one = Indexing(place.url, schema_ignore="true")
    one.put("text", {"n": float("nan")}, None, {"n": 1})
    one.put({"n": 1}, key=None, start=9)
    one.put({"n": 1}, key="x" * 600, start=10)
    assert [offset for offset, _ in one.refused] == [0, 1, 2, 9, 10]
    assert len(bulk(place)) == 2
    dropping = Indexing(place.url, drop_invalid_message="true")
    dropping.put("text")
    assert dropping.refused == []
    for task in (one, dropping):
        task.task.close()


def test_a_cluster_in_trouble_is_waited_for(place: Place) -> None:  # noqa: F811
    one = Indexing(f"http://127.0.0.1:{free_port()},{place.url}", schema_ignore="true")
    place.answer = taking()
    with pytest.raises(RetriableError):
        one.put({"n": 1})
    one.put({"n": 1})  # the other node
    place.answer = lambda method, path, body: (503, {})
    for expected in (RetriableError, RetriableError, ConnectError):
        with pytest.raises(expected) as caught:
            one.put({"n": 1})
    assert "also after 2 retries" in str(caught.value)
    one.task.close()


ORDER = data.struct(
    {
        "n": data.INT32,
        "s": STRING,
        "at": data.TIMESTAMP_SCHEMA,
        "day": data.DATE_SCHEMA,
        "price": data.decimal(2),
        "raw": data.BYTES,
        "tags": data.array(STRING),
        "in": data.struct({"x": data.FLOAT64}),
    }
)


def order(n: int) -> Struct:
    inner = Struct.of(ORDER.by_name["in"].schema, x=1.5)
    when = {"at": Instant(1_700_000_000_123), "day": Instant(data.MS_PER_DAY)}
    return Struct.of(ORDER, {"n": n, "s": "a", "in": inner, **when}, price=data.scaled(150, 2), raw=b"\1", tags=["t"])


def test_settings_and_mappings() -> None:
    found = mapping(ORDER)["properties"]
    assert [(found[name] or {}).get("type") for name in ("n", "s", "at", "day", "price", "raw", "tags", "in")] == [
        "integer",
        "text",
        "date",
        "date",
        "double",
        "binary",
        "text",
        None,
    ]
    for wrong in ({}, {"connection.url": "ftp://x"}, {"connection.url": "http://x", "data.stream.type": "LOGS"}):
        with pytest.raises(ConfigError):
            ElasticsearchSink().task_configs(wrong, 1)


# The real one.


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A node of Elasticsearch or OpenSearch, by the folder that the environment names."""
    home, port = Path(os.environ["ELASTICSEARCH_HOME"]), free_port()
    name = "opensearch" if (home / "bin" / "opensearch").exists() else "elasticsearch"
    with tempfile.TemporaryDirectory(prefix="moldau-search-") as folder:
        config = Path(folder) / "config"
        shutil.copytree(home / "config", config, dirs_exist_ok=True)
        java_options = config / "jvm.options"  # the log of collections would go into the folder of the programs
        kept = [line for line in java_options.read_text().splitlines(keepends=True) if "gc.log" not in line]
        java_options.write_text("".join(kept))
        lines = [f"path.data: {folder}/data", f"path.logs: {folder}/logs", "discovery.type: single-node"]
        lines += [f"http.port: {port}", "network.host: 127.0.0.1", f"transport.port: {free_port()}"]
        safe = [] if name == "opensearch" else ["xpack.security.enabled: false"]
        (config / f"{name}.yml").write_text("\n".join([*lines, *safe]) + "\n")
        prefix = "OPENSEARCH" if name == "opensearch" else "ES"
        given = {**os.environ, f"{prefix}_PATH_CONF": str(config), f"{prefix}_JAVA_OPTS": "-Xms384m -Xmx384m"}
        java = Path(os.path.realpath(shutil.which("java") or "java")).parents[1]
        given |= {f"{prefix}_JAVA_HOME": str(java), "JAVA_HOME": str(java)}
        command = [str(home / "bin" / name)]
        if os.geteuid() == 0:  # it does not run as root
            for one in (Path(folder), *Path(folder).rglob("*")):
                os.chown(one, 65534, 65534)
            os.chmod(folder, 0o755)
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        output = Path(folder) / "output"
        with output.open("wb") as out:
            server = subprocess.Popen(command, env=given, stdout=out, stderr=out)
        url = f"http://127.0.0.1:{port}"
        try:
            eventually(lambda: is_up(url) or server.poll() is not None, START_S, f"the start of {name}")
            assert server.poll() is None, output.read_text(errors="replace")[-4000:]
            yield url
        finally:
            server.terminate()
            server.wait(60)


def is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/_cluster/health?wait_for_status=yellow", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def found_in(url: str, index: str) -> dict[str, Any]:
    httpx.post(f"{url}/{index}/_refresh", trust_env=False)
    answer = httpx.get(f"{url}/{index}/_search?size=1000&version=true", trust_env=False)
    return {one["_id"]: one for one in answer.json()["hits"]["hits"]} if answer.status_code == 200 else {}


@pytest.mark.needs("elasticsearch")
def test_documents_are_there_once_with_their_last_value(cluster: str) -> None:
    topic = unique("orders")
    one = Indexing(cluster, behavior_on_null_values="delete")
    for key, rows in (("a", [order(1), order(2)]), ("b", [order(3), None])):
        one.put(*rows, key=key, topic=topic, start=ord(key))
    one.put(order(1), key="a", topic=topic, start=ord("a"))  # an old one comes late
    assert one.refused == []
    found = found_in(cluster, topic)
    assert list(found) == ["a"] and (found["a"]["_source"]["n"], found["a"]["_version"]) == (2, ord("a") + 1)
    types = httpx.get(f"{cluster}/{topic}/_mapping", trust_env=False).json()[topic]["mappings"]["properties"]
    assert (types["at"]["type"], types["day"]["type"], types["n"]["type"]) == ("date", "date", "integer")
    one.put({"n": "no number"}, key="c", topic=topic, start=500)
    assert [offset for offset, _ in one.refused] == [500]
    one.task.close()


@pytest.mark.needs("elasticsearch")
def test_a_topic_becomes_an_index(cluster: str, kafka_shared: Broker) -> None:
    topic = unique("index")
    with connect(kafka_shared.bootstrap_servers) as worker:
        worker.send(topic, *({"n": n} for n in range(50)))
        worker.run("ElasticsearchSink", {"topics": topic, "connection.url": cluster, "key.ignore": "true"})
        eventually(lambda: len(found_in(cluster, topic)) == 50, START_S)
    assert sorted(one["_source"]["n"] for one in found_in(cluster, topic).values()) == list(range(50))
