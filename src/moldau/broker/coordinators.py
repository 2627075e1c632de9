"""The runtime of the coordinators: an internal topic, a machine for each of its partitions, and nothing else.

A machine is loaded by replaying its partition, in the background after a start or when it is first asked for. Its
effects are carried out here: changes are appended to the partition and replayed, so that the next command is decided
on them; the answers are released when they are committed. Answers that only read wait for the same: nobody is told of
a change that may still be lost. So what a client was told survives a crash, and a machine that is loaded again is the
machine that was. A machine whose changes cannot be committed is dropped: it is loaded again when somebody asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from moldau import logs
from moldau.broker.partition import Partition
from moldau.broker.topics import create_topic
from moldau.broker.wait import Wait
from moldau.broker.work import BUSY, IDLE, Work
from moldau.log.answers import Origin
from moldau.log.log import Log
from moldau.machines import offset_records
from moldau.machines.effects import Change, Effects, Promise, error_promise
from moldau.machines.metadata.topics import NewTopic
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.compression import Compression
from moldau.wire.errors import Error, WireError
from moldau.wire.numbers import coordinator_hash
from moldau.wire.records import (
    HEADER_SIZE,
    Batch,
    ControlType,
    Record,
    build_pairs,
    control_type,
    records,
)
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

logger = logs.get(__name__)

CHUNK = 1 << 14  # bytes that are replayed in one step of a load
LOAD_AGAIN_MS = 10_000  # pause after a load that failed
LOAD_AT_ONCE = 1 << 20  # a log of at most this size is loaded when it is asked for; for a larger one clients come again
TIMERS_AT_ONCE = 1000
SHORTS = [number.to_bytes(2) for number in range(64)]

TOO_LARGE = (Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE)
ELSEWHERE = (Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR)


class Machine(Protocol):
    """A deterministic state machine on one partition of an internal topic."""

    def replay(self, key: Any, value: Any, producer_id: int) -> None:
        """Apply a change; `value` None deletes. With a producer id it counts when its marker comes."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """End a producer's transaction in this partition."""
        ...

    def loaded(self, now_ms: int) -> Effects:
        """Start what must go on after the whole partition was replayed."""
        ...

    def tick(self, now_ms: int) -> Effects:
        """Let time pass."""
        ...

    def next_deadline_ms(self) -> float:
        """Return when `tick` is next needed; inf if it is not."""
        ...


