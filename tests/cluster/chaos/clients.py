"""Those who use the cluster: confluent-kafka's producers and consumers, each in a thread, who tell the judge all."""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from random import Random
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.cluster.chaos.judge import Judge, Place, Transaction
from tests.cluster.simulation.properties import Broken, Property

PATIENCE_S = 120.0
PACE_S = 0.02
MOST_IN_FLIGHT = 400
PADDING = b"|" + b"." * 100
LATER_S = 5.0
COMMIT_S = 0.3
LEFT_OPEN = 0.01  # of all transactions
NOT_NOW = {  # what a consumer may see while nodes are away
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._PARTITION_EOF,
    KafkaError._WAIT_COORD,
    KafkaError._NO_OFFSET,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._STATE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class Worker(Thread):
    """A client in a thread of its own. What it raises is kept for `check`."""

    def __init__(self, name: str, judge: Judge, servers: str) -> None:
        super().__init__(name=name, daemon=True)
        self.judge = judge
        self.settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "broker.address.family": "v4",
            "client.id": name,
            "log_level": 0,
            "reconnect.backoff.max.ms": 500,
            "socket.timeout.ms": 5000,
        }
        self.stopping = Event()
        self.failure: BaseException | None = None
        self.progress = 0  # grows whenever the cluster has done something for it

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # it is raised in the thread that asks
            self.failure = error

    def work(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def end(self) -> None:
        """Tell it to come to its end."""
        self.stopping.set()

    def finish(self) -> None:
        """End it; everything that it began must end within bounded time."""
        self.end()
        self.join(2 * PATIENCE_S)
        self.check()
        if self.is_alive():
            raise Broken(Property.GOES_ON, f"{self.name} does not come to its end")

    def until(self, attempt: Callable[[], bool], what: str) -> None:
        """Try again until it succeeds."""
        deadline = time.monotonic() + PATIENCE_S
        while not attempt():
            if time.monotonic() > deadline:
                raise Broken(Property.GOES_ON, f"{self.name} cannot {what}")


class IdempotentProducer(Worker):
    """Sends numbered records to each partition of a topic, and keeps to their order."""

    begins_anew = False  # if it is refused for its sequence, as it may be where Kafka leads

    def __init__(self, name: str, judge: Judge, servers: str, topic: str, partitions: int, **more: Any) -> None:
        super().__init__(name, judge, servers)
        self.topic, self.partitions = topic, partitions
        self.settings |= {
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.timeout.ms": 300_000,
            "request.timeout.ms": 4000,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        self.session = 0
        self.numbers: Counter[int] = Counter()

    def work(self) -> None:
        while not self.stopping.is_set():
            self.session += 1
            try:
                self.produce(Producer(self.settings))
            except KafkaException as error:
                code = error.args[0].code()
                if not self.begins_anew or code != KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
                    raise
                self.judge.counts["idempotent producers begun anew"] += 1

    def produce(self, producer: Producer) -> None:
        """Send until the end. A producer that keeps to its sequence must never be refused for it."""
        while not self.stopping.is_set():
            if len(producer) < MOST_IN_FLIGHT:
                for index in range(self.partitions):
                    self.send(producer, index)
            producer.poll(PACE_S)
        if producer.flush(PATIENCE_S):
            raise Broken(Property.GOES_ON, f"{len(producer)} records of {self.name} are not acknowledged")

    def send(self, producer: Producer, index: int) -> bytes:
        name = b"%s.%d.%d:%d" % (self.name.encode(), self.session, index, self.numbers[index])
        self.numbers[index] += 1
        producer.produce(self.topic, name + PADDING, partition=index, on_delivery=self.delivered)
        return name

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            text = f"{self.name} was refused {message.value()!r}: {error}"  # type: ignore[str-bytes-safe]
            raise Broken(Property.SEQUENCE, text)
        self.progress += 1
        self.judge.acknowledge(*told(message))


def told(message: Message) -> tuple[Place, int, bytes]:
    """Return where a record is, and its name. A broker that knows it already may not say at which offset: -1."""
    topic, index, offset, value = message.topic(), message.partition(), message.offset(), message.value()
    assert topic is not None and index is not None and isinstance(value, bytes)
    return (topic, index), -1 if offset is None else offset, value.partition(b"|")[0]


class Transactor(IdempotentProducer):
    """Writes transactions over several partitions; most of them it commits."""

    def __init__(self, name: str, judge: Judge, servers: str, topic: str, partitions: int, seed: int) -> None:
        more = {"transactional_id": name, "transaction_timeout_ms": 20_000, "message_timeout_ms": 15_000}
        super().__init__(name, judge, servers, topic, partitions, **more)
        self.random = Random(seed)
        self.serial = 0

    def produce(self, producer: Producer) -> None:
        """Run transactions until one ends unknown, or the producer was fenced: then another takes the id over."""
        try:
            self.until(lambda: self.attempt(producer.init_transactions), "take its transactional id")
            while not self.stopping.is_set() and self.transact(producer):
                self.progress += 1
        except KafkaException as error:
            self.judge.counts[f"transactional producers begun anew: {error.args[0].name()}"] += 1

    def transact(self, producer: Producer) -> bool:
        """Run a transaction; returns false if it was left open, as by a process that ended."""
        self.serial += 1
        current = Transaction(self.name, self.serial)
        self.judge.transactions.append(current)
        producer.begin_transaction()
        commits = self.random.random() < 0.75
        try:
            for index in self.random.sample(range(self.partitions), self.random.randint(1, self.partitions)):
                for _ in range(self.random.randint(1, 4)):
                    current.records.append(((self.topic, index), self.send(producer, index)))
                    producer.poll(0)
            producer.poll(self.random.choice((0, 0, PACE_S, 5 * PACE_S)))
            if self.random.random() < LEFT_OPEN:
                self.judge.counts["transactions left open"] += 1
                return False
            if commits:
                self.until(lambda: self.attempt(producer.commit_transaction), "commit")
                current.outcome = True
                self.judge.counts["transactions committed"] += 1
                return True
            # librdkafka ends a transaction that is not in the log yet, which brokers refuse for good.
            producer.flush(5.0)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        self.until(lambda: self.attempt(producer.abort_transaction), "abort")
        current.outcome = False
        self.judge.counts["transactions aborted"] += 1
        return True

    def attempt(self, step: Callable[[float], None]) -> bool:
        try:
            step(5.0)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            return False
        return True

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """A record of a transaction may be purged, when the transaction is aborted."""
        if error is None:
            self.judge.acknowledge(*told(message))


class GroupMember(Worker):
    """A member of a group: reads, commits what it has read, and looks whether the group is where it was."""

    def __init__(self, name: str, judge: Judge, servers: str, group: str, topic: str, **more: Any) -> None:
        super().__init__(name, judge, servers)
        self.group, self.topic = group, topic
        self.settings |= {
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # a position must never get lost
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def work(self) -> None:
        consumer = Consumer(self.settings)
        try:
            consumer.subscribe([self.topic], on_assign=self.assigned)
            read: dict[Place, int] = {}
            due = time.monotonic() + COMMIT_S
            while not self.stopping.is_set():
                for message in consumer.consume(500, 0.1):
                    if is_record(self.name, message):
                        place, offset, name = told(message)
                        self.judge.read(self.group, place, offset, name)
                        read[place] = offset + 1
                if read and time.monotonic() > due:
                    self.commit(consumer, read)
                    read, due = {}, time.monotonic() + COMMIT_S
        finally:
            consumer.close()

    def assigned(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        """Look where the group is, before the client reads on from there."""
        before = {(self.group, (one.topic, one.partition)): 0 for one in parts}
        before |= {key: self.judge.committed.get(key, 0) for key in before}
        try:
            for one in consumer.committed(parts, 10):
                key = self.group, (one.topic, one.partition)
                if one.error is None:
                    self.judge.starts_at(*key, one.offset, before[key], lambda one=one: self.now(consumer, one))
        except KafkaException as error:
            if error.args[0].code() not in NOT_NOW:
                raise

    def now(self, consumer: Consumer, part: TopicPartition) -> str:
        """Say where the group is a while later: a stale answer passes, a lost commit does not."""
        time.sleep(LATER_S)
        try:
            [found] = consumer.committed([TopicPartition(part.topic, part.partition)], 10)
        except KafkaException as error:
            return str(error)
        return str(found.error or found.offset)

    def commit(self, consumer: Consumer, read: dict[Place, int]) -> None:
        offsets = [TopicPartition(*place, offset) for place, offset in read.items()]
        try:
            done = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in NOT_NOW:
                raise
            return
        for one in done or ():
            if one.error is None:
                self.progress += 1
                self.judge.commit(self.group, (one.topic, one.partition), one.offset)


class Reader(Worker):
    """Reads a topic from its start, committed records only, and asks now and then where partitions end."""

    def __init__(self, name: str, judge: Judge, servers: str, topic: str, partitions: int) -> None:
        super().__init__(name, judge, servers)
        self.places = [(topic, index) for index in range(partitions)]
        self.settings |= {
            "group.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }

    def work(self) -> None:
        consumer = Consumer(self.settings)
        last: dict[Place, int] = {}
        try:
            consumer.assign([TopicPartition(*place, 0) for place in self.places])
            while not self.stopping.is_set():
                for message in consumer.consume(500, 0.1):
                    if is_record(self.name, message):
                        place, offset, name = told(message)
                        if offset <= last.get(place, -1):
                            raise Broken(
                                Property.NEVER_BACK, f"{self.name} read {offset} of {place} after {last[place]}"
                            )
                        last[place] = offset
                        self.judge.read(self.name, place, offset, name)
                        self.progress += 1
                self.look_at_ends(consumer)
        finally:
            consumer.close()

    def look_at_ends(self, consumer: Consumer) -> None:
        for place in self.places:
            before = self.judge.highs.get(("read_committed", place), 0)
            try:
                _, high = consumer.get_watermark_offsets(TopicPartition(*place), 2)
            except KafkaException:
                continue
            self.judge.ends_at("read_committed", place, high, before)


def is_record(who: str, message: Message) -> bool:
    """Tell whether a message is a record, and no error that may be while nodes are away."""
    error = message.error()
    if error is not None and error.code() not in NOT_NOW:
        raise Broken(Property.READABLE, f"{who} was told {error}")
    return error is None
