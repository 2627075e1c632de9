"""Small clusters on one machine, for `moldau up --brokers 3` and for tests: every node is a broker and a controller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moldau.log.checkpoints import random_id
from moldau.settings import read_properties

META = "meta.properties"
MOST_REPLICAS = 3
REPLICATED = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
IN_SYNC = "min.insync.replicas", "transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr"


class Ports(NamedTuple):
    """Where a node listens: for clients and brokers, and for controllers."""

    broker: int
    controller: int


def node_settings(
    node: int, ports: Sequence[Ports], host: str = "127.0.0.1", protocol: str = "PLAINTEXT"
) -> dict[str, str]:
    """Return the settings of a node; nodes are counted from 1, and each is in a rack of its own.

    With three nodes or more every record is on three of them, and a write is acknowledged when two have it.
    """
    count, mine = len(ports), ports[node - 1]
    replicas, in_sync = min(MOST_REPLICAS, count), 2 if count >= MOST_REPLICAS else 1
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "listeners": f"{protocol}://{host}:{mine.broker},CONTROLLER://{host}:{mine.controller}",
        "controller.listener.names": "CONTROLLER",
        **({} if protocol == "PLAINTEXT" else {"inter.broker.listener.name": protocol}),
        "controller.quorum.voters": ",".join(f"{n}@{host}:{one.controller}" for n, one in enumerate(ports, 1)),
        "broker.rack": f"r{node}",
        **dict.fromkeys(REPLICATED, str(replicas)),
        **dict.fromkeys(IN_SYNC, str(in_sync)),
    }


def format_directories(folders: Sequence[Path]) -> None:
    """Make the data directories of nodes 1, 2, ... those of one cluster: the one that some of them belong to, or a
    new one.
    """
    known = [read_properties(str(folder / META)).get("cluster.id") for folder in folders if (folder / META).exists()]
    cluster_id = next((one for one in known if one), None) or random_id()
    for node, folder in enumerate(folders, 1):
        if not (folder / META).exists():
            folder.mkdir(parents=True, exist_ok=True)
            lines = "version=1", f"cluster.id={cluster_id}", f"node.id={node}", f"directory.id={random_id()}"
            partial = folder / f"{META}.tmp"
            partial.write_text("".join(f"{line}\n" for line in lines))
            partial.replace(folder / META)
