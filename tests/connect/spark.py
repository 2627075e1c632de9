"""Connectors on a Spark cluster, a standalone master with two workers: `python -m tests.connect.spark`.

A file goes into a topic, the topic into a table of SQLite exactly once, and Datagen counts into another topic. An
executor is killed, then another one with everything below it as if its machine were gone, and then the driver. Each
time new lines must arrive within the limit. Then the driver stops in order, and an ordinary worker goes on. In the end
nothing is lost or doubled, and neither a command line nor what Spark has logged has the password.
"""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from confluent_kafka import Consumer, TopicPartition

import moldau
from moldau.admin import groups
from moldau.client import Client
from moldau.settings import write_properties
from moldau.testing import broker, eventually
from tests.connect.running import BROKER, SOURCE, settings
from tests.connect.workers import RUNNING
from tests.services import Service
from tests.spark.chaos import children, kill
from tests.spark.cluster import cluster

LIMIT_S, PATIENCE_S = 15.0, 300.0
EXECUTOR, WORKER = b"CoarseGrainedExecutorBackend", b"moldau\0connect\0"
MARK = "MOLDAU_CONNECT_ON_SPARK"
PASSWORD = "hush-hush-4711"
LINES = 50  # in each round
ON_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(Path(moldau.__file__).parents[1]),
}


@dataclass(slots=True)
class World:
    """What runs, and what was written."""

    folder: Path
    bootstrap: str
    given: dict[str, str]
    service: Service | None = None
    lines: list[str] = field(default_factory=list)

    @property
    def http(self) -> httpx.Client:
        assert self.service is not None
        return self.service.http

    def start(self, *arguments: str) -> None:
        config = self.folder / "worker.properties"
        config.write_text(write_properties(self.given))
        self.service = Service("connect", "--config", str(config), "--listen", "127.0.0.1:0", *arguments)

    def stop(self) -> None:
        assert self.service is not None and self.service.process.stdin is not None
        self.service.process.stdin.close()
        assert self.service.process.wait(PATIENCE_S) == 0
        self.service.http.close()
        self.service = None

    def create(self) -> None:
        hoist = "org.apache.kafka.connect.transforms.HoistField$Value"
        made = {
            "file": {"connector.class": SOURCE, "file": self.folder / "in.txt", "topic": "lines"},
            "table": {
                "connector.class": "JdbcSink",
                "topics": "lines",
                "connection.url": f"jdbc:sqlite:{self.database}",
                "table.name.format": "lines",
                "auto.create": "true",
                "offsets.table": "moldau_offsets",
                "transforms": "h",
                "transforms.h.type": hoist,
                "transforms.h.field": "line",
            },
            "orders": {
                "connector.class": "DatagenConnector",
                "kafka.topic": "orders",
                "quickstart": "orders",
                "max.interval": "20",
            },
        }
        for name, config in made.items():
            texts = {key: str(value) for key, value in config.items()}
            answer = self.http.put(f"/connectors/{name}/config", json=texts)
            assert answer.status_code == 201, answer.text

    @property
    def database(self) -> Path:
        return self.folder / "lines.db"

    def write(self) -> None:
        new = [f"line {len(self.lines) + number}" for number in range(LINES)]
        self.lines += new
        with (self.folder / "in.txt").open("a") as out:
            out.writelines(f"{line}\n" for line in new)

    def rows(self) -> list[str]:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(self.database, timeout=60)) as found:
            return [row[0] for row in found.execute("SELECT line FROM lines")]
        return []

    def orders(self) -> list[str]:
        """Return the keys of all committed records of Datagen's topic."""
        own = {"bootstrap.servers": self.bootstrap, "group.id": "-", "isolation.level": "read_committed"}
        consumer, place = Consumer(own, logger=None), TopicPartition("orders", 0, 0)
        with closing(consumer):
            _, end = consumer.get_watermark_offsets(place, PATIENCE_S)
            consumer.assign([place])
            found: list[str] = []
            while consumer.position([place])[0].offset < end:
                found += [(one.key() or b"").decode() for one in consumer.consume(1000, 0.2) if one.error() is None]
        return found

    def homes(self) -> dict[str, str]:
        """Return where each task runs."""
        try:
            answer = self.http.get("/connectors?expand=status").json()
        except httpx.HTTPError:
            return {}
        tasks = {name: one["status"]["tasks"] for name, one in answer.items() if "status" in one}
        return {name: task["worker_id"] for name, some in tasks.items() for task in some if task["state"] == "RUNNING"}

    def members(self) -> int:
        with Client({"bootstrap.servers": self.bootstrap}) as client:
            return len(groups.raw_members(client, self.given["group.id"]))


def processes(what: bytes, below: int | None = None) -> Iterator[int]:
    for pid in children(below or os.getpid()):
        with suppress(OSError):
            if what in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield pid


