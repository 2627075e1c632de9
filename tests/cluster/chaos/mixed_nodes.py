"""Three nodes, each a Moldau or an Apache Kafka, brokers and voters all, with the network of proxies between them."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from moldau.broker.rim.clusters import Ports
from moldau.testing import Network
from moldau.testing.clusters import Cuttable, listeners
from moldau.testing.ports import free_ports
from tests.cluster.mixed import Member

SAFE = {"min.insync.replicas": "2", "transaction.state.log.min.isr": "2", "default.replication.factor": "3"}


class Mixed(Cuttable):
    """A cluster as `moldau.testing.Cluster` is one, of nodes of both kinds."""

    def __init__(self, kinds: Sequence[str], folder: Path, libs: Path, settings: Mapping[str, str]) -> None:
        self._network = Network()
        self.brokers: dict[int, Member] = {}
        ports = iter(free_ports(2 * len(kinds)))
        self.told: dict[int, Ports] = {}
        for node, kind in enumerate(kinds, 1):
            bound = Ports(next(ports), next(ports))
            self.told[node] = Ports(*(self._network.open(node, port) for port in bound))
            self.brokers[node] = Member(kind, node, "broker,controller", folder / f"node{node}", libs, *bound)
        voters = ",".join(f"{node}@127.0.0.1:{told.controller}" for node, told in self.told.items())
        for node, member in self.brokers.items():
            own = {**settings, **SAFE, "advertised.listeners": listeners(self.told[node])}
            member.write(voters, len(kinds), own)
            member.format()

    @property
    def network(self) -> Network:
        return self._network

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{told.broker}" for told in self.told.values())

    def kill(self, node: int) -> None:
        self.resume(node)
        self.brokers[node].stop(signal.SIGKILL)

    def start_again(self, *nodes: int) -> None:
        for node in nodes:
            self.brokers[node].start()
        for node in nodes:
            self.brokers[node].await_port()

    def pause(self, node: int) -> None:
        self.brokers[node].send(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        if self.brokers[node].process is not None:
            self.brokers[node].send(signal.SIGCONT)

    def close(self) -> None:
        for member in self.brokers.values():
            if member.process is not None:
                member.process.kill()
                member.process.wait()
        self._network.close()


@contextmanager
def mixed(kinds: Sequence[str], folder: Path, libs: Path, settings: Mapping[str, str]) -> Iterator[Mixed]:
    made = Mixed(kinds, folder, libs, settings)
    try:
        made.start_again(*made.brokers)
        yield made
    finally:
        made.close()
