"""The topics of the test driver: inputs take objects, outputs return them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.operators.coders import topic_reader, topic_writer
from moldau.operators.durations import Duration, milliseconds
from moldau.operators.record import Headers, Produced, Record
from moldau.serdes.context import Serde

if TYPE_CHECKING:
    from .driver import TopologyTestDriver

HeadersLike = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]


@dataclass(slots=True)
class Missing:
    """The mark of an argument that was not given, as None is a value."""


MISSING = Missing()


def headers_of(given: HeadersLike) -> Headers:
    if isinstance(given, Mapping):
        return tuple(given.items())
    return tuple(given)


class TestInputTopic:
    __test__ = False  # not a test class of pytest

    def __init__(
        self, driver: TopologyTestDriver, topic: str, key: Serde, value: Serde, start: int, advance: int
    ) -> None:
        self.topic, self.now, self.advance = topic, start, advance
        self._pipe = driver.pipe
        self._write_key = topic_writer(key, topic, "key")
        self._write_value = topic_writer(value, topic, "value")

    def pipe_input(
        self, key: Any, value: Any = MISSING, timestamp: int | None = None, headers: HeadersLike = ()
    ) -> None:
        """Feed one record: `pipe_input(value)`, `pipe_input(key, value)`, or `pipe_input(Record(...))`."""
        if isinstance(key, Record) and value is MISSING:
            self.pipe_record(key)
            return
        if value is MISSING:
            key, value = None, key
        if timestamp is None:
            timestamp = self.now
            self.now += self.advance
        carried = headers_of(headers) if headers else ()
        raw_key, carried = self._write_key(key, carried)
        raw_value, carried = self._write_value(value, carried)
        self._pipe(self.topic, raw_key, raw_value, timestamp, carried)

    def pipe_record(self, record: Record) -> None:
        self.pipe_input(record.key, record.value, record.timestamp, record.headers)

    def pipe_record_list(self, records: Iterable[Record]) -> None:
        for record in records:
            self.pipe_record(record)

    def pipe_value_list(self, values: Iterable[Any], start: int | None = None, advance: Duration | None = None) -> None:
        self.pipe_key_value_list(((None, value) for value in values), start, advance)

    def pipe_key_value_list(
        self, pairs: Iterable[tuple[Any, Any]], start: int | None = None, advance: Duration | None = None
    ) -> None:
        """Feed records with times from `start` on; without it, the topic's own times continue."""
        if start is None:
            for key, value in pairs:
                self.pipe_input(key, value)
            return
        step = milliseconds(advance or 0, "advance=")
        for number, (key, value) in enumerate(pairs):
            self.pipe_input(key, value, start + number * step)

    def advance_time(self, by: Duration) -> None:
        self.now += milliseconds(by, "the time to advance")


class TestOutputTopic:
    __test__ = False

    def __init__(self, driver: TopologyTestDriver, topic: str, key: Serde, value: Serde) -> None:
        self.topic = topic
        self._outputs = driver.outputs
        self._read_key = topic_reader(key, topic, "key")
        self._read_value = topic_reader(value, topic, "value")

    @property
    def queue_size(self) -> int:
        return len(self._outputs.get(self.topic, ()))

    @property
    def is_empty(self) -> bool:
        return not self.queue_size

    def read_record(self) -> Record:
        waiting = self._outputs.get(self.topic)
        if not waiting:
            raise LookupError(f"no record waits on the topic {self.topic!r}")
        return self._read(waiting.popleft())

    def read_key_value(self) -> tuple[Any, Any]:
        record = self.read_record()
        return record.key, record.value

    def read_value(self) -> Any:
        return self.read_record().value

    def read_records_to_list(self) -> list[Record]:
        return [self.read_record() for _ in range(self.queue_size)]

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        return [self.read_key_value() for _ in range(self.queue_size)]

    def read_values_to_list(self) -> list[Any]:
        return [self.read_value() for _ in range(self.queue_size)]

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """Read all records, and return the last value of each key."""
        return dict(self.read_key_values_to_list())

    def _read(self, produced: Produced) -> Record:
        headers = produced.headers
        key = self._read_key(produced.key, headers)
        return Record(key, self._read_value(produced.value, headers), produced.timestamp, headers)
