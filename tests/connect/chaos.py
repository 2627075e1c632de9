"""Kills under source -> topic -> sink: `python -m tests.connect.chaos --page docs/connect/chaos.md`.

Three chains run: lines of a file through a topic into a table of PostgreSQL (exactly once on both ends), rows of a
table through a topic into Redis (exactly once on both ends), and the same rows into a file (at least once). In each
round there are new lines and rows, and something is killed while they are under way. In the end nothing may be lost
anywhere, and nothing doubled where it is promised. There are two fleets: two workers, whose connectors of files are
Apache Kafka's own in a JVM beside each, and two executors of a standalone Spark master.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis

from moldau.testing import Broker, broker, eventually
from moldau.testing.ports import free_port
from tests.connect.running import BROKER, SINK, SOURCE, STRING, settings
from tests.connect.spark import EXECUTOR, ON_LOOPBACK, WORKER, processes
from tests.connect.systems import started
from tests.connect.workers import Followed, Workers, workers
from tests.needs import KAFKA_VERSION, find
from tests.spark.chaos import kill
from tests.spark.cluster import cluster
from tests.spark.postgres import postgres

PATIENCE_S = 300.0
JVM = b"moldau.connect.Host"
JSON = "org.apache.kafka.connect.json.JsonConverter"
RESTARTS = {"errors.restart.max": "1000", "errors.restart.delay.ms": "500"}


@dataclass(slots=True)
class World:
    """All that runs, and what was put into it."""

    kafka: Broker
    group: Workers
    dsn: str
    redis_port: int
    folder: Path
    stack: ExitStack
    size: int
    lines: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    redis: Any = None

    # What is put in.

    def add(self, round: int) -> None:
        new = [f"{round}-{n}" for n in range(self.size)]
        with (self.folder / "in.txt").open("a") as out:
            out.writelines(f"{line}\n" for line in new)
        self.lines += new
        start = len(self.rows) + 1
        with psycopg.connect(self.dsn) as line, line.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO made (id, word) VALUES (%s, %s)", [(start + n, "w") for n in range(self.size)]
            )
        self.rows += range(start, start + self.size)

    # What comes out.

    def table(self) -> list[str]:
        with psycopg.connect(self.dsn) as line:
            found = line.execute("SELECT to_regclass('lines')").fetchone()
            if found is None or found[0] is None:
                return []
            return [row[0] for row in line.execute("SELECT line FROM lines")]

    def written(self) -> list[int]:
        file = self.folder / "out.txt"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def keys(self) -> set[int]:
        client = redis.Redis(port=self.redis_port)
        return {int(key) for key in client.scan_iter(count=10_000) if not key.startswith(b"__")}

    def is_all_there(self) -> bool:
        try:
            return (
                len(self.table()) >= len(self.lines)
                and set(self.written()) >= set(self.rows)
                and self.keys() >= set(self.rows)
            )
        except (psycopg.Error, redis.RedisError):
            return False

    # Faults.

    def kill_worker(self, chance: random.Random) -> None:
        number = chance.randrange(len(self.group.services))
        self.group.kill(number)
        time.sleep(chance.random())
        self.group.start(number)

    def kill_broker(self, chance: random.Random) -> None:
        self.kafka.kill()
        time.sleep(chance.random() * 2)
        self.kafka.start()

    def kill_postgres(self, chance: random.Random) -> None:
        """Stop at once, without a checkpoint: it recovers from its log."""
        data = Path(self.dsn.split()[0].removeprefix("host=")) / "data"
        who: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
        control = ["pg_ctl", "--pgdata", str(data), "--wait", "--timeout", "240"]
        quiet: dict[str, Any] = {"check": True, "cwd": data, "stdout": subprocess.DEVNULL, **who}
        subprocess.run([*control, "--mode", "immediate", "stop"], **quiet)
        time.sleep(chance.random())
        options = f"-c listen_addresses= -c unix_socket_directories={data.parent} -c fsync=off"
        subprocess.run([*control, "--log", str(data.parent / "log"), "--options", options, "start"], **quiet)


Fault = Callable[[World, random.Random], None]


def killing(find: Callable[[], Iterator[int]]) -> Fault:
    """Kill one of these processes, once there is one."""

    def strike(world: World, chance: random.Random) -> None:
        found: list[int] = []

        def is_one() -> bool:
            found[:] = find()
            return bool(found)

        eventually(is_one, PATIENCE_S, "something to kill")
        kill(chance.choice(sorted(found)))

    return strike


def python_workers() -> Iterator[int]:
    for executor in processes(EXECUTOR):
        yield from processes(WORKER, executor)


@dataclass(frozen=True)
class Fleet:
    """Where connectors run, and what can be killed there."""

    title: str
    count: int  # of processes that serve REST
    faults: Mapping[str, Fault]
    is_on_spark: bool = False

    @contextmanager
    def running(self, kafka: Broker, folder: Path) -> Iterator[Workers]:
        given = settings(kafka.bootstrap_servers) | {"heartbeat.interval.ms": "1000", "session.timeout.ms": "6000"}
        with ExitStack() as stack:
            options: tuple[str, ...] = ()
            if self.is_on_spark:
                given |= ON_LOOPBACK
                options = ("--spark-master", stack.enter_context(cluster(folder)))
            else:
                libs = find("connect-jars").path
                assert libs is not None, "the jars of Connect are missing"
                given |= {
                    "plugin.path": str(libs / f"connect-file-{KAFKA_VERSION}.jar"),
                    "moldau.plugin.libs": str(libs),
                }
            yield stack.enter_context(workers(self.count, kafka.bootstrap_servers, given, *options))


OUTSIDE: dict[str, Fault] = {"broker": World.kill_broker, "database": World.kill_postgres}
FLEETS = {
    "workers": Fleet(
        "Two workers", 2, {"worker": World.kill_worker, "JVM": killing(lambda: processes(JVM)), **OUTSIDE}
    ),
    "spark": Fleet(
        "Two executors of a standalone Spark master",
        1,
        {
            "driver": World.kill_worker,
            "executor": killing(lambda: processes(EXECUTOR)),
            "Python worker": killing(python_workers),
            **OUTSIDE,
        },
        is_on_spark=True,
    ),
}


def connectors(world: World) -> dict[str, dict[str, Any]]:
    url = f"jdbc:postgresql:///postgres?host={world.dsn.split()[0].removeprefix('host=')}&user=test"
    hoist = {
        "transforms": "h",
        "transforms.h.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.h.field": "line",
    }
    pick = {"transforms": "k", "transforms.k.type": "org.apache.kafka.connect.transforms.ExtractField$Value"}
    keyed = {
        "transforms": "k,f",
        "transforms.k.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.k.fields": "id",
        "transforms.f.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.f.field": "id",
    }
    place = {"connection.url": url, "connection.attempts": "1000", "connection.backoff.ms": "500"}
    rows = {"value.converter": JSON, "value.converter.schemas.enable": "true"}
    return {
        "file-source": {"connector.class": SOURCE, "file": world.folder / "in.txt", "topic": "lines"},
        "jdbc-sink": {
            "connector.class": "JdbcSink",
            "topics": "lines",
            "table.name.format": "lines",
            "auto.create": "true",
            "offsets.table": "moldau_offsets",
            "max.retries": "1000",
            "retry.backoff.ms": "500",
            **place,
            **hoist,
        },
        "jdbc-source": {
            "connector.class": "JdbcSource",
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "table.whitelist": "made",
            "topic.prefix": "rows-",
            "poll.interval.ms": "200",
            **place,
            **rows,
            **keyed,
        },
        "redis-sink": {
            "connector.class": "RedisSink",
            "topics": "rows-made",
            "redis.hosts": f"127.0.0.1:{world.redis_port}",
            "value.converter": STRING,
        },
        "file-sink": {
            "connector.class": SINK,
            "topics": "rows-made",
            "file": world.folder / "out.txt",
            **rows,
            **pick,
            "transforms.k.field": "id",
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleet", choices=tuple(FLEETS), action="append", help="only this (repeatable)")
    parser.add_argument("--rounds", type=int, default=100, help="kills in each fleet")
    parser.add_argument("--minutes", type=float, default=30.0, help="of a fleet: no further round begins after so long")
    parser.add_argument("--size", type=int, default=1000, help="lines and rows of a round")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    found = [campaign(FLEETS[name], given) for name in given.fleet or FLEETS]
    text = "\n".join([*HEAD, *(line for lines, _ in found for line in lines), ""])
    print(text)
    if given.page is not None:
        given.page.write_text(text)
    return 1 if any(wrong for _, wrong in found) else 0


HEAD = (
    "# Connectors under kills",
    "`make chaos-connect` kills what a fleet of workers consists of, the broker or the database while records are",
    "under way, and counts what arrives. The rows of PostgreSQL have a number each; Redis has the last value of each",
    "key. Two workers run Apache Kafka's own connectors for files, each in a JVM beside it; on Spark a worker runs in",
    "each executor. Whatever was killed, all records of a round must have arrived before the next one begins.",
)


def campaign(fleet: Fleet, given: argparse.Namespace) -> tuple[list[str], int]:
    """Return a section of the page, and how many records are not as promised."""
    with tempfile.TemporaryDirectory(prefix="moldau-chaos-") as folder, ExitStack() as stack:
        port = free_port()
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        stack.enter_context(started(command, port))
        dsn, kafka = stack.enter_context(postgres()), stack.enter_context(broker(BROKER))
        for topic in ("lines", "rows-made"):
            kafka.create_topic(topic)
        with psycopg.connect(dsn) as line:
            line.execute("CREATE TABLE made (id BIGINT PRIMARY KEY, word TEXT)")
        (Path(folder) / "in.txt").write_text("")
        group = stack.enter_context(fleet.running(kafka, Path(folder)))
        world = World(kafka, group, dsn, port, Path(folder), stack, given.size)
        for name, config in connectors(world).items():
            group.create(name, {**config, **RESTARTS})
        run(world, fleet, given)
        rows, wrong = report(world)
        kills = ", ".join(f"{count} of the {name}" for name, count in sorted(world.kills.items()))
        print(*rows, sep="\n", flush=True)
        return ["", f"## {fleet.title}", f"Kills: {kills or 'none'}.", "", *rows], wrong


def run(world: World, fleet: Fleet, given: argparse.Namespace) -> None:
    chance, begun = random.Random(f"{given.seed}{fleet.title}"), time.monotonic()
    for number in range(given.rounds):
        if time.monotonic() - begun > given.minutes * 60:
            break
        world.add(number)
        time.sleep(chance.random() ** 3 * 2)  # half of all within a quarter of a second, when little has arrived yet
        name, struck = chance.choice(list(fleet.faults)), time.monotonic()
        fleet.faults[name](world, chance)
        world.kills[name] += 1
        try:
            eventually(world.is_all_there, PATIENCE_S, f"everything after round {number} ({name} killed)")
        except AssertionError:
            answer = world.group.ask("GET", "/connectors?expand=status")
            print(answer and answer.text[:4000])
            print(*report(world)[0], sep="\n")
            raise
        print(f"round {number}: {name} killed, all there after {time.monotonic() - struck:.1f} s", flush=True)


def report(world: World) -> tuple[list[str], int]:
    """Count what was lost and doubled, at each end and in each topic."""
    followed = Followed(world.kafka.bootstrap_servers, ["lines", "rows-made"])
    topics = followed.read_all()
    followed.close()
    ids = [json.loads(value)["payload"]["id"] for value in topics["rows-made"]]
    ends = [
        ("file to topic", "exactly once", Counter(topics["lines"]), world.lines),
        ("topic to PostgreSQL", "exactly once", Counter(world.table()), world.lines),
        ("PostgreSQL to topic", "exactly once", Counter(ids), world.rows),
        ("topic to Redis", "exactly once", Counter(world.keys()), world.rows),
        ("topic to file", "at least once", Counter(world.written()), world.rows),
    ]
    rows, wrong = ["| way | promised | records | lost | doubled |", "|---|---|---|---|---|"], 0
    for name, promise, found, expected in ends:
        lost = sum(found[one] == 0 for one in expected)
        doubled = sum(count - 1 for count in found.values() if count > 1) + len(set(found) - set(expected))
        wrong += lost + (doubled if promise == "exactly once" else 0)
        rows.append(f"| {name} | {promise} | {len(expected)} | {lost} | {doubled} |")
    return rows, wrong


if __name__ == "__main__":
    sys.exit(main())
