"""What tests of mixed clusters do to them, through real clients and by looking at the disks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client import Client
from moldau.wire import messages as m
from moldau.wire.records import batches
from tests.cluster.mixed import Cluster

PARTITIONS = 4
SET, DELETE = 0, 1


def admin(made: Cluster, node: int | None = None) -> AdminClient:
    servers = made.bootstrap if node is None else made[node].address
    return AdminClient({"bootstrap.servers": servers, "broker.address.family": "v4"})


def create(made: Cluster, topic: str, through: int = 2, **config: str) -> None:
    """Make a topic with two replicas, by default through the Moldau broker, which lets the controller decide."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    client = admin(made, through)
    client.create_topics([NewTopic(topic, PARTITIONS, 2, config=settings)])[topic].result(30)


def place(made: Cluster, topic: str, replicas: Sequence[int], partitions: int = 1, **config: str) -> None:
    """Make a topic whose partitions lie on these brokers; the first of them is to lead."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    new = NewTopic(topic, partitions, replica_assignment=[list(replicas)] * partitions, config=settings)
    client = admin(made)  # to drop it would end the request
    client.create_topics([new])[topic].result(30)


def configure(made: Cluster, kind: int, name: str, through: int = 1, **settings: str | None) -> None:
    """Set values of a topic or a broker, and take away those that are None."""
    setting = m.IncrementalAlterConfigsRequest_AlterableConfig
    rows = [setting(key.replace("_", "."), SET if value else DELETE, value) for key, value in settings.items()]
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(kind, name, rows)
    with Client({"bootstrap.servers": made[through].address}) as client:
        (answer,) = client.send(m.IncrementalAlterConfigsRequest([resource]), through).responses
    assert not answer.error_code, answer


def placements(made: Cluster, topic: str, node: int | None = None) -> dict[int, tuple[int, list[int]]]:
    """Return leader and ISR of each partition, as one broker sees it or any."""
    known = admin(made, node).list_topics(topic, timeout=10).topics[topic].partitions
    return {index: (part.leader, sorted(part.isrs)) for index, part in known.items()}


def is_placed(made: Cluster, topic: str, leader: int | None, isr: Sequence[int]) -> bool:
    """Tell whether all partitions have this leader (None: any) and this ISR."""
    seen = placements(made, topic)
    return bool(seen) and all(who == (leader or who) and found == sorted(isr) for who, found in seen.values())


def produce(
    made: Cluster,
    topic: str,
    numbers: Iterable[int],
    halfway: Callable[[], object] = lambda: None,
    value: bytes = b"",
    **more: object,
) -> None:
    """Send numbered records, by default each acknowledged by all replicas; something may happen after half of them."""
    failures: list[str] = []
    some = list(numbers)
    producer = Producer(made.client(**({"enable_idempotence": True, "linger_ms": 5} | more)))
    for count, number in enumerate(some):
        done = lambda error, _: failures.append(str(error)) if error else None  # noqa: E731
        producer.produce(topic, b"%d" % number + value, key=str(number), on_delivery=done)
        producer.poll(0)
        if count == len(some) // 2:
            halfway()
    assert producer.flush(60) == 0
    assert not failures, failures[:3]


def read(made: Cluster, topic: str, count: int, partitions: int = PARTITIONS, **more: object) -> list[int]:
    """Return the numbers of all records, sorted."""
    consumer = Consumer(made.client(group_id="readers", auto_offset_reset="earliest", **more))
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    try:
        seen: list[int] = []
        while len(seen) < count and (records := consumer.consume(min(1000, count - len(seen)), 20)):
            seen += [int(record.value().split(b" ")[0]) for record in records if not record.error()]
        return sorted(seen)
    finally:
        consumer.close()


def logs_of(made: Cluster, node: int, topic: str) -> dict[int, bytes]:
    """The bytes of a topic's partitions on one node's disk."""
    folders = [path for path in made[node].folder.glob(f"*/{topic}-*") if path.name.rpartition("-")[2].isdigit()]
    return {
        int(folder.name.rpartition("-")[2]): b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
        for folder in folders
    }


def batches_of(made: Cluster, node: int, topic: str, start: int = 0) -> dict[int, dict[int, bytes]]:
    """Return the batches on one node's disk by partition and first offset: those that end after `start`."""
    return {
        index: {batch.base_offset: bytes(batch.view) for batch in batches(data) if batch.next_offset > start}
        for index, data in logs_of(made, node, topic).items()
    }


def bounds(made: Cluster, topic: str, index: int = 0) -> tuple[int, int]:
    """Return where a partition begins and ends, by its leader."""
    consumer = Consumer(made.client(group_id="readers"))
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, index), 10)
    finally:
        consumer.close()


def delete_records(made: Cluster, topic: str, before: int, index: int = 0) -> None:
    client = admin(made)
    ((_, future),) = client.delete_records([TopicPartition(topic, index, before)]).items()
    future.result(30)
