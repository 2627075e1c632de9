"""Producers of a partition: idempotence, and the transactions that are open in it.

For each producer id the log keeps its epoch, its five last batches (to recognise what it has already, KIP-98), and the
first offset of its open transaction. `check` decides before the append, `apply` follows it. A snapshot of this stands
beside each segment under the segment's base offset; recovery reads the newest one and the batches that follow.

A producer that is not known here may begin with any sequence: its records have been deleted, or it has expired.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from moldau.log.answers import Origin
from moldau.log.disk import Disk, remove_if_there
from moldau.log.index import Aborted
from moldau.wire.crc import crc32c
from moldau.wire.errors import Error, WireError
from moldau.wire.records import Batch, ControlType, control_type, coordinator_epoch, records
from moldau.wire.refusal import Refused

SNAPSHOT = ".snapshot"
KEPT_BATCHES = 5
LAST_SEQUENCE = 2**31 - 1


_head = Struct(">hIi")
_entry = Struct(">qhiqiqiq")
_entries_at = 6  # the CRC covers what follows it


class Sent(NamedTuple):
    """One of a producer's last batches."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & LAST_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


# three times as fast as calling the named tuple
new_sent: Callable[[type[Sent], tuple[int, int, int, int]], Sent]
new_sent = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


@dataclass(slots=True, eq=False)
class Producer:
    """What is known of a producer; -1 stands for nothing."""

    producer_id: int
    epoch: int = -1
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    txn_first_offset: int = -1
    batches: list[Sent] = field(default_factory=list[Sent])

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1


class Marker(NamedTuple):
    """The end of a transaction, as a control batch says it."""

    commit: bool
    coordinator_epoch: int
    timestamp: int


def marker_of(batch: Batch) -> Marker | None:
    """Return the marker in a control batch; None when the cleaner left the batch empty or it says something else."""
    try:
        record = next(iter(records(batch)), None)
        kind = -1 if record is None else control_type(record.key)
        if record is None or kind not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        return Marker(kind == ControlType.COMMIT, coordinator_epoch(record), record.timestamp)
    except WireError:
        return None


