"""`python -m benchmarks.copier ADDRESS INPUT OUTPUT COUNT SIZE`: exactly-once copying with confluent-kafka.

Consume, transform, produce and commit in transactions of SIZE records, as a program in Python would. The answer is one
line of JSON; the first transactions, which find coordinators and connections, are not in its rate.
"""

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

UNCOUNTED = 5  # transactions
PATIENCE_S = 30.0


def clients(address: str, name: str) -> tuple[Consumer, Producer]:
    common = {"bootstrap.servers": address, "log_level": 2}
    reading = {
        "group.id": name,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.queue.backoff.ms": 10,  # the default of a second stalls a fast consumer
    }
    return Consumer(common | reading), Producer(common | {"transactional.id": name})


def taken(consumer: Consumer, size: int) -> list[Message]:
    """Exactly so many records."""
    found: list[Message] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < size:
        if time.monotonic() > deadline:
            sys.exit(f"No more than {len(found)} records came within {PATIENCE_S:.0f} s.")
        found += consumer.consume(size - len(found), 1.0)
    return found


def transform(value: bytes) -> bytes:
    return value.swapcase()


def copy(consumer: Consumer, producer: Producer, output: str, size: int) -> None:
    """One transaction."""
    records = taken(consumer, size)
    producer.begin_transaction()
    for record in records:
        if record.error():
            sys.exit(str(record.error()))
        producer.produce(output, transform(record.value()), on_delivery=delivered)
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
    producer.commit_transaction()


def delivered(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        sys.exit(str(error))


def main(address: str, source: str, output: str, count: int, size: int) -> None:
    consumer, producer = clients(address, output)
    consumer.assign([TopicPartition(source, 0, 0)])
    producer.init_transactions(PATIENCE_S)
    begin = time.monotonic()
    for number in range(count // size):
        if number == UNCOUNTED:
            begin = time.monotonic()
        copy(consumer, producer, output, size)
    seconds = time.monotonic() - begin
    done = count // size
    print(json.dumps({"transactions": done, "per_second": (done - UNCOUNTED) * size / seconds}))
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:6]))
