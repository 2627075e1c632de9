"""Commands on topics: create, delete, add partitions. They read the image and return records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.machines.metadata.cluster import MIGRATING_DIRECTORY, TOPIC, UNASSIGNED_DIRECTORY, Cluster
from moldau.machines.metadata.spread import Assignment, spread
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NAME_LENGTH_MAX = 249
PARTITIONS_PER_REQUEST_MAX = 10_000
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
DIRECTORIES_SINCE = 17  # the metadata.version from which records say in which directory a replica lies
METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class NewTopic:
    """What a client asked for; -1 asks for the broker's default."""

    name: str
    partitions: int = -1
    replication: int = -1
    assignment: Assignment = field(default_factory=dict[int, Sequence[int]])
    configs: Mapping[str, str] = field(default_factory=dict[str, str])


def is_legal(name: str) -> bool:
    try:
        check_name(name)
    except Refused:
        return False
    return True


def check_name(name: str) -> None:
    """Names become directory names, so what is legal is narrow."""
    if not name:
        raise Refused(Error.INVALID_TOPIC_EXCEPTION, "A topic name must not be empty.")
    if name in (".", ".."):
        raise Refused(Error.INVALID_TOPIC_EXCEPTION, f"A topic cannot be called '{name}'.")
    if len(name) > NAME_LENGTH_MAX:
        problem = f"The topic name has {len(name)} characters; at most {NAME_LENGTH_MAX} are allowed."
        raise Refused(Error.INVALID_TOPIC_EXCEPTION, problem)
    if not LEGAL_NAME.fullmatch(name):
        problem = f"Topic name '{name}' is illegal: only ASCII letters, digits, '.', '_' and '-' are allowed."
        raise Refused(Error.INVALID_TOPIC_EXCEPTION, problem)


def check_new_name(cluster: Cluster, name: str) -> None:
    """Refuse a name that is illegal, taken, or differs from a taken one only by '.' and '_' (equal metric names)."""
    check_name(name)
    if name in cluster.topics:
        raise Refused(Error.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if "." in name or "_" in name:
        folded = name.replace(".", "_")
        twin = next((other for other in cluster.topics if other.replace(".", "_") == folded), None)
        if twin is not None:
            raise Refused(Error.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with the existing topic '{twin}'.")


def create_topic(cluster: Cluster, new: NewTopic, topic_id: bytes, spread_from: int = 0) -> list[Any]:
    """Records of a new topic. Counts of -1 are resolved by the caller, which knows the broker's defaults."""
    check_new_name(cluster, new.name)
    assignment = check_manual(cluster, new) if new.assignment else place(cluster, new, spread_from)
    configs = [m.ConfigRecord(TOPIC, new.name, name, value) for name, value in sorted(new.configs.items())]
    partitions = [new_partition(cluster, topic_id, index, ids) for index, ids in sorted(assignment.items())]
    return [m.TopicRecord(new.name, topic_id), *configs, *partitions]


def place(cluster: Cluster, new: NewTopic, spread_from: int) -> Assignment:
    """Spread the replicas of each partition over the live brokers."""
    if new.replication <= 0:
        problem = f"A replication factor of {new.replication} is not possible: give 1 or more, or -1 for the default."
        raise Refused(Error.INVALID_REPLICATION_FACTOR, problem)
    if new.partitions <= 0:
        problem = f"{new.partitions} partitions are not possible: give 1 or more, or -1 for the default."
        raise Refused(Error.INVALID_PARTITIONS, problem)
    check_at_once(new.partitions)
    return spread(cluster, range(new.partitions), new.replication, spread_from)


def check_at_once(partitions: int) -> None:
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        problem = f"At most {PARTITIONS_PER_REQUEST_MAX} partitions can be created at once."
        raise Refused(Error.POLICY_VIOLATION, problem)


def check_manual(cluster: Cluster, new: NewTopic) -> Assignment:
    """Check a manual assignment, beside which counts must not be given."""
    if new.replication != -1:
        problem = "With a manual assignment the replication factor must be -1."
        raise Refused(Error.INVALID_REQUEST, problem)
    if new.partitions != -1:
        raise Refused(Error.INVALID_REQUEST, "With a manual assignment the number of partitions must be -1.")
    if sorted(new.assignment) != list(range(len(new.assignment))):
        problem = "The partitions of a manual assignment must be numbered from 0 without gaps."
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    check_replicas(cluster, new.assignment)
    return new.assignment


def check_replicas(cluster: Cluster, assignment: Assignment, replication: int | None = None) -> None:
    """Each list names known brokers, each once, and all lists have one length."""
    for index, ids in assignment.items():
        replication = len(ids) if replication is None else replication
        unknown = [i for i in ids if i not in cluster.brokers]
        if not ids:
            problem = f"Partition {index} has an empty replica list."
        elif len(set(ids)) != len(ids):
            problem = f"Partition {index} names a replica twice: {list(ids)}."
        elif unknown:
            problem = f"Partition {index} names broker {unknown[0]}, which is not registered."
        elif len(ids) != replication:
            problem = f"Partition {index} has {len(ids)} replicas where others have {replication}."
        else:
            continue
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, problem)


def new_partition(cluster: Cluster, topic_id: bytes, index: int, ids: Sequence[int]) -> Any:
    """Return the record of a partition: its replicas that are alive are in sync, and the first of them leads."""
    isr = [broker for broker in ids if cluster.is_active(broker)]
    if not isr:
        problem = f"All replicas of partition {index} are fenced or shutting down: {list(ids)}."
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    has_directories = cluster.metadata_version >= DIRECTORIES_SINCE
    return m.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(ids),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[default_directory(cluster, i) for i in ids] if has_directories else [],
    )


def default_directory(cluster: Cluster, broker_id: int) -> bytes:
    """Return a broker's only log directory; with several the broker chooses when it creates the log."""
    broker = cluster.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED_DIRECTORY
    if not broker.log_dirs:
        return MIGRATING_DIRECTORY
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY


def add_partitions(
    cluster: Cluster, name: str, count: int, assignment: Sequence[Sequence[int]] | None, spread_from: int = 0
) -> list[Any]:
    """Records that bring a topic to `count` partitions."""
    topic = cluster.topics.get(name)
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    have = len(topic.partitions)
    if count <= have:
        relation = "already has" if count == have else "has, and cannot go back from,"
        raise Refused(Error.INVALID_PARTITIONS, f"Topic '{name}' {relation} {have} partitions; {count} were asked for.")
    check_at_once(count - have)
    if assignment is not None and len(assignment) != count - have:
        problem = f"{count - have} partitions are added, but {len(assignment)} replica lists were given."
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    replication = len(topic.partitions[0].replicas)
    if assignment is None:
        chosen = spread(cluster, range(have, count), replication, spread_from)
    else:
        chosen = dict(enumerate(assignment, have))
        check_replicas(cluster, chosen, replication)
    return [new_partition(cluster, topic.id, index, ids) for index, ids in sorted(chosen.items())]
