"""Kills under a streams application: Python workers, the driver, its checkpoint and the broker go at random moments.

`python -m tests.spark.chaos_streams [--kills N] [--rounds N] [--seed N] [--bootstrap HOST:PORT] [--page FILE]`. A feed
writes numbers to two topics. At the end each number must have been joined once, and each window must have counted 1, 2,
3, ... up to the number of its records, each count told once and in this order.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.spark.chaos import (
    CALM,
    FIRST_MS,
    KEYS,
    PARTITIONS,
    Campaign,
    Driver,
    Feed,
    Reader,
    make_topics,
    target,
)
from tests.spark.chaos_streams_driver import ID, WINDOW_MS
from tests.spark.rounds import Program, chosen

ROWS = 300
END_S = 900.0
WEIGHTS = {"worker": 8, "all workers": 3, "broker": 3, "driver": 2, "driver and checkpoint": 2}


class Counts:
    """What readers of committed records see of the counts of windows."""

    def __init__(self, bootstrap: str) -> None:
        self.last: Counter[str] = Counter()
        self.wrong = 0  # counts that are not the one before and one more: lost, doubled or out of order
        settings = {"group.id": "counts", "isolation.level": "read_committed", "log_level": 0}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", **settings})
        self._consumer.assign([TopicPartition("counts", number, 0) for number in range(PARTITIONS)])

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self._consumer.consume(1000, 0.2):
                if not message.error():
                    window, count = (message.key() or b"").decode(), int.from_bytes(message.value() or b"", "big")
                    self.wrong += count != self.last[window] + 1
                    self.last[window] = count

    def close(self) -> None:
        self._consumer.close()


def expected(fed: int) -> Counter[str]:
    """How many records each window has."""
    return Counter(f"{n % KEYS}@{(FIRST_MS + n) // WINDOW_MS * WINDOW_MS}" for n in range(fed))


@dataclass(frozen=True)
class Result:
    seed: int
    kills: Counter[str]
    fed: int
    missing: int
    doubled: int
    disorder: int
    windows: int
    wrong: int
    seconds: float
    code: int

    @property
    def passed(self) -> bool:
        return not (self.missing or self.doubled or self.disorder or self.wrong or self.code)

    @property
    def cells(self) -> list[object]:
        kinds = [self.kills[name] for name in WEIGHTS]
        joined = [f"{self.fed:,}", self.missing, self.doubled, self.disorder]
        return [self.seed, *kinds, *joined, f"{self.windows:,}", self.wrong, round(self.seconds)]


def campaign(kills: int, seed: int, bootstrap: str | None = None) -> Result:
    began, folder = time.monotonic(), tempfile.mkdtemp(prefix="moldau-chaos-")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        ours, servers = stack.enter_context(target(bootstrap))
        make_topics(servers, "in", "right", "out", "counts")
        driver = Driver(folder, "tests.spark.chaos_streams_driver", servers, folder, str(ROWS))
        stack.callback(driver.stop)
        feed = Feed(servers, "in", "right", rate=100)
        watcher = Consumer({"bootstrap.servers": servers, "group.id": "watcher", "log_level": 0})
        stack.callback(watcher.close)
        checkpoint = Path(folder) / ID / "checkpoint"
        chance = random.Random(seed)
        kinds = chosen(kills, chance, WEIGHTS, bootstrap)
        attack = Campaign(chance, kinds, CALM, ours, driver, watcher, lambda: shutil.rmtree(checkpoint, True))
        attack.run()
        fed, joined, counts = feed.finish(), Reader(servers, "out"), Counts(servers)
        stack.callback(joined.close)
        stack.callback(counts.close)
        wanted, until = expected(fed), time.monotonic() + END_S
        while (len(joined.seen) < fed or counts.last != wanted) and time.monotonic() < until:
            driver.check()
            joined.read(1.0)
            counts.read(1.0)
        code = driver.stop()
        joined.read(3.0)  # what would come too late would be doubled
        counts.read(3.0)
        missing = fed - len(joined.seen)
        wrong = counts.wrong + sum(counts.last[name] != number for name, number in wanted.items())
        if missing or wrong:
            print(driver.tail())
        took = time.monotonic() - began
        return Result(
            seed, attack.done, fed, missing, joined.doubled, joined.disorder, len(counts.last), wrong, took, code
        )


HEAD = ("seed", *WEIGHTS, "records", "lost", "doubled", "out of order", "windows", "wrong counts", "seconds")
PROGRAM = Program("chaos_streams", __doc__, "application", HEAD, campaign, kills=60, rounds=3)

if __name__ == "__main__":
    sys.exit(PROGRAM.main())
