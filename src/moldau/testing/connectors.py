"""Connectors in tests: a standalone worker in this process, on a real broker. The fixture `connect` has one.

def test_weather(connect):
    connect.run(weather, topic="weather", url=...)
    assert [one.value["city"] for one in connect.records("weather", 2)] == ["Prague", "Melnik"]
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.connect import plugins, standalone
from moldau.connect.sdk import Sink, Source
from moldau.connect.starting import service_settings
from moldau.http.serve import BACKLOG, Server, bind, parse_listen
from moldau.testing.process import eventually

PATIENCE_S = 120.0
COUNT = itertools.count(1)
WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "offset.flush.interval.ms": "100",
}


@dataclass(frozen=True, slots=True)
class Received:
    """A record of a topic; the value is what its JSON says, or a text."""

    key: str | None
    value: Any


class Connect:
    """A worker that runs connectors of a test. Keys are texts and values JSON, unless a connector says otherwise."""

    def __init__(self, url: str, bootstrap_servers: str) -> None:
        self.url, self.bootstrap_servers = url, bootstrap_servers
        self._http = httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False)

    def run(self, connector: Source | Sink | str, config: Mapping[str, Any] | None = None, **settings: Any) -> str:
        """Start a connector, a function of the test or a class by its name; return its name when its tasks run.

        Settings are written with underscores, `batch_size=10`, or as a mapping.
        """
        plugin = connector if isinstance(connector, str) else plugins.register(connector).class_name
        given = {**{name.replace("_", "."): value for name, value in settings.items()}, **(config or {})}
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
        texts |= {name: ",".join(map(str, value)) for name, value in given.items() if isinstance(value, list | tuple)}
        name = texts.get("name") or f"connector-{next(COUNT)}"
        body = {"name": name, "config": {"connector.class": plugin, **texts, "name": name}}
        answer = self._http.post("/connectors", json=body)
        assert answer.status_code == 201, answer.json().get("message")
        eventually(lambda: self._runs(name), PATIENCE_S, f"the start of {name}")
        return name

    def _runs(self, name: str) -> bool:
        self._check()
        tasks = self.states(name)
        return bool(tasks) and all(state == "RUNNING" for state in tasks)

    def states(self, name: str) -> list[str]:
        """Return the states of a connector's tasks; an assertion fails with the trace if the connector itself has."""
        answer = self._http.get(f"/connectors/{name}/status")
        found = answer.json() if answer.status_code == 200 else {"connector": {"state": ""}, "tasks": []}
        assert found["connector"]["state"] != "FAILED", found["connector"].get("trace")
        return [task["state"] for task in found["tasks"]]

    def failure(self, name: str) -> str:
        """Wait until a task has failed, and return its trace."""
        eventually(lambda: "FAILED" in self.states(name), PATIENCE_S, f"a failure of {name}")
        tasks = self._http.get(f"/connectors/{name}/status").json()["tasks"]
        return next(task["trace"] for task in tasks if task["state"] == "FAILED")

    def offsets(self, name: str) -> list[dict[str, Any]]:
        return self._http.get(f"/connectors/{name}/offsets").json()["offsets"]

    def delete(self, name: str) -> None:
        """Delete a connector, and wait until its tasks have ended."""
        assert self._http.delete(f"/connectors/{name}").status_code == 204
        eventually(lambda: not self.states(name), PATIENCE_S, f"the end of {name}")

    def send(self, topic: str, *values: Any, key: str | None = None) -> None:
        """Write values to a topic, as JSON."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for value in values:
            producer.produce(topic, None if value is None else json.dumps(value).encode(), key)
        assert producer.flush(PATIENCE_S) == 0

    def records(self, topic: str, count: int) -> list[Received]:
        """Wait until a topic has so many records, and return them, partition by partition."""
        given = {"group.id": "-", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, **given})
        try:
            return self._read(consumer, topic, count)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, topic: str, count: int) -> list[Received]:
        found: dict[tuple[int, int], Received] = {}

        def enough() -> bool:
            self._check()
            if not consumer.assignment():
                known = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
                consumer.assign([TopicPartition(topic, number, 0) for number in known])
            for one in consumer.consume(1000, 0.1):
                if one.error() is None:
                    found[one.partition() or 0, one.offset() or 0] = received(one.key(), one.value())
            return len(found) >= count

        eventually(enough, PATIENCE_S, f"the arrival of {count} records in {topic}")
        return [one for _, one in sorted(found.items())]

    def _check(self) -> None:
        """Fail with the trace of a task that has failed: nothing will come of it."""
        for name, one in self._http.get("/connectors?expand=status").json().items():
            for task in one.get("status", {}).get("tasks", ()):
                assert task["state"] != "FAILED", f"{name} has failed: {task.get('trace')}"

    def close(self) -> None:
        self._http.close()


def received(key: Any, value: Any) -> Received:
    text = None if value is None else bytes(value).decode("utf-8", "replace")
    try:
        read = None if text is None else json.loads(text)
    except ValueError:
        read = text
    return Received(None if key is None else bytes(key).decode("utf-8", "replace"), read)


@contextmanager
def connect(bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> Iterator[Connect]:
    """Run a standalone worker with a REST interface, for the length of a `with`."""
    with tempfile.TemporaryDirectory(prefix="moldau-connect-") as folder:
        file = {standalone.FILE: str(Path(folder) / "offsets"), "bootstrap.servers": bootstrap_servers}
        given = {**WORKER, **file, **(settings or {})}
        made = service_settings(given)
        bound, place = bind(parse_listen("127.0.0.1:0", made))
        bound.listen(BACKLOG)
        try:
            with standalone.worker(made, given, [], place) as app:
                server = Server(app, place, made)
                thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])), daemon=True)
                thread.start()
                started = Connect(place.url, bootstrap_servers)
                try:
                    yield started
                finally:
                    started.close()
                    server.should_exit = True
                    thread.join()
        finally:
            bound.close()
