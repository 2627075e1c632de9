"""Workers of Connect as processes, as the longer tests have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.services import Service

RUNNING = re.compile(r'connector_task_metrics_status\{connector="([^"]+)",status="running",task="(\d+)"\} 1\.0')


class Workers:
    """Workers of one group. Any of them answers; one that is killed is started again under the same number."""

    def __init__(self, count: int, bootstrap_servers: str, settings: Mapping[str, str], *options: str) -> None:
        self._options = ("--bootstrap-servers", bootstrap_servers, "--listen", "127.0.0.1:0", *options)
        self._settings = tuple(f"{name}={text}" for name, text in settings.items() if name != "bootstrap.servers")
        self.services: list[Service | None] = [None] * count
        for number in range(count):
            self.start(number)

    def start(self, number: int) -> None:
        self.services[number] = Service("connect", *self._options, settings=self._settings, trust_env=False)

    def kill(self, number: int) -> None:
        service, self.services[number] = self.services[number], None
        assert service is not None
        service.kill()

    def close(self) -> None:
        with ExitStack() as stack:
            for one in self.services:
                if one is not None:
                    stack.callback(one.kill)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        """Ask the first that answers; None if nobody does."""
        for one in self.services:
            if one is not None:
                with suppress(httpx.HTTPError):
                    return one.http.request(method, path, **more)
        return None

    def create(self, name: str, config: Mapping[str, Any]) -> None:
        texts = {key: str(value) for key, value in config.items()}
        answer = self.ask("PUT", f"/connectors/{name}/config", json=texts)
        assert answer is not None and answer.status_code in (200, 201), answer and answer.text

    def states(self) -> Counter[str]:
        """Count the tasks by state."""
        answer = self.ask("GET", "/connectors?expand=status")
        if answer is None or answer.status_code != 200:
            return Counter()
        return Counter(task["state"] for one in answer.json().values() for task in one["status"]["tasks"])

    def carried(self) -> dict[str, list[int]]:
        """Return which workers say that they run a task, by its name."""
        found: dict[str, list[int]] = {}
        for number, one in enumerate(self.services):
            if one is not None:
                for name, task in RUNNING.findall(one.http.get("/metrics").text):
                    found.setdefault(f"{name}-{task}", []).append(number)
        return found


@contextmanager
def workers(count: int, bootstrap_servers: str, settings: Mapping[str, str], *options: str) -> Iterator[Workers]:
    made: Workers | None = None
    try:
        made = Workers(count, bootstrap_servers, settings, *options)
        yield made
    finally:
        if made is not None:
            made.close()


class Followed:
    """What topics of one partition hold, read as it comes; only what is committed."""

    def __init__(self, bootstrap_servers: str, topics: list[str]) -> None:
        given = {"bootstrap.servers": bootstrap_servers, "group.id": "-", "isolation.level": "read_committed"}
        given |= {"enable.auto.commit": "false", "enable.partition.eof": "true"}
        self._consumer = Consumer(given, logger=None)
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
        self.values: dict[str, list[str]] = {topic: [] for topic in topics}

    def read(self) -> dict[str, list[str]]:
        while found := self._consumer.consume(10_000, 0.1):
            for one in found:
                if one.error() is None:
                    self.values[one.topic() or ""].append((one.value() or b"").decode())
        return self.values

    def read_all(self) -> dict[str, list[str]]:
        """Read to the end that the topics have now, however long a fetch takes."""
        left = set(self.values)
        while left:
            for one in self._consumer.consume(10_000, 1.0):
                error = one.error()
                if error is None:
                    self.values[one.topic() or ""].append((one.value() or b"").decode())
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(one.topic() or "")
        return self.values

    def close(self) -> None:
        self._consumer.close()


def once(look: Callable[[], Any]) -> Callable[[], bool]:
    """Make a condition of a look that may fail while something is being restarted."""

    def is_so() -> bool:
        try:
            return bool(look())
        except (httpx.HTTPError, OSError):
            return False

    return is_so
