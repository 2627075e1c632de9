"""Several real brokers that form one cluster, each in a process of its own, for tests and scripts."""

from __future__ import annotations

import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from moldau.broker.rim.clusters import Ports, format_directories, node_settings
from moldau.testing.network import CLIENTS, Network, Way
from moldau.testing.ports import free_ports
from moldau.testing.process import Broker

QUICK = {"group.initial.rebalance.delay.ms": "0", "replica.fetch.backoff.ms": "100"}


class Cuttable(ABC):
    """Nodes with a network between them, and from clients to them."""

    brokers: dict[int, Any]

    @property
    @abstractmethod
    def network(self) -> Network:
        """Return what lies between the nodes, to cut and slow single ways."""

    def partition(self, *nodes: int, clients: bool = False, one_way: bool = False) -> None:
        """Cut brokers off from all others until `heal`; among themselves they go on.

        `clients`: from clients, too. `one_way`: they hear what others say, and what they say does not arrive.
        """
        self.network.hold(self.ways(nodes, clients=clients, one_way=one_way))

    def slow(self, *nodes: int, delay_s: float = 0.05, clients: bool = False) -> None:
        """Let all that brokers say to others, and hear of them, take so long until `heal`."""
        self.network.slow(self.ways(nodes, clients=clients), delay_s)

    def heal(self) -> None:
        """End all partitions and delays."""
        self.network.heal()

    def ways(self, nodes: Collection[int], *, clients: bool = False, one_way: bool = False) -> list[Way]:
        """Return the ways from some brokers to all others, and back unless `one_way`."""
        others = [*(node for node in self.brokers if node not in nodes), *([CLIENTS] if clients else [])]
        out = [(node, other) for node in nodes for other in others]
        return out if one_way else [*out, *((other, node) for node, other in out)]


class Cluster(Cuttable):
    """Brokers 1, 2, ...: every one is a controller too. Whatever is done to one of them, the others go on.

    `proxied=False` leaves the network out, for speed: then there is nothing to cut.
    """

    def __init__(self, count: int, settings: Mapping[str, str] | None = None, *, proxied: bool = True) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-cluster-"))
        ports = [Ports(*pair) for pair in zip(*[iter(free_ports(2 * count))] * 2, strict=True)]
        folders = [self.folder / str(node) for node in range(1, count + 1)]
        format_directories(folders)
        self._network = Network() if proxied else None
        told = [self._proxied(node, pair) for node, pair in enumerate(ports, 1)]
        self.brokers = {
            node: Broker(
                {
                    **QUICK,
                    **node_settings(node, told),
                    "listeners": listeners(ports[node - 1]),
                    "advertised.listeners": listeners(told[node - 1]),
                    **(settings or {}),
                },
                str(folders[node - 1]),
            )
            for node in range(1, count + 1)
        }
        self.paused: set[int] = set()

    def _proxied(self, node: int, ports: Ports) -> Ports:
        return ports if self._network is None else Ports(*(self._network.open(node, port) for port in ports))

    def __getitem__(self, node: int) -> Broker:
        return self.brokers[node]

    @property
    def bootstrap_servers(self) -> str:
        """Return all addresses for a client's `bootstrap.servers`."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    @property
    def network(self) -> Network:
        """Return what lies between the nodes, to cut and slow single ways."""
        if self._network is None:
            raise ValueError("this cluster was made with proxied=False: nothing lies between its nodes")
        return self._network

    def start(self) -> Cluster:
        self.start_again(*self.brokers)
        return self

    def kill(self, node: int) -> None:
        """Kill a broker, as a crash would; `start_again` brings it back."""
        self.resume(node)
        self.brokers[node].kill()

    def start_again(self, *nodes: int) -> None:
        """Start brokers at the same time, since none is ready before there is a majority of controllers."""
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(lambda node: self.brokers[node].start(), nodes))

    def pause(self, node: int) -> None:
        """Freeze a broker: its connections stay, and it says nothing."""
        self.brokers[node].signal(signal.SIGSTOP)
        self.paused.add(node)

    def resume(self, node: int) -> None:
        """Let a frozen broker go on."""
        if node in self.paused:
            self.paused.discard(node)
            self.brokers[node].signal(signal.SIGCONT)

    def close(self) -> None:
        """End all of them, and remove their files."""
        with ExitStack() as ends:
            if self._network is not None:
                ends.callback(self._network.close)
            ends.callback(shutil.rmtree, self.folder, ignore_errors=True)
            for node, broker in self.brokers.items():
                self.resume(node)
                ends.callback(broker.close)
                broker.kill()


@contextmanager
def cluster(count: int = 3, settings: Mapping[str, str] | None = None, *, proxied: bool = True) -> Iterator[Cluster]:
    """Run a cluster during a `with`."""
    made = Cluster(count, settings, proxied=proxied)
    try:
        yield made.start()
    finally:
        made.close()


def listeners(ports: Ports, host: str = "127.0.0.1") -> str:
    return f"PLAINTEXT://{host}:{ports.broker},CONTROLLER://{host}:{ports.controller}"
