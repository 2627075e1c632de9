"""A member of a share group on a node without sockets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from moldau.wire import messages as m
from moldau.wire.records import Batch, Record, build, records
from tests.broker.conftest import Client, World

Acquired = tuple[int, int, int]
Said = tuple[int, int, list[int]]


def id_of(world: World, topic: str = "t") -> bytes:
    return world.node.cluster.topics[topic].id


def produce(world: World, *values: bytes, partition: int = 0, topic: str = "t", batch: Any = None) -> None:
    now = world.clock.wall_ms()
    data = batch or bytes(build([Record(place, now, None, value) for place, value in enumerate(values)]))
    rows = [m.ProduceRequest_PartitionProduceData(partition, data)]
    request = m.ProduceRequest(None, -1, 1000, [m.ProduceRequest_TopicProduceData(topic, partition_data=rows)])
    (answer,) = world.call(request, 9).responses
    assert answer.partition_responses[0].error_code == 0


def initialize(world: World, *partitions: int, group: str = "g", start: int = 0, epoch: int = 0) -> None:
    rows = [m.InitializeShareGroupStateRequest_PartitionData(index, epoch, start) for index in partitions or (0,)]
    topic = m.InitializeShareGroupStateRequest_InitializeStateData(id_of(world), rows)
    (answer,) = world.call(m.InitializeShareGroupStateRequest(group, [topic])).results
    assert all(part.error_code == 0 for part in answer.partitions)


def set_group(world: World, group: str = "g", **settings: str) -> None:
    rows = [
        m.IncrementalAlterConfigsRequest_AlterableConfig(name.replace("_", "."), 0, value)
        for name, value in settings.items()
    ]
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(32, group, rows)
    (answer,) = world.call(m.IncrementalAlterConfigsRequest([resource])).responses
    assert answer.error_code == 0, answer.error_message


@dataclass
class Member:
    """Fetches and acknowledges, and keeps count of its session's epoch."""

    world: World
    name: str = "a"
    group: str = "g"
    epoch: int = 0
    version: int = 2
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(self.world.node)

    def send(self, parts: Iterable[int] = (), said: dict[int, list[Said]] | None = None, **fields: Any) -> None:
        """A fetch whose answer may have to wait; by default it does not."""
        said = said or {}
        row, batch = m.ShareFetchRequest_FetchPartition, m.ShareFetchRequest_AcknowledgementBatch
        rows = [row(part, [batch(*one) for one in said.get(part, ())]) for part in dict.fromkeys([*parts, *said])]
        topics = [m.ShareFetchRequest_FetchTopic(id_of(self.world), rows)] if rows else []
        usual = {"max_wait_ms": 0, "min_bytes": 1, "max_records": 500, "batch_size": 500, "topics": topics}
        epoch = fields.pop("epoch", self.epoch)
        self.client.send(m.ShareFetchRequest(self.group, self.name, epoch, **(usual | fields)), self.version)
        self.epoch = epoch + 1

    def fetch(self, parts: Iterable[int] = (), said: dict[int, list[Said]] | None = None, **fields: Any) -> Any:
        self.send(parts, said, **fields)
        return self.client.take()

    def acquire(self, parts: Iterable[int] = (0,), **fields: Any) -> list[Acquired]:
        """What a fetch from one partition acquires."""
        return acquired(self.fetch(parts, **fields))

    def acknowledge(self, *said: Said, part: int = 0, renews: bool = False, epoch: int | None = None) -> Any:
        batches = [m.ShareAcknowledgeRequest_AcknowledgementBatch(*one) for one in said]
        rows = [m.ShareAcknowledgeRequest_AcknowledgePartition(part, batches)]
        topic = m.ShareAcknowledgeRequest_AcknowledgeTopic(id_of(self.world), rows)
        used = self.epoch if epoch is None else epoch
        renewing = {"is_renew_ack": renews} if self.version >= 2 else {}
        request = m.ShareAcknowledgeRequest(self.group, self.name, used, topics=[topic], **renewing)
        answer = self.client.call(request, self.version)
        self.epoch = used + 1
        return answer

    def settle(self, *said: Said, **more: Any) -> int:
        """The error of an acknowledgement."""
        answer = self.acknowledge(*said, **more)
        return answer.error_code or answer.responses[0].partitions[0].error_code


def acquired(response: Any, part: int = 0) -> list[Acquired]:
    assert response.error_code == 0
    return [
        (run.first_offset, run.last_offset, run.delivery_count)
        for topic in response.responses
        for row in topic.partitions
        if row.partition_index == part
        for run in row.acquired_records
    ]


def values(response: Any, part: int = 0) -> dict[int, bytes | None]:
    """The records that came, by offset, whether acquired or not."""
    found: dict[int, bytes | None] = {}
    for topic in response.responses:
        for row in topic.partitions:
            data, position = bytes(row.records), 0
            while row.partition_index == part and position < len(data):
                batch = Batch(data, position)
                found.update((batch.base_offset + place, r.value) for place, r in enumerate(records(batch)))
                position += batch.size
    return found
