"""What a client knows of its cluster, as values: brokers, the controller, topics and their leaders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from moldau.client.config import Address
from moldau.client.errors import error_of
from moldau.wire.errors import Error

NO_ID = bytes(16)
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker and where it listens."""

    id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition; `leader` is -1 while there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic; `id` is zero where the broker is too old to tell."""

    name: str
    id: bytes
    partitions: Mapping[int, Partition]
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers and topics, as far as they are known. `unknown` says why a topic is not."""

    id: str | None = None
    controller: int = NOBODY
    brokers: Mapping[int, Broker] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, Topic] = field(default_factory=lambda: MappingProxyType({}))
    unknown: Mapping[str, Error] = field(default_factory=lambda: MappingProxyType({}))

    def after(self, answer: Any, whole: bool) -> Cluster:
        """Return the cluster updated by a Metadata response; `whole` if the response has all topics."""
        brokers = {
            row.node_id: Broker(row.node_id, Address(row.host, row.port), row.rack or None) for row in answer.brokers
        }
        topics = {} if whole else dict(self.topics)
        unknown: dict[str, Error] = {} if whole else dict(self.unknown)
        for row in answer.topics:
            unknown.pop(row.name, None)
            if row.error_code not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
                topics.pop(row.name, None)
                unknown[row.name] = error_of(row.error_code)
            else:
                topics[row.name] = _topic(row, self.topics.get(row.name))
        return Cluster(answer.cluster_id, answer.controller_id, brokers, topics, unknown)

    def without(self, names: frozenset[str]) -> Cluster:
        return replace(self, topics={name: topic for name, topic in self.topics.items() if name not in names})


def _topic(row: Any, before: Topic | None) -> Topic:
    known = before.partitions if before is not None and before.id == row.topic_id != NO_ID else {}
    partitions = {}
    for part in row.partitions:
        nodes = tuple(part.replica_nodes), tuple(part.isr_nodes), tuple(part.offline_replicas)
        new = Partition(part.leader_id, part.leader_epoch, *nodes)
        old = known.get(part.partition_index)
        # A broker that lags behind may still report the previous leader (KIP-320).
        partitions[part.partition_index] = old if old is not None and old.leader_epoch > new.leader_epoch else new
    return Topic(row.name, row.topic_id, partitions, row.is_internal)
