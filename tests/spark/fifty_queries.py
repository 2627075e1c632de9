"""Fifty persistent queries of SQL in bundles, under load: some fail, pause, come and go, and no other query notices.

`python -m tests.spark.fifty_queries [--queries N] [--kill]`. Two servers of one service get the statements in turn. For
every ten queries one loses its input, one is paused, two are created and two are terminated; with `--kill` the worker
is killed meanwhile. The outputs of all others must be complete, once and in order, what was paused must catch up when
it is resumed, and without a kill no Spark query may have been started again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from moldau.client import Client
from moldau.testing import broker
from tests.spark.chaos import KEYS, PARTITIONS, Driver, Feed, make_topics
from tests.spark.chaos_flows import SPARK
from tests.spark.sql_servers import Server

RATE = 20  # numbers a second, for each query
WAIT_S = 900.0
SOURCE = "CREATE STREAM {} (k STRING KEY, v BIGINT) WITH (kafka_topic='{}', value_format='DELIMITED');"


@dataclass(frozen=True)
class Kind:
    """A query: its text, whether it makes a table, and which key and how manieth value a number makes there."""

    text: str
    table: bool = False
    key: Callable[[int], str] = lambda number: str(number % KEYS)
    count: Callable[[int], int] = lambda value: value // KEYS + 1


KINDS = {
    "filter": Kind("SELECT k, v AS n FROM {fed} WHERE v >= 0"),
    "project": Kind("SELECT k, v + 0 AS n FROM {fed}"),
    "count": Kind("SELECT k, COUNT(*) AS n FROM {fed} GROUP BY k", table=True, count=int),
    "rekey": Kind(
        "SELECT CAST(v AS STRING) AS w, v AS n FROM {fed} PARTITION BY CAST(v AS STRING)", key=str, count=lambda v: 1
    ),
    "other key": Kind(
        "SELECT CAST(CAST(k AS INT) % 7 AS STRING) AS g, COUNT(*) AS n FROM {fed} "
        "GROUP BY CAST(CAST(k AS INT) % 7 AS STRING)",
        table=True,
        key=lambda number: str(number % KEYS % 7),
        count=int,
    ),
    "join": Kind(
        "SELECT a.k AS k, a.v AS n FROM {fed} a JOIN other b WITHIN 0 SECONDS GRACE PERIOD 1 DAY ON a.k = b.k"
    ),
}


@dataclass(slots=True)
class Query:
    number: int
    kind: str
    fed: str = "fed"
    id: str = ""

    @property
    def target(self) -> str:
        return f"out{self.number}"

    @property
    def statement(self) -> str:
        kind = KINDS[self.kind]
        what, text = "TABLE" if kind.table else "STREAM", kind.text.format(fed=self.fed)
        given = f"kafka_topic='{self.target}', key_format='KAFKA', value_format='JSON', partitions={PARTITIONS}"
        return f"CREATE {what} q{self.number} WITH ({given}) AS {text} EMIT CHANGES;"


def queries(count: int, first: int = 0) -> list[Query]:
    names = list(KINDS)
    return [Query(number, names[number % len(names)]) for number in range(first, first + count)]


class Judge:
    """Reads the outputs of queries, committed records only: each key must have 1, 2, 3, ..."""

    def __init__(self, servers: str) -> None:
        self.queries: dict[str, Query] = {}
        self.last: dict[str, Counter[str]] = {}
        self.wrong: Counter[str] = Counter()
        given = {"group.id": "judge", "isolation.level": "read_committed", "log_level": 0, "enable.auto.commit": False}
        self.consumer = Consumer({"bootstrap.servers": servers, "auto.offset.reset": "earliest", **given})

    def add(self, query: Query) -> None:
        self.queries[query.target] = query
        self.consumer.incremental_assign([TopicPartition(query.target, part, 0) for part in range(PARTITIONS)])

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self.consumer.consume(2000, 0.2):
                if not message.error():
                    query = self.queries[message.topic() or ""]
                    key, value = (message.key() or b"").decode(), json.loads(message.value() or b"{}")
                    last, count = self.last.setdefault(query.target, Counter()), KINDS[query.kind].count(value["N"])
                    self.wrong[query.target] += count != last[key] + 1
                    last[key] = count

    def written(self, query: Query) -> int:
        return self.last.get(query.target, Counter()).total()

    def mistakes(self, living: list[Query], fed: int) -> dict[str, str]:
        found: dict[str, str] = {}
        for query in living:
            wanted = Counter(KINDS[query.kind].key(number) for number in range(fed))
            if self.wrong[query.target] or self.last.get(query.target) != wanted:
                missing = fed - self.written(query)
                found[query.target] = f"{query.kind}: {self.wrong[query.target]} wrong, {missing} missing"
        return found


class Trial:
    """A worker, two servers, and what becomes of their queries."""

    def __init__(self, servers: str, folder: Path, client: Client, stack: ExitStack) -> None:
        make_topics(servers, "in", "right", "brief")
        self.client, self.stack = client, stack
        self.one, self.two = (Server(client, "fifty_", stack) for _ in range(2))
        self.one.do(*(SOURCE.format(*names) for names in (("fed", "in"), ("other", "right"), ("brief", "brief"))))
        self.judge = Judge(servers)
        stack.callback(self.judge.consumer.close)
        self.feed = Feed(servers, "in", "right", rate=RATE)
        line = ("moldau", "worker", "-b", servers, "--state-dir", str(folder / "state"), *SPARK)
        self.worker = Driver(str(folder), *line)
        stack.callback(self.worker.stop)
        self.began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:5.0f} s  {text}", flush=True)

    def create(self, some: list[Query]) -> None:
        for query in some:
            query.id = (self.one, self.two)[query.number % 2].query_id(query.statement)
            self.judge.add(query)

    def until(self, state: str, some: list[Query]) -> None:
        deadline = time.monotonic() + WAIT_S
        while late := [query for query in some if self.two.states().get(query.id) != f"{state}:1"]:
            self.worker.check()
            assert time.monotonic() < deadline, f"{len(late)} are not {state}: {late[0]}\n{self.worker.tail()}"
            self.judge.read(1.0)
        self.say(f"{len(some)} queries are {state}")

    def restarts(self) -> dict[str, int]:
        found = {name: self.one.service.states.of(group) for name, group in self.one.groups().items()}
        return {name: said.restarts for name, said in found.items() if said is not None and said.restarts}

    def run(self, count: int, kill: bool) -> dict[str, Any]:
        some, tenth = queries(count), max(1, count // 10)
        failing = [Query(1000 + number, "project", fed="brief") for number in range(tenth)]
        self.create([*some, *failing])
        self.until("RUNNING", [*some, *failing])
        paused, terminated = some[:tenth], some[tenth : 3 * tenth]
        later = queries(2 * tenth, first=count)
        living = [query for query in [*some, *later] if query not in terminated]
        self.two.do(*(f"PAUSE {query.id};" for query in paused))
        self.create(later)
        self.one.do(*(f"TERMINATE {query.id};" for query in terminated))
        self.two.service.topics.delete("brief")
        if kill:
            self.worker.restart()
            self.say("the worker was killed, and another one started")
        self.until("PAUSED", paused)
        self.until("ERROR", failing)
        self.two.do(*(f"RESUME {query.id};" for query in paused))
        self.until("RUNNING", living)
        fed, deadline = self.feed.finish(), time.monotonic() + WAIT_S
        while any(self.judge.written(query) < fed for query in living) and time.monotonic() < deadline:
            self.worker.check()
            self.judge.read(1.0)
        mistakes: dict[str, Any] = self.judge.mistakes(living, fed)
        while any(self.one.said(query.id) for query in terminated) and time.monotonic() < deadline:
            time.sleep(0.5)
        mistakes |= {query.target: "is still there" for query in terminated if self.one.said(query.id)}
        if not kill and (again := self.restarts()):
            mistakes["restarts"] = again
        third = Server(self.client, "fifty_", self.stack)
        if not self.one.catalogue() == self.two.catalogue() == third.catalogue():
            mistakes["catalogue"] = "servers disagree"
        self.say(f"{fed} numbers through {len(living)} queries of {len(KINDS)} kinds, {len(mistakes)} mistakes")
        return mistakes


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.spark.fifty_queries", description=__doc__)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--kill", action="store_true")
    given, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="moldau-fifty-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        servers = stack.enter_context(broker()).bootstrap_servers
        client = stack.enter_context(Client({"bootstrap.servers": servers}))
        trial = Trial(servers, folder, client, stack)
        mistakes = trial.run(given.queries, given.kill)
        if mistakes:
            print(mistakes, trial.worker.tail(), sep="\n")
        return bool(mistakes)


if __name__ == "__main__":
    sys.exit(main())
