"""Two servers of one service, of which one after the other is killed: nothing is lost, and all know the same.

`python -m tests.sql.two_servers [--runtime local|spark] [--kills N] [--seed N]`. Statements go to both servers at once,
some of them with the same name. Rows are inserted through both, and two queries read them. A server is killed with
SIGKILL and started again, in turn the one and the other; a third is started at the end. Then
- every statement that was acknowledged holds on all servers, in one order; of two with one name exactly one does,
- every row that was acknowledged is in its topic once, and none is there twice,
- a pull query that waits for what was written finds it, whichever server is asked,
- the queries have made of the topic what is in it. On Spark each result is there once; a local query may write results
  of its last second twice if its server is killed, but its table is right.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
from confluent_kafka import Consumer, KafkaError, TopicPartition

from moldau.testing import broker
from tests.services import Service
from tests.spark.chaos import Driver
from tests.spark.chaos_flows import SPARK

SERVICE_ID = "two_"
PARTITIONS, KEYS = 2, 5
WAIT_S = 600.0
MOST_STATEMENTS, MOST_ROWS = 20_000, 50_000  # of a sender, and in all: more than any run needs
TICK_S = 0.2  # between two moments at which both senders create the same name
PAUSE_S = 0.05  # between two statements of a sender, and two batches of rows
BATCH = 10  # rows that are inserted at a time
BETWEEN = 15  # acknowledged statements between two kills
QUERIES = (
    f"CREATE STREAM fed (k STRING KEY, v BIGINT) WITH (kafka_topic='fed', format='JSON', partitions={PARTITIONS});"
    "CREATE STREAM copied AS SELECT k, v FROM fed;"
    "CREATE TABLE counted AS SELECT k, COUNT(*) AS n FROM fed GROUP BY k;"
)
STREAM = "CREATE STREAM {0} (k STRING KEY, v INT) WITH (kafka_topic='any', value_format='JSON', partitions=1);"
EXISTS = "already exists"
TOO_LATE = 41700  # the code of a pull query that has waited in vain


class Place:
    """Where a server is: killed and started again, it has another process and another address."""

    def __init__(self, bootstrap: str, runtime: str) -> None:
        where = ("--bootstrap-servers", bootstrap, "--listen", "127.0.0.1:0")
        settings = (
            f"ksql.service.id={SERVICE_ID}",
            f"ksql.runtime={runtime}",
            "ksql.streams.auto.offset.reset=earliest",
        )
        self.start_one: Callable[[], Service] = lambda: Service("sql", "server", *where, settings=settings)
        self.service = self.start_one()

    def kill(self) -> None:
        """Kill the process alone: whoever has sent a request to it finds that out."""
        self.service.process.kill()
        self.service.process.wait()

    def restart(self) -> None:
        self.service = self.start_one()

    def do(self, text: str, after: int = -1) -> list[dict[str, Any]] | str | None:
        """Return the entities of an answer, the message of a refusal, or None if nobody knows what came of it."""
        try:
            answer = self.service.http.post("/ksql", json={"ksql": text, "commandSequenceNumber": after})
        except httpx.TransportError:
            return None
        return answer.json() if answer.status_code == 200 else answer.json()["message"]

    def must(self, text: str, after: int = -1) -> list[dict[str, Any]]:
        done = self.do(text, after)
        assert isinstance(done, list), f"{text}: {done}"
        return done

    def pulled(self, text: str) -> list[list[Any]]:
        parts = self.service.http.post("/query", json={"ksql": text}).json()
        return sorted(part["row"]["columns"] for part in parts if "row" in part)

    def own_write(self, key: str) -> list[list[Any]]:
        """Insert a row and look it up: WAIT UNTIL gives up after a minute, and is tried again then."""
        self.must(f"INSERT INTO fed VALUES ('{key}', -1);")
        query = f"SELECT k, n FROM counted WHERE k = '{key}' WAIT UNTIL LATEST TIMEOUT 60 SECONDS;"
        deadline = time.monotonic() + WAIT_S
        while True:
            answer = self.service.http.post("/query", json={"ksql": query}, timeout=WAIT_S)
            if answer.status_code == 200:
                return [part["row"]["columns"] for part in answer.json() if "row" in part]
            assert answer.json()["error_code"] == TOO_LATE and time.monotonic() < deadline, answer.text

    def await_counts(self, wanted: list[list[Any]]) -> None:
        pulled: Callable[[], Any] = lambda: self.pulled("SELECT k, n FROM counted;")  # noqa: E731
        until(lambda: pulled() == wanted, lambda: f"{self.service.url} has {pulled()} instead of {wanted}")


def at_once() -> int:
    """Wait for a moment that both senders wait for, and return its number."""
    tick = int(time.time() / TICK_S) + 1
    time.sleep(max(0.0, tick * TICK_S - time.time()))
    return tick


@dataclass(slots=True)
class Sender:
    """Sends statements to the server at one place. `known` are names that must be there in the end, or must not."""

    name: str
    place: Place
    going: threading.Event
    known: dict[str, bool] = field(default_factory=dict)
    contested: Counter[str] = field(default_factory=Counter)  # names of both senders: how often one was created here
    unsure: set[str] = field(default_factory=set)
    numbers: list[int] = field(default_factory=list)  # of commands, in the order of their answers

    def run(self) -> None:
        for at in range(MOST_STATEMENTS):
            if not self.going.is_set():
                return
            time.sleep(PAUSE_S)
            own = f"{self.name}_{at - at % 3}"
            match at % 3:
                case 0:
                    self.send(STREAM.format(own), own, True)
                case 1:
                    name = f"both_{at_once()}"
                    self.send(STREAM.format(name), name, True)
                case _ if at % 2:
                    self.send(f"DROP STREAM {own};", own, False)

    def send(self, text: str, name: str, is_there: bool) -> None:
        done, name = self.place.do(text), name.upper()
        if done is None:
            self.unsure.add(name)
            time.sleep(0.2)  # until the server is started again, every statement fails
        elif isinstance(done, str):
            assert EXISTS in done or name in self.unsure, f"{text}: {done}"
        else:
            self.numbers.append(done[0]["commandSequenceNumber"])
            self.contested[name] += name.startswith("BOTH") and not done[0].get("warnings")
            self.known[name] = is_there


@dataclass(slots=True)
class Feeder:
    """Inserts numbers, now through one server and now through the other. A number is never sent twice."""

    places: list[Place]
    going: threading.Event
    sent: int = 0
    acknowledged: set[int] = field(default_factory=set)

    def run(self) -> None:
        while self.going.is_set() and self.sent < MOST_ROWS:
            batch = range(self.sent, self.sent + BATCH)
            self.sent += BATCH
            lines = [json.dumps({"target": "FED"})] + [json.dumps({"K": f"k{n % KEYS}", "V": n}) for n in batch]
            self.insert(self.places[self.sent // BATCH % 2], "\n".join(lines), batch)
            time.sleep(PAUSE_S)

    def insert(self, place: Place, body: str, batch: range) -> None:
        try:
            with place.service.http.stream("POST", "/inserts-stream", content=body) as answer:
                for line in answer.iter_lines():
                    report = json.loads(line)
                    assert report["status"] == "ok", line
                    self.acknowledged.add(batch[report["seq"]])
        except httpx.TransportError:
            return  # what was not acknowledged may be there or not


def read(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """Read a topic to its end: values that were committed."""
    given = {"group.id": "judge", "isolation.level": "read_committed", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": bootstrap, "enable.partition.eof": True, **given})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[dict[str, Any]] = []
    ended: set[Any] = set()
    try:
        while len(ended) < PARTITIONS:
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                if error is None:
                    found.append(json.loads(message.value() or b"{}"))
                elif error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                    ended.add(message.partition())
        return found
    finally:
        consumer.close()


def until(reached: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def catalogue(place: Place, after: int) -> Any:
    """Return what a server knows after a command: its sources with their columns, and its queries."""
    sources = place.must("DESCRIBE STREAMS; DESCRIBE TABLES;", after)
    described = [
        (one["name"], one["topic"], one["statement"], json.dumps(one["fields"]))
        for entity in sources
        for one in entity["sourceDescriptions"]
    ]
    return sorted(described), sorted(row["id"] for row in place.must("SHOW QUERIES;")[0]["queries"])


def kill_in_turn(places: list[Place], senders: list[Sender], kills: int, chance: random.Random) -> None:
    first = chance.randrange(2)
    for number in range(kills):
        at = (first + number) % 2
        other = senders[1 - at]
        places[at].kill()
        print(f"  killed server {at}", flush=True)
        reached = len(other.numbers) + BETWEEN
        until(lambda: len(other.numbers) >= reached, lambda: f"no statements after kill {number}")  # noqa: B023
        places[at].restart()


def judge_statements(places: list[Place], senders: list[Sender]) -> None:
    numbers = [number for sender in senders for number in sender.numbers]
    assert len(set(numbers)) == len(numbers), "two statements have one number"
    for sender in senders:
        assert sender.numbers == sorted(sender.numbers), f"statements of {sender.name} are not in order"
    last = places[0].must("CREATE TYPE last AS INT;")[0]["commandSequenceNumber"]
    one = catalogue(places[0], last)
    for at, place in enumerate(places[1:], 1):
        assert catalogue(place, last) == one, f"server {at} knows other things than server 0"
    names, unsure = {row[0] for row in one[0]}, set.union(*(sender.unsure for sender in senders))
    for sender in senders:
        wrong = [name for name, is_there in sender.known.items() if (name in names) != is_there and name not in unsure]
        assert not wrong, f"{wrong} of {sender.name}"
    twice = {name: count for name, count in (senders[0].contested + senders[1].contested).items() if count > 1}
    assert not twice, f"created twice: {twice}"
    print(f"  {len(numbers)} statements in one order, {len(unsure)} unanswered, {len(names)} sources", flush=True)


def judge_rows(bootstrap: str, places: list[Place], feeder: Feeder, exactly: bool) -> None:
    fed = Counter(row["V"] for row in read(bootstrap, "fed"))
    assert not feeder.acknowledged - set(fed), "acknowledged rows are lost"
    assert max(fed.values()) == 1, "rows were inserted twice"
    until(lambda: len({row["V"] for row in read(bootstrap, "COPIED")}) >= len(fed), lambda: "COPIED is not complete")
    counts = Counter(f"k{number % KEYS}" for number in fed)
    wanted = sorted([key, count] for key, count in counts.items())
    for place in places:
        place.await_counts(wanted)
    copied = Counter(row["V"] for row in read(bootstrap, "COPIED"))
    doubled = sum(copied.values()) - len(copied)
    assert set(copied) == set(fed), "COPIED has other rows than FED"
    assert not (exactly and doubled), f"{doubled} results were written twice"
    print(f"  {len(fed)} rows, {len(feeder.acknowledged)} acknowledged; {doubled} results twice", flush=True)


def run(runtime: str, kills: int, chance: random.Random) -> None:
    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="moldau-two-servers-")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        kafka = stack.enter_context(broker({"log.retention.ms": "-1"}))
        bootstrap = kafka.bootstrap_servers
        if runtime == "spark":
            worker = Driver(folder, "moldau", "worker", "-b", bootstrap, "--state-dir", folder, *SPARK)
            stack.callback(worker.stop)
        places: list[Place] = []
        stack.callback(lambda: [place.service.kill() for place in places])
        for _ in range(2):
            places.append(Place(bootstrap, runtime))
        places[0].must(QUERIES)
        going = threading.Event()
        going.set()
        senders = [Sender(name, place, going) for name, place in zip("ab", places, strict=True)]
        feeder = Feeder(places, going)
        failures: list[BaseException] = []
        threads = [threading.Thread(target=_noting, args=(one.run, failures, going)) for one in (*senders, feeder)]
        for thread in threads:
            thread.start()
        try:
            kill_in_turn(places, senders, kills, chance)
        finally:
            going.clear()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        places.append(Place(bootstrap, runtime))
        judge_statements(places, senders)
        judge_rows(bootstrap, places, feeder, exactly=runtime == "spark")
        for at, place in enumerate(places):
            found = place.own_write(f"own{at}")
            assert found == [[f"own{at}", 1]], f"server {at} does not read its own writes: {found}"


def _noting(target: Callable[[], None], failures: list[BaseException], going: threading.Event) -> None:
    try:
        target()
    except BaseException as error:
        failures.append(error)
        going.clear()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sql.two_servers", description=__doc__)
    parser.add_argument("--runtime", choices=("local", "spark"), default="local", help="where queries run")
    parser.add_argument("--kills", type=int, default=4, help="how many kills")
    parser.add_argument("--seed", type=int, default=None, help="which server is first")
    given = parser.parse_args()
    seed = random.randrange(1 << 32) if given.seed is None else given.seed
    print(f"== {given.runtime}, {given.kills} kills, --seed {seed}", flush=True)
    run(given.runtime, given.kills, random.Random(seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
