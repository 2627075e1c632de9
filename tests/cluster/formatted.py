"""Apache Kafka on directories that our kafka-storage formats; `python -m tests.cluster.formatted` starts three."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from moldau.client import Client
from moldau.log.checkpoints import decode_id, encode_id
from moldau.settings.properties import read_properties
from moldau.testing.ports import free_ports
from moldau.wire import messages as m
from tests import needs
from tests.cli.kafka.running import run
from tests.cluster.mixed import JAVA, eventually
from tests.conformance.differential.brokers import CLUSTER_ID, await_port

STOP_S = 60.0
SETTINGS = """
process.roles={roles}
node.id={id}
listeners={listeners}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={controllers}
log.dirs={folder}/data
metadata.log.max.snapshot.interval.ms=500
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A node whose settings are written: it is formatted and started in its folder."""

    id: int
    folder: Path
    port: int
    controller_port: int
    is_broker: bool

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def controller(self) -> str:
        return f"127.0.0.1:{self.controller_port}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def directory_id(self) -> bytes:
        return decode_id(read_properties(str(self.data / "meta.properties"))["directory.id"])

    def write(self, controllers: str) -> None:
        listeners = [f"PLAINTEXT://{self.address}"] * self.is_broker + [f"CONTROLLER://{self.controller}"]
        roles = "broker,controller" if self.is_broker else "controller"
        text = SETTINGS.format(
            roles=roles, id=self.id, listeners=",".join(listeners), controllers=controllers, folder=self.folder
        )
        self.folder.mkdir(parents=True)
        (self.folder / "server.properties").write_text(text)

    def format(self, *words: str) -> None:
        config = str(self.folder / "server.properties")
        done = run("kafka-storage", "format", "-t", CLUSTER_ID, "-c", config, *words)
        assert done.code == 0, done.out + done.err

    @contextmanager
    def kafka(self, libs: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run an Apache Kafka here; it is ended whatever happens."""
        command = [*JAVA, "-cp", f"{libs}/*", "kafka.Kafka", str(self.folder / "server.properties")]
        with (self.folder / "node.log").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait(STOP_S)

    def await_port(self, process: subprocess.Popen[bytes]) -> None:
        await_port(process, self.port if self.is_broker else self.controller_port, self.folder / "node.log")


def nodes(folder: Path, count: int) -> list[Node]:
    """Write the settings of so many controllers; the first is a broker too, so that clients can ask it."""
    ports = free_ports(2 * count)
    made = [
        Node(number, folder / f"node{number}", ports[2 * number - 2], ports[2 * number - 1], number == 1)
        for number in range(1, count + 1)
    ]
    for node in made:
        node.write(",".join(one.controller for one in made))
    return made


def quorum(client: Client) -> m.DescribeQuorumResponse_PartitionData:
    """Return what the broker says of the quorum: who leads, who votes, and how far the voters are."""
    topic = m.DescribeQuorumRequest_TopicData("__cluster_metadata", [m.DescribeQuorumRequest_PartitionData(0)])
    return client.send(m.DescribeQuorumRequest([topic])).topics[0].partitions[0]


def voters(state: m.DescribeQuorumResponse_PartitionData) -> dict[int, bytes]:
    """Return the voters with the ids of their directories."""
    return {one.replica_id: one.replica_directory_id for one in state.current_voters}


def have_caught_up(state: m.DescribeQuorumResponse_PartitionData) -> bool:
    """Tell whether all voters have what is committed, or nearly: a record is written every half second."""
    return min(one.log_end_offset for one in state.current_voters) >= state.high_watermark - 2 > 0


def three_controllers(libs: Path, folder: Path) -> str:
    """Format three nodes for one quorum, start them as Apache Kafka, and see that all of them vote."""
    made = nodes(folder, 3)
    directories = {node.id: uuid.uuid4().bytes for node in made}
    initial = ",".join(f"{node.id}@{node.controller}:{encode_id(directories[node.id])}" for node in made)
    for node in made:
        node.format("--initial-controllers", initial)
        assert node.directory_id == directories[node.id]
    with ExitStack() as stack:
        start_all(libs, made, stack)
        with Client({"bootstrap.servers": made[0].address}) as client:
            eventually(lambda: have_caught_up(quorum(client)))
            state = quorum(client)
    assert voters(state) == directories, state
    return f"three controllers vote, and node {state.leader_id} leads"


def start_all(libs: Path, made: Sequence[Node], stack: ExitStack) -> None:
    started = [(node, stack.enter_context(node.kafka(libs))) for node in made]
    for node, process in started:
        node.await_port(process)


def main() -> int:
    lacking = needs.missing(("java", "kafka-jars"))
    libs = None if lacking else needs.find("kafka-jars").path
    if libs is None:
        print(f"left out: {lacking}")
        return 0
    with tempfile.TemporaryDirectory(prefix="moldau-formatted-") as folder:
        print(three_controllers(libs, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
