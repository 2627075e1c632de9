"""The sink's tasks and drivers as plain processes, without Spark: forked in milliseconds, killed in hundreds.

What Spark does is played: a driver runs the tasks of a batch, each in a process of its own, commits or aborts, and
writes into a file which batch is next. `python -m tests.spark.chaos_tasks [--kills N] [--seed N] [--bootstrap H:P]`.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from moldau.client import Client, ClientError
from moldau.spark.sink.batches import Batches, TopicLimits
from moldau.spark.sink.place import Outcome
from moldau.spark.sink.rows import rows_of
from moldau.spark.sink.writers import abort, commit
from moldau.testing import Broker
from tests.spark.chaos import children, kill, target
from tests.spark.rounds import Program
from tests.spark.sinks import Query, committed, frame

TASKS, ROWS = 2, 10
PAUSES_S = (0.1, 1.0, 4.0)  # at most, between two kills
MORE = 10  # batches that a query is given when it has come to its end
FAILED, REFUSED = 1, 2
WEIGHTS = {"task": 8, "driver": 8, "broker": 1}


def values(batch: int, task: int) -> list[str]:
    return [f"{batch}-{task}-{row}" for row in range(ROWS)]


def forked(work: Callable[[], None]) -> int:
    """A process that does it and ends; its number."""
    pid = os.fork()
    if pid:
        return pid
    code = FAILED
    try:
        work()
        code = 0
    except ClientError as error:
        print(f"{os.getpid()}: {error}", file=sys.stderr, flush=True)
    except BaseException as error:
        print(f"{os.getpid()}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        code = REFUSED
    finally:
        os._exit(code)


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@dataclass
class Play:
    """A query of so many batches, and its checkpoint."""

    query: Query
    folder: Path
    batches: int

    @property
    def next(self) -> int:
        try:
            return int((self.folder / "next").read_text())
        except FileNotFoundError:
            return 0

    def drive(self) -> None:
        """What a driver does until all batches are done, or it is killed."""
        while (batch := self.next) < self.batches:
            outcomes = self.run_tasks(batch)
            if len(outcomes) < TASKS:
                abort(self.query.sink, outcomes)
                continue
            try:
                commit(self.query.sink, outcomes)
            except BaseException:
                abort(self.query.sink, outcomes)
                raise
            (self.folder / "new").write_text(str(batch + 1))
            (self.folder / "new").rename(self.folder / "next")

    def run_tasks(self, batch: int) -> list[Outcome]:
        """Those that came to their end."""
        files = [self.folder / f"{os.getpid()}-{task}" for task in range(TASKS)]
        pids = [forked(lambda t=task: self.run_task(batch, t, files[t])) for task in range(TASKS)]
        codes = [exit_code(pid) for pid in pids]
        if REFUSED in codes:
            raise RuntimeError("a task refuses")
        return [pickle.loads(file.read_bytes()) for file, code in zip(files, codes, strict=True) if code == 0]

    def run_task(self, batch: int, task: int, file: Path) -> None:
        file.write_bytes(pickle.dumps(self.query.task(batch, task, values(batch, task))))


@dataclass
class Attack:
    """Kills until so many have met their victim; then the query may come to its end."""

    play: Play
    kills: int
    chance: random.Random
    broker: Broker | None
    done: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        driver = forked(self.play.drive)
        while self.done.total() < self.kills:
            time.sleep(self.chance.uniform(0, self.chance.choice(PAUSES_S)))
            if (code := self.ended(driver)) is not None:
                assert code != REFUSED, "the driver gave up"
                if code == 0:
                    self.play.batches += MORE
                driver = forked(self.play.drive)
                continue
            driver = self.strike(driver)
        while (code := exit_code(driver)) != 0:
            assert code != REFUSED, "the driver gave up"
            driver = forked(self.play.drive)

    def ended(self, driver: int) -> int | None:
        found, status = os.waitpid(driver, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if found else None

    def strike(self, driver: int) -> int:
        weights = {name: weight for name, weight in WEIGHTS.items() if self.broker is not None or name != "broker"}
        kind = self.chance.choices(list(weights), list(weights.values()))[0]
        tasks = children(driver)
        if kind == "task" and not tasks:
            return driver
        self.done[kind] += 1
        if kind == "broker" and self.broker is not None:
            self.broker.kill()
            self.broker.start()
        elif kind == "task":
            kill(self.chance.choice(tasks))
        elif kind == "driver":
            os.kill(driver, signal.SIGKILL)
            for pid in tasks if self.chance.random() < 0.5 else ():  # else they live on, as those of a lost driver do
                kill(pid)
            os.waitpid(driver, 0)
            return forked(self.play.drive)
        return driver


@dataclass(frozen=True)
class Result:
    seed: int
    kills: Counter[str]
    batches: int
    rows: int
    lost: int
    doubled: int
    seconds: float

    @property
    def passed(self) -> bool:
        return not (self.lost or self.doubled)

    @property
    def cells(self) -> list[object]:
        kinds = [self.kills[name] for name in WEIGHTS]
        counts = [self.batches, f"{self.rows:,}", self.lost, self.doubled]
        return [self.seed, self.kills.total(), *kinds, *counts, round(self.seconds)]


def warm() -> None:
    """Load compiled code once: each process of a task would, and take longer for it than for its rows."""
    (batch,) = frame(["a"])
    key, value = (batch.column(name).cast("binary") for name in ("key", "value"))
    Batches(lambda *_: None, 0).add(TopicLimits("t", 1, 1000, 1000), rows_of(batch, key, value, False))


def campaign(kills: int, seed: int, bootstrap: str | None = None) -> Result:
    began = time.monotonic()
    warm()
    with target(bootstrap) as (ours, servers), tempfile.TemporaryDirectory() as folder:
        query = Query(servers, f"out-{seed}-{os.getpid()}", f"chaos-{seed}-{os.getpid()}")
        query.options["kafka.default.api.timeout.ms"] = "60000"
        attack = Attack(Play(query, Path(folder), MORE), kills, random.Random(seed), ours)
        attack.run()
        with Client({"bootstrap.servers": servers}) as client:
            found = committed(client, query.topic)
    wanted = Counter(v for b in range(attack.play.batches) for t in range(TASKS) for v in values(b, t))
    lost, doubled = (wanted - found).total(), (found - wanted).total()
    took = time.monotonic() - began
    return Result(seed, attack.done, attack.play.batches, wanted.total(), lost, doubled, took)


HEAD = ("seed", "kills", *WEIGHTS, "batches", "rows", "lost", "doubled", "seconds")
PROGRAM = Program("chaos_tasks", __doc__, "tasks", HEAD, campaign, kills=500, rounds=5)

if __name__ == "__main__":
    sys.exit(PROGRAM.main())
