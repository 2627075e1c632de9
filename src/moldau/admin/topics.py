"""Topics: list, describe, create, grow, trim and delete them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.admin import TIMEOUT_MS, TopicPartition
from moldau.client import CONTROLLER, Client, ClientError, Error, Leader, check
from moldau.client import messages as m

DEFAULT = -1  # partitions and replicas: as the cluster is set


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition. `leader` is -1 while there is none; ELR (KIP-966) is None if the broker does not report it."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic with its partitions in order."""

    name: str
    id: bytes
    internal: bool
    partitions: tuple[PartitionState, ...]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; `assignments` are the brokers of each partition, and replace the counts."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    configs: Mapping[str, str] | None = None
    assignments: Mapping[int, Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class Created:
    """A topic as it was created; -1 and no settings if the broker does not report them."""

    name: str
    id: bytes
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


def listed(client: Client, *, internal: bool = True) -> list[TopicState]:
    """List all topics by name, without those that the caller may not see."""
    answer = client.send(m.MetadataRequest(topics=None, allow_auto_topic_creation=False))
    found = [_topic(row) for row in answer.topics if row.error_code in (Error.NONE, Error.LEADER_NOT_AVAILABLE)]
    return sorted((topic for topic in found if internal or not topic.internal), key=lambda topic: topic.name)


def described(client: Client, names: Iterable[str]) -> list[TopicState]:
    """Describe topics, in the order given; ClientError for one that does not exist."""
    wanted = list(dict.fromkeys(names))
    answer = client.send(_question(wanted))
    found = {row.name: row for row in answer.topics}
    late = [name for name in wanted if _error(found, name) is Error.UNKNOWN_TOPIC_OR_PARTITION]
    if late and len(answer.brokers) > 1:
        found |= _known_elsewhere(client, late, [broker.node_id for broker in answer.brokers])
    for name in wanted:
        if (error := _error(found, name)) not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
            raise missing(name, error)
    return [_topic(found[name]) for name in wanted]


def _question(names: Iterable[str]) -> Any:
    rows = [m.MetadataRequest_MetadataRequestTopic(name=name) for name in names]
    return m.MetadataRequest(topics=rows, allow_auto_topic_creation=False)


def _error(found: Mapping[str, Any], name: str) -> Error:
    return Error(found[name].error_code) if name in found else Error.UNKNOWN_TOPIC_OR_PARTITION


def _known_elsewhere(client: Client, names: Iterable[str], brokers: Iterable[int]) -> dict[str, Any]:
    """Ask every broker for topics that one does not know: they hear of a new topic one after the other."""
    found: dict[str, Any] = {}
    for broker in brokers:
        try:
            answer = client.send(_question(names), broker, retry=False)
        except ClientError:
            continue  # of those that cannot be reached nobody expects a topic
        found |= {row.name: row for row in answer.topics if row.error_code == Error.NONE}
    return found


def missing(name: str, error: Error = Error.UNKNOWN_TOPIC_OR_PARTITION) -> ClientError:
    """Return the error of a topic that does not exist, or that the caller may not see."""
    if error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        return ClientError(error, f"There is no topic {name}.", retriable=False)
    return ClientError(error, f"Topic {name}: {error.message}", retriable=False)


def partitions(client: Client, names: Iterable[str]) -> list[TopicPartition]:
    """List all partitions of these topics."""
    return [(topic.name, row.index) for topic in described(client, names) for row in topic.partitions]


def with_elr(client: Client, names: Iterable[str]) -> dict[TopicPartition, PartitionState]:
    """Return partitions with eligible leader replicas, from DescribeTopicPartitions."""
    found: dict[TopicPartition, PartitionState] = {}
    topics = [m.DescribeTopicPartitionsRequest_TopicRequest(name) for name in sorted(names)]
    cursor: Any = None
    while True:
        answer = client.send(m.DescribeTopicPartitionsRequest(topics, cursor=cursor))
        for topic in answer.topics:
            found |= {(topic.name, row.partition_index): _partition(row) for row in topic.partitions}
        after = answer.next_cursor
        if after is None:
            return found
        cursor = m.DescribeTopicPartitionsRequest_Cursor(after.topic_name, after.partition_index)


def create(client: Client, topics: Iterable[NewTopic], *, validate_only: bool = False) -> list[Created]:
    """Create topics; ClientError for the first that is refused (the others may have been created)."""
    rows = [_creatable(topic) for topic in topics]
    answer = client.send(m.CreateTopicsRequest(rows, TIMEOUT_MS, validate_only), CONTROLLER)
    return [_created(row) for row in check(answer).topics]


def delete(client: Client, names: Iterable[str]) -> None:
    """Delete topics; ClientError for the first that is refused."""
    wanted = list(names)
    rows = [m.DeleteTopicsRequest_DeleteTopicState(name=name) for name in wanted]
    check(client.send(m.DeleteTopicsRequest(rows, wanted, TIMEOUT_MS), CONTROLLER))


def add_partitions(
    client: Client,
    totals: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    *,
    validate_only: bool = False,
) -> None:
    """Raise the partition counts of topics; `assignments` are the brokers of each new partition."""
    rows = []
    for name, total in totals.items():
        places = (assignments or {}).get(name)
        given = [m.CreatePartitionsRequest_CreatePartitionsAssignment(list(ids)) for ids in places or ()]
        rows.append(m.CreatePartitionsRequest_CreatePartitionsTopic(name, total, given or None))
    check(client.send(m.CreatePartitionsRequest(rows, TIMEOUT_MS, validate_only), CONTROLLER))


def delete_records(client: Client, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | ClientError]:
    """Delete records before these offsets (-1: the end); return the new start of each partition, or the error."""
    found: dict[TopicPartition, int | ClientError] = {}
    for (topic, partition), offset in before.items():
        row = m.DeleteRecordsRequest_DeleteRecordsPartition(partition, offset)
        request = m.DeleteRecordsRequest([m.DeleteRecordsRequest_DeleteRecordsTopic(topic, [row])], TIMEOUT_MS)
        try:
            answer = check(client.send(request, Leader(topic, partition)))
            found[topic, partition] = answer.topics[0].partitions[0].low_watermark
        except ClientError as error:
            found[topic, partition] = error
    return found


def sizes(client: Client, names: Iterable[str] | None = None) -> dict[TopicPartition, dict[int, int]]:
    """Return the bytes on disk of partitions by broker, of all topics if none are named."""
    wanted = None if names is None else set(names)
    found: dict[TopicPartition, dict[int, int]] = {}
    for broker, answer in client.send_to_each(m.DescribeLogDirsRequest(topics=None)).items():
        for folder in answer.results:
            for topic in folder.topics:
                if wanted is None or topic.name in wanted:
                    for row in topic.partitions:
                        if not row.is_future_key:
                            found.setdefault((topic.name, row.partition_index), {})[broker] = row.partition_size
    return found


def _topic(row: Any) -> TopicState:
    parts = sorted(map(_partition, row.partitions), key=lambda part: part.index)
    return TopicState(row.name, row.topic_id, row.is_internal, tuple(parts))


def _partition(row: Any) -> PartitionState:
    nodes = tuple(row.replica_nodes), tuple(row.isr_nodes), tuple(row.offline_replicas)
    told = (getattr(row, name, None) for name in ("eligible_leader_replicas", "last_known_elr"))
    elr, last = (None if ids is None else tuple(ids) for ids in told)
    return PartitionState(row.partition_index, row.leader_id, row.leader_epoch, *nodes, elr, last)


def _creatable(topic: NewTopic) -> Any:
    placed = topic.assignments or {}
    return m.CreateTopicsRequest_CreatableTopic(
        name=topic.name,
        num_partitions=DEFAULT if placed else topic.partitions,
        replication_factor=DEFAULT if placed else topic.replication_factor,
        assignments=[m.CreateTopicsRequest_CreatableReplicaAssignment(i, list(ids)) for i, ids in placed.items()],
        configs=[m.CreateTopicsRequest_CreatableTopicConfig(*pair) for pair in (topic.configs or {}).items()],
    )


def _created(row: Any) -> Created:
    configs = {entry.name: entry.value for entry in row.configs or ()}
    return Created(row.name, row.topic_id, row.num_partitions, row.replication_factor, configs)
