"""Images of small clusters for tests of the controller's decisions, and records that go through their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from moldau.cluster.controller.policy import Policy, policy_of
from moldau.machines.metadata import records
from moldau.machines.metadata.cluster import Cluster, Partition
from moldau.machines.metadata.features import ELIGIBLE_LEADERS
from moldau.wire import messages as m

TOPIC_ID = bytes(range(16))
EPOCH = 100  # of broker n: 100 + n


def directory(broker: int, number: int = 0) -> bytes:
    return bytes([broker, number] * 8)


def image_of(
    brokers: Sequence[int] = (1, 2, 3),
    fenced: Sequence[int] = (),
    stopping: Sequence[int] = (),
    *,
    eligible: bool = True,
    level: int = 30,
    directories: int = 1,
    racks: Sequence[str | None] = (),
) -> Cluster:
    """A cluster of registered brokers, each with its directories."""
    image = Cluster()
    image.replay(m.FeatureLevelRecord("metadata.version", level))
    if eligible:
        image.replay(m.FeatureLevelRecord(ELIGIBLE_LEADERS, 1))
    for number, broker in enumerate(brokers):
        image.replay(
            m.RegisterBrokerRecord(
                broker_id=broker,
                incarnation_id=bytes([broker] * 16),
                broker_epoch=EPOCH + broker,
                fenced=broker in fenced,
                in_controlled_shutdown=broker in stopping,
                log_dirs=[directory(broker, one) for one in range(directories)] if level >= 17 else [],
                rack=racks[number] if racks else None,
            )
        )
    return image


def add_topic(
    image: Cluster, *partitions: dict[str, Any], name: str = "t", topic_id: bytes = TOPIC_ID, **configs: Any
) -> None:
    """Add a topic; each partition says what differs from three replicas in sync, led by the first."""
    image.replay(m.TopicRecord(name, topic_id))
    for key, value in configs.items():
        image.replay(m.ConfigRecord(2, name, key.replace("_", "."), str(value)))
    for index, given in enumerate(partitions or ({},)):
        replicas = given.get("replicas", [1, 2, 3])
        fields: dict[str, Any] = {"isr": list(replicas), "leader": replicas[0], "leader_epoch": 4, "partition_epoch": 9}
        if image.metadata_version >= 17:
            fields["directories"] = [directory(broker) for broker in replicas]
        image.replay(
            m.PartitionRecord(partition_id=index, topic_id=topic_id, **fields | {"replicas": replicas} | given)
        )


def policy(image: Cluster, min_insync: int = 1, unclean: bool = False) -> Policy:
    return policy_of(image, min_insync, unclean)


def commit(image: Cluster, changes: Iterable[Any]) -> Partition:
    """Replay records as the log has them, and return the first partition."""
    for record in changes:
        image.replay(records.decode(records.encode(record, image.metadata_version)))
    return partition(image)


def partition(image: Cluster, index: int = 0, name: str = "t") -> Partition:
    return image.topics[name].partitions[index]


def kinds(changes: Iterable[Any]) -> list[str]:
    return [record.SCHEMA.name for record in changes]
