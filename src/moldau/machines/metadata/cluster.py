"""The cluster's metadata: topics, partitions, settings, brokers, features, quotas, access control, credentials.

The image is rebuilt only by `replay` of the records of `__cluster_metadata`, in Kafka's schemas, so that a
quorum can take the log over: one node commits to its own disk today, several will agree on the same records.
Commands that change it live beside this file (topics.py); they read the image and return records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from moldau.machines.metadata.acls import Acls
from moldau.machines.metadata.locations import Locations, Place, members

if TYPE_CHECKING:
    from moldau.machines.metadata.credentials import Credential

NO_LEADER = -1
NO_LEADER_CHANGE = -2
RECOVERING = 1  # the recovery state of a leader that may lack records
# Directory ids that stand for no directory: of a log from before there were ids, of one that the broker has not chosen
# a directory for yet, and of one whose directory is gone. All below 100 are reserved.
MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, LOST_DIRECTORY = bytes(16), bytes(15) + b"\x01", bytes(15) + b"\x02"
METADATA_VERSION = "metadata.version"
NEWEST_METADATA_VERSION = 30

# Resource types of ConfigRecord and of the config APIs.
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

QuotaEntity = tuple[tuple[str, str | None], ...]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Partition:
    """Who keeps a partition, who leads it, and since which epoch."""

    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    directories: tuple[bytes, ...] = ()
    eligible_leaders: tuple[int, ...] = ()
    last_known_leaders: tuple[int, ...] = ()
    recovery_state: int = 0


@dataclass(slots=True)
class Topic:
    """A topic's name, its id, which is never used again, and its partitions by number."""

    name: str
    id: bytes
    partitions: dict[int, Partition] = field(default_factory=dict[int, Partition])


class Endpoint(NamedTuple):
    """Where a listener of a broker is reached."""

    listener: str
    host: str
    port: int
    security_protocol: int


@dataclass(slots=True)
class Broker:
    """A registered broker; its epoch is the offset of its registration."""

    id: int
    epoch: int
    incarnation: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    features: Mapping[str, tuple[int, int]]
    log_dirs: tuple[bytes, ...]
    cordoned_dirs: tuple[bytes, ...] | None = None  # that get no new replicas; None before the broker has said so

    @property
    def is_active(self) -> bool:
        """Whether it may lead and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


@dataclass(slots=True)
class Controller:
    """A registered controller."""

    id: int
    incarnation: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]]


class Cluster:
    """The image of the metadata log up to the last replayed record."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.brokers: dict[int, Broker] = {}
        self.controllers: dict[int, Controller] = {}
        self.features: dict[str, int] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls = Acls()
        self.credentials: dict[tuple[str, int], Credential] = {}
        self.tokens: dict[str, Any] = {}  # delegation tokens by id, as their records say
        self.next_producer_id = 0
        self.topic_changes = 0  # grows with each change of which topics and partitions there are
        self.unsupported: set[str] = set()
        self.locations: Locations | None = None  # where partitions lie, once somebody has asked for it

    def replay(self, record: Any) -> None:
        """Apply one committed record: the only writer of this image."""
        REPLAY.get(record.SCHEMA.name, set_aside)(self, record)

    def topic(self, name: str | None, topic_id: bytes) -> Topic | None:
        """Return the topic of that name or, where no name is given, of that id."""
        return self.topics.get(name) if name else self.topics_by_id.get(topic_id)

    def config(self, kind: int, name: str) -> Mapping[str, str]:
        """Return the settings stored for one resource."""
        return self.configs.get((kind, name), {})

    def live_brokers(self) -> list[Broker]:
        """Registered brokers that take part, by id."""
        return [self.brokers[i] for i in sorted(self.brokers) if not self.brokers[i].fenced]

    @property
    def metadata_version(self) -> int:
        """The level that decides which records may be written; an image without features is of a new cluster."""
        return self.features.get(METADATA_VERSION, NEWEST_METADATA_VERSION)

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is registered, not fenced and not about to stop."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def partitions_of(self, broker_id: int) -> Iterator[Place]:
        """Yield the partitions that a broker keeps, with their topics; those of NO_LEADER have no leader."""
        if self.locations is None:
            self.locations = Locations(self.topics.values())
        return self.locations.of(broker_id)


