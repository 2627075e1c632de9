"""Kills under deployed flows: Python workers, workers with their Java, all checkpoints, and the broker.

`python -m tests.spark.chaos_flows [--kills N] [--rounds N] [--seed N] [--bootstrap HOST:PORT] [--page FILE]`. Two
workers share FLOWS flows of all kinds (`fleet.py`) in lanes. With an even seed they share a folder for their state,
with an odd one each has its own: then a lane that moves is restored from changelogs, or meets a checkpoint that is old.
With KILL_S in the environment, a round kills nothing after so many seconds, on a machine that is too slow for all.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from moldau.client import Client
from moldau.flows.catalog import opened
from moldau.testing import Broker
from tests.spark.chaos import Driver, Feed, end_in_order, kill, make_topics, python_workers, target
from tests.spark.fleet import INPUTS, Flow, Judge, deploy, fleet
from tests.spark.rounds import Program, chosen

FLOWS = int(os.environ.get("FLOWS", "20"))
KILL_S = float(os.environ.get("KILL_S", "inf"))  # after which nothing more is killed in a round
RATE = 20  # numbers a second
CALM = {"all": 3, "one": 10, "none": 7}  # of twenty kills: which flows must have written something before the next
PATIENCE_S = 400.0
END_S = 900.0
WEIGHTS = {"python worker": 8, "all python workers": 2, "worker": 5, "broker": 3, "checkpoints": 2}
SPARK = ("--spark-master", "local[2]", "--set", "spark.driver.memory=600m")


@dataclass
class Attack:
    """A plan of kills, and what came of it."""

    chance: random.Random
    kinds: Sequence[str]
    broker: Broker | None  # None: a broker that is not ours to kill
    workers: Sequence[Driver]
    folders: Sequence[Path]  # with the workers' state
    judge: Judge
    flows: Sequence[Flow]
    done: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        began = time.monotonic()
        self.await_output(self.flows)
        for number, kind in enumerate(self.kinds, 1):
            if time.monotonic() - began > KILL_S:
                return
            calm = self.chance.choices(list(CALM), list(CALM.values()))[0]
            waited = self.await_output({"all": self.flows, "one": [self.chance.choice(self.flows)], "none": ()}[calm])
            self.judge.read(self.chance.choice((0.05, 0.5, 2.0, 5.0)) * self.chance.uniform(0.5, 1.5))
            self.strike(kind)
            self.done[kind] += 1
            now = time.monotonic() - began
            print(f"{number}/{len(self.kinds)} {kind} after {now:.0f} s, {waited:.0f} for {calm}", flush=True)

    def await_output(self, flows: Sequence[Flow]) -> float:
        """Wait until each of these has written something more; return for how long."""
        tally, began = self.judge.tally, time.monotonic()
        before = {flow: tally.written(flow) for flow in flows}
        while late := [one.name for one, count in before.items() if tally.written(one) <= count]:
            self.check()
            waited = time.monotonic() - began
            assert waited < PATIENCE_S, f"{', '.join(late)} wrote nothing for {PATIENCE_S:.0f} s\n{self.tails()}"
            self.judge.read(0.5)
        return time.monotonic() - began

    def check(self) -> None:
        for one in self.workers:
            one.check()

    def tails(self) -> str:
        return "\n".join(one.tail() for one in self.workers)

    def strike(self, kind: str) -> None:
        match kind:
            case "worker":
                self.chance.choice(self.workers).restart()
            case "checkpoints":
                for one in self.workers[1:]:
                    one.kill()
                self.workers[0].restart(self.lose_state)
                for one in self.workers[1:]:
                    one.start()
            case "broker":
                assert self.broker is not None
                self.broker.kill()
                time.sleep(self.chance.uniform(0, 0.5))
                self.broker.start()
            case _:
                victims = self.victims()
                for pid in victims if kind == "all python workers" else [self.chance.choice(victims)]:
                    kill(pid)

    def victims(self) -> list[int]:
        """Return the Python workers, once there are any: workers that were killed just now need their time."""
        until = time.monotonic() + PATIENCE_S
        while not (found := [pid for one in self.workers for pid in python_workers(one.process.pid)]):
            self.check()
            assert time.monotonic() < until, f"no Python worker came\n{self.tails()}"
            self.judge.read(0.2)
        return found

    def lose_state(self) -> None:
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Result:
    seed: int
    kills: Counter[str]
    flows: int
    fed: int
    mistakes: dict[str, str]
    seconds: float
    codes: list[int]

    @property
    def passed(self) -> bool:
        return not self.mistakes and not any(self.codes)

    @property
    def cells(self) -> list[object]:
        kinds = [self.kills[name] for name in WEIGHTS]
        return [self.seed, *kinds, self.flows, f"{self.fed:,}", len(self.mistakes), round(self.seconds)]


def campaign(kills: int, seed: int, bootstrap: str | None = None) -> Result:
    began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="moldau-chaos-"))
    chance, flows = random.Random(seed), fleet(FLOWS)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        ours, servers = stack.enter_context(target(bootstrap))
        make_topics(servers, *INPUTS, *(flow.target for flow in flows))
        feed = Feed(servers, *INPUTS, rate=RATE)
        stack.callback(feed.close)
        settings = {"bootstrap.servers": servers}
        client = stack.enter_context(Client(settings))
        catalog = stack.enter_context(opened(settings))
        for flow in flows:
            deploy(catalog, client, flow, folder / "code")
        folders = [folder / f"state-{number if seed % 2 else 0}" for number in range(2)]
        workers: list[Driver] = []
        for number, state in enumerate(folders):
            home = folder / f"worker-{number}"
            home.mkdir()
            command = ("moldau", "worker", "-b", servers, "--state-dir", str(state), *SPARK)
            workers.append(Driver(str(home), *command))
            stack.callback(workers[-1].close)
        judge = Judge(servers, flows)
        stack.callback(judge.close)
        attack = Attack(chance, chosen(kills, chance, WEIGHTS, bootstrap), ours, workers, folders, judge, flows)
        attack.run()
        fed = feed.finish()
        judge.until_all(flows, fed, END_S, attack.check)
        codes = [one.stop() for one in workers]
        judge.read(3.0)  # what would come too late would be doubled
        mistakes = judge.tally.mistakes(flows, fed)
        if mistakes:
            print(mistakes, attack.tails(), sep="\n")
        return Result(seed, attack.done, len(flows), fed, mistakes, time.monotonic() - began, codes)


HEAD = ("seed", *WEIGHTS, "flows", "records", "flows with mistakes", "seconds")
PROGRAM = Program("chaos_flows", __doc__, "flows", HEAD, campaign, kills=200, rounds=10)

if __name__ == "__main__":
    end_in_order()
    sys.exit(PROGRAM.main())
