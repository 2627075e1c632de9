"""Clusters of real processes on loopback, each node a Moldau or an Apache Kafka on the same file of settings."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from moldau.log.checkpoints import random_id
from moldau.testing.ports import free_ports
from tests.conformance.differential.brokers import CLUSTER_ID, LOGGING, await_port

KAFKA, MOLDAU = "kafka", "moldau"
STATIC, DYNAMIC = "static", "dynamic"
PROGRAMS = Path(sys.executable).parent
START_S = 90.0
SERVERS = "controller.quorum.bootstrap.servers"
T = TypeVar("T")
JAVA = ["java", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *LOGGING]
SETTINGS = """
process.roles={roles}
node.id={id}
listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters={voters}
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
broker.rack=r{id}
offsets.topic.num.partitions=3
offsets.topic.replication.factor={factor}
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor={factor}
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.replication.factor={factor}
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
replica.fetch.backoff.ms=100
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
"""


@dataclass
class Member:
    """One node: what it runs on, where it listens, and its process while it runs."""

    kind: str
    id: int
    roles: str
    folder: Path
    libs: Path
    port: int
    controller_port: int
    host: str = "127.0.0.1"
    doors: dict[str, int] = field(default_factory=dict[str, int])  # further listeners for clients, and their ports
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        return self.folder / "node.log"

    def write(self, voters: str, factor: int, more: Mapping[str, str]) -> None:
        listeners = [f"PLAINTEXT://{self.address}"] if "broker" in self.roles else []
        listeners += [f"{name}://{self.host}:{port}" for name, port in self.doors.items()]
        listeners += [f"CONTROLLER://{self.host}:{self.controller_port}"] if "controller" in self.roles else []
        self.folder.mkdir(parents=True)
        data = ",".join(str(self.folder / name) for name in ("data", "more"))
        text = SETTINGS.format(
            roles=self.roles, id=self.id, listeners=",".join(listeners), voters=voters, data=data, factor=factor
        )
        self.properties.write_text(text + "".join(f"{name}={value}\n" for name, value in more.items()))

    def format(self, *options: str) -> None:
        tool = [*JAVA, "-cp", f"{self.libs}/*", "kafka.tools.StorageTool"]
        if self.kind == MOLDAU:
            tool = [str(PROGRAMS / "kafka-storage")]
        command = [*tool, "format", "-t", CLUSTER_ID, "-c", str(self.properties), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_S)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [*JAVA, "-cp", f"{self.libs}/*", "kafka.Kafka", str(self.properties)]
        if self.kind == MOLDAU:
            command = [str(PROGRAMS / "moldau"), "broker", "--config", str(self.properties)]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def await_port(self) -> None:
        assert self.process is not None
        await_port(self.process, self.port if "broker" in self.roles else self.controller_port, self.log)

    def send(self, what: int) -> None:
        """Send its process a signal, and let it be."""
        assert self.process is not None
        self.process.send_signal(what)

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it, by default in order; returns its exit code. Java's tells of the signal that ended it."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(how)
        try:
            code = process.wait(START_S)
            return 0 if self.kind == KAFKA and code == 128 + how else code
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def leave(self) -> None:
        """End it in order: it hands over first what it leads. A JVM that was told to end says so by its exit code."""
        assert self.stop() in ((0,) if self.kind == MOLDAU else (0, 128 + signal.SIGTERM))


@dataclass
class Cluster:
    """Nodes by their ids."""

    members: dict[int, Member] = field(default_factory=dict[int, Member])

    def __getitem__(self, node: int) -> Member:
        return self.members[node]

    @property
    def bootstrap(self) -> str:
        return ",".join(one.address for one in self.members.values() if "broker" in one.roles)

    def addresses(self, door: str) -> str:
        """Return where the brokers listen at one of the doors."""
        return ",".join(f"{one.host}:{one.doors[door]}" for one in self.members.values() if "broker" in one.roles)

    def client(self, **more: Any) -> dict[str, Any]:
        """Settings of a confluent-kafka client."""
        base = {"bootstrap.servers": self.bootstrap, "broker.address.family": "v4", "allow.auto.create.topics": False}
        return base | {name.replace("_", "."): value for name, value in more.items()}


@contextmanager
def cluster(
    libs: Path,
    folder: Path,
    nodes: Mapping[int, tuple[str, str]],
    release: str | None = None,
    voters: str = STATIC,
    doors: Sequence[str] = (),
    host: str = "127.0.0.1",
    **more: str,
) -> Iterator[Cluster]:
    """Start nodes, given as kind and roles by id; whatever happens, all of them are ended.

    `release`: of which Kafka's time the cluster is (its metadata.version). `voters`: dynamic ones stand in the log
    (kraft.version 1), static ones in the settings. `doors`: further listeners, whose protocols are in the settings.
    """
    ports = iter(free_ports((2 + len(doors)) * len(nodes)))
    made = Cluster()
    for node, (kind, roles) in nodes.items():
        where = folder / f"node{node}"
        made.members[node] = Member(kind, node, roles, where, libs, next(ports), next(ports), host)
        made.members[node].doors = {name: next(ports) for name in doors}
    voting = [one for one in made.members.values() if "controller" in one.roles]
    listed = ",".join(f"{one.id}@{host}:{one.controller_port}" for one in voting)
    brokers = sum("broker" in one.roles for one in made.members.values())
    settings = {name.replace("_", "."): value for name, value in more.items()}
    options = ["--release-version", release] if release else []
    if voters == DYNAMIC:
        initial = [f"{one.id}@127.0.0.1:{one.controller_port}:{random_id()}" for one in voting]
        options += ["--initial-controllers", ",".join(initial)]
        settings[SERVERS] = ",".join(f"127.0.0.1:{one.controller_port}" for one in voting)
    try:
        for one in made.members.values():
            one.write("" if voters == DYNAMIC else listed, min(3, brokers), settings)
            one.format(*(options if "controller" in one.roles else []))
        for one in made.members.values():
            one.start()
        for one in made.members.values():
            one.await_port()
        yield made
    finally:
        for one in made.members.values():
            if one.process is not None:
                one.process.kill()
                one.process.wait()


def eventually(look: Callable[[], T], seconds: float = 30.0) -> T:
    """Look again and again until something is there; the last look's exception is the reason if it never is."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if seen := look():
                return seen
            problem: Exception = AssertionError(f"still {seen!r} after {seconds} s")
        except AssertionError as error:
            problem = error
        if time.monotonic() > deadline:
            raise problem
        time.sleep(0.05)
