"""kill -9 in the middle of transactions: each is read whole or not at all, and its offsets with it.

A producer writes numbered transactions to several partitions and commits its own number as a group's offset. The
broker is killed while a request is under way. Then the producer either asks again where it was, or is replaced by a
new one with the same transactional id.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from moldau import testing
from moldau.machines.transactions import Identity
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build, records
from tests.crash.client import FETCH_VERSION, Wire, whole_batches

TOPIC, PARTITIONS = "copy", 3
PRODUCE, END, OFFSETS = 12, 5, 5
SETTINGS = {"transaction.state.log.num.partitions": "4", "offsets.topic.num.partitions": "4"}
STEPS = (1, 60)  # requests before the kill
COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


class Killed(Exception):
    """The broker is dead, and the request that was under way has no answer."""


@dataclass
class Producer:
    """A transactional producer, and what it was told of each of its transactions."""

    name: str
    identity: Identity = Identity()  # noqa: RUF009
    number: int = 0
    left: list[Callable[[Call], None]] = field(default_factory=list)  # steps of the open transaction
    sequences: dict[int, int] = field(default_factory=dict)
    written: dict[int, list[int]] = field(default_factory=dict)
    outcome: dict[int, str] = field(default_factory=dict)

    def become(self, identity: Identity) -> None:
        self.identity, self.sequences, self.left = identity, {}, []

    def begin(self, chance: random.Random) -> None:
        """Plan a transaction: writes, perhaps offsets, and an end."""
        self.number += 1
        partitions = [index for index in range(PARTITIONS) for _ in range(chance.randint(0, 2))]
        self.written[self.number], self.outcome[self.number] = partitions, ABORTED
        commit = chance.random() < 0.75
        self.left = [lambda call, index=index: self.write(call, index) for index in partitions]
        self.left += [self.commit_offset, lambda call: self.end(call, commit)]

    def step(self, call: Call) -> None:
        """The next step, which is done once it has its answer."""
        self.left[0](call)
        self.left = self.left[1:]

    def write(self, call: Call, index: int) -> None:
        sequence = self.sequences.get(index, 0)
        value = f"{self.name}:{self.number}".encode()
        options: dict[str, Any] = {"producer_id": self.identity.producer_id, "producer_epoch": self.identity.epoch}
        batch = build([Record(0, 1, None, value)], base_sequence=sequence, transactional=True, **options)
        parts = [m.ProduceRequest_PartitionProduceData(index, bytes(batch))]
        topic = m.ProduceRequest_TopicProduceData(TOPIC, partition_data=parts)
        answer = call(m.ProduceRequest(self.name, -1, 10_000, [topic]), PRODUCE)
        ensure(answer.responses[0].partition_responses[0].error_code)
        self.sequences[index] = sequence + 1

    def commit_offset(self, call: Call) -> None:
        part = m.TxnOffsetCommitRequest_TxnOffsetCommitRequestPartition(0, self.number, -1, "")
        topic = m.TxnOffsetCommitRequest_TxnOffsetCommitRequestTopic(TOPIC, [part])
        answer = call(m.TxnOffsetCommitRequest(self.name, self.name, *self.identity, topics=[topic]), OFFSETS)
        ensure(answer.topics[0].partitions[0].error_code)

    def end(self, call: Call, commit: bool) -> None:
        self.outcome[self.number] = UNKNOWN if commit else ABORTED
        answer = call(m.EndTxnRequest(self.name, *self.identity, commit), END)
        ensure(answer.error_code)
        self.outcome[self.number] = COMMITTED if commit else ABORTED
        left, self.left = self.left, []
        self.become(Identity(answer.producer_id, answer.producer_epoch))
        self.left = left

    def take_over(self, call: Call) -> None:
        """A new producer of the same id; what was open is aborted, what was decided stays so."""
        for kind in (0, 1):
            ensure(call(m.FindCoordinatorRequest(self.name, kind), 3).error_code)
        while True:
            answer = call(m.InitProducerIdRequest(self.name, 60_000), 5)
            if answer.error_code != Error.CONCURRENT_TRANSACTIONS:
                break
        ensure(answer.error_code)
        self.become(Identity(answer.producer_id, answer.producer_epoch))


Call = Callable[[Any, int], Any]


def ensure(code: int) -> None:
    assert code == Error.NONE, Error(code).name


class Trial:
    """The broker, its producers, and the check after each crash."""

    def __init__(self, seed: int, producers: int = 3) -> None:
        self.random = random.Random(seed)
        self.producers = [Producer(f"p{number}") for number in range(producers)]
        self.crashes: list[str] = []

    def __enter__(self) -> Self:
        self.context = testing.broker(SETTINGS)
        self.broker = self.context.__enter__()
        self.broker.create_topic(TOPIC, partitions=PARTITIONS)
        wire = Wire(self.broker.bootstrap_servers)
        for producer in self.producers:
            producer.take_over(wire.call)
        wire.close()
        return self

    def __exit__(self, *error: object) -> None:
        self.context.__exit__(*error)

    def round(self) -> None:
        """Transactions until the chosen step, kill -9 in it, start again, go on or take over, and look."""
        wire = Wire(self.broker.bootstrap_servers)
        steps = self.random.randint(*STEPS)

        def call(request: Any, version: int) -> Any:
            nonlocal steps
            steps -= 1
            if steps:
                return wire.call(request, version)
            wire.send(request, version)
            time.sleep(self.random.choice((0, 0, 0.0005, 0.001, 0.003)))
            self.broker.kill()
            self.crashes.append(request.SCHEMA.name)
            raise Killed

        try:
            while True:
                producer = self.random.choice(self.producers)
                if not producer.left:
                    producer.begin(self.random)
                producer.step(call)
        except Killed:
            wire.close()
        self.broker.restart()
        self.check()

    def check(self) -> None:
        wire = Wire(self.broker.bootstrap_servers)
        for producer in self.producers:
            if self.random.random() < 0.5:
                producer.take_over(wire.call)
            while producer.left:
                producer.step(wire.call)
        seen = [read_committed(wire, index) for index in range(PARTITIONS)]
        for producer in self.producers:
            self.compare(producer, seen, committed_offset(wire, producer.name))
        wire.close()

    def compare(self, producer: Producer, seen: list[list[bytes]], offset: int) -> None:
        """What was promised is there, all of it and once; of what nobody knows, all or nothing."""
        name = producer.name.encode()
        values = [[int(v.partition(b":")[2]) for v in part if v.startswith(name + b":")] for part in seen]
        for index, numbers in enumerate(values):
            assert numbers == sorted(numbers), f"{producer.name} in partition {index} is out of order"
        last = -1
        for number, partitions in producer.written.items():
            found = [index for index, numbers in enumerate(values) for one in numbers if one == number]
            visible = bool(found) if partitions else producer.outcome[number] == COMMITTED
            assert not found or found == sorted(partitions), f"{producer.name}:{number} is there in {found}"
            if producer.outcome[number] != UNKNOWN:
                assert visible == (producer.outcome[number] == COMMITTED), f"{producer.name}:{number} {found}"
            elif not partitions:
                visible = offset == number
            last = number if visible else last
            if producer.outcome[number] == UNKNOWN:
                producer.outcome[number] = COMMITTED if visible else ABORTED
        assert offset == last, f"{producer.name} committed offset {last}, and {offset} is there"

    @property
    def committed(self) -> int:
        return sum(outcome == COMMITTED for producer in self.producers for outcome in producer.outcome.values())


def read_committed(wire: Wire, index: int) -> list[bytes]:
    """All values of a partition whose transactions were committed."""
    seen: list[bytes] = []
    offset = 0
    while True:
        wanted = m.FetchRequest_FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [m.FetchRequest_FetchTopic(topic=TOPIC, partitions=[wanted])]
        request = m.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 22, isolation_level=1, topics=topics)
        row = wire.call(request, FETCH_VERSION).responses[0].partitions[0]
        ensure(row.error_code)
        aborted = sorted((one.first_offset, one.producer_id) for one in row.aborted_transactions)
        dropped: set[int] = set()
        for batch in whole_batches(row.records):
            while aborted and aborted[0][0] <= batch.last_offset:
                dropped.add(aborted.pop(0)[1])
            if batch.is_control:
                dropped.discard(batch.producer_id)
            elif batch.producer_id not in dropped:
                seen += [record.value or b"" for record in records(batch) if record.offset >= offset]
            offset = batch.next_offset
        assert row.last_stable_offset == row.high_watermark, "a transaction is left open"
        if offset >= row.high_watermark:
            return seen


def committed_offset(wire: Wire, group: str) -> int:
    topics = [m.OffsetFetchRequest_OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
    asked = m.OffsetFetchRequest_OffsetFetchRequestGroup(group, topics=topics)
    row = wire.call(m.OffsetFetchRequest(groups=[asked], require_stable=True), 9).groups[0].topics[0].partitions[0]
    ensure(row.error_code)
    return row.committed_offset
