"""The runtime of the coordinators: an internal topic, a machine for each of its partitions, and nothing else.

A machine is loaded by replaying its partition when it is first asked for. Its effects are carried out here: changes
are appended to the partition, replayed once they are committed, and then the answers are released. So what a client
was told survives a crash, and a machine that is loaded again is the machine that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from moldau.broker import logs
from moldau.broker.partition import Partition
from moldau.broker.topics import plan_topic
from moldau.broker.wait import Wait
from moldau.broker.work import BUSY, Work
from moldau.log.answers import Origin
from moldau.machines.effects import Change, Effects, Promise
from moldau.machines.topics import NewTopic
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from moldau.wire.records import Batch, ControlType, Record, build, control_type, records
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

logger = logs.get(__name__)

CHUNK = 1 << 20


class Machine(Protocol):
    """A deterministic state machine on one partition of an internal topic."""

    def replay(self, key: Any, value: Any, producer_id: int) -> None:
        """Apply a committed change; `value` None deletes. With a producer id it counts when its marker comes."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """A producer's transaction ended in this partition."""
        ...

    def loaded(self, now_ms: int) -> Effects:
        """The whole partition was replayed: start what must go on."""
        ...

    def tick(self, now_ms: int) -> Effects:
        """Let time pass."""
        ...

    def next_deadline_ms(self) -> float:
        """When `tick` is next needed; inf if it is not."""
        ...


M = TypeVar("M", bound=Machine)


