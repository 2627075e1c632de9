"""What compaction leaves of a batch. Pure: a batch in, bytes out.

A record survives if it is the newest of its key, or newer than the key map; a tombstone only until the delete horizon
of its batch has passed. The horizon is set when a tombstone is first seen (KIP-534): it becomes the base timestamp, so
that the timestamps of the records must be written anew. Everything else of a batch stays: its offsets, its sequence,
its epochs. So most records are copied as they are, and a batch of which all records survive is copied whole.

The data of an aborted transaction goes. A marker goes after its transaction's data has gone, and after a horizon too.
Two batches are kept although they are empty: the last one of a producer that is still known, for its sequence, and the
last one of the cleaned range, for its offset.

A batch with a wrong CRC or with records that do not parse is left as it is and reported; its keys count for nothing.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop
from itertools import compress as choose
from itertools import pairwise
from operator import le

from moldau.log.compaction_keys import KeyMap
from moldau.log.index import Aborted, AbortedTransactions
from moldau.wire.compression import compress
from moldau.wire.errors import WireError
from moldau.wire.records import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Batch,
    ControlType,
    assemble,
    control_type,
    records,
)
from moldau.wire.records.scan import Scan, newest_timestamp, places, shifted

STEP_RECORDS = 1000
"""How many records are scanned before the work is interrupted: under a millisecond."""

Steps = Generator[None, None, bytearray | memoryview | None]
LastOfProducer = tuple[int | None, int]  # the offset of its last data, if it has any, and its epoch


class Transactions:
    """Which transactions a walk through the log is in, and which of them still have data.

    The marker that ends a transaction may be missing: it was damaged, or lies before the walk's first offset. So an
    aborted transaction is over where its index entry says so, too.
    """

    __slots__ = ("aborted", "coming", "committed", "kept")

    def __init__(self, aborted: Iterable[Aborted], kept: AbortedTransactions | None = None) -> None:
        """`kept` is the transaction index of the cleaned segment: an aborted transaction with data stays in it."""
        self.coming = [(entry.first_offset, entry) for entry in set(aborted)]
        heapify(self.coming)
        self.aborted: dict[int, tuple[Aborted, bool]] = {}  # by producer; whether data was seen
        self.committed: set[int] = set()
        self.kept = kept

    def on_data(self, batch: Batch) -> bool:
        """Return whether this batch belongs to an aborted transaction."""
        self._begin_until(batch.last_offset)
        if not batch.attributes & TRANSACTIONAL:
            return False
        known = self.aborted.get(batch.producer_id)
        if known is None or known[0].last_offset < batch.base_offset:
            self.committed.add(batch.producer_id)
            return False
        self.aborted[batch.producer_id] = (known[0], True)
        return True

    def on_marker(self, batch: Batch, kind: int | None) -> bool:
        """Return whether this control batch may go: its transaction has no data left. `kind` is None if it is empty."""
        self._begin_until(batch.last_offset)
        if kind == ControlType.COMMIT:
            seen = batch.producer_id in self.committed
            self.committed.discard(batch.producer_id)
            return not seen
        if kind == ControlType.ABORT:
            entry, seen = self.aborted.pop(batch.producer_id, (None, False))
            if seen and entry and self.kept is not None:
                self.kept.append(entry)
            return not seen
        return kind is None

    def _begin_until(self, offset: int) -> None:
        while self.coming and self.coming[0][0] <= offset:
            entry = heappop(self.coming)[1]
            known = self.aborted.get(entry.producer_id)
            if known is None or known[0].last_offset < entry.first_offset:
                self.aborted[entry.producer_id] = (entry, False)


@dataclass(slots=True)
class Tally:
    """What a compaction did."""

    batches: int = 0
    records: int = 0
    kept_records: int = 0
    keyless: int = 0
    damaged: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Filter:
    """All that the decision about a batch depends on."""

    keys: KeyMap
    transactions: Transactions
    producers: Mapping[int, LastOfProducer]
    upper: int  # the first offset that is not cleaned
    now_ms: int
    delete_retention_ms: int
    tally: Tally

    def apply(self, batch: Batch) -> Steps:
        """Return what is left of the batch: itself, another one, or nothing. Interrupts itself in a long batch."""
        self.tally.batches += 1
        try:
            check(batch)
            if batch.attributes & CONTROL:
                return self._control(batch)
            return (yield from self._data(batch))
        except WireError as error:
            self.tally.damaged.append(f"the batch at offset {batch.base_offset} is kept as it is: {error}")
            return batch.view

    def _control(self, batch: Batch) -> bytearray | memoryview | None:
        kind = control_kind(batch)
        superfluous = self.transactions.on_marker(batch, kind)
        horizon = batch.delete_horizon
        if superfluous and horizon is not None and horizon <= self.now_ms:
            return self._nothing(batch)
        if kind is None:
            return batch.view if self._stays_empty(batch) else None
        if superfluous and horizon is None:
            return rewrite(batch, batch.body(), range(batch.count), self.now_ms + self.delete_retention_ms)
        return batch.view

    def _data(self, batch: Batch) -> Steps:
        if self.transactions.on_data(batch):
            return self._nothing(batch)
        if not batch.count:
            return batch.view if self._stays_empty(batch) else None
        body = batch.body()
        scanned = yield from scan(batch, body)
        survivors = self._survivors(batch, scanned)
        self.tally.records += len(scanned.keys)
        self.tally.kept_records += len(survivors)
        if not survivors:
            return self._nothing(batch)
        horizon = self._new_horizon(batch, scanned, survivors)
        if horizon is None and len(survivors) == len(scanned.keys):
            return batch.view
        return rewrite(batch, body, survivors, horizon)

    def _survivors(self, batch: Batch, scanned: Scan) -> list[int] | range:
        """Return which records stay, by their place in the batch."""
        offsets, latest, every = scanned.offsets, self.keys.latest, range(len(scanned.keys))
        if min(offsets) > latest:
            return every
        if None in scanned.keys or max(offsets) > latest:
            kept = [place for place in every if self._survives(scanned.keys[place], offsets[place])]
        else:
            newest = self.keys.newest(scanned.keys)  # pyright: ignore[reportArgumentType]
            kept = list(choose(every, map(le, newest, offsets)))
        horizon = batch.delete_horizon
        if scanned.nulls and horizon is not None and horizon <= self.now_ms:
            gone = {place for place in scanned.nulls if offsets[place] <= latest}
            kept = [place for place in kept if place not in gone]
        return kept

    def _survives(self, key: bytes | None, offset: int) -> bool:
        """Return whether a record stays: beyond the map every one does, otherwise one without a key does not."""
        if offset > self.keys.latest:
            return True
        if key is None:
            self.tally.keyless += 1
            return False
        return offset >= self.keys.newest([key])[0]

    def _new_horizon(self, batch: Batch, scanned: Scan, survivors: list[int] | range) -> int | None:
        """When tombstones stay that have no horizon yet, they get one."""
        if not scanned.nulls or batch.attributes & DELETE_HORIZON or set(scanned.nulls).isdisjoint(survivors):
            return None
        return self.now_ms + self.delete_retention_ms

    def _nothing(self, batch: Batch) -> bytearray | None:
        return without_records(batch) if self._stays_empty(batch) else None

    def _stays_empty(self, batch: Batch) -> bool:
        return batch.next_offset == self.upper or self._is_last_of_producer(batch)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        last = self.producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            return False
        offset, epoch = last
        if offset is None:
            return batch.is_control and batch.producer_epoch == epoch
        return batch.last_offset == offset


def check(batch: Batch) -> None:
    """WireError when the batch cannot be trusted: to write it anew would give rotten bytes a right CRC."""
    batch.verify()
    if batch.count < 0:
        raise WireError(f"it claims {batch.count} records")


def control_kind(batch: Batch) -> int | None:
    """Return the type of the first control record; None when there is none."""
    first = next(iter(records(batch)), None)
    return None if first is None else control_type(first.key)


def scan(batch: Batch, body: bytes) -> Generator[None, None, Scan]:
    """Scan all records, with interruptions."""
    scanned, left = Scan(), batch.count
    while left:
        some = min(left, STEP_RECORDS)
        scanned.extend(body, some, batch.base_offset)
        left -= some
        if left:
            yield
    scanned.finish(body)
    if scanned.offsets and not batch.base_offset <= min(scanned.offsets) <= max(scanned.offsets) <= batch.last_offset:
        raise WireError("a record has an offset outside of its batch")  # it could outlive all newer ones
    return scanned


def rewrite(batch: Batch, body: bytes, kept: list[int] | range, horizon: int | None) -> bytearray:
    """Return the batch with some of its records, and with a delete horizon if a new one is given."""
    starts = places(body, batch.count)
    base_timestamp, attributes = batch.base_timestamp, batch.attributes
    newest = batch.max_timestamp
    if not attributes & LOG_APPEND_TIME:
        backwards = [starts[place] for place in reversed(kept)]  # the newest record is often the last
        newest = base_timestamp + newest_timestamp(body, backwards, newest - base_timestamp)
    if horizon is None:
        view = memoryview(body)
        data = b"".join([view[start:end] for start, end in runs(starts, kept)])
    else:
        shift, base_timestamp, attributes = horizon - base_timestamp, horizon, attributes | DELETE_HORIZON
        data = b"".join([shifted(body, starts[place], starts[place + 1], shift) for place in kept])
    return with_body(batch, attributes, (base_timestamp, newest), len(kept), compress(attributes & CODEC_MASK, data))


def with_body(batch: Batch, attributes: int, times: tuple[int, int], count: int, body: bytes) -> bytearray:
    """Return the batch with another body. Its offsets, its epochs and its producer's sequence stay."""
    place = batch.base_offset, batch.partition_leader_epoch, attributes, batch.last_offset_delta
    producer = batch.producer_id, batch.producer_epoch, batch.base_sequence
    return assemble(*place, *times, *producer, count, body)


def runs(starts: list[int], kept: list[int] | range) -> Iterable[tuple[int, int]]:
    """Return where the kept records begin and end, neighbours taken together."""
    first = kept[0]
    for place, following in pairwise(kept):
        if following != place + 1:
            yield starts[first], starts[place + 1]
            first = following
    yield starts[first], starts[kept[-1] + 1]


def without_records(batch: Batch) -> bytearray:
    """Return the batch without any record: its offsets and the producer's sequence are all that is left."""
    assert len(batch.view) >= HEADER_SIZE
    attributes = batch.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return with_body(batch, attributes, (NO_TIMESTAMP, batch.max_timestamp), 0, b"")
