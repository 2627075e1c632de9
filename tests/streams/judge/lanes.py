"""The topologies of the third judge (`live.py`) together: flows of a few lanes on one broker, beside Kafka Streams.

`python -m tests.streams.judge.lanes [--topology NAME] [--seed N]`. Each flow has topics of its own, with the records
that Kafka Streams has read in a cluster of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from moldau.client import Client, Record
from moldau.flows import deploying
from moldau.flows.lanes import STEPS
from moldau.plan.conveyor.start import Application, session_for
from moldau.plan.lane.driver import Lane
from moldau.plan.lane.wanted import RUNNING, Want
from moldau.plan.nodes import Node, SinkNode, SourceNode
from moldau.plan.plan import Plan
from moldau.spark.admin import partition_counts_of
from moldau.spark.runner import Policy, Supervised, Supervisor
from moldau.spark.runner.status import QueryStatus
from moldau.spark.source.planning import Position
from moldau.streams.application import application
from tests.streams.judge import ours
from tests.streams.judge.live import (
    BATCH,
    TRIALS,
    Java,
    Place,
    Row,
    difference,
    filled,
    input_records,
    java,
    outputs,
    servers_of,
    several_homes,
)
from tests.streams.judge.trial import inputs

SECONDS = 900.0


@dataclass(frozen=True)
class Flow:
    """A topology, what it reads, and what Kafka Streams made of it."""

    serial: int
    topology: str
    given: dict[Place, list[Record]]
    kafka: dict[Place, list[Row]]

    @property
    def prefix(self) -> str:
        """With which the names of its topics begin."""
        return f"{self.topology}."

    def application(self, servers: str, folder: str) -> Application:
        own = {"application.id": f"judge-{self.topology}", "bootstrap.servers": servers, "state.dir": folder}
        settings = {**ours.SETTINGS, **own, "spark.maxOffsetsPerTrigger": BATCH}
        made = application(ours.built(self.topology, own), settings)
        return replace(made, plan=renamed(made.plan, self.prefix))

    def records(self) -> dict[Place, list[Record]]:
        return {(f"{self.prefix}{topic}", number): rows for (topic, number), rows in self.given.items()}


def renamed(plan: Plan, prefix: str) -> Plan:
    """Return a plan whose topics outside have other names."""
    internal = {topic.name for topic in plan.internal_topics}

    def name(topic: str) -> str:
        return topic if topic in internal else f"{prefix}{topic}"

    def node(one: Node) -> Node:
        if isinstance(one, SourceNode):
            return replace(one, topics=tuple(map(name, one.topics)))
        return replace(one, topic=name(one.topic)) if isinstance(one, SinkNode) and isinstance(one.topic, str) else one

    stores = tuple(one if one.changelog is None else replace(one, changelog=name(one.changelog)) for one in plan.stores)
    return replace(plan, nodes=tuple(map(node, plan.nodes)), stores=stores)


def by_kafka(kafka: Java, serial: int, topology: str, seed: int) -> Flow:
    topics = list(inputs(ours.built(topology, {}).describe()))
    given = input_records(topics, seed, by_foreign_key=topology.startswith("foreign"))
    with filled(given) as client:
        kafka.run(topology, client)
        return Flow(serial, topology, given, outputs(client))


def in_lanes(flows: list[Flow], client: Client, folder: str) -> int:
    """Run all flows until they have read all; return in how many lanes."""
    servers, there = servers_of(client), partition_counts_of(client)
    spark = session_for("third judge", {"spark.master": "local[2]"})
    spark.sparkContext.setLogLevel("OFF")
    lanes: dict[int, Lane] = {}
    wants: dict[int, dict[int, Want]] = {}
    for flow in flows:
        made = flow.application(servers, folder)
        steps = deploying.depends_on(deploying.Application(made.plan, made.execution, "", b""), there)[STEPS]
        if steps not in lanes:
            here = {"bootstrap.servers": servers}
            lanes[steps] = Lane(f"judge-{steps}", here, folder, Path(folder, f"lane-{steps}"), steps, "judge")
            lanes[steps].open(spark)
        loaded = lanes[steps].load(made, flow.serial)
        wants.setdefault(steps, {})[flow.serial] = Want(made.id, loaded.parcel, 1, RUNNING, loaded.begin)
    queries = {steps: Supervised(lane.name, lane.definition, QueryStatus(lane.name)) for steps, lane in lanes.items()}
    supervisor = Supervisor(spark, list(queries.values()), Policy())
    for steps, lane in lanes.items():
        lane.want(wants[steps])
    try:
        until, left = time.monotonic() + SECONDS, flows
        while left := [flow for flow in left if not any(is_done(flow, lane) for lane in lanes.values())]:
            assert time.monotonic() < until, f"{', '.join(flow.topology for flow in left)} do not come to their ends"
            supervisor.step(time.monotonic())
            supervisor.raise_failure()
            for steps, lane in lanes.items():
                lane.observe(queries[steps].progress)
                assert not lane.failures.found, lane.failures.found
            time.sleep(0.1)
    finally:
        supervisor.kill()
        spark.stop()
    return len(lanes)


def is_done(flow: Flow, lane: Lane) -> bool:
    known = lane.known(flow.serial)
    reached = {} if known is None else Position.of_json(known.at).offsets
    return all(reached.get(place, 0) >= len(rows) for place, rows in flow.records().items())


def differences(flows: list[Flow]) -> Mapping[str, str]:
    records = {place: rows for flow in flows for place, rows in flow.records().items()}
    with filled(records, [flow.prefix for flow in flows]) as client, tempfile.TemporaryDirectory() as folder:
        lanes = in_lanes(flows, client, folder)
        print(f"{len(flows)} flows ran in {lanes} lanes", flush=True)
        own = {flow.topology: outputs(client, flow.prefix) for flow in flows}
    return {
        flow.topology: difference(TRIALS[flow.topology], several_homes(flow.given), flow.kafka, own[flow.topology])
        for flow in flows
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.streams.judge.lanes", description=__doc__)
    parser.add_argument("--topology", action="append", choices=sorted(TRIALS), metavar="NAME", default=[])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with ExitStack() as stack:
        kafka = stack.enter_context(java())
        flows = [by_kafka(kafka, n, name, given.seed) for n, name in enumerate(given.topology or TRIALS, 1)]
    found = differences(flows)
    for flow in flows:
        count = sum(map(len, flow.kafka.values()))
        print(f"{flow.topology}: {count} records, {found[flow.topology] or 'equal'}", flush=True)
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