def java_hash(text: str) -> int:
    """The hash by which Kafka spreads ids over partitions: that of Java's strings, which are UTF-16."""
    result = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        result = (result * 31 + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return result & 0x7FFFFFFF


class Coordinators(Generic[M]):
    """The machines of one internal topic."""

    def __init__(
        self,
        node: Node,
        topic: str,
        partitions: str,
        replication: str,
        configs: Callable[[], Mapping[str, str]],
        make: Callable[[int], M],
        after: Callable[[int, M], None] = lambda index, machine: None,
    ) -> None:
        """`partitions` and `replication` are settings; `make` gives the machine of a partition.

        `after` is called when effects were carried out: what a decision sets off elsewhere (markers) happens there.
        """
        self.node = node
        self.topic = topic
        self.partitions = partitions
        self.replication = replication
        self.configs = configs
        self.make = make
        self.after = after
        self.machines: dict[int, M] = {}

    def ensure_topic(self) -> int:
        """Create the internal topic if it is not there; returns how many partitions it has."""
        known = self.node.cluster.topics.get(self.topic)
        if known is None:
            settings = self.node.settings
            new = NewTopic(
                self.topic, settings[self.partitions], settings[self.replication], configs=dict(self.configs())
            )
            self.node.commit(plan_topic(self.node, new))
            known = self.node.cluster.topics[self.topic]
        return len(known.partitions)

    def partition_for(self, key: str) -> int:
        return java_hash(key) % self.ensure_topic()

    def of(self, key: str) -> tuple[int, M]:
        """The partition and the machine that look after a group, a transactional id or a share partition."""
        index = self.partition_for(key)
        return index, self.machine(index)

    def machine(self, index: int) -> M:
        """A partition's machine, loaded if need be; raises Refused where this node cannot have it."""
        machine = self.machines.get(index)
        return self.load(index) if machine is None else machine

    def all(self) -> Iterator[tuple[int, M]]:
        """Every machine of the topic, for requests that ask about all groups."""
        known = self.node.cluster.topics.get(self.topic)
        for index in sorted(known.partitions) if known else ():
            yield index, self.machine(index)

    def load(self, index: int) -> M:
        """Replay a partition into a new machine."""
        home = self.home(index)
        machine = self.make(index)
        offset = home.log.start_offset
        while offset < home.log.end_offset:
            offset = self.replay_chunk(home, machine, offset)
        self.machines[index] = machine
        self.run(index, machine.loaded(self.node.clock.wall_ms()))
        return machine

    def home(self, index: int) -> Partition:
        """The partition behind a machine."""
        try:
            return self.node.replicas.leader(self.topic, index)
        except Refused as refused:
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, refused.message) from None

    def replay_chunk(self, home: Partition, machine: M, offset: int) -> int:
        """Replay what one read gives; returns where the next begins."""
        span = home.log.read(offset, CHUNK).span
        if span is None:
            return home.log.end_offset
        view, position = memoryview(span.read()), 0
        while len(view) - position > 12:
            batch = Batch(view, position)
            if not batch.is_whole:
                break
            replay_batch(self.topic, machine, batch)
            offset, position = batch.next_offset, position + batch.size
        return offset

    def run(self, index: int, effects: Effects) -> None:
        """Commit the changes, replay them, release the answers. If the log refuses, so are the answers."""
        try:
            if effects.changes:
                self.commit(index, effects)
        except Refused as refused:
            logger.error("a coordinator cannot write", topic=self.topic, partition=index, reason=refused.message)
            effects.answers = [(p, p.refuse(Error.COORDINATOR_NOT_AVAILABLE)) for p, _ in effects.answers]
        for promise, answer in effects.answers:
            promise.answer = answer
            self.node.signal(promise)
        self.after(index, self.machines[index])

    def commit(self, index: int, effects: Effects) -> None:
        """Append the changes in one batch and replay them."""
        home, now = self.home(index), self.node.clock.wall_ms()
        options: dict[str, Any] = {}
        if effects.producer is not None:
            producer = effects.producer
            options = {"producer_id": producer.id, "producer_epoch": producer.epoch, "transactional": True}
        batch = build([encode(change, now) for change in effects.changes], **options)
        home.append(memoryview(batch), now, origin=Origin.COORDINATOR)
        self.node.signal(home)
        machine = self.machines[index]
        producer_id = effects.producer.id if effects.producer else -1
        for change in effects.changes:
            machine.replay(change.key, change.value, producer_id)

    def replay_marker(self, index: int, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """A marker was appended to a partition of the topic. A machine that is not loaded will find it in the log."""
        if (machine := self.machines.get(index)) is not None:
            machine.replay_marker(producer_id, producer_epoch, commit)

    def load_all(self) -> Work:
        """Load every machine that has something to go on with, a partition at a time."""
        known = self.node.cluster.topics.get(self.topic)
        for index in sorted(known.partitions) if known else ():
            try:
                log = self.home(index).log
                if index not in self.machines and log.end_offset > log.start_offset:
                    self.load(index)
            except Refused as refused:
                logger.error("a coordinator cannot load", topic=self.topic, partition=index, reason=refused.message)
            yield BUSY

    def ask(self, index: int, promise: Promise, effects: Effects) -> Any:
        """Carry out a command; the answer if it is there, else a Wait for it."""
        self.run(index, effects)
        if promise.answer is not None:
            return promise.answer
        return Wait(inf, lambda _: promise.answer, (promise,))

    def tick(self) -> None:
        """Let time pass for every loaded machine that has something due."""
        now = self.node.clock.wall_ms()
        for index, machine in list(self.machines.items()):
            if machine.next_deadline_ms() <= now:
                self.run(index, machine.tick(now))


def encode(change: Change, now_ms: int) -> Record:
    """As Kafka's coordinators write it: in front of the key stands which record it is, of the value its version."""
    key = change.key.SCHEMA.key.to_bytes(2) + codec.encode(change.key, change.key.SCHEMA.versions[1])
    if change.value is None:
        return Record(0, now_ms, key, None)
    version = change.value.SCHEMA.versions[1] if change.version is None else change.version
    return Record(0, now_ms, key, version.to_bytes(2) + codec.encode(change.value, version))


def replay_batch(topic: str, machine: Machine, batch: Batch) -> None:
    """Replay the records of a batch, or the marker that it is."""
    for record in records(batch):
        if batch.is_control:
            kind = control_type(record.key)
            if kind in (ControlType.COMMIT, ControlType.ABORT):
                machine.replay_marker(batch.producer_id, batch.producer_epoch, kind == ControlType.COMMIT)
        else:
            key, value = decode(topic, record)
            if key is not None:
                machine.replay(key, value, batch.producer_id if batch.is_transactional else -1)


def decode(topic: str, record: Record) -> tuple[Any, Any]:
    """Key and value of a record; a key of a later release is (None, None), as Kafka skips what it does not know."""
    if record.key is None or len(record.key) < 2:
        raise WireError("a record of a coordinator without a key")
    number = int.from_bytes(record.key[:2])
    try:
        key_class = m.record_class(topic, "coordinator-key", number)
    except KeyError:
        return None, None
    key = codec.decode(key_class, key_class.SCHEMA.versions[1], record.key, 2)
    if record.value is None:
        return key, None
    value_class = m.record_class(topic, "coordinator-value", number)
    return key, codec.decode(value_class, int.from_bytes(record.value[:2]), record.value, 2)
