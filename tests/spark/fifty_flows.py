"""Fifty flows in lanes of one worker, under load: some fail, pause, come, go and change, and no other flow notices.

`python -m tests.spark.fifty_flows [--flows N]`. One flow of each kind (`fleet.py`) is made to fail, another is paused,
and for every five flows one more is deployed and one is stopped, and for every ten one is upgraded. The outputs of all
others must be complete, once and in order, those that failed or were paused must catch up when they are resumed, and no
query may have been started again for any of it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from moldau.client import Client
from moldau.flows.catalog import Catalog, opened
from moldau.flows.definition import Wanted
from moldau.flows.overview import Overview, overviews
from moldau.testing import broker
from tests.spark.chaos import Driver, Feed, end_in_order, make_topics
from tests.spark.chaos_flows import SPARK
from tests.spark.fleet import INPUTS, KINDS, Flow, Judge, deploy, fleet

RATE = 10  # numbers a second, for each flow
WAIT_S = 900.0
SAY_S = 30.0  # between two reports of who is late


class Trial:
    """A worker with flows, and what becomes of them. What it starts ends with the stack, also if it is interrupted."""

    def __init__(
        self, stack: ExitStack, servers: str, folder: Path, client: Client, catalog: Catalog, count: int
    ) -> None:
        self.servers, self.folder, self.client, self.catalog = servers, folder, client, catalog
        self.flows = fleet(count)
        self.later = fleet(count // 5, first=count)
        make_topics(servers, *INPUTS, *(flow.target for flow in (*self.flows, *self.later)))
        self.judge = Judge(servers, self.flows)
        stack.callback(self.judge.close)
        self.feed = Feed(servers, *INPUTS, rate=RATE)
        stack.callback(self.feed.close)
        for flow in self.flows:
            deploy(catalog, client, flow, folder)
        state = str(folder / "state")
        self.worker = Driver(str(folder), "moldau", "worker", "-b", servers, "--state-dir", state, *SPARK)
        stack.callback(self.worker.close)
        self.began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:5.0f} s  {text}", flush=True)

    def seen(self) -> dict[str, Overview]:
        return {one.name: one for one in overviews(self.catalog.known, self.client)}

    def until(self, state: str, flows: list[Flow]) -> None:
        """Wait until flows are in a state, and read outputs meanwhile."""
        until, names, said = time.monotonic() + WAIT_S, {flow.name for flow in flows}, time.monotonic()
        while late := [one for one in self.seen().values() if one.name in names and one.state != state]:
            self.worker.check()
            assert time.monotonic() < until, f"{len(late)} flows are not {state}: {late[0]}\n{self.worker.tail()}"
            if time.monotonic() > said + SAY_S:
                said = time.monotonic()
                self.say(f"{len(late)} flows are not {state} yet, of {sorted({one.lane or '' for one in late})}")
            self.judge.read(1.0)
        self.say(f"{len(flows)} flows are {state}")

    def run(self) -> dict[str, str]:
        chance = random.Random(1)
        self.until("running", self.flows)
        one_each = {flow.kind: flow for flow in self.flows if not flow.own}
        failing = list(one_each.values())
        rest = [flow for flow in self.flows if flow not in failing]
        chance.shuffle(rest)
        paused, some, tenth = rest.pop(), len(self.flows) // 5, len(self.flows) // 10
        stopped, upgraded = [rest.pop() for _ in range(min(some, len(rest) - 1))], rest[:tenth]
        for flow in failing:
            flow.broken(self.folder).touch()
        self.catalog.want(paused.name, Wanted.PAUSED)
        for flow in self.later:
            self.judge.add([flow])
            deploy(self.catalog, self.client, flow, self.folder)
        for flow in stopped:
            self.catalog.want(flow.name, Wanted.REMOVED)
        for flow in upgraded:
            deploy(self.catalog, self.client, flow, self.folder, version="2")
        self.until("failed", failing)
        self.until("running", [*rest, *self.later])
        self.until("paused", [paused])
        for flow in failing:
            flow.broken(self.folder).unlink()
        for flow in (*failing, paused):
            self.catalog.want(flow.name, Wanted.RUNNING, anew=True)
        self.until("running", [*failing, paused])
        fed, living = self.feed.finish(), [*failing, paused, *rest, *self.later]
        self.judge.until_all(living, fed, WAIT_S, self.worker.check)
        found = {one.name: one for one in self.seen().values()}
        mistakes = self.judge.tally.mistakes(living, fed)
        mistakes |= {flow.name: "is still there" for flow in stopped if flow.name in found}
        mistakes |= {flow.name: "was started again" for flow in living if found[flow.name].restarts}
        if code := self.worker.stop():
            mistakes["worker"] = f"ended with code {code}"
        self.say(f"{fed} numbers through {len(living)} flows of {len(KINDS)} kinds, {len(mistakes)} with mistakes")
        return mistakes


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.spark.fifty_flows", description=__doc__)
    parser.add_argument("--flows", type=int, default=50)
    given, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="moldau-fifty-"))
    end_in_order()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        servers = stack.enter_context(broker()).bootstrap_servers
        settings = {"bootstrap.servers": servers}
        client, catalog = stack.enter_context(Client(settings)), stack.enter_context(opened(settings))
        trial = Trial(stack, servers, folder, client, catalog, given.flows)
        mistakes = trial.run()
        if mistakes:
            print(mistakes, trial.worker.tail(), sep="\n")
        return bool(mistakes)


if __name__ == "__main__":
    sys.exit(main())