@dataclass(slots=True, eq=False)
class Producers:
    """The producers of one partition by id; `first_unstable` is the first offset that is not decided, None if all are.

    `ongoing` and `unreplicated` map the first offset of a transaction to its producer and to its marker's offset: a
    completed transaction holds back the last stable offset until the high watermark has passed its marker.
    """

    disk: Disk
    folder: str
    by_id: dict[int, Producer] = field(default_factory=dict[int, Producer])
    ongoing: dict[int, int] = field(default_factory=dict[int, int])
    unreplicated: dict[int, int] = field(default_factory=dict[int, int])
    first_unstable: int | None = None
    end_offset: int = 0
    snapshots: list[int] = field(default_factory=list[int])

    def check(
        self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int, transactional: bool, origin: Origin
    ) -> Sent | None:
        """Refuse what is out of order; return the batch if this one is already there."""
        known = self.by_id.get(producer_id)
        if known is None:
            return None
        if origin is Origin.CLIENT and epoch == known.epoch:
            last = known.batches[-1].last_sequence if known.batches else -1
            if first_sequence != last + 1 and not (first_sequence == 0 and last == LAST_SEQUENCE):
                return self._duplicate(known, first_sequence, last_sequence)
        elif epoch < known.epoch:
            raise Refused(
                Error.INVALID_PRODUCER_EPOCH,
                f"Producer {producer_id} has epoch {epoch}, but epoch {known.epoch} was seen already.",
            )
        elif origin is Origin.CLIENT and first_sequence != 0 and known.epoch != -1:
            raise Refused(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {producer_id} begins its epoch {epoch} with sequence {first_sequence}, not 0.",
            )
        if known.txn_first_offset >= 0 and not transactional:
            raise Refused(
                Error.INVALID_TXN_STATE, f"Producer {producer_id} has an open transaction, but this batch is in none."
            )
        return None

    def _duplicate(self, known: Producer, first_sequence: int, last_sequence: int) -> Sent:
        for sent in known.batches:
            if sent.last_sequence == last_sequence and sent.first_sequence == first_sequence:
                return sent
        raise Refused(
            Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Producer {known.producer_id} sent sequence {first_sequence} after {known.last_sequence}.",
        )

    def check_marker(self, producer_id: int, epoch: int, marker: Marker, transaction_version: int) -> None:
        """A marker of transactions version 2 must carry a newer epoch (KIP-890), but a repeated one does no harm."""
        known = self.by_id.get(producer_id)
        if known is None:
            return
        repeated = epoch == known.epoch and (known.txn_first_offset < 0 or epoch == 2**15 - 1)
        stale = epoch < known.epoch or (transaction_version >= 2 and epoch == known.epoch and not repeated)
        if stale:
            raise Refused(
                Error.INVALID_PRODUCER_EPOCH,
                f"A marker for producer {producer_id} has epoch {epoch}, but epoch {known.epoch} was seen already.",
            )
        if marker.coordinator_epoch < known.coordinator_epoch:
            raise Refused(
                Error.TRANSACTION_COORDINATOR_FENCED,
                f"A marker comes from coordinator epoch {marker.coordinator_epoch}, "
                f"but epoch {known.coordinator_epoch} was seen already.",
            )

    def apply(
        self,
        producer_id: int,
        epoch: int,
        last_sequence: int,
        base_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """Note a data batch of this producer that is in the log."""
        known = self.by_id.get(producer_id)
        if known is None:
            known = self.by_id[producer_id] = Producer(producer_id)
        batches = known.batches
        if known.epoch != epoch:
            known.epoch = epoch
            batches.clear()
        elif len(batches) == KEPT_BATCHES:
            del batches[0]
        batches.append(new_sent(Sent, (last_sequence, last_offset, last_offset - base_offset, timestamp)))
        known.last_timestamp = timestamp
        if transactional and known.txn_first_offset < 0:
            known.txn_first_offset = base_offset
            self.ongoing[base_offset] = producer_id
            self._find_first_unstable()

    def apply_marker(self, producer_id: int, epoch: int, offset: int, marker: Marker) -> Aborted | None:
        """End a transaction: its marker is in the log at `offset`. Return its entry for the transaction index."""
        known = self.by_id.get(producer_id)
        if known is None:
            known = self.by_id[producer_id] = Producer(producer_id)
        first = known.txn_first_offset
        if known.epoch != epoch:
            known.epoch = epoch
            known.batches.clear()
        known.coordinator_epoch = marker.coordinator_epoch
        known.last_timestamp = marker.timestamp
        known.txn_first_offset = -1
        if first < 0 or first not in self.ongoing:
            return None
        stable = next((start for start, owner in self.ongoing.items() if owner != producer_id), offset + 1)
        del self.ongoing[first]
        self.unreplicated[first] = offset
        self._find_first_unstable()
        return None if marker.commit else Aborted(producer_id, first, offset, stable)

    def apply_batch(self, batch: Batch) -> Aborted | None:
        """Apply a batch that is read back from the log or comes from the leader; nothing is refused."""
        self.end_offset = batch.next_offset
        if batch.producer_id < 0:
            return None
        if batch.is_control:
            marker = marker_of(batch)
            return marker and self.apply_marker(batch.producer_id, batch.producer_epoch, batch.base_offset, marker)
        self.apply(
            batch.producer_id,
            batch.producer_epoch,
            batch.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
            batch.is_transactional,
        )
        return None

    def on_high_watermark(self, offset: int) -> None:
        if self.unreplicated:
            self.unreplicated = {first: last for first, last in self.unreplicated.items() if last >= offset}
            self._find_first_unstable()

    def _find_first_unstable(self) -> None:
        firsts = [*list(self.ongoing)[:1], *list(self.unreplicated)]
        self.first_unstable = min(firsts) if firsts else None

    def expire(self, now_ms: int, after_ms: int) -> None:
        """Forget the producers that have been silent for too long and have no open transaction."""
        self.by_id = {
            producer_id: known
            for producer_id, known in self.by_id.items()
            if known.txn_first_offset >= 0 or now_ms - known.last_timestamp < after_ms
        }

    def snapshot_path(self, offset: int) -> str:
        return f"{self.folder}/{offset:020d}{SNAPSHOT}"

    def take_snapshot(self, *, sync: bool = False) -> None:
        """Write the state at `end_offset`, unless it is written already."""
        if self.end_offset not in self.snapshots:
            data = encode_snapshot(self.by_id.values())
            self.disk.write_atomic(self.snapshot_path(self.end_offset), data, sync=sync)
            self.snapshots = sorted([*self.snapshots, self.end_offset])

    def drop_snapshots(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            remove_if_there(self.disk, self.snapshot_path(offset))
        dropped = set(offsets)
        self.snapshots = [offset for offset in self.snapshots if offset not in dropped]

    def keep_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Keep those at the beginning of a segment, and the newest one."""
        wanted = {*base_offsets, *self.snapshots[-1:]}
        self.drop_snapshots([offset for offset in self.snapshots if offset not in wanted])

    def reload(self, start_offset: int, end_offset: int, now_ms: int, expiration_ms: int) -> int:
        """Begin from the newest sound snapshot in (start, end]; return the offset from which batches must be applied.

        Snapshots beyond the end belong to batches that are gone, those that do not parse to no state at all.
        """
        self.clear()
        self.drop_snapshots([offset for offset in self.snapshots if offset > end_offset or offset < start_offset])
        for offset in reversed(self.snapshots):
            try:
                loaded = decode_snapshot(self.disk.read(self.snapshot_path(offset)))
            except (WireError, FileNotFoundError):
                self.drop_snapshots([offset])
                continue
            self.by_id = {known.producer_id: known for known in loaded}
            self.expire(now_ms, expiration_ms)
            firsts = [(known.txn_first_offset, known.producer_id) for known in loaded if known.txn_first_offset >= 0]
            self.ongoing = dict(sorted(firsts))
            self._find_first_unstable()
            self.end_offset = offset
            return offset
        self.end_offset = start_offset
        return start_offset

    def clear(self) -> None:
        self.by_id, self.ongoing, self.unreplicated, self.first_unstable = {}, {}, {}, None


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    """Version 1: version, CRC-32C of what follows it, entries."""
    body = b"".join(_encode(known) for known in producers)
    data = bytearray(_head.pack(1, 0, len(body) // _entry.size) + body)
    _head.pack_into(data, 0, 1, crc32c(memoryview(data)[_entries_at:]), len(body) // _entry.size)
    return bytes(data)


def _encode(known: Producer) -> bytes:
    last = known.batches[-1] if known.batches else Sent(-1, -1, 0, -1)
    return _entry.pack(
        known.producer_id,
        known.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        known.last_timestamp,
        known.coordinator_epoch,
        known.txn_first_offset,
    )


def decode_snapshot(data: bytes) -> list[Producer]:
    """WireError when it is not a whole snapshot of version 1."""
    try:
        version, crc, count = _head.unpack_from(data)
    except StructError:
        raise WireError("a producer snapshot that is too short") from None
    if version != 1 or len(data) != _head.size + count * _entry.size:
        raise WireError(f"a producer snapshot of version {version} with {len(data)} bytes for {count} producers")
    if crc32c(memoryview(data)[_entries_at:]) != crc:
        raise WireError("a producer snapshot with a wrong CRC")
    return [_decode(*row) for row in _entry.iter_unpack(data[_head.size :])]


def _decode(
    producer_id: int, epoch: int, sequence: int, offset: int, delta: int, timestamp: int, coordinator: int, first: int
) -> Producer:
    batches = [Sent(sequence, offset, delta, timestamp)] if offset >= 0 else []
    return Producer(producer_id, epoch, coordinator, timestamp, first, batches)
