"""Several real brokers that form one cluster, each in a process of its own, for tests and scripts."""

from __future__ import annotations

import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from moldau.broker.rim.clusters import Ports, format_directories, node_settings
from moldau.testing.process import Broker

QUICK = {"group.initial.rebalance.delay.ms": "0", "replica.fetch.backoff.ms": "100"}


class Cluster:
    """Brokers 1, 2, ...: every one is a controller too. Whatever is done to one of them, the others go on."""

    def __init__(self, count: int, settings: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-cluster-"))
        ports = [Ports(*pair) for pair in zip(*[iter(free_ports(2 * count))] * 2, strict=True)]
        folders = [self.folder / str(node) for node in range(1, count + 1)]
        format_directories(folders)
        self.brokers = {
            node: Broker({**QUICK, **node_settings(node, ports), **(settings or {})}, str(folders[node - 1]))
            for node in range(1, count + 1)
        }
        self.paused: set[int] = set()

    def __getitem__(self, node: int) -> Broker:
        return self.brokers[node]

    @property
    def bootstrap_servers(self) -> str:
        """Return all addresses for a client's `bootstrap.servers`."""
        addresses = (broker.settings["listeners"].partition(",")[0] for broker in self.brokers.values())
        return ",".join(address.removeprefix("PLAINTEXT://") for address in addresses)

    def start(self) -> Cluster:
        """Start all of them at once, since none is ready before there is a majority of controllers."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(lambda broker: broker.start(), self.brokers.values()))
        return self

    def kill(self, node: int) -> None:
        """Kill a broker, as a crash would; `start_again` brings it back."""
        self.resume(node)
        self.brokers[node].kill()

    def start_again(self, node: int) -> None:
        self.brokers[node].start()

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
            ends.callback(shutil.rmtree, self.folder, ignore_errors=True)
            for node, broker in self.brokers.items():
                self.resume(node)
                ends.callback(broker.close)
                broker.kill()


@contextmanager
def cluster(count: int = 3, settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Run a cluster during a `with`."""
    made = Cluster(count, settings)
    try:
        yield made.start()
    finally:
        made.close()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody uses; they are all open while they are chosen, so that they differ."""
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [sock.getsockname()[1] for sock in sockets]
