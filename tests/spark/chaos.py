"""Kills under load: Python workers, the driver and the broker of a topic-to-topic query die at random moments.

`python -m tests.spark.chaos [--kills N] [--rounds N] [--seed N] [--bootstrap HOST:PORT] [--page FILE]`. A feed writes
numbered records; at the end a consumer of committed records must find each of them once. The same seed chooses the same
kills; with an odd one a batch has a task for each partition, with an even one as many as the source makes of it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from moldau.testing import Broker, broker
from tests.spark.rounds import Program, chosen

PARTITIONS = 4
ROWS = 400  # of a batch, at most
RATE = 100  # records a second
KEYS = 97
FIRST_MS = time.time_ns() // 1_000_000_000 * 1000  # young enough for retention
END_S = 600.0
PATIENCE_S = 300.0
CALM = 0.5  # how many kills wait for the query to work again; the others meet one that recovers
WEIGHTS = {"worker": 12, "all workers": 3, "broker": 3, "driver": 2}


def children(pid: int) -> list[int]:
    """Processes below one, of all generations."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue  # it has ended meanwhile
            parents.setdefault(parent, []).append(int(entry.name))
    found = list(parents.get(pid, ()))
    for one in found:
        found.extend(parents.get(one, ()))
    return found


def is_worker(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"-m\0" in words and b"pyspark" in words and "python" in os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False


def python_workers(pid: int) -> list[int]:
    """Python processes that a driver's Java has started: of tasks, of sources, and of commits."""
    return [one for one in children(pid) if is_worker(one)]


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def end_in_order() -> None:
    """Let SIGTERM end this program as Ctrl-C does, so that what it has started ends too."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


class Feed:
    """Writes numbers, each to every topic, until it is told to stop; all that it has written is acknowledged then. The
    time of a record is its number, in milliseconds after FIRST_MS.
    """

    def __init__(self, bootstrap: str, *topics: str, rate: int = RATE) -> None:
        self.count = 0
        self._topics, self._rate = topics, rate
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 300_000,
                "linger.ms": 20,
                "log_level": 0,
            }
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            for _ in range(max(1, self._rate // 20)):
                key, value, timestamp = str(self.count % KEYS), str(self.count), FIRST_MS + self.count
                for topic in self._topics:
                    self._producer.produce(topic, key=key, value=value, timestamp=timestamp)
                self.count += 1
            self._producer.poll(0)

    def close(self) -> None:
        """End, without waiting for what the broker has not taken: it may be gone."""
        self._stop.set()
        self._thread.join()
        self._producer.purge()

    def finish(self) -> int:
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(300)
        assert not left, f"{left} records were not taken by the broker"
        return self.count


class Reader:
    """Counts what readers of committed records see of a topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.seen: Counter[int] = Counter()
        self.last: dict[bytes, int] = {}
        self.disorder = 0
        settings = {
            "log_level": 0,
            "group.id": "chaos",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", **settings})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self._consumer.consume(1000, 0.2):
                if message.error():
                    continue
                number, key = int(message.value()), message.key()
                self.seen[number] += 1
                self.disorder += number <= self.last.get(key, -1)
                self.last[key] = number

    def close(self) -> None:
        self._consumer.close()

    @property
    def doubled(self) -> int:
        return sum(count - 1 for count in self.seen.values())


class Driver:
    """The process of the query, started again whenever it is killed."""

    def __init__(self, folder: str, *command: str) -> None:
        self._command = [sys.executable, "-m", *command]
        self._log = Path(folder) / "driver.log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(
                self._command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def check(self) -> None:
        if self.process.poll() is not None:
            raise AssertionError(f"the driver ended with code {self.process.returncode}:\n{self.tail()}")

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]

    def kill(self) -> None:
        """Kill everything of it, Java first."""
        for pid in [*children(self.process.pid), self.process.pid]:
            kill(pid)
        self.process.wait()

    def restart(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.kill()
        meanwhile()
        self.start()

    def close(self) -> None:
        """End everything of it at once, if it is still there: whoever was interrupted does not wait for a batch."""
        if self.process.poll() is None:
            self.kill()
            self._end_group()

    def _end_group(self) -> None:
        with suppress(ProcessLookupError):  # a Java that outlives its driver is nobody's child, but of its group
            os.killpg(self.process.pid, signal.SIGKILL)

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(300)
        except subprocess.TimeoutExpired:
            return -1
        finally:
            for pid in [*children(self.process.pid), self.process.pid]:
                kill(pid)
            self._end_group()


@dataclass
class Campaign:
    """A plan of kills, and what came of it."""

    chance: random.Random
    kinds: Sequence[str]
    calm: float
    broker: Broker | None  # None: a broker that is not ours to kill
    driver: Driver
    watcher: Consumer
    lose: Callable[[], None] = lambda: None  # takes the checkpoint away
    done: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        chance, began = self.chance, time.monotonic()
        for number, kind in enumerate(self.kinds, 1):
            if chance.random() < self.calm:
                self.await_output()
            time.sleep(chance.choice((0.05, 0.3, 1.0, 2.0)) * chance.uniform(0.5, 1.5))
            self.driver.check()
            self.strike(kind, chance)
            print(f"{number}/{len(self.kinds)} {kind} after {time.monotonic() - began:.0f} s", flush=True)

    def await_output(self) -> None:
        """Until something more was written: most kills shall meet a query that works, and some one that recovers."""
        before, until = self.written(), time.monotonic() + PATIENCE_S
        while self.written() <= before:
            self.driver.check()
            assert time.monotonic() < until, f"nothing was written for {PATIENCE_S:.0f} s\n{self.driver.tail()}"
            time.sleep(0.1)

    def written(self) -> int:
        """Offsets of the output, with what is not committed yet; -1 while the broker is away."""
        try:
            ends = [self.watcher.get_watermark_offsets(TopicPartition("out", p), 5)[1] for p in range(PARTITIONS)]
        except KafkaException:
            return -1
        return sum(ends)

    def strike(self, kind: str, chance: random.Random) -> None:
        if kind == "driver":
            self.driver.restart()
        elif kind == "driver and checkpoint":
            self.driver.restart(self.lose)
        elif kind == "broker":
            assert self.broker is not None
            self.broker.kill()
            time.sleep(chance.uniform(0, 0.5))
            self.broker.start()
        else:
            victims = self.victims()
            for pid in victims if kind == "all workers" else victims and [chance.choice(victims)]:
                kill(pid)
        self.done[kind] += 1

    def victims(self) -> list[int]:
        """Workers, once there are any: a driver that was killed just now needs its time."""
        until = time.monotonic() + 90
        while not (found := python_workers(self.driver.process.pid)):
            self.driver.check()
            assert time.monotonic() < until, f"no worker came\n{self.driver.tail()}"
            time.sleep(0.1)
        return found


@dataclass(frozen=True)
class Result:
    """What a campaign showed."""

    seed: int
    kills: Counter[str]
    fed: int
    found: int
    doubled: int
    missing: int
    disorder: int
    seconds: float
    code: int

    @property
    def passed(self) -> bool:
        return not (self.doubled or self.missing or self.disorder or self.code)

    @property
    def cells(self) -> list[object]:
        kinds = [self.kills[name] for name in WEIGHTS]
        counts = [f"{self.fed:,}", f"{self.found:,}", self.missing, self.doubled, self.disorder]
        return [self.seed, self.kills.total(), *kinds, *counts, round(self.seconds)]


@contextmanager
def target(bootstrap: str | None) -> Iterator[tuple[Broker | None, str]]:
    if bootstrap is not None:
        yield None, bootstrap
        return
    with broker() as started:
        yield started, started.bootstrap_servers


def make_topics(bootstrap: str, *names: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
    for future in made.values():
        future.result(30)


def campaign(
    seed: int, kinds: Sequence[str], bootstrap: str | None = None, calm: float = CALM, rate: int = RATE
) -> Result:
    began, folder = time.monotonic(), tempfile.mkdtemp(prefix="moldau-chaos-")
    tasks = PARTITIONS if seed % 2 else 0
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        ours, servers = stack.enter_context(target(bootstrap))
        make_topics(servers, "in", "out")
        feed = Feed(servers, "in", rate=rate)
        driver = Driver(folder, "tests.spark.chaos_driver", servers, "in", "out", folder, str(ROWS), str(tasks))
        stack.callback(driver.stop)
        watcher = Consumer({"bootstrap.servers": servers, "group.id": "watcher", "log_level": 0})
        stack.callback(watcher.close)
        attack = Campaign(random.Random(seed), kinds, calm, ours, driver, watcher)
        attack.run()
        fed, reader = feed.finish(), Reader(servers, "out")
        stack.callback(reader.close)
        until = time.monotonic() + END_S
        while len(reader.seen) < fed and time.monotonic() < until:
            driver.check()
            reader.read(1.0)
        code = driver.stop()
        reader.read(3.0)  # what would come too late would be doubled
        missing = fed - len(reader.seen)
        if missing:
            print(driver.tail())
        total = sum(reader.seen.values())
        seconds = time.monotonic() - began
        return Result(seed, attack.done, fed, total, reader.doubled, missing, reader.disorder, seconds, code)


def drawn(kills: int, seed: int, bootstrap: str | None) -> Result:
    return campaign(seed, chosen(kills, random.Random(seed), WEIGHTS, bootstrap), bootstrap)


HEAD = ("seed", "kills", *WEIGHTS, "records written", "records found", "lost", "doubled", "out of order", "seconds")
PROGRAM = Program("chaos", __doc__, "query", HEAD, drawn, kills=200, rounds=8)

if __name__ == "__main__":
    sys.exit(PROGRAM.main())