M = TypeVar("M", bound=Machine)


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
        codec: int = Compression.NONE,
    ) -> None:
        """`partitions` and `replication` are settings; `make` gives the machine of a partition.

        `after` is called when effects are committed: what a decision sets off elsewhere (markers) happens there.
        `codec` is that of the batches that are written.
        """
        self.node = node
        self.topic = topic
        self.partitions = partitions
        self.replication = replication
        self.configs = configs
        self.make = make
        self.after = after
        self.codec = codec
        self.machines: dict[int, M] = {}
        self.loads: dict[int, Work] = {}
        self.terms: dict[int, int] = {}  # how often a partition's leadership has changed
        self.broken: dict[int, float] = {}
        self.open: dict[Promise, int] = {}
        self.uncommitted: dict[int, deque[Effects]] = {}  # what was appended and is not committed yet

    async def create_topic(self) -> None:
        """Make the internal topic, if it is not there, for a client that looks for a coordinator; raises Refused."""
        if self.topic not in self.node.cluster.topics:
            try:
                await create_topic(self.node, self.new_topic())
            except Refused as refused:  # there is no room, or there are too few brokers
                raise Refused(Error.COORDINATOR_NOT_AVAILABLE, refused.message) from None

    def new_topic(self) -> NewTopic:
        settings = self.node.settings
        return NewTopic(self.topic, settings[self.partitions], settings[self.replication], configs=dict(self.configs()))

    def partition_for(self, key: str) -> int:
        known = self.node.cluster.topics.get(self.topic)
        return coordinator_hash(key) % (len(known.partitions) if known else self.node.settings[self.partitions])

    def of(self, key: str) -> tuple[int, M]:
        """Return the partition and the machine that look after a group, a transactional id or a share partition."""
        index = self.partition_for(key)
        return index, self.machine(index)

    def machine(self, index: int) -> M:
        """Return a partition's machine, loaded if need be; raises Refused where this node cannot have it.

        What is due comes first: a busy node ticks late, and a request must not meet a member whose time is up.
        """
        self.tick_machine(index, self.node.clock.wall_ms())
        machine = self.machines.get(index)
        return self.load(index) if machine is None else machine

    def all(self) -> Iterator[tuple[int, M]]:
        """Yield every machine that can be had, for requests that ask about all groups; Refused while one is loaded."""
        known = self.node.cluster.topics.get(self.topic)
        for index in sorted(known.partitions) if known else ():
            try:
                machine = self.machine(index)
            except Refused as refused:
                if refused.error is Error.NOT_COORDINATOR:
                    continue
                raise
            yield index, machine

    def load(self, index: int) -> M:
        """Have a machine now if its log is short and committed; otherwise it is loaded in the background."""
        log = self.loadable(index).log
        if log.size > LOAD_AT_ONCE or log.high_watermark < log.end_offset:
            if index not in self.loads:
                self.node.work.add(self.begin_load(index))
            raise Refused(Error.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{index} is being loaded.")
        for _ in self.begin_load(index):
            pass
        if index not in self.machines:
            raise Refused(Error.NOT_COORDINATOR, Error.NOT_COORDINATOR.message)
        return self.machines[index]

    def loadable(self, index: int) -> Partition:
        """Return the partition if it is ours and was not broken a moment ago; raises Refused otherwise."""
        try:
            if self.broken.get(index, 0) <= self.node.clock.monotonic_ms():
                return self.readable(index)
        except Refused as refused:
            logger.debug("not a coordinator", topic=self.topic, partition=index, reason=refused.message)
        raise Refused(Error.NOT_COORDINATOR, Error.NOT_COORDINATOR.message)

    def begin_load(self, index: int) -> Work:
        """Return the load of a partition that is under way, or start one."""
        if index not in self.loads:
            self.loads[index] = self.loading(index, self.terms.get(index, 0))
        return self.loads[index]

    def loading(self, index: int, term: int) -> Work:
        """Replay a partition into a new machine, step by step, as long as nobody else begins to lead it."""
        try:
            home, machine = self.readable(index), self.make(index)
            offset = home.log.start_offset
            while offset < home.log.end_offset or home.log.high_watermark < offset:
                if offset == home.log.end_offset:
                    self.readable(index)  # it may have failed meanwhile
                    yield IDLE
                else:
                    offset = self.replay_chunk(home, machine, offset)
                    yield BUSY
                if self.terms.get(index, 0) != term:
                    return  # what was read of the log may not be in it any more
        except (Refused, WireError) as error:
            logger.error("a coordinator cannot be loaded", topic=self.topic, partition=index, reason=str(error))
            self.broken[index] = self.node.clock.monotonic_ms() + LOAD_AGAIN_MS
            return
        finally:
            if self.terms.get(index, 0) == term:
                del self.loads[index]
        self.machines[index] = machine
        self.run(index, machine.loaded(self.node.clock.wall_ms()))

    def home(self, index: int) -> Partition:
        """Return the partition behind a machine."""
        try:
            return self.node.replicas.leader(self.topic, index)
        except Refused as refused:
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, refused.message) from None

    def readable(self, index: int) -> Partition:
        """Return the same if its log can be read; raises Refused."""
        home = self.home(index)
        try:
            home.log.wake()
        except Refused as refused:
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, f"{home} cannot be read: {refused.message}") from None
        return home

    def replay_chunk(self, home: Partition, machine: M, offset: int) -> int:
        """Replay what one read gives; returns where the next begins."""
        span = home.log.read(offset, CHUNK).span
        if span is None:
            return home.log.end_offset
        view, position = memoryview(span.read()), 0
        while len(view) - position >= HEADER_SIZE:
            batch = Batch(view, position)
            if not batch.is_whole:
                break
            replay_batch(self.topic, machine, batch)
            offset, position = batch.next_offset, position + batch.size
        if not position:  # the first batch comes whole, unless its length is damaged
            raise WireError(f"{home} has no whole batch at offset {offset}")
        return offset

    def run(self, index: int, effects: Effects) -> None:
        """Append the changes and replay them; release the answers when they are committed, or refuse them."""
        machine = self.machines.get(index)
        if machine is None:  # it was dropped since the effects were decided
            self.answer([(p, p.refuse(Error.NOT_COORDINATOR)) for p, _ in effects.answers])
            return
        try:
            home = self.write(index, effects) if effects.changes else self.home(index)
        except Refused as refused:
            self.refuse(index, machine, effects, refused)
            return
        log = home.log
        if log.high_watermark >= log.end_offset and index not in self.uncommitted:
            self.release(index, machine, effects)
        elif effects.changes or effects.answers:
            self.uncommitted.setdefault(index, deque()).append(effects)
            self.node.replicas.commit(home, partial(self.committed, index, machine))

    def committed(self, index: int, machine: M, error: Error) -> None:
        """Release or refuse the oldest effects that wait in a partition: they are committed, or never will be."""
        waiting = self.uncommitted[index]
        effects = waiting.popleft()
        if not waiting:
            del self.uncommitted[index]
        if error:
            self.refuse(index, machine, effects, Refused(error, "the records could not be committed"))
        else:
            self.release(index, machine, effects)

    def release(self, index: int, machine: M, effects: Effects) -> None:
        """Give the answers, and start what follows from committed changes."""
        self.answer(effects.answers)
        if self.machines.get(index) is machine:
            self.after(index, machine)

    def answer(self, answers: Iterable[tuple[Promise, Any]]) -> None:
        for promise, answer in answers:
            self.open.pop(promise, None)
            promise.resolve(answer)
            self.node.signal(promise)

    def refuse(self, index: int, machine: M, effects: Effects, refused: Refused) -> None:
        """Nothing was committed. What is too large is the client's affair; otherwise the machine has lost its log."""
        if refused.error in TOO_LARGE:
            logger.warning("a client's wish is too large", topic=self.topic, partition=index, reason=refused.message)
            self.answer([(p, p.refuse(Error.UNKNOWN_SERVER_ERROR)) for p, _ in effects.answers])
            if effects.undo is not None:
                self.run(index, effects.undo())
            return
        has_moved = refused.error is Error.NOT_LEADER_OR_FOLLOWER  # another broker leads, which is no fault
        tell = logger.info if has_moved else logger.error
        tell("a coordinator cannot write", topic=self.topic, partition=index, reason=refused.message)
        error = Error.NOT_COORDINATOR if refused.error in ELSEWHERE else Error.COORDINATOR_NOT_AVAILABLE
        self.answer([(p, p.refuse(error)) for p, _ in effects.answers])
        if self.machines.get(index) is machine:
            self.unload(index, error)

    def unload(self, index: int, error: Error) -> None:
        """Let a machine go with all that is soft about it; who waits for it is told."""
        self.machines.pop(index, None)
        self.answer([(p, p.refuse(error)) for p, at in self.open.items() if at == index])

    def leadership_changed(self, index: int) -> None:
        """Load a machine whose partition this node leads from now on; let one go that is led elsewhere."""
        self.broken.pop(index, None)
        self.loads.pop(index, None)
        self.terms[index] = self.terms.get(index, 0) + 1
        if index in self.machines:
            self.unload(index, Error.NOT_COORDINATOR)
        if self.wants_load(index):
            self.node.work.add(self.begin_load(index))

    def wants_load(self, index: int) -> bool:
        """Tell whether a partition is led here and has records from which something goes on."""
        home = self.node.replicas.by_name.get(self.topic, {}).get(index)  # a controller alone has none
        return index not in self.machines and home is not None and home.leads and has_records(home.log)

    def forget_topic(self, topic: str) -> None:
        """Let all machines go if the deleted topic is the coordinators' own."""
        if topic == self.topic:
            self.stop()

    def stop(self) -> None:
        """Tell all who wait that they have to look for another coordinator."""
        for index in list(self.machines):
            self.unload(index, Error.NOT_COORDINATOR)

    def write(self, index: int, effects: Effects) -> Partition:
        """Append the changes in one batch and replay them; returns where. Raises Refused."""
        now = self.node.clock.wall_ms()
        pairs = [change.encoded or encode(change) for change in effects.changes]
        home = self.append(index, build_pairs(pairs, now, effects.producer, self.codec), now)
        machine = self.machines[index]
        producer_id = effects.producer.id if effects.producer else -1
        for change in effects.changes:
            machine.replay(change.key, change.value, producer_id)
        return home

    def append(self, index: int, batch: bytearray, now_ms: int) -> Partition:
        """Append a batch to a machine's partition; raises Refused."""
        try:
            home = self.home(index)
        except Refused as refused:  # whoever has lost its log is no coordinator any more
            raise Refused(Error.NOT_LEADER_OR_FOLLOWER, refused.message) from None
        home.append(memoryview(batch), now_ms, origin=Origin.COORDINATOR)
        self.node.signal(home)
        return home

    def replay_marker(self, index: int, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """Replay a marker that was appended. A machine that is not loaded will find it in the log."""
        if (machine := self.machines.get(index)) is not None:
            machine.replay_marker(producer_id, producer_epoch, commit)

    def load_all(self) -> Work:
        """Load every machine that has something to go on with, one after the other."""
        known = self.node.cluster.topics.get(self.topic)
        for index in sorted(known.partitions) if known else ():
            if self.wants_load(index):
                yield from self.begin_load(index)

    def start(self, index: int, promise: Promise, effects: Effects) -> Promise:
        """Carry out a command and what it makes due; the promise is kept when its answer is committed."""
        self.run(index, effects)
        if promise.answer is None:
            self.open[promise] = index
        self.tick_machine(index, self.node.clock.wall_ms())
        return promise

    def ask(self, index: int, promise: Promise, effects: Effects) -> Any:
        """Carry out a command: its answer if that is committed, otherwise a Wait for it."""
        self.start(index, promise, effects)
        if promise.answer is not None:
            return promise.answer
        due_ms = self.machines[index].next_deadline_ms() if index in self.machines else inf
        return Wait(self.by_monotonic(due_ms), lambda _: promise.answer, (promise,))

    def commit(self, index: int, changes: list[Change]) -> Promise:
        """Commit changes; the promise is an Error, NONE when they are committed."""
        promise = error_promise()
        return self.start(index, promise, Effects(changes, [(promise, Error.NONE)]))

    def read(self, answer: Callable[[], Any]) -> Any:
        """Answer a request that only reads when all that it can have seen is committed. If that fails, read again."""
        response = answer()
        if not self.uncommitted:
            return response
        barriers = [self.commit(index, []) for index in list(self.uncommitted) if index in self.machines]

        def attempt(expired: bool) -> Any:
            outcomes = [barrier.answer for barrier in barriers]
            if None in outcomes and not expired:
                return None
            return self.read(answer) if any(error != Error.NONE for error in outcomes) else response

        return attempt(expired=False) or Wait(inf, attempt, tuple(barriers))

    def tick(self) -> None:
        """Let time pass for every loaded machine."""
        now = self.node.clock.wall_ms()
        for index in list(self.machines):
            self.tick_machine(index, now)

    def tick_machine(self, index: int, now_ms: int) -> None:
        """Do what is due, one after the other: each is decided on the state that the one before left."""
        for _ in range(TIMERS_AT_ONCE):
            machine = self.machines.get(index)
            if machine is None or machine.next_deadline_ms() > now_ms:
                break
            self.run(index, machine.tick(now_ms))

    def next_deadline_ms(self) -> float:
        """Return when `tick` is next needed, by the node's monotonic clock."""
        return self.by_monotonic(min((machine.next_deadline_ms() for machine in self.machines.values()), default=inf))

    def by_monotonic(self, wall_ms: float) -> float:
        clock = self.node.clock
        return clock.monotonic_ms() + max(0.0, wall_ms - clock.wall_ms())


def has_records(log: Log) -> bool:
    return log.end_offset > log.start_offset


# Records that are read without the codec where they are many.
READERS: dict[tuple[str, bytes], Callable[[bytes, bytes | None], tuple[Any, Any] | None]] = {
    ("__consumer_offsets", offset_records.KEY): offset_records.read_record,
}


def encode(change: Change) -> tuple[bytes, bytes | None]:
    """Encode as Kafka's coordinators do: the key starts with the record's type, the value with its version."""
    spec = change.key.SCHEMA
    key = SHORTS[spec.key] + codec.encode(change.key, spec.versions[1])
    if change.value is None:
        return key, None
    version = change.value.SCHEMA.versions[1] if change.version is None else change.version
    return key, SHORTS[version] + codec.encode(change.value, version)


def replay_batch(topic: str, machine: Machine, batch: Batch) -> None:
    """Replay the records of a batch, or the marker that it is."""
    if batch.is_control:
        for record in records(batch):
            kind = control_type(record.key)
            if kind in (ControlType.COMMIT, ControlType.ABORT):
                machine.replay_marker(batch.producer_id, batch.producer_epoch, kind == ControlType.COMMIT)
        return
    producer_id = batch.producer_id if batch.is_transactional else -1
    for record in records(batch):
        key, value = decode(topic, record)
        if key is not None:
            machine.replay(key, value, producer_id)


def decode(topic: str, record: Record) -> tuple[Any, Any]:
    """Return key and value of a record, (None, None) if its type is unknown: Kafka skips these, too."""
    if record.key is None or len(record.key) < 2:
        raise WireError("a record of a coordinator without a key")
    quick = READERS.get((topic, record.key[:2]))
    if quick is not None and (found := quick(record.key, record.value)) is not None:
        return found
    key_class, version, value_class = classes(topic, int.from_bytes(record.key[:2]))
    if key_class is None:
        return None, None
    key = codec.decode(key_class, version, record.key, 2)
    if record.value is None:
        return key, None
    return key, codec.decode(value_class, int.from_bytes(record.value[:2]), record.value, 2)


@cache
def classes(topic: str, number: int) -> tuple[Any, int, Any]:
    """Return the class of a record's key, the version in which keys are written, and the class of its value."""
    try:
        key_class = m.record_class(topic, "coordinator-key", number)
    except KeyError:
        return None, 0, None
    return key_class, key_class.SCHEMA.versions[1], m.record_class(topic, "coordinator-value", number)
