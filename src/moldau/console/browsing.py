"""Records of a topic for a page: some from a position on, or live ones as they arrive."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from moldau.admin import TopicPartition, offsets, topics
from moldau.client import Client, ClientError, Error, Fetcher, Record, records
from moldau.console.decoding import Decoder
from moldau.console.model.records import Row
from moldau.records import positions
from moldau.records.reading import COMMITTED, Reader

MOST_BYTES = 16 << 20  # of records that a page keeps
PATIENCE_S = 10.0
TAIL_WAIT_MS = 400
TAIL_RECORDS = 500  # of one poll; older ones are skipped


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read: a partition or all, from where, and at most how many."""

    topic: str
    partition: int | None
    span: positions.Span
    most: int

    @property
    def from_the_end(self) -> bool:
        return self.span.last is not None

    def places(self, client: Client) -> list[TopicPartition]:
        """Return the partitions; ClientError if there are none."""
        known = topics.partitions(client, [self.topic])
        found = [place for place in known if self.partition is None or place[1] == self.partition]
        if not found:
            raise topics.missing(f"{self.topic}-{self.partition}")
        return found


def read(client: Client, wanted: Wanted, decoder: Decoder) -> list[Row]:
    """Return the records in the order of time, the newest first if those were asked for."""
    places = wanted.places(client)
    starts = positions.starts(client, wanted.span, places)
    found = sorted(_take(client, wanted, starts), key=lambda pair: (pair[1].timestamp, pair[0], pair[1].offset))
    chosen = found[-wanted.most :][::-1] if wanted.from_the_end else found[: wanted.most]
    return [decoder.row(partition, record) for partition, record in chosen]


def _take(client: Client, wanted: Wanted, starts: Mapping[TopicPartition, int]) -> Iterator[tuple[int, Record]]:
    """Yield at most `wanted.most` records of each partition."""
    ends = offsets.one_time(client, starts, offsets.LATEST)
    stops = {
        place: min(end, starts[place] + wanted.most) if wanted.from_the_end else end for place, end in ends.items()
    }
    counts, size, until = dict.fromkeys(starts, 0), 0, time.monotonic() + PATIENCE_S
    reader = Reader(client, dict(starts), stops, to_end=True, isolation=COMMITTED)
    for chunks in reader:
        for chunk in chunks:
            place = (chunk.topic, chunk.partition)
            for record in chunk.first(wanted.most - counts[place]).records:
                yield chunk.partition, record
                counts[place] += 1
                size += len(record.value or b"") + len(record.key or b"")
        enough = all(counts[place] >= wanted.most for place in reader.positions)
        if enough or size > MOST_BYTES or time.monotonic() > until:
            return


@dataclass(slots=True)
class Tail:
    """The records that arrive at the ends of partitions from now on."""

    client: Client
    wanted: Wanted
    decoder: Decoder
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    _fetcher: Fetcher | None = None

    def look(self) -> list[Row]:
        """Return the records since the last call, the newest first."""
        if self._fetcher is None:
            self.positions = offsets.one_time(self.client, self.wanted.places(self.client), offsets.LATEST)
            self._fetcher = Fetcher(self.client, isolation_level=COMMITTED)
        found: list[tuple[int, Record]] = []
        for place, fetched in self._fetcher.fetch(self.positions, max_wait_ms=TAIL_WAIT_MS).items():
            if fetched.error is Error.OFFSET_OUT_OF_RANGE:
                self.positions[place] = offsets.one_time(self.client, [place], offsets.LATEST)[place]
            elif fetched.error and not fetched.error.retriable:
                raise ClientError(fetched.error, f"{place[0]}-{place[1]}: {fetched.error.message}", retriable=False)
            before, self.positions[place] = self.positions[place], fetched.next_offset(self.positions[place])
            for batch in fetched.committed():
                found += [(place[1], record) for record in records(batch) if record.offset >= before]
        found.sort(key=lambda pair: (pair[1].timestamp, pair[1].offset))
        return [self.decoder.row(partition, record) for partition, record in found[-TAIL_RECORDS:][::-1]]
