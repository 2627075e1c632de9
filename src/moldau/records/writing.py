"""Records to the partitions of a topic: gathered into batches, encoded, and sent with several on their way."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.admin.mistakes import Mistake
from moldau.client import Client, Record, Sender, TransactionalProducer, build
from moldau.records.lines import Item
from moldau.records.partitioners import Partitioner
from moldau.wire.compression import Compression, compress
from moldau.wire.records import HEADER_SIZE, assemble, zigzag

BATCH_BYTES = 500_000  # of records; a broker takes a million, if nobody has changed that
PER_RECORD = 20  # bytes around a record, about
KNOWN = 4096
NO_KEY = b"\1"

Pair = tuple[bytes | None, bytes]

_z = [zigzag(number) for number in range(KNOWN)]


@dataclass(slots=True)
class Pile:
    """Records that wait to be a batch."""

    records: list[Record] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class Writer:
    """Writes to one topic. `close` waits for all of it to be acknowledged."""

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
    pairs: dict[int, list[Pair]] = field(default_factory=dict)  # the same, of keys and values alone
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
        """Values alone, without keys: the quick way. They go to one partition after the other, a batch each."""
        now = time.time_ns() // 1_000_000
        at = 0
        while at < len(values):
            end, room = at, self.batch_bytes
            while end < len(values) and (room > 0 or end == at):
                room -= len(values[end]) + PER_RECORD
                end += 1
            self.count += end - at  # as it is handed over: Ctrl-C may come before it is acknowledged
            self._send(self._next(), body(values[at:end]), end - at, now)
            at = end

    def keyed(self, found: Iterable[Pair]) -> None:
        """Keys and values alone: nearly as quick. What is not a whole batch yet waits for `flush`."""
        pairs, partitions, choose = self.pairs, self.partitions, self.partitioner
        self.producer  # noqa: B018  the partition for records without keys is chosen with it
        sizes: dict[int, int] = {}
        for pair in found:
            key, value = pair
            place = self.sticky if key is None else choose(key) % partitions if partitions > 1 else 0
            pile = pairs.get(place)
            if pile is None:
                pile = pairs[place] = []
            size = sizes.get(place, 0) + len(value) + (PER_RECORD if key is None else PER_RECORD + len(key))
            if size > self.batch_bytes and pile:
                self._send_pairs(place)
                pile = pairs[place] = []
                size = 0
            sizes[place] = size
            pile.append(pair)
            self.count += 1

    def put(self, items: Iterable[Item]) -> None:
        """Records with whatever they have; `flush` sends what is not a whole batch yet."""
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
        """Send what waits, and go on with the next partition for records without keys."""
        for partition in list(self.piles):
            self._send_pile(partition)
        for partition in list(self.pairs):
            self._send_pairs(partition)

    def close(self) -> None:
        """Wait until everything is acknowledged, and committed if it is a transaction."""
        self.flush()
        if isinstance(self.producer, TransactionalProducer):
            self.producer.commit()
        else:
            self.producer.flush()
        self.producer.close()

    def abort(self) -> None:
        """Leave: a transaction is undone."""
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

    def _send_pairs(self, partition: int) -> None:
        found = self.pairs.pop(partition)
        self._send(partition, paired_body(found), len(found), time.time_ns() // 1_000_000)
        if partition == self.sticky:
            self._next()

    def _send(self, partition: int, records: bytes, count: int, now: int) -> None:
        packed = compress(self.compression, records, self.level) if self.compression else records
        batch = assemble(0, -1, self.compression, count - 1, now, now, -1, -1, -1, count, packed)
        assert len(batch) >= HEADER_SIZE
        self.producer.send(self.topic, partition, batch)


def body(values: list[bytes]) -> bytes:
    """Records of these values, with no keys and no headers, all of one time. Varints are looked up where they can."""
    known, z, out = KNOWN, _z, []
    for delta, value in enumerate(values):
        n = len(value)
        place = z[delta] if delta < known else zigzag(delta)
        size = z[n] if n < known else zigzag(n)
        total = 4 + len(place) + len(size) + n
        out.append(b"%b\0\0%b\1%b%b\0" % (z[total] if total < known else zigzag(total), place, size, value))
    return b"".join(out)


def paired_body(pairs: list[Pair]) -> bytes:
    """The same with keys."""
    known, z, out = KNOWN, _z, []
    for delta, (key, value) in enumerate(pairs):
        n, k = len(value), 0 if key is None else len(key)
        place = z[delta] if delta < known else zigzag(delta)
        size = z[n] if n < known else zigzag(n)
        if key is None:
            head = NO_KEY
        else:
            head = (z[k] if k < known else zigzag(k)) + key
        total = 3 + len(place) + len(head) + len(size) + n
        out.append(b"%b\0\0%b%b%b%b\0" % (z[total] if total < known else zigzag(total), place, head, size, value))
    return b"".join(out)
