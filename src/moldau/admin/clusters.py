"""The cluster itself: brokers, controller, features, the quorum, and what is wrong with partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.client import Client, Node, check
from moldau.client import messages as m

METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker that is known to the cluster."""

    id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster: its id, controller and brokers."""

    id: str
    controller: int
    brokers: tuple[BrokerState, ...]


@dataclass(frozen=True, slots=True)
class FeatureState:
    """A feature: what the brokers support, and the level that the cluster has settled on."""

    name: str
    lowest: int
    highest: int
    level: int


@dataclass(frozen=True, slots=True)
class Replica:
    """A voter or an observer of the quorum; times in ms, -1 if they are unknown."""

    id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    is_voter: bool


@dataclass(frozen=True, slots=True)
class Quorum:
    """The quorum of the metadata log."""

    leader: int
    leader_epoch: int
    high_watermark: int
    replicas: tuple[Replica, ...]


def described(client: Client) -> ClusterState:
    """Describe the cluster, with its brokers by number."""
    answer = check(client.send(m.DescribeClusterRequest()))
    brokers = (
        BrokerState(row.broker_id, row.host, row.port, row.rack, row.broker_id == answer.controller_id, row.is_fenced)
        for row in answer.brokers
    )
    return ClusterState(answer.cluster_id, answer.controller_id, tuple(sorted(brokers, key=lambda one: one.id)))


def versions(client: Client, broker: int) -> Any:
    """Return the ApiVersions response of a broker."""
    return check(client.send(m.ApiVersionsRequest("moldau", "1"), Node(broker)))


def features(client: Client, broker: int) -> tuple[list[FeatureState], int]:
    """Return the features of the cluster by name, and their epoch."""
    answer = versions(client, broker)
    levels = {row.name: row.max_version_level for row in answer.finalized_features}
    found = [
        FeatureState(row.name, row.min_version, row.max_version, levels.get(row.name, 0))
        for row in answer.supported_features
    ]
    return sorted(found, key=lambda one: one.name), answer.finalized_features_epoch


def quorum(client: Client) -> Quorum:
    """Describe the quorum."""
    part = m.DescribeQuorumRequest_PartitionData(0)
    request = m.DescribeQuorumRequest([m.DescribeQuorumRequest_TopicData(METADATA_TOPIC, [part])])
    row = check(client.send(request)).topics[0].partitions[0]
    replicas = [_replica(one, True) for one in row.current_voters] + [_replica(one, False) for one in row.observers]
    return Quorum(row.leader_id, row.leader_epoch, row.high_watermark, tuple(replicas))


def _replica(row: Any, voter: bool) -> Replica:
    times = row.last_fetch_timestamp, row.last_caught_up_timestamp
    return Replica(row.replica_id, row.replica_directory_id, row.log_end_offset, *times, voter)
