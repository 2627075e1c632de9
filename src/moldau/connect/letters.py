"""Dead letters of a sink: shown with the reason for each, and put once more.

The group `connect-NAME-dlq` says which of them were retried. A letter that is retried goes through the converters, the
transforms and the sink's put of its connector as if it came from the topic that it was read from; one that fails again
is written to the dead-letter topic again, with the new reason.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from moldau.connect import clients
from moldau.connect.connector import Connector, SinkContext, SinkTask
from moldau.connect.data import Record
from moldau.connect.engine import TaskSpec
from moldau.connect.errors import ConnectError, java_name
from moldau.connect.handling import PREFIX, PUT, Failure, Handler, Policy, Tolerated
from moldau.connect.pipeline import Pipeline
from moldau.connect.sink_task import DeadLetters
from moldau.connect.threads import Surroundings, Thread

TOPIC = "errors.deadletterqueue.topic.name"
SHOWN = 500  # characters of a key or a value


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, which reads like the record that it was."""

    raw: Message

    def reason(self, name: str) -> str | None:
        found = [value for key, value in self._all if key == PREFIX + name]
        return None if not found or found[-1] is None else found[-1].decode("utf-8", "replace")

    @property
    def _all(self) -> list[tuple[str, Any]]:
        return list(self.raw.headers() or ())  # type: ignore[arg-type]

    @property
    def place(self) -> tuple[str, int, int]:
        return self.raw.topic() or "", self.raw.partition() or 0, self.raw.offset() or 0

    def topic(self) -> str:
        return self.reason("topic") or self.raw.topic() or ""

    def partition(self) -> int:
        return int(self.reason("partition") or self.raw.partition() or 0)

    def offset(self) -> int:
        return int(self.reason("offset") or self.raw.offset() or 0)

    def key(self) -> Any:
        return self.raw.key()

    def value(self) -> Any:
        return self.raw.value()

    def headers(self) -> list[tuple[str, Any]]:
        return [(key, value) for key, value in self._all if not key.startswith(PREFIX)]

    def timestamp(self) -> Any:
        return self.raw.timestamp()

    def document(self) -> dict[str, Any]:
        """Return what is shown of it."""
        given = {"topic": self.reason("topic"), "partition": self.reason("partition"), "stage": self.reason("stage")}
        why = {"class": self.reason("exception.class.name"), "message": self.reason("exception.message")}
        own = {"offset": self.place[2], "letter_partition": self.place[1], "timestamp": self.raw.timestamp()[1]}
        return {**own, **given, **why, "key": _text(self.key()), "value": _text(self.value())}


def _text(data: Any) -> str | None:
    return None if data is None else bytes(data).decode("utf-8", "replace")[:SHOWN]


def group_of(name: str) -> str:
    return f"connect-{name}-dlq"


def listed(around: Surroundings, name: str, config: Mapping[str, str], limit: int) -> dict[str, Any]:
    with Reading(around, name, config) as reading:
        return {"topic": config[TOPIC], "letters": [one.document() for one in reading.letters(limit)]}


class Reading:
    """The dead letters that were not retried yet."""

    def __init__(self, around: Surroundings, name: str, config: Mapping[str, str]) -> None:
        given = clients.consumer(around.worker, config, f"connector-dlq-consumer-{name}", group_of(name))
        self._consumer = Consumer({**given, "isolation.level": "read_committed"})
        self._topic, self._timeout_s = config[TOPIC], around.timeout_s

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def letters(self, limit: int) -> list[Letter]:
        known = self._consumer.list_topics(self._topic, self._timeout_s).topics[self._topic]
        if known.error is not None:
            return []  # there is no topic yet: nothing has failed
        places = [TopicPartition(self._topic, number) for number in known.partitions]
        left: dict[int, int] = {}
        for one in self._consumer.committed(places, self._timeout_s):
            low, high = self._consumer.get_watermark_offsets(one, self._timeout_s)
            one.offset = max(one.offset, low)
            if one.offset < high:
                left[one.partition] = high
                self._consumer.incremental_assign([one])
        return self._read(left, limit)

    def _read(self, left: dict[int, int], limit: int) -> list[Letter]:
        found: list[Letter] = []
        deadline = time.monotonic() + self._timeout_s
        while left and len(found) < limit and time.monotonic() < deadline:
            found += [Letter(one) for one in self._consumer.consume(limit - len(found), 0.2) if one.error() is None]
            for one in self._consumer.position(self._consumer.assignment()):
                if one.offset >= left.get(one.partition, 0):
                    left.pop(one.partition, None)
        return found

    def commit(self, letters: Sequence[Letter]) -> None:
        """Note that letters were retried."""
        ends: dict[int, int] = {}
        for one in letters:
            ends[one.place[1]] = max(ends.get(one.place[1], 0), one.place[2] + 1)
        rows = [TopicPartition(self._topic, partition, end) for partition, end in ends.items()]
        if rows:
            self._consumer.commit(offsets=rows, asynchronous=False)


def retry(around: Surroundings, name: str, plugin: Connector, config: Mapping[str, str], limit: int) -> dict[str, int]:
    """Put dead letters once more; return how many were put, and how many failed again."""
    with Reading(around, name, config) as reading:
        letters = reading.letters(limit)
        failed = _put(around, name, plugin, config, letters) if letters else 0
        reading.commit(letters)
    return {"put": len(letters) - failed, "failed": failed}


def _put(
    around: Surroundings, name: str, plugin: Connector, config: Mapping[str, str], letters: Sequence[Letter]
) -> int:
    own = {**config, "name": f"{name}-dlq"}  # a target that keeps offsets must not mix them up
    spec = TaskSpec(name, 0, plugin, own, own, False, "")
    thread = Thread(spec, around, lambda _: None, lambda *_: None, is_paused=False)
    policy = Policy.of({**config, "errors.tolerance": "all", "errors.retry.timeout": "0"})
    dead = DeadLetters(thread, policy)
    failed: set[tuple[str, int, int]] = set()

    def write(failure: Failure) -> None:
        failed.add(failure.raw.place)
        dead.write(failure)

    handler = Handler(name, policy, lambda _: True, write)
    by_place = {one.place: one for one in letters}

    def report(record: Record, error: Exception) -> None:
        place: Any = record.original_topic, record.original_partition, record.original_offset
        try:
            handler.refuse(Failure(PUT, java_name(error), error, by_place[place]))
        except Tolerated:
            return

    pipeline = Pipeline.of(around.worker, config, handler)
    sink: SinkTask = plugin.open(SinkContext(own, report, lambda _: True))
    try:
        ends = {(place[0], place[1]): place[2] + 1 for place in sorted(by_place)}
        sink.open(list(ends))
        records: list[Record] = []
        for one in letters:
            topic, partition, offset = one.place
            try:
                made = pipeline.incoming(one)  # type: ignore[arg-type]
            except Tolerated:
                continue
            records += [
                each.but(original_topic=topic, original_partition=partition, original_offset=offset) for each in made
            ]
        sink.put(records)
        if sink.flush(ends) != ends:
            raise ConnectError("The sink has not written all of them; they stay dead letters.")
        dead.flush()
    finally:
        sink.close()
        dead.close()
    return len(failed)