def ids_or(new: Any, old: tuple[int, ...]) -> tuple[int, ...]:
    """Return a changed list of a PartitionChangeRecord, or what was there where it says null."""
    return old if new is None else tuple(new)


def replay_topic(cluster: Cluster, record: Any) -> None:
    topic = Topic(record.name, bytes(record.topic_id))
    cluster.topics[topic.name] = cluster.topics_by_id[topic.id] = topic
    cluster.topic_changes += 1


def replay_partition(cluster: Cluster, record: Any) -> None:
    topic = cluster.topics_by_id[bytes(record.topic_id)]
    cluster.topic_changes += 1
    locations, before = cluster.locations, topic.partitions.get(record.partition_id)
    if locations is not None and before is not None:
        locations.remove(topic, before)
    partition = topic.partitions[record.partition_id] = Partition(
        index=record.partition_id,
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        adding=tuple(record.adding_replicas),
        removing=tuple(record.removing_replicas),
        directories=tuple(bytes(directory) for directory in record.directories),
        eligible_leaders=ids_or(record.eligible_leader_replicas, ()),
        last_known_leaders=ids_or(record.last_known_elr, ()),
        recovery_state=record.leader_recovery_state,
    )
    if locations is not None:
        locations.add(topic, partition)


def replay_partition_change(cluster: Cluster, record: Any) -> None:
    topic = cluster.topics_by_id[bytes(record.topic_id)]
    part = topic.partitions[record.partition_id]
    before = members(part)
    apply_change(part, record)
    if cluster.locations is not None:
        cluster.locations.move(topic, part, before)


def apply_change(part: Partition, record: Any) -> None:
    """Bring a partition to what a PartitionChangeRecord says."""
    part.isr = ids_or(record.isr, part.isr)
    part.replicas = ids_or(record.replicas, part.replicas)
    part.adding = ids_or(record.adding_replicas, part.adding)
    part.removing = ids_or(record.removing_replicas, part.removing)
    part.eligible_leaders = ids_or(record.eligible_leader_replicas, part.eligible_leaders)
    part.last_known_leaders = ids_or(record.last_known_elr, part.last_known_leaders)
    if record.directories is not None:
        part.directories = tuple(bytes(directory) for directory in record.directories)
    if record.leader_recovery_state >= 0:
        part.recovery_state = record.leader_recovery_state
    if record.leader != NO_LEADER_CHANGE:
        part.leader, part.leader_epoch = record.leader, part.leader_epoch + 1
    part.partition_epoch += 1


def replay_clear_eligible_leaders(cluster: Cluster, record: Any) -> None:
    """Of one topic, or, without a name, of all: min.insync.replicas has changed, which they rested on (KIP-966)."""
    for topic in [cluster.topics[record.topic_name]] if record.topic_name else cluster.topics.values():
        for part in topic.partitions.values():
            if part.eligible_leaders or part.last_known_leaders:
                before = members(part)
                part.eligible_leaders = part.last_known_leaders = ()
                part.partition_epoch += 1
                if cluster.locations is not None:
                    cluster.locations.move(topic, part, before)


def replay_remove_topic(cluster: Cluster, record: Any) -> None:
    topic = cluster.topics_by_id.pop(bytes(record.topic_id))
    del cluster.topics[topic.name]
    cluster.configs.pop((TOPIC, topic.name), None)
    cluster.topic_changes += 1
    if cluster.locations is not None:
        for part in topic.partitions.values():
            cluster.locations.remove(topic, part)


def replay_config(cluster: Cluster, record: Any) -> None:
    put(cluster.configs, (record.resource_type, record.resource_name), record.name, record.value)


def put(table: dict[K, dict[str, V]], key: K, name: str, value: V | None) -> None:
    """Set one value of an entry, or take it out (None). An entry without values goes."""
    values = table.setdefault(key, {})
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
    if not values:
        del table[key]


def replay_register_broker(cluster: Cluster, record: Any) -> None:
    cluster.brokers[record.broker_id] = Broker(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation=bytes(record.incarnation_id),
        endpoints=endpoints_of(record),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        features=features_of(record),
        log_dirs=tuple(bytes(directory) for directory in record.log_dirs),
        cordoned_dirs=directories_or(record.cordoned_log_dirs, None),
    )


def endpoints_of(record: Any) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points)


def features_of(record: Any) -> dict[str, tuple[int, int]]:
    return {f.name: (f.min_supported_version, f.max_supported_version) for f in record.features}


