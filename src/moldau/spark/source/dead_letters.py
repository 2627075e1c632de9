"""Sends records that do not decode to a topic of their own, with the headers of Kafka Connect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.client import Client, ClientError, Error, Record, Sender, build
from moldau.spark.admin import make_topic

ERRORS = "__connect.errors."
AT_ONCE = 500  # records of one batch


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that does not decode, where it was, which part is wrong, and why."""

    topic: str
    partition: int
    record: Record
    stage: str
    reason: str

    def context(self, query: str) -> tuple[tuple[str, bytes], ...]:
        headers = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.record.offset,
            "connector.name": query,
            "task.id": self.partition,
            "stage": self.stage,
            "class.name": "moldau.spark",
            "exception.class.name": "moldau.serdes.context.SerdeError",
            "exception.message": self.reason,
            "exception.stacktrace": "",
        }
        return tuple((ERRORS + name, str(value).encode()) for name, value in headers.items())


def send(client: Client, topic: str, letters: Iterable[DeadLetter], query: str, headers: bool) -> None:
    """Write letters and wait until they are stored. A task that runs again writes its letters again."""
    partitions = _partition_count(client, topic)
    by_partition: dict[int, list[Record]] = {}
    for letter in letters:
        more = letter.context(query) if headers else ()
        kept = letter.record._replace(headers=(*letter.record.headers, *more))
        by_partition.setdefault(letter.partition % partitions, []).append(kept)
    sender = Sender(client)
    try:
        for partition, records in by_partition.items():
            for first in range(0, len(records), AT_ONCE):
                sender.send(topic, partition, build(records[first : first + AT_ONCE]))
        sender.flush()
    finally:
        sender.close()


def _partition_count(client: Client, name: str) -> int:
    """Return how many partitions the topic has; create it if it does not exist."""
    try:
        return len(client.topic(name).partitions)
    except ClientError as error:
        if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    make_topic(client, name, 1)
    return len(client.topic(name).partitions)
