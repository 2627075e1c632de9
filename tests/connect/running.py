"""A worker of Connect in this process, as tests have it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from moldau.connect import process, starting
from moldau.connect.worker import Worker
from moldau.http.serve import BACKLOG, Server, bind, parse_listen
from tests.services import unique

BROKER = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
STRING = "org.apache.kafka.connect.storage.StringConverter"
SOURCE, SINK = "FileStreamSource", "FileStreamSink"
PATIENCE_S = 180.0


class Running:
    """A worker that serves REST. `worker` is the object itself."""

    def __init__(self, url: str, worker: Worker, given: Mapping[str, str]) -> None:
        self.url, self.worker, self.given = url, worker, given
        auth = ("ana", "secret") if given.get("authentication.method") == "BASIC" else None
        self.http = httpx.Client(base_url=url, timeout=60.0, trust_env=False, auth=auth)

    def create(self, name: str, **config: Any) -> httpx.Response:
        named = {key.replace("_", "."): str(value) for key, value in config.items()}
        answer = self.http.post("/connectors", json={"name": name, "config": named})
        assert answer.status_code == 201, answer.text
        return answer

    def status(self, name: str) -> tuple[str, list[str]]:
        """The state of a connector, and those of its tasks."""
        answer = self.http.get(f"/connectors/{name}/status")
        if answer.status_code == 404:
            return "", []
        found = answer.json()
        return found["connector"]["state"], [task["state"] for task in found["tasks"]]

    def await_status(self, name: str, state: str, *tasks: str) -> None:
        eventually(lambda: self.status(name), (state, list(tasks)))

    def trace(self, name: str, task: int = 0) -> str:
        return self.http.get(f"/connectors/{name}/status").json()["tasks"][task]["trace"]


def eventually(look: Callable[[], Any], wanted: Any) -> None:
    """Wait until `look` returns what is wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) != wanted:
        assert time.monotonic() < deadline, f"{found!r} is not {wanted!r}"
        time.sleep(0.02)


def settings(bootstrap_servers: str, **more: str) -> dict[str, str]:
    """Settings of a worker with topics and a group of its own."""
    name = unique("connect")
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": name,
        **{f"{what}.storage.topic": f"{name}-{what}" for what in ("config", "offset", "status")},
        "offset.storage.partitions": "2",
        "status.storage.partitions": "2",
        "key.converter": STRING,
        "value.converter": STRING,
        "offset.flush.interval.ms": "200",
        "heartbeat.interval.ms": "200",
        "exactly.once.source.support": "enabled",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@contextmanager
def running(given: Mapping[str, str], **more: Any) -> Iterator[Running]:
    made = starting.service_settings(given)
    bound, place = bind(parse_listen("127.0.0.1:0", made))
    bound.listen(BACKLOG)
    found: list[Worker] = []

    class Watched(Worker):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            found.append(self)

    original, process.Worker = process.Worker, Watched  # type: ignore[misc]
    try:
        context = process.worker(made, given, place, **more)
        app = context.__enter__()
    finally:
        process.Worker = original  # type: ignore[misc]
    server = Server(app, place, made)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])), daemon=True)
    thread.start()
    one = Running(place.url, found[0], given)
    try:
        yield one
    finally:
        one.http.close()
        server.should_exit = True
        thread.join()
        context.__exit__(None, None, None)
        bound.close()
