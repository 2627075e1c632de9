"""A Kafka cluster under load becomes Moldau's node by node, voters too, on the same directories; and Kafka's again."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.running import Moldau
from tests.cluster.clients import admin, place, produce, read
from tests.cluster.mixed import DYNAMIC, JAVA, KAFKA, MOLDAU, STATIC, Cluster, cluster, eventually
from tests.conformance.cluster.load import Load, load

pytestmark = pytest.mark.needs("java", "kafka-jars")
VERIFICATION = "org.apache.kafka.tools.ReplicaVerificationTool"
LAG, NEAR = re.compile(r"max lag is (\d+) "), 300
WELL_S = 150.0
OFTEN = {"metadata_log_max_record_bytes_between_snapshots": "5000"}
BOTH, CONTROLLER, BROKER = "broker,controller", "controller", "broker"
COMBINED = {1: BOTH, 2: BOTH, 3: BOTH}
SEPARATE = {1: CONTROLLER, 2: CONTROLLER, 3: CONTROLLER, 4: BROKER, 5: BROKER}


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands where: the roles of nodes, and whether the voters stand in the log."""

    roles: dict[int, str]
    voters: str


SHAPES = {
    "combined-static": Shape(COMBINED, STATIC),
    "combined-dynamic": Shape(COMBINED, DYNAMIC),
    "separate-static": Shape(SEPARATE, STATIC),
    "separate-dynamic": Shape(SEPARATE, DYNAMIC),
}


@pytest.fixture
def made(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    shape = SHAPES[request.param]
    nodes = {node: (KAFKA, roles) for node, roles in shape.roles.items()}
    with cluster(kafka_libs, tmp_path_factory.mktemp("swap"), nodes, voters=shape.voters, **OFTEN) as running:
        brokers = {node for node, roles in shape.roles.items() if "broker" in roles}
        eventually(lambda: set(admin(running).list_topics(timeout=10).brokers) == brokers, WELL_S)
        yield running


@pytest.mark.parametrize("made", ["combined-static", "combined-dynamic", "separate-dynamic"], indirect=True)
def test_a_cluster_is_swapped_and_back_under_load(made: Cluster, kafka_libs: Path, tmp_path: Path) -> None:
    moldau = Moldau(made.bootstrap, tmp_path)
    with load(made, kafka_libs, tmp_path) as running:
        begun: set[str] = set()  # the kinds that have begun with a snapshot of the other's
        while steps := plan(moldau):
            begun |= swap(made, moldau, running, steps[0], MOLDAU)
        assert {one.kind for one in made.members.values()} == {MOLDAU}
        verify(made, moldau, kafka_libs)
        for node in made.members:
            begun |= swap(made, moldau, running, node, KAFKA)
        assert begun == {MOLDAU, KAFKA}
        running.finish()
        print(f"longest time without an acknowledgement: {running.longest_gap_ms()} ms")
    verify(made, moldau, kafka_libs)


@pytest.mark.parametrize("made", ["combined-dynamic", "separate-static"], indirect=True)
def test_killed_nodes_come_back_as_the_other_kind(made: Cluster, kafka_libs: Path, tmp_path: Path) -> None:
    """Nothing was handed over, and nothing says that the directories are whole."""
    moldau, total = Moldau(made.bootstrap, tmp_path), 0
    brokers = [node for node, one in made.members.items() if "broker" in one.roles]
    place(made, "t", brokers, 4, min_insync_replicas=str(len(brokers) - 1))

    def come_back(node: int, kind: str) -> None:
        made[node].stop(signal.SIGKILL)
        made[node].kind = kind
        made[node].start()
        made[node].await_port()

    for kind in (MOLDAU, KAFKA):
        for node in made.members:
            produce(made, "t", range(total, total + 1000), lambda node=node, kind=kind: come_back(node, kind))
            eventually(lambda: is_well(made, moldau), WELL_S)
            total += 1000
    verify(made, moldau, kafka_libs)
    assert read(made, "t", total) == list(range(total))


def plan(moldau: Moldau) -> list[int]:
    """Return the nodes that are still to be swapped, in the order of the plan."""
    eventually(lambda: moldau.run("cluster", "swap", "--plan").code == 0, WELL_S)
    return [step["node"] for step in moldau.json("cluster", "swap", "--plan")["steps"]]


def swap(made: Cluster, moldau: Moldau, running: Load, node: int, kind: str) -> set[str]:
    """Replace a node, and go on when all is well and everybody has moved on.

    Returns the kind if it has begun with a snapshot that the other kind wrote.
    """
    began = time.monotonic()
    made[node].leave()
    left = time.monotonic()
    snapshots = [path.name for path in made[node].folder.glob("data/__cluster_metadata-0/*.checkpoint")]
    made[node].kind = kind
    made[node].start()
    made[node].await_port()
    eventually(lambda: is_well(made, moldau), WELL_S)
    running.check()
    times = f"left in {left - began:.1f} s, well after {time.monotonic() - left:.1f} s"
    print(f"node {node} is {kind}'s: {times}", running.progress())
    return {kind} if any(int(name[:20]) for name in snapshots) else set()


def is_well(made: Cluster, moldau: Moldau) -> bool:
    """Tell whether every broker is up and every replica in sync, of partitions and of the quorum."""
    quorum = moldau.json("cluster", "quorum")
    ends = [row["log_end_offset"] for row in quorum["replicas"] if row["role"] != "observer"]
    voting = sum("controller" in one.roles for one in made.members.values())
    return (
        len(ends) == voting and min(ends) >= quorum["high_watermark"] - 5 and moldau.run("cluster", "health").code == 0
    )


def verify(made: Cluster, moldau: Moldau, libs: Path) -> None:
    """Kafka's tool and ours compare all replicas. While records come in, Kafka's never is quite at the end."""
    began = time.monotonic()
    found = moldau.json("cluster", "verify")
    assert found["same"] is True, found
    print(f"{found['offsets']} offsets, compared in {time.monotonic() - began:.1f} s")
    words = ["--broker-list", made.bootstrap, "--time", "-2", "--report-interval-ms", "500"]
    command = [*JAVA, "-cp", f"{libs}/*", VERIFICATION, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
        assert tool.stdout is not None
        try:
            end = time.monotonic() + WELL_S
            while not (lag := LAG.search(line := tool.stdout.readline())) or int(lag[1]) > NEAR:
                assert line and time.monotonic() < end and "match" not in line, line
        finally:
            tool.kill()
