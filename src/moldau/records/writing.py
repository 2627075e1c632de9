"""Writes records to the partitions of a topic in batches, several in flight."""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from moldau.admin.mistakes import Mistake
from moldau.client import Client, Record, Sender, TransactionalProducer, build
from moldau.records.lines import Item
from moldau.records.partitioners import Partitioner
from moldau.wire.compression import Compression
from moldau.wire.records import build_encoded
from moldau.wire.records.bulk import encode_lines, encode_values

BATCH_BYTES = 500_000  # of records; a broker takes a million, if nobody has changed that
PER_RECORD = 20  # bytes around a record, about


@dataclass(slots=True)
class Pile:
    """Records that wait to be a batch."""

    records: list[Record] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class Writer:
    """A writer to one topic. `close` waits until everything is acknowledged."""

    client: Client
    topic: str
    partitions: int
    partitioner: Partitioner
    compression: Compression = Compression.NONE
    level: int | None = None
    transactional_id: str | None = None
    acks: int | None = None
    batch_bytes: int = BATCH_BYTES
    piles: dict[int, Pile] = field(default_factory=dict)
    sticky: int = 0
    count: int = 0
    _producer: Sender | TransactionalProducer | None = None

    @property
    def producer(self) -> Sender | TransactionalProducer:
        if self._producer is None:
            self.sticky = random.randrange(self.partitions)
            if self.transactional_id is None:
                self._producer = Sender(self.client, acks=self.acks)
            else:
                self._producer = TransactionalProducer(self.client, self.transactional_id)
        return self._producer

    def values(self, values: list[bytes]) -> None:
        """Write values without keys, the fast way: to one partition after the other, a batch each."""
        now = time.time_ns() // 1_000_000
        for cut in cuts([PER_RECORD + size for size in map(len, values)], self.batch_bytes):
            self._send(self._next(), encode_values(values[cut]), cut.stop - cut.start, now)

    def keyed(self, lines: list[str], mark: str) -> None:
        """Write lines of keys and values with a mark between them, as Latin-1 characters: nearly as fast."""
        now = time.time_ns() // 1_000_000
        for partition, mine in self._by_partition(lines, mark).items():
            for cut in cuts([PER_RECORD + size for size in map(len, mine)], self.batch_bytes):
                self._send(partition, encode_lines(mine[cut], mark), cut.stop - cut.start, now)

    def _by_partition(self, lines: list[str], mark: str) -> dict[int, list[str]]:
        """Sort lines by the partitions of their keys; those without keys go to the next partition together."""
        alone, partitions, choose = self._next(), self.partitions, self.partitioner
        if partitions == 1:
            return {0: lines}
        found: dict[int, list[str]] = {}
        for line in lines:
            key, marked, _ = line.partition(mark)
            place = choose(key.encode("latin-1")) % partitions if marked else alone
            if place in found:
                found[place].append(line)
            else:
                found[place] = [line]
        return found

    def put(self, items: Iterable[Item]) -> None:
        """Write records of any kind; `flush` sends batches that are not full."""
        now = time.time_ns() // 1_000_000
        for item in items:
            partition = self._partition(item)
            pile = self.piles.setdefault(partition, Pile())
            timestamp = now if item.timestamp is None else item.timestamp
            pile.records.append(Record(0, timestamp, item.key, item.value, item.headers))
            pile.size += len(item.key or b"") + len(item.value or b"") + PER_RECORD
            pile.size += sum(len(name) + len(value or b"") + 4 for name, value in item.headers)
            self.count += 1
            if pile.size >= self.batch_bytes:
                self._send_pile(partition)

    def flush(self) -> None:
        """Send what waits, and use the next partition for records without keys."""
        for partition in list(self.piles):
            self._send_pile(partition)

    def close(self) -> None:
        """Wait until everything is acknowledged, and committed if it is a transaction."""
        self.flush()
        if isinstance(self.producer, TransactionalProducer):
            self.producer.commit()
        else:
            self.producer.flush()
        self.producer.close()

    def abort(self) -> None:
        """Stop without waiting; a transaction is aborted."""
        if isinstance(self._producer, TransactionalProducer):
            self._producer.abort()
        if self._producer is not None:
            self._producer.close()

    def _partition(self, item: Item) -> int:
        if item.partition is not None:
            if item.partition >= self.partitions:
                last = self.partitions - 1
                raise Mistake(f"Topic {self.topic} has no partition {item.partition}: they go from 0 to {last}.")
            return item.partition
        return self.sticky if item.key is None else self.partitioner(item.key) % self.partitions

    def _next(self) -> int:
        self.producer  # noqa: B018  the first partition is chosen with it
        chosen, self.sticky = self.sticky, (self.sticky + 1) % self.partitions
        return chosen

    def _send_pile(self, partition: int) -> None:
        pile = self.piles.pop(partition)
        self.producer.send(self.topic, partition, build(pile.records, compression=self.compression, level=self.level))
        if partition == self.sticky:
            self._next()

    def _send(self, partition: int, records: bytes, count: int, now: int) -> None:
        self.count += count  # as it is handed over: Ctrl-C may come before it is acknowledged
        self.producer.send(self.topic, partition, build_encoded(records, count, now, self.compression, self.level))


def cuts(sizes: list[int], room: int) -> Iterator[slice]:
    """Yield slices of at most so many bytes each, or of one record."""
    ends = list(accumulate(sizes))
    begin, done = 0, 0
    while begin < len(ends):
        end = max(begin + 1, bisect_right(ends, done + room))
        yield slice(begin, end)
        begin, done = end, ends[end - 1]
