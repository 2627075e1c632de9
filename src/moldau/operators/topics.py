"""The two ends of a topology: reading records from topics, and writing them to topics."""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import index
from typing import Any, SupportsIndex

from moldau.serdes.context import Serde, SerdeError
from moldau.serdes.primitive import Plain

from .coders import Read, Write, plain_reader, short_writer, topic_reader, topic_writer
from .context import Context, Shard
from .errors import Handler, StreamsError
from .record import Headers, Produced, Raw, Record, new_tuple
from .timestamps import Extractor, fail_on_invalid_timestamp, wallclock_timestamp

Collect = Callable[[Produced], None]
TopicOf = Callable[[Any, Any, Record], str]  # key, value, record
# Of topic, key, value, how many partitions: a partition, several (a record for each; with none it is dropped), or None
# where the key decides.
Partitioner = Callable[[str, Any, Any, int], int | Collection[int] | None]


class TopicReader:
    """Reads the records of one topic for a source node."""

    def __init__(self, node: str, topic: str, key: Serde, value: Serde, extract: Extractor, shard: Shard) -> None:
        self.node, self.extract, self.shard = node, extract, shard
        self.topic, self.key, self.value = topic, key, value
        self.read_key = topic_reader(key, topic, "key")
        self.read_value = topic_reader(value, topic, "value")
        self.read: Callable[[Raw, int], Record | None] = self._read
        if isinstance(key, Plain) and isinstance(value, Plain) and extract is fail_on_invalid_timestamp:
            self.read = self._short(plain_reader(key), plain_reader(value))

    def _read(self, raw: Raw, partition_time: int) -> Record | None:
        """Read a record; None if it has no valid time and is dropped. Errors of serdes reach the caller."""
        headers = raw.headers
        record = Record(self.read_key(raw.key, headers), self.read_value(raw.value, headers), raw.timestamp, headers)
        if self.extract is wallclock_timestamp:
            record.timestamp = self.shard.system_time
        else:
            record.timestamp = self._time_of(record, partition_time, raw)
        if record.timestamp < 0:
            return None
        return record

    def _time_of(self, record: Record, partition_time: int, raw: Raw) -> int:
        """Return the extracted time. An extractor that fails ends the application without a handler, as in Kafka."""
        where = f"{self.node} at {raw.topic}-{raw.partition} offset {raw.offset}"
        try:
            found = self.extract(record, partition_time)
        except Exception as error:
            why = error if isinstance(error, StreamsError) else f"the timestamp extractor failed: {error!r}"
            raise StreamsError(f"{where}: {why}") from error
        if not isinstance(found, int):
            raise StreamsError(
                f"{where}: the timestamp extractor returned {found!r}, which is not a number of milliseconds"
            )
        return found

    def _short(self, read_key: Read, read_value: Read) -> Callable[[Raw, int], Record | None]:
        """Return the fast reader for the common case: serdes without schemas, records with a time."""

        def read(raw: Raw, partition_time: int) -> Record | None:
            timestamp = raw.timestamp
            if timestamp < 0:
                return self._read(raw, partition_time)
            return Record(read_key(raw.key), read_value(raw.value), timestamp, raw.headers)

        return read


class Sink:
    """Writes to a topic, or to the one that a function names for each record."""

    def __init__(
        self,
        topic: str | TopicOf,
        key: Serde,
        value: Serde,
        collect: Collect,
        partitioner: Partitioner | None = None,
        partitions: Callable[[str], int] = lambda topic: 1,
        handler: Handler | None = None,
    ) -> None:
        self.topic, self.key, self.value, self.collect, self.handler = topic, key, value, collect, handler
        self.partitioner, self.partitions = partitioner, partitions
        self.known: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        self.process: Callable[[Record], None] = self._process
        short_key, short_value = short_writer(key), short_writer(value)
        if isinstance(topic, str) and short_key is not None and short_value is not None:
            self.process = self._short(topic, short_key, short_value)

    def init(self, context: Context) -> None:
        self.context = context

    def _process(self, record: Record) -> None:
        if record.timestamp < 0:
            raise StreamsError(f"{self.context.name}: a record with the timestamp {record.timestamp} cannot be written")
        topic = self.topic if isinstance(self.topic, str) else self._named(self.topic, record)
        written = self.written(topic, record)
        if written is not None:
            key, value, headers = written
            for partition in self.partitions_of(topic, record):
                self.collect(Produced(topic, partition, key, value, record.timestamp, headers))

    def _named(self, name: TopicOf, record: Record) -> str:
        found = name(record.key, record.value, record)
        if not isinstance(found, str) or not found:
            raise StreamsError(
                f"{self.context.name}: the function that names topics returned {found!r}, which is not a name"
            )
        return found

    def _short(self, topic: str, write_key: Write, write_value: Write) -> Callable[[Record], None]:
        """Return the fast writer for the common case: one topic, serdes without schemas. Failures go the long way."""
        collect, long, partition_of, count = self.collect, self._process, self.partitioner, self.partitions(topic)

        def process(record: Record) -> None:
            timestamp = record.timestamp
            try:
                key, value = write_key(record.key), write_value(record.value)
            except SerdeError:
                return long(record)
            if timestamp < 0:
                return long(record)
            partition = None if partition_of is None else partition_of(topic, record.key, record.value, count)
            if partition is not None and type(partition) is not int:
                return long(record)
            return collect(new_tuple(Produced, (topic, partition, key, value, timestamp, record.headers)))

        return process

    def written(self, topic: str, record: Record) -> tuple[bytes | None, bytes | None, Headers] | None:
        """Return the record as bytes; None if the handler continues without it."""
        write_key, write_value = self.known.get(topic) or self.writers(topic)
        try:
            key, headers = write_key(record.key, record.headers)
            value, headers = write_value(record.value, headers)
        except Exception as error:
            if self.handler is None:
                raise
            self.refused(topic, record, error)
            return None
        return key, value, headers

    def refused(self, topic: str, record: Record, error: Exception) -> None:
        assert self.handler is not None
        failure = self.context.failure("production", error, record, topic)
        response = self.handler(failure)
        for letter in response.dead_letters:
            self.collect(letter)
        if response.decision == "fail":
            raise StreamsError(str(failure)) from error
        self.context.dropped("not written")

    def writers(self, topic: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        self.known[topic] = topic_writer(self.key, topic, "key"), topic_writer(self.value, topic, "value")
        return self.known[topic]

    def partitions_of(self, topic: str, record: Record) -> Collection[int | None]:
        if self.partitioner is None:
            return (None,)
        found = self.partitioner(topic, record.key, record.value, self.partitions(topic))
        if found is None or isinstance(found, SupportsIndex):
            return (None if found is None else index(found),)
        try:
            several = sorted(map(index, found))
        except TypeError:
            raise StreamsError(
                f"{self.context.name}: the partitioner returned {found!r}: it must return a partition, several, or None"
            ) from None
        if not several:
            self.context.dropped("no partition")
        return several
