"""Targets of requests, and the errors after which a request is repeated, perhaps elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.wire.errors import Error

GROUP, TRANSACTION, SHARE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Any broker that answers."""

    def __str__(self) -> str:
        return "any broker"


@dataclass(frozen=True, slots=True)
class Controller:
    """The broker that the cluster calls its controller."""

    def __str__(self) -> str:
        return "the controller"


@dataclass(frozen=True, slots=True)
class Node:
    """One broker."""

    id: int

    def __str__(self) -> str:
        return f"broker {self.id}"


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The broker that keeps a group, a transactional id, or a share group's partition (`group:topic-id:partition`)."""

    kind: int
    key: str

    def __str__(self) -> str:
        return f"the coordinator of {('group', 'transactional id', 'share partition')[self.kind]} {self.key}"


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"the leader of {self.topic}-{self.partition}"


Target = AnyBroker | Controller | Node | Coordinator | Leader

ANY = AnyBroker()
CONTROLLER = Controller()


def group(group_id: str) -> Coordinator:
    return Coordinator(GROUP, group_id)


def transaction(transactional_id: str) -> Coordinator:
    return Coordinator(TRANSACTION, transactional_id)


def share(group_id: str, topic_id: str, partition: int) -> Coordinator:
    return Coordinator(SHARE, f"{group_id}:{topic_id}:{partition}")


# Not every error that Kafka calls retriable is retried: who deletes a topic that does not exist, or asks for a needless
# election, wants to know at once.
ALWAYS = frozenset(
    {
        Error.NETWORK_EXCEPTION,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.NOT_CONTROLLER,
        Error.CONCURRENT_TRANSACTIONS,
        Error.UNSTABLE_OFFSET_COMMIT,
        Error.THROTTLING_QUOTA_EXCEEDED,
    }
)
UNKNOWN = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.INCONSISTENT_TOPIC_ID})
OF_LEADERS = ALWAYS | {
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.LEADER_NOT_AVAILABLE,
    Error.FENCED_LEADER_EPOCH,
    Error.UNKNOWN_LEADER_EPOCH,
    Error.LISTENER_NOT_FOUND,
    Error.REPLICA_NOT_AVAILABLE,
    Error.KAFKA_STORAGE_ERROR,
    Error.OFFSET_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    Error.REQUEST_TIMED_OUT,
}


def passing(to: Target) -> frozenset[Error]:
    """Return the errors of an answer that may be gone at the next try."""
    return OF_LEADERS | UNKNOWN if isinstance(to, Leader) else ALWAYS
