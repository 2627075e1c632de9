"""Commands for clusters, on Kafka alone and beside Moldau: Kafka's tools, its voters, and a swap as it is planned.

A play is a function that fails by an assertion. Each starts nodes of its own, so that is long.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from moldau.testing.ports import free_ports
from tests import needs
from tests.cli.kafka.running import run as ours
from tests.cli.running import Moldau
from tests.cluster.mixed import JAVA, KAFKA, MOLDAU, Member, cluster, eventually
from tests.conformance.differential.brokers import CLUSTER_ID
from tests.conformance.java_tools import alone
from tests.conformance.outcome import Outcome, Verdict

SUITE = "clusters"
NEEDS = ("java", "kafka-jars")
WATCH_S = 25.0
VERIFICATION = "org.apache.kafka.tools.ReplicaVerificationTool"
LINES = [str(number) for number in range(3000)]


def verification(libs: Path, folder: Path) -> None:
    """Kafka's own tool compares a Kafka and a Moldau broker to the end, and so does ours on the same pair."""
    with cluster(libs, folder, {1: (KAFKA, "broker,controller"), 2: (MOLDAU, "broker")}) as made:
        moldau = Moldau(made.bootstrap, folder)
        eventually(lambda: len(moldau.json("cluster", "brokers")) == 2)
        moldau("topic", "create", "t", "--partitions", "4", "--replicas", "2")
        eventually(lambda: moldau.run("produce", "t", stdin="\n".join(LINES)).code == 0)
        words = ["--broker-list", made.bootstrap, "--time", "-2", "--report-interval-ms", "500"]
        command = [*JAVA, "-cp", f"{libs}/*", VERIFICATION, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
            assert tool.stdout is not None
            try:
                end = time.monotonic() + WATCH_S
                while "max lag is 0 " not in (line := tool.stdout.readline()):
                    assert line and time.monotonic() < end and "match" not in line, line
            finally:
                tool.kill()
        assert moldau.json("cluster", "verify")["same"] is True


def two_kafkas(libs: Path, folder: Path) -> None:
    """A cluster of Apache Kafka alone is listed, verified, moved and drained."""
    with cluster(libs, folder, {1: (KAFKA, "broker,controller"), 2: (KAFKA, "broker")}) as made:
        moldau = Moldau(made.bootstrap, folder)
        eventually(lambda: [row["kind"] for row in moldau.json("cluster", "brokers")] == ["Kafka", "Kafka"])
        moldau("topic", "create", "t", "--partitions", "4", "--replicas", "2", "--config", "cleanup.policy=compact")
        keyed = "".join(f"{line}:{line}\n" for line in LINES)
        eventually(lambda: moldau.run("produce", "t", "--key-delimiter", ":", stdin=keyed).code == 0)
        found = moldau.json("cluster", "verify")
        assert (found["same"], found["offsets"]) == (True, len(LINES))
        assert moldau.json("cluster", "health")["healthy"] is True
        moldau("topic", "move", "t", "--to", "2")
        assert moldau.json("cluster", "drain", "2")["moved"] == 4
        assert sorted(moldau.read("t"), key=int) == LINES


def voters(libs: Path, folder: Path) -> None:
    """A controller of Kafka's is added and removed: by our commands, and by Kafka's tool in both languages."""
    with dynamic_quorum(libs, folder) as (broker, controller):
        moldau = Moldau(broker.address, folder)

        def roles() -> dict[int, str]:
            return {row["id"]: row["role"] for row in moldau.json("cluster", "quorum")["replicas"]}

        eventually(lambda: roles() == {1: "leader", 3: "observer"})
        moldau("cluster", "voters", "add", "3", "--endpoint", f"CONTROLLER://127.0.0.1:{controller.controller_port}")
        assert roles() == {1: "leader", 3: "voter"}
        directory = moldau.json("cluster", "voters", "remove", "3")["directory"]
        eventually(lambda: roles() == {1: "leader", 3: "observer"})
        servers = ("--bootstrap-server", broker.address)
        adding = (*servers, "--command-config", str(controller.properties), "add-controller")
        removing = (*servers, "remove-controller", "--controller-id", "3", "--controller-directory-id", directory)
        for words in ((*adding, "--dry-run"), adding, (*removing, "--dry-run"), removing):
            java = alone("kafka-metadata-quorum", libs, *words)
            mine = ours("kafka-metadata-quorum", *words) if "--dry-run" in words else None
            assert java.exit == 0, java
            assert mine is None or (mine.code, mine.out) == (0, java.out), (mine, java)
        for words in (adding, removing):
            done = ours("kafka-metadata-quorum", *words)
            assert done.code == 0, done


@contextmanager
def dynamic_quorum(libs: Path, folder: Path) -> Iterator[tuple[Member, Member]]:
    """A Kafka node that is the only voter, and a Kafka controller that observes, with kraft.version 1."""
    ports = free_ports(4)
    first = Member(KAFKA, 1, "broker,controller", folder / "node1", libs, ports[0], ports[1])
    second = Member(KAFKA, 3, "controller", folder / "node3", libs, ports[2], ports[3])
    try:
        for one, flag in ((first, "--standalone"), (second, "--no-initial-controllers")):
            one.write("", 1, {"controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[1]}"})
            tool = [*JAVA, "-cp", f"{libs}/*", "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
            subprocess.run([*tool, "-c", str(one.properties), flag], check=True, capture_output=True, timeout=90)
            one.start()
        first.await_port()
        second.await_port()
        yield first, second
    finally:
        for one in (first, second):
            if one.process is not None:
                one.process.kill()
                one.process.wait()


def swap(libs: Path, folder: Path) -> None:
    """A broker of Kafka's is replaced as the plan says, on its directories, and back; nothing is lost or different."""
    nodes = {9: (KAFKA, "controller"), 1: (KAFKA, "broker"), 2: (MOLDAU, "broker")}
    with cluster(libs, folder, nodes) as made:
        moldau = Moldau(made.bootstrap, folder)
        eventually(lambda: len(moldau.json("cluster", "brokers")) == 2)
        moldau("topic", "create", "t", "--partitions", "4", "--replicas", "2")
        eventually(lambda: moldau.run("produce", "t", stdin="\n".join(LINES)).code == 0)
        assert [row["node"] for row in moldau.json("cluster", "swap", "--plan")["steps"]] == [1]
        for kind in (MOLDAU, KAFKA):
            made[1].stop()
            made[1].kind = kind
            made[1].start()
            made[1].await_port()
            eventually(lambda: moldau.run("cluster", "health").code == 0)
            kinds = [row["kind"].lower() for row in moldau.json("cluster", "brokers")]
            assert kinds == [kind, MOLDAU]
            assert moldau.json("cluster", "verify")["same"] is True
            elected = ("--election-type", "preferred", "--all-topic-partitions")
            assert ours("kafka-leader-election", "--bootstrap-server", made.bootstrap, *elected).code == 0
        assert sorted(moldau.read("t"), key=int) == LINES


PLAYS: tuple[Callable[[Path, Path], None], ...] = (verification, two_kafkas, voters, swap)


def run(work: Path, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Play all, or those named."""
    libs = needs.find("kafka-jars").path
    assert libs is not None
    for play in PLAYS:
        if names and play.__name__ not in names:
            continue
        try:
            play(libs, work / play.__name__)
            yield Outcome(play.__name__, Verdict.PASSED)
        except AssertionError as error:
            yield Outcome(play.__name__, Verdict.FAILED, str(error).partition("\n")[0])
