"""Three nodes that are one cluster, each a process on the same file of settings: Moldau's and Apache Kafka's alike."""

import contextlib
import itertools
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from benchmarks import kafka, probe
from benchmarks.brokers import COMMON, OURS, START_SECONDS, Broker
from benchmarks.places import PORT, BenchError

NODES = 3
CONTROLLERS = 100  # a node's controller listens so many ports above its broker
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "auto.leader.rebalance.enable": "false",  # a leader moves when we move it
}


@dataclass(slots=True)
class Cluster:
    """Brokers 1 to 3, which are controllers too."""

    name: str
    home: Path
    nodes: list[Broker]

    @property
    def address(self) -> str:
        return ",".join(node.address for node in self.nodes)

    @property
    def folders(self) -> list[Path]:
        return [node.data for node in self.nodes]

    @property
    def alive(self) -> bool:
        return all(node.alive for node in self.nodes)

    def start(self, topic: str = "probe", settings: dict[str, str] | None = None) -> float:
        """Start all nodes; seconds from exec to the first record in `topic` that two of them have."""
        commands = [node.prepare(settings or {}) for node in self.nodes]
        begin = time.monotonic()
        for node, command in zip(self.nodes, commands, strict=True):
            node.launch(command)
        try:
            await_any_produce(self, topic)
        except BenchError:
            self.stop()
            raise
        return time.monotonic() - begin

    def start_warm(self) -> None:
        """Start them for the rows that share them."""
        self.start()

    def stop(self) -> float:
        """Tell all of them to stop, and wait."""
        begin = time.monotonic()
        for node in self.nodes:
            node.ask_to_stop()
        for node in self.nodes:
            node.stop()
        return time.monotonic() - begin

    def wipe(self) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds() for node in self.nodes)

    def rss_mb(self) -> float:
        return sum(node.rss_mb() for node in self.nodes)

    def node(self, number: int) -> Broker:
        return self.nodes[number - 1]

    def active_controller(self) -> int:
        """Who leads the quorum; clients are not told by Metadata, which names any broker."""
        command = [str(OURS), "cluster", "quorum", "--bootstrap-servers", self.address, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS)
        if done.returncode:
            raise BenchError(f"{self.name} does not say who leads its quorum: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)["leader"]


def await_any_produce(cluster: Cluster, topic: str) -> None:
    """Return when a record was acknowledged by whoever leads the topic, which the first question creates."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and cluster.alive:
        for node in cluster.nodes:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", node.port), 1) as connection,
            ):
                connection.settimeout(10)
                if probe.produced(connection, topic):
                    return
        time.sleep(0.005)
    tails = " ".join(node.log_tail() for node in cluster.nodes)
    raise BenchError(f"{cluster.name} acknowledged nothing. The logs end: {tails}")


def settings_of(number: int, ports: list[int]) -> dict[str, str]:
    """What a node's file says, beside where its data is."""
    mine = ports[number - 1]
    voters = ",".join(f"{n}@127.0.0.1:{port + CONTROLLERS}" for n, port in enumerate(ports, 1))
    return REPLICATED | {
        "process.roles": "broker,controller",
        "node.id": str(number),
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://127.0.0.1:{mine},CONTROLLER://127.0.0.1:{mine + CONTROLLERS}",
        "controller.listener.names": "CONTROLLER",
    }


def node_command(
    number: int, ports: list[int], cluster: str, storage: Callable[[], list[str]], run: Callable[[str], list[str]]
) -> Callable[[Path, int, dict[str, str]], list[str]]:
    """How a node is started: its file written, an empty directory formatted by its own tool."""

    def command(home: Path, port: int, settings: dict[str, str]) -> list[str]:
        properties = home / "server.properties"
        rows = settings_of(number, ports) | {"log.dirs": str(home / "data")} | COMMON | settings
        properties.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
        if not (home / "data").exists():
            kafka.format_storage(storage(), properties, cluster)
        return run(str(properties))

    return command


KINDS: dict[str, tuple[Callable[[Path], list[str]], Callable[[Path, str], list[str]]]] = {
    "kafka": (lambda _: kafka.java("kafka.tools.StorageTool"), lambda _, file: kafka.java("kafka.Kafka", file)),
    "moldau": (
        lambda program: [str(program.with_name("kafka-storage"))],
        lambda program, file: [str(program), "broker", "--config", file],
    ),
}


def clusters(home: Path, before: Path | None = None) -> list[Cluster]:
    """Three Kafka nodes, three of an earlier Moldau if one is given, and three of Moldau; none is started."""
    programs = {"kafka": OURS, "before": before / ".venv/bin/moldau" if before else None, "moldau": OURS}
    first_ports = itertools.count(PORT + 10, 10)
    return [
        made(name, home / name, program, next(first_ports)) for name, program in programs.items() if program is not None
    ]


def made(name: str, home: Path, program: Path, first: int) -> Cluster:
    storage, run = KINDS["kafka" if name == "kafka" else "moldau"]
    ports, cluster = [first + n for n in range(NODES)], kafka.random_id()
    nodes = [
        Broker(
            f"{name} {number}",
            node_command(number, ports, cluster, lambda: storage(program), lambda file: run(program, file)),
            home / str(number),
            port,
        )
        for number, port in enumerate(ports, 1)
    ]
    return Cluster(name, home, nodes)


def await_in_sync(cluster: Cluster, topics: list[str], seconds: float = 600.0) -> None:
    """Return when every replica of the topics is in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.address, "log_level": 2})
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(len(isr) == NODES for isr in in_sync(admin, topics)):
            return
        time.sleep(0.05)
    raise BenchError(f"{cluster.name} did not get its replicas in sync within {seconds:.0f} s.")


def in_sync(admin: AdminClient, topics: list[str]) -> Iterator[list[int]]:
    """The replicas in sync of each partition; nobody while the cluster does not answer."""
    for topic in topics:
        with contextlib.suppress(Exception):
            found = admin.list_topics(topic, timeout=10).topics[topic]
            yield from (partition.isrs for partition in found.partitions.values())
            continue
        yield []