def directories_or(new: Any, old: tuple[bytes, ...] | None) -> tuple[bytes, ...] | None:
    return old if new is None else tuple(bytes(directory) for directory in new)


def replay_register_controller(cluster: Cluster, record: Any) -> None:
    cluster.controllers[record.controller_id] = Controller(
        record.controller_id, bytes(record.incarnation_id), endpoints_of(record), features_of(record)
    )


def replay_broker_change(cluster: Cluster, record: Any) -> None:
    broker = cluster.brokers[record.broker_id]
    if record.fenced:  # -1 unfences, 1 fences, 0 leaves it
        broker.fenced = record.fenced > 0
    if record.in_controlled_shutdown:
        broker.in_controlled_shutdown = record.in_controlled_shutdown > 0
    if record.log_dirs:
        broker.log_dirs = tuple(bytes(directory) for directory in record.log_dirs)
    broker.cordoned_dirs = directories_or(record.cordoned_log_dirs, broker.cordoned_dirs)


def replay_fence(cluster: Cluster, record: Any) -> None:
    cluster.brokers[record.id].fenced = True


def replay_unfence(cluster: Cluster, record: Any) -> None:
    cluster.brokers[record.id].fenced = False


def replay_feature(cluster: Cluster, record: Any) -> None:
    if record.feature_level:
        cluster.features[record.name] = record.feature_level
    else:
        cluster.features.pop(record.name, None)


def replay_producer_ids(cluster: Cluster, record: Any) -> None:
    cluster.next_producer_id = record.next_producer_id


def quota_entity(parts: Any) -> QuotaEntity:
    """Return the key of a quota: its entity types and names, None standing for the default, in a fixed order."""
    return tuple(sorted(((part.entity_type, part.entity_name) for part in parts), key=lambda pair: pair[0]))


def replay_quota(cluster: Cluster, record: Any) -> None:
    put(cluster.quotas, quota_entity(record.entity), record.key, None if record.remove else record.value)


def replay_credential(cluster: Cluster, record: Any) -> None:
    # Imported late: few clusters have credentials, and every start would pay for it.
    from moldau.machines.metadata.credentials import Credential

    keys = bytes(record.salt), bytes(record.stored_key), bytes(record.server_key)
    cluster.credentials[record.name, record.mechanism] = Credential(*keys, record.iterations)


def replay_token(cluster: Cluster, record: Any) -> None:
    cluster.tokens[record.token_id] = record


def ignore(cluster: Cluster, record: Any) -> None:
    """Records that say nothing about this image: heartbeats of the log, marks around atomic groups."""


def set_aside(cluster: Cluster, record: Any) -> None:
    """What another release or Kafka's controller wrote and this release does not know: told at the start."""
    cluster.unsupported.add(record.SCHEMA.name)


REPLAY: dict[str, Callable[[Cluster, Any], object]] = {
    "TopicRecord": replay_topic,
    "PartitionRecord": replay_partition,
    "PartitionChangeRecord": replay_partition_change,
    "ClearElrRecord": replay_clear_eligible_leaders,
    "RemoveTopicRecord": replay_remove_topic,
    "ConfigRecord": replay_config,
    "RegisterBrokerRecord": replay_register_broker,
    "BrokerRegistrationChangeRecord": replay_broker_change,
    "UnregisterBrokerRecord": lambda cluster, record: cluster.brokers.pop(record.broker_id, None),
    "FenceBrokerRecord": replay_fence,
    "UnfenceBrokerRecord": replay_unfence,
    "FeatureLevelRecord": replay_feature,
    "ProducerIdsRecord": replay_producer_ids,
    "ClientQuotaRecord": replay_quota,
    "AccessControlEntryRecord": lambda cluster, record: cluster.acls.replay(record),
    "RemoveAccessControlEntryRecord": lambda cluster, record: cluster.acls.replay_removal(record),
    "UserScramCredentialRecord": replay_credential,
    "RemoveUserScramCredentialRecord": lambda cluster, record: cluster.credentials.pop((record.name, record.mechanism)),
    "DelegationTokenRecord": replay_token,
    "RemoveDelegationTokenRecord": lambda cluster, record: cluster.tokens.pop(record.token_id),
    "RegisterControllerRecord": replay_register_controller,
    "BeginTransactionRecord": ignore,
    "EndTransactionRecord": ignore,
    "NoOpRecord": ignore,
}
