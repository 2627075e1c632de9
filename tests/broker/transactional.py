"""A transactional producer and a reader of committed records, over the node of a test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from moldau.machines.transactions import Identity
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import HEADER_SIZE, Batch, Record, build, records
from tests.broker.conftest import World


@dataclass
class Transactional:
    """A producer of a transactional id; `version` is that of transactions, 2 or 1."""

    world: World
    name: str
    version: int = 2
    identity: Identity = Identity()  # noqa: RUF009
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.call(m.FindCoordinatorRequest(self.name, 1), 3)

    def init(self, timeout_ms: int = 60_000, expected: Identity | None = None) -> Error:
        """Ask once."""
        said = expected or Identity()
        answer = self.world.call(m.InitProducerIdRequest(self.name, timeout_ms, *said))
        if not answer.error_code:
            self.become(Identity(answer.producer_id, answer.producer_epoch))
        return Error(answer.error_code)

    def begin(self, timeout_ms: int = 60_000) -> Transactional:
        """Ask until the id is ours."""
        while self.init(timeout_ms) is Error.CONCURRENT_TRANSACTIONS:
            pass
        return self

    def become(self, identity: Identity) -> None:
        if identity != self.identity:
            self.identity, self.sequences = identity, {}

    def add(self, topic: str, *indexes: int) -> Error:
        """AddPartitionsToTxn of version 1."""
        rows = [m.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic(topic, list(indexes))]
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.epoch,
            v3_and_below_topics=rows,
        )
        (answer,) = self.world.call(request, 3).results_by_topic_v3_and_below
        return Error(max(row.partition_error_code for row in answer.results_by_partition))

    def send(self, topic: str, *values: bytes, index: int = 0, version: int | None = None) -> Error:
        """Produce one batch in the transaction."""
        sequence = self.sequences.get((topic, index), 0)
        answer = self.produce(self.batch(sequence, *values), topic, index, version)
        if not answer.error_code:
            self.sequences[topic, index] = sequence + len(values)
        return Error(answer.error_code)

    def batch(self, sequence: int, *values: bytes) -> bytes:
        items = [Record(0, self.world.clock.wall_ms(), None, value) for value in values]
        options = {"producer_id": self.identity.producer_id, "producer_epoch": self.identity.epoch}
        return bytes(build(items, base_sequence=sequence, transactional=True, **options))

    def produce(self, batch: bytes, topic: str, index: int = 0, version: int | None = None) -> Any:
        version = version or (12 if self.version == 2 else 11)
        data = m.ProduceRequest_TopicProduceData(
            topic, partition_data=[m.ProduceRequest_PartitionProduceData(index, batch)]
        )
        answer = self.world.call(m.ProduceRequest(self.name, -1, 1000, [data]), version)
        return answer.responses[0].partition_responses[0]

    def end(self, commit: bool = True) -> Error:
        answer = self.world.call(m.EndTxnRequest(self.name, *self.identity, commit), 5 if self.version == 2 else 4)
        if not answer.error_code and answer.producer_id >= 0:
            self.become(Identity(answer.producer_id, answer.producer_epoch))
        return Error(answer.error_code)

    def commit_offset(self, group: str, topic: str, offset: int, version: int | None = None) -> Error:
        """TxnOffsetCommit of one partition by a group without members."""
        self.world.call(m.FindCoordinatorRequest(group, 0), 3)
        part = m.TxnOffsetCommitRequest_TxnOffsetCommitRequestPartition(0, offset, -1, "")
        rows = [m.TxnOffsetCommitRequest_TxnOffsetCommitRequestTopic(topic, [part])]
        request = m.TxnOffsetCommitRequest(self.name, group, *self.identity, topics=rows)
        answer = self.world.call(request, version or (5 if self.version == 2 else 4))
        return Error(answer.topics[0].partitions[0].error_code)

    def add_group(self, group: str) -> Error:
        return Error(self.world.call(m.AddOffsetsToTxnRequest(self.name, *self.identity, group)).error_code)


def fetch(world: World, topic: str, index: int = 0, *, committed: bool = True, offset: int = 0) -> Any:
    """The row of one partition; its records may end within a batch."""
    wanted = m.FetchRequest_FetchPartition(index, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = m.FetchRequest(
        isolation_level=int(committed),
        max_bytes=1 << 20,
        topics=[m.FetchRequest_FetchTopic(topic, partitions=[wanted])],
    )
    return world.call(request, 12).responses[0].partitions[0]


def read(world: World, topic: str, index: int = 0) -> list[bytes]:
    """What a consumer with isolation.level=read_committed gives to its application."""
    seen: list[bytes] = []
    offset, row = 0, fetch(world, topic, index)
    while offset < row.last_stable_offset:
        row = fetch(world, topic, index, offset=offset)
        aborted = sorted((one.first_offset, one.producer_id) for one in row.aborted_transactions)
        dropped: set[int] = set()
        for batch in whole_batches(bytes(row.records)):
            while aborted and aborted[0][0] <= batch.last_offset:
                dropped.add(aborted.pop(0)[1])
            if batch.is_control:
                dropped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in dropped):
                seen += [record.value or b"" for record in records(batch)]
            offset = batch.next_offset
    return seen


def whole_batches(data: bytes) -> Iterator[Batch]:
    """The last one may be cut off."""
    position = 0
    while len(data) - position >= HEADER_SIZE and (batch := Batch(data, position)).is_whole:
        yield batch
        position += batch.size


def committed_offset(world: World, group: str, topic: str, *, stable: bool = True) -> tuple[Error, int]:
    """OffsetFetch of one partition."""
    asked = m.OffsetFetchRequest_OffsetFetchRequestGroup(
        group, topics=[m.OffsetFetchRequest_OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    )
    answer = world.call(m.OffsetFetchRequest(groups=[asked], require_stable=stable), 9)
    row = answer.groups[0].topics[0].partitions[0]
    return Error(row.error_code), row.committed_offset