def workers_of(folder: Path) -> list[int]:
    """Return the workers of Connect in executors, also those whose executor is gone: they know a folder of this run."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "environ").read_bytes() if WORKER in (entry / "cmdline").read_bytes() else b""
            if f"{MARK}={folder}".encode() in words:
                found.append(int(entry.name))
    return found


def executors() -> dict[str, int]:
    """Return the executors that have a worker of Connect which listens, by its address."""
    found: dict[str, int] = {}
    for executor in processes(EXECUTOR):
        for worker in processes(WORKER, executor):
            found |= {f"127.0.0.1:{port}": executor for port in ports(worker)}
    return found


def ports(pid: int) -> set[int]:
    """Return the ports on which a process listens."""
    try:
        links = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return set()
    sockets = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    rows = (row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in sockets}


def check_once() -> None:
    """Fail if two workers run a task. They are asked one after the other, so ask again before believing it."""
    twice: list[str] = []
    for _ in range(3):
        found: Counter[str] = Counter()
        for address in executors():
            with suppress(httpx.HTTPError):
                page = httpx.get(f"http://{address}/metrics", timeout=30, trust_env=False).text
                found.update(f"{name}-{task}" for name, task in RUNNING.findall(page))
        twice = [name for name, count in found.items() if count > 1]
        if not twice:
            return
        time.sleep(1.0)
    raise AssertionError(f"tasks run twice: {twice}, at {executors()}")


def check_commands() -> None:
    for pid in children(os.getpid()):
        with suppress(OSError):
            assert PASSWORD.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes(), f"process {pid} shows it"


def settle(world: World) -> None:
    """Wait until two executors have workers, and both have tasks that run."""

    def is_settled() -> bool:
        there, homes = executors(), world.homes()
        return len(there) == 2 and len(homes) == 3 and set(homes.values()) == set(there)

    eventually(is_settled, PATIENCE_S, "tasks on both executors")
    check_once()
    check_commands()


def wait(world: World, orders: int, what: str, *, is_on_spark: bool = True) -> None:
    """Wait until all lines are in the table and there are more orders, and all tasks are where somebody is."""

    def is_there() -> bool:
        homes = world.homes()
        is_home = len(homes) == 3 and (not is_on_spark or set(homes.values()) <= executors().keys())
        return is_home and len(world.rows()) >= len(world.lines) and len(world.orders()) > orders

    eventually(is_there, PATIENCE_S, what)


def lose(world: World, what: str, strike: Callable[[], None], *, is_down: bool = False) -> float:
    """Strike, write lines, and return the seconds until they have arrived and Datagen goes on."""
    settle(world)
    orders = len(world.orders())
    strike()
    began = time.monotonic()
    world.write()
    if is_down:
        return 0.0
    wait(world, orders, f"the lines after {what}")
    took = time.monotonic() - began
    check_once()
    print(f"{what} was killed: all goes on after {took:.1f} s", flush=True)
    return took


def run(world: World, master: str) -> list[float]:
    world.start("--spark-master", master)
    world.create()
    world.write()
    wait(world, 0, "the first lines")
    print("connectors run in executors:", sorted(world.homes().items()), flush=True)
    took = [
        lose(world, "an executor", lambda: kill(executors()[world.homes()["table"]])),
        lose(world, "an executor's machine", lambda: kill_all(executors()[world.homes()["file"]])),
    ]
    service = world.service
    assert service is not None
    lose(world, "the driver", service.kill, is_down=True)
    eventually(lambda: not workers_of(world.folder) and not world.members(), PATIENCE_S, "that all workers end")
    print("the driver was killed: its workers have left", flush=True)
    world.start("--spark-master", master)
    settle(world)
    assert len(workers_of(world.folder)) == 2
    world.stop()
    assert not workers_of(world.folder) and not world.members(), "the driver has left something behind"
    print("the driver was stopped: nothing is left", flush=True)
    world.start()
    orders = len(world.orders())
    world.write()
    wait(world, orders, "the lines after Spark", is_on_spark=False)
    world.stop()
    return took


def kill_all(pid: int) -> None:
    for one in (pid, *children(pid)):
        kill(one)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds until all must go on after a kill")
    limit = parser.parse_args().limit
    with tempfile.TemporaryDirectory(prefix="moldau-connect-spark-") as name, broker(BROKER) as kafka:
        folder = Path(name)
        (folder / "events").mkdir()
        given = settings(kafka.bootstrap_servers) | {
            "heartbeat.interval.ms": "3000",
            "producer.sasl.password": PASSWORD,
            **ON_LOOPBACK,
            f"spark.executorEnv.{MARK}": str(folder),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "events").as_uri(),
        }
        for topic in ("lines", "orders"):
            kafka.create_topic(topic)
        world = World(folder, kafka.bootstrap_servers, given)
        try:
            with cluster(folder) as master:
                took = run(world, master)
        finally:
            if world.service is not None:
                world.service.kill()
        logs = [one for one in folder.rglob("*") if one.is_file() and one.name != "worker.properties"]
        shown = [str(one) for one in logs if PASSWORD.encode() in one.read_bytes()]
        orders = world.orders()
        wrong = [
            Counter(world.rows()) != Counter(world.lines),
            orders != [str(number) for number in range(len(orders))],
        ]
        print(
            f"{len(world.lines)} lines and {len(orders)} orders, longest {max(took):.1f} s; "
            f"table {'wrong' if wrong[0] else 'right'}, topic {'wrong' if wrong[1] else 'right'}, "
            f"{len(shown)} of {len(logs)} files show the password"
        )
        return 1 if any(wrong) or shown or max(took) > limit else 0


if __name__ == "__main__":
    sys.exit(main())
