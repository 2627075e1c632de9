"""Topics of a run: made before it, counted after it, gone from the disk before the next."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from benchmarks.brokers import Peer
from benchmarks.places import BenchError

SECONDS = 60.0
PAUSE_S = 0.05
NUMBERS = itertools.count(1)


def ask(broker: Peer, request: Callable[[AdminClient], dict[Any, Future[Any]]]) -> list[Any]:
    """What the broker says; a refusal becomes a sentence. No client stays connected while a run is measured."""
    client = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
    try:
        return [future.result(SECONDS) for future in request(client).values()]
    except (KafkaException, TimeoutError) as error:
        raise BenchError(f"{broker.name} refused an admin request: {error!r}.") from None


def create(broker: Peer, name: str, partitions: int, config: dict[str, str] | None = None) -> None:
    wanted = NewTopic(name, partitions, -1, config=config or {})  # as many replicas as is the default there
    ask(broker, lambda admin: admin.create_topics([wanted]))


def delete(broker: Peer, name: str) -> None:
    """Also waits until the files are gone."""
    ask(broker, lambda admin: admin.delete_topics([name]))
    deadline = time.monotonic() + SECONDS
    while any(any(folder.glob(f"{name}-*")) for folder in broker.folders):
        if time.monotonic() > deadline:
            raise BenchError(f"{broker.name} still has files of the deleted topic {name} after {SECONDS:.0f} s.")
        time.sleep(0.02)


@contextlib.contextmanager
def topic(broker: Peer, partitions: int, config: dict[str, str] | None = None) -> Iterator[str]:
    """A fresh topic for the time of a block."""
    name = f"bench{next(NUMBERS)}"
    create(broker, name, partitions, config)
    try:
        yield name
    finally:
        if broker.alive:
            delete(broker, name)


def configure(broker: Peer, name: str, key: str, value: str) -> None:
    """Change one setting of a topic."""
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    ask(broker, lambda admin: admin.incremental_alter_configs([resource]))


def end_offset(broker: Peer, name: str, partition: int = 0) -> int:
    """Where the next record will go."""
    wanted = {TopicPartition(name, partition): OffsetSpec.latest()}
    return ask(broker, lambda admin: admin.list_offsets(wanted))[0].offset


def leader_port(broker: Peer, name: str, partition: int = 0) -> int:
    """The port of the broker that leads a partition."""
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
    deadline = time.monotonic() + SECONDS
    while True:
        found = admin.list_topics(name, timeout=SECONDS)
        known = found.topics[name].partitions.get(partition)
        if known is not None and known.leader in found.brokers:
            return found.brokers[known.leader].port
        if time.monotonic() > deadline:
            raise BenchError(f"{broker.name} does not say who leads {name}.")
        time.sleep(PAUSE_S)  # the topic is new
