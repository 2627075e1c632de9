"""The cluster itself: brokers, controller, features, the quorum, and what is wrong with partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.client import Client, ClientError, Error, Node, check
from moldau.client import messages as m

METADATA_TOPIC = "__cluster_metadata"
MOLDAU, KAFKA = "Moldau", "Kafka"
OF_MOLDAU = "moldau.version"  # a feature that Moldau's brokers support and Kafka's do not know


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
    """The quorum of the metadata log. `endpoints` are listeners of voters by id; old brokers do not name them."""

    leader: int
    leader_epoch: int
    high_watermark: int
    replicas: tuple[Replica, ...]
    endpoints: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])

    @property
    def end_offset(self) -> int:
        """Return the end of the leader's log."""
        return max((one.log_end_offset for one in self.replicas if one.id == self.leader), default=-1)

    def lag(self, replica: Replica) -> int:
        """Return how many offsets a replica is behind the leader."""
        return max(0, self.end_offset - replica.log_end_offset)


def described(client: Client, *, fenced: bool = False) -> ClusterState:
    """Describe the cluster, with its brokers by number; `fenced` ones too, if the brokers can tell (KIP-1073).

    A client that asks controllers learns of controllers instead (KIP-919).
    """
    try:
        answer = check(client.send(m.DescribeClusterRequest(False, client.endpoint_type, fenced)))
    except ClientError as error:
        if not fenced or error.error is not Error.UNSUPPORTED_VERSION:
            raise
        return described(client)
    brokers = (
        BrokerState(row.broker_id, row.host, row.port, row.rack, row.broker_id == answer.controller_id, row.is_fenced)
        for row in answer.brokers
    )
    return ClusterState(answer.cluster_id, answer.controller_id, tuple(sorted(brokers, key=lambda one: one.id)))


def versions(client: Client, broker: int, timeout_s: float | None = None) -> Any:
    """Return the ApiVersions response of a broker."""
    return check(client.send(m.ApiVersionsRequest("moldau", "1"), Node(broker), timeout_s=timeout_s))


def features(client: Client, broker: int) -> tuple[list[FeatureState], int]:
    """Return the features of the cluster by name, and their epoch."""
    answer = versions(client, broker)
    levels = {row.name: row.max_version_level for row in answer.finalized_features}
    found = [
        FeatureState(row.name, row.min_version, row.max_version, levels.get(row.name, 0))
        for row in answer.supported_features
    ]
    return sorted(found, key=lambda one: one.name), answer.finalized_features_epoch


def kinds(client: Client, brokers: Iterable[int], timeout_s: float) -> dict[int, str]:
    """Tell which brokers are Moldau's and which are Kafka's, of those that answer in time."""
    found: dict[int, str] = {}
    for broker in brokers:
        try:
            names = {row.name for row in versions(client, broker, timeout_s).supported_features}
            found[broker] = MOLDAU if OF_MOLDAU in names else KAFKA
        except ClientError as error:
            if not error.retriable:
                raise
    return found


def unregister(client: Client, broker: int) -> None:
    """Let the cluster forget a broker that is gone for good; ClientError if it is not registered."""
    check(client.send(m.UnregisterBrokerRequest(broker)))


def known_quorum(client: Client) -> Quorum | None:
    """Describe the quorum; None where the caller may not ask, or there is none (before KRaft)."""
    try:
        return quorum(client)
    except ClientError as error:
        if error.error in (Error.UNSUPPORTED_VERSION, Error.CLUSTER_AUTHORIZATION_FAILED):
            return None
        raise


def quorum(client: Client) -> Quorum:
    """Describe the quorum."""
    part = m.DescribeQuorumRequest_PartitionData(0)
    request = m.DescribeQuorumRequest([m.DescribeQuorumRequest_TopicData(METADATA_TOPIC, [part])])
    answer = check(client.send(request))
    row = answer.topics[0].partitions[0]
    replicas = [_replica(one, True) for one in row.current_voters] + [_replica(one, False) for one in row.observers]
    endpoints = {
        node.node_id: tuple(f"{one.name}://{one.host}:{one.port}" for one in node.listeners)
        for node in answer.nodes or ()
    }
    return Quorum(row.leader_id, row.leader_epoch, row.high_watermark, tuple(replicas), endpoints)


def _replica(row: Any, voter: bool) -> Replica:
    times = row.last_fetch_timestamp, row.last_caught_up_timestamp
    return Replica(row.replica_id, row.replica_directory_id, row.log_end_offset, *times, voter)
