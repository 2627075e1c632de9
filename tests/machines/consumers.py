"""A coordinator of groups in memory, and consumers that behave as clients do, for tests of consumer groups."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from moldau.broker.coordinators import decode, encode
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.heartbeats import check_request, heartbeat
from moldau.machines.effects import Effects, Promise
from moldau.machines.group import Client
from moldau.machines.groups import Groups
from moldau.machines.metadata.cluster import GROUP, Cluster
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record
from moldau.wire.refusal import Refused

SESSION_MS, ASSIGNMENT_MS, REBALANCE_MS = 45_000, 1000, 30_000
SETTINGS = {
    "group.consumer.assignors": ["uniform", "range"],
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.heartbeat.interval.ms": 5000,
    "group.consumer.assignment.interval.ms": ASSIGNMENT_MS,
    "group.consumer.max.size": 100,
    "group.consumer.migration.policy": "BIDIRECTIONAL",
    "group.consumer.regex.refresh.interval.ms": 600_000,
    "group.initial.rebalance.delay.ms": 0,
    "group.max.size": 100,
    "moldau.group.max.count": 100,
    "offsets.retention.check.interval.ms": 600_000,
    "offsets.retention.minutes": 10_080,
    "offset.metadata.max.bytes": 4096,
}


class Coordinator:
    """The machine, its log, and a clock that tests move. Records go through their bytes, as in a log."""

    def __init__(self, **settings: Any) -> None:
        self.settings = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
        self.cluster = Cluster()
        self.log: list[tuple[Any, Any]] = []
        self.now_ms = 1_000_000
        self.topic_ids = 0
        self.random = random.Random(7)
        self.machine = self.new_machine()

    def new_machine(self) -> Groups:
        return Groups(self.settings.__getitem__, self.random, lambda: self.cluster)

    def replayed(self) -> Groups:
        """What a new start makes of the log."""
        machine = self.new_machine()
        for key, value in self.log:
            machine.replay(key, value, -1)
        return machine

    def crash(self) -> None:
        self.machine = self.replayed()
        self.run(self.machine.loaded(self.now_ms))

    def run(self, effects: Effects) -> None:
        for change in effects.changes:
            key, value = decode("__consumer_offsets", Record(0, self.now_ms, *(change.encoded or encode(change))))
            self.log.append((key, value))
            self.machine.replay(key, value, -1)
        for promise, answer in effects.answers:
            promise.answer = answer

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        while self.machine.next_deadline_ms() <= self.now_ms:
            self.run(self.machine.tick(self.now_ms))

    def beat(self, request: Any, version: int = 1) -> Any:
        promise = Promise(lambda error: m.ConsumerGroupHeartbeatResponse(error_code=error))
        try:
            check_request(self.settings.__getitem__, request, version)
        except Refused as refused:
            return promise.refuse(refused.error)
        self.run(heartbeat(self.machine, promise, request, Client("c", "/h"), self.now_ms))
        return promise.answer

    def classic(self, command: str, request: Any, version: int) -> Any:
        """A request of the classic protocol; None if it waits."""
        promise = Promise(lambda error: m.response_class(request.SCHEMA.key)(error_code=error))
        ask = getattr(self.machine.kind_of(request.group_id), command)
        self.run(ask(self.machine, promise, request, Client("c", "/h"), version, self.now_ms))
        self.advance(0)
        return promise.answer

    def group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.machine.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    # Metadata.

    def create(self, name: str, partitions: int = 1) -> bytes:
        self.topic_ids += 1
        topic_id = self.topic_ids.to_bytes(16)
        self.cluster.replay(m.TopicRecord(name, topic_id))
        self.extend(name, partitions)
        return topic_id

    def extend(self, name: str, count: int) -> None:
        topic = self.cluster.topics[name]
        for index in range(len(topic.partitions), count):
            self.cluster.replay(m.PartitionRecord(partition_id=index, topic_id=topic.id, replicas=[1], isr=[1]))

    def delete(self, name: str) -> None:
        self.cluster.replay(m.RemoveTopicRecord(self.cluster.topics[name].id))

    def configure(self, group_id: str, name: str, value: str) -> None:
        self.cluster.replay(m.ConfigRecord(GROUP, group_id, name, value))


def through_bytes(message: Any, version: int | None) -> Any:
    if message is None:
        return None
    version = message.SCHEMA.versions[1] if version is None else version
    return codec.decode(message.__class__, version, codec.encode(message, version))


Slots = frozenset[tuple[bytes, int]]


@dataclass
class Consumer:
    """A client of the consumer protocol. It gives up partitions in `settle`, which a test calls when it likes."""

    coordinator: Coordinator
    id: str
    topics: list[str] | None = None
    regex: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    group_id: str = "g"
    epoch: int = 0
    owned: Slots = frozenset()
    target: Slots = frozenset()
    error: int = 0
    unsure: bool = False  # an answer was lost
    last: Any = field(default=None, repr=False)

    def request(self, **fields: Any) -> Any:
        known = {"group_id": self.group_id, "member_id": self.id, "member_epoch": self.epoch}
        return m.ConsumerGroupHeartbeatRequest(**(known | {"instance_id": self.instance_id} | fields))

    def join(self) -> Consumer:
        self.owned = self.target = frozenset()
        return self.send(self.full(0))

    def full(self, epoch: int) -> Any:
        return self.request(
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=self.topics,
            subscribed_topic_regex=self.regex,
            server_assignor=self.assignor,
            topic_partitions=rows(self.owned),
        )

    def beat(self) -> Consumer:
        """Say what is owned, as clients do when it has changed; and everything, if an answer was lost."""
        return self.send(self.full(self.epoch) if self.unsure else self.request(topic_partitions=rows(self.owned)))

    def send(self, request: Any, lost: bool = False) -> Consumer:
        self.last = request
        answer = self.coordinator.beat(request)
        self.unsure = lost
        if not lost:
            self.take(answer)
        return self

    def take(self, answer: Any) -> None:
        self.error = answer.error_code
        if self.error:
            if self.error in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND):
                self.epoch, self.owned, self.target = 0, frozenset(), frozenset()
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.target = slots(answer.assignment.topic_partitions)
            if self.target >= self.owned:
                self.owned = self.target

    def settle(self) -> None:
        """Give up what must be given up, and take what was given."""
        self.owned = self.target

    def leave(self, epoch: int = -1) -> Consumer:
        self.send(self.request(member_epoch=epoch))
        self.owned = self.target = frozenset()
        return self


def rows(owned: Slots) -> list[Any]:
    topics: dict[bytes, list[int]] = {}
    for topic, index in sorted(owned):
        topics.setdefault(topic, []).append(index)
    return [m.ConsumerGroupHeartbeatRequest_TopicPartitions(topic, indexes) for topic, indexes in topics.items()]


def slots(topics: list[Any]) -> Slots:
    return frozenset((bytes(row.topic_id), index) for row in topics for index in row.partitions)


def converge(coordinator: Coordinator, consumers: list[Consumer], rounds: int = 12) -> None:
    """Let everybody answer until nothing moves any more."""
    for _ in range(rounds):
        coordinator.advance(ASSIGNMENT_MS)
        for consumer in consumers:
            consumer.beat() if consumer.epoch > 0 else consumer.join()
            consumer.settle()
