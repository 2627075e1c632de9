"""A log in memory with what `cluster/raft.py` uses of `moldau.log.log.Log`: quick, and it knows what is synced."""

from __future__ import annotations

from bisect import bisect_left
from random import Random
from typing import Any, NamedTuple

from moldau.log.answers import Appended, Isolation, Origin
from moldau.log.epochs import LeaderEpochs
from moldau.wire.errors import Error
from moldau.wire.records import Batch, batches, patch
from moldau.wire.refusal import Refused


class Entry(NamedTuple):
    """A batch, and a number that stands for it and all before it."""

    base: int
    next: int
    epoch: int
    data: bytes
    chain: int


class Span:
    """Bytes of a log, as `moldau.log.disk.Span`."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        return self.data


class Read(NamedTuple):
    span: Span | None


class MemoryLog:
    """Batches in a list."""

    path = "memory"
    offline: str | None = None

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.start_offset = self.end_offset = self.high_watermark = self.recovery_point = 0
        self.start_chain = 0
        self.leader_epochs = LeaderEpochs(None, "")  # type: ignore[arg-type]
        self.cuts = 0  # how often it was truncated: a sync that was under way then says nothing

    @property
    def end_chain(self) -> int:
        return self.entries[-1].chain if self.entries else self.start_chain

    def slot(self, offset: int) -> int:
        """Return the place of the first batch that ends after `offset`."""
        return bisect_left(self.entries, offset + 1, key=lambda entry: entry.next)

    def chain_at(self, offset: int) -> int | None:
        """Return what stands for all before `offset`; None if no batch ends there."""
        if offset == self.start_offset:
            return self.start_chain
        at = self.slot(offset - 1)
        return self.entries[at].chain if at < len(self.entries) and self.entries[at].next == offset else None

    def append(self, view: memoryview, leader_epoch: int, now_ms: int, origin: Origin) -> Appended:
        first = self.end_offset
        if origin is Origin.COORDINATOR:
            patch(view, base_offset=first, leader_epoch=leader_epoch)
        for batch in batches(view):
            self.add(batch)
        return Appended(first, self.end_offset - 1, -1, self.start_offset, False)

    def add(self, batch: Batch) -> None:
        if batch.base_offset != self.end_offset:
            raise Refused(Error.OFFSET_OUT_OF_RANGE, f"{batch.base_offset} does not follow {self.end_offset - 1}")
        data = bytes(batch.view)
        chain = hash((self.end_chain, batch.base_offset, batch.partition_leader_epoch, batch.crc))
        self.entries.append(Entry(batch.base_offset, batch.next_offset, batch.partition_leader_epoch, data, chain))
        self.end_offset = batch.next_offset
        self.leader_epochs.assign_if_newer(batch.partition_leader_epoch, batch.base_offset)

    def read(self, offset: int, max_bytes: int, *, isolation: Isolation = Isolation.LOG_END) -> Read:
        if not self.start_offset <= offset <= self.end_offset:
            raise Refused(Error.OFFSET_OUT_OF_RANGE, f"{offset} is not in {self.start_offset}..{self.end_offset}")
        parts: list[bytes] = []
        for entry in self.entries[self.slot(offset) :]:
            if parts and max_bytes < len(entry.data):
                break
            parts.append(entry.data)
            max_bytes -= len(entry.data)
        return Read(Span(b"".join(parts)) if parts else None)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.leader_epochs.end_offset(epoch, self.start_offset, self.end_offset)

    def advance_high_watermark(self, offset: int) -> None:
        self.high_watermark = max(self.high_watermark, min(offset, self.end_offset))

    def truncate_to(self, offset: int, now_ms: int | None = None) -> None:
        self.cuts += 1
        at = bisect_left(self.entries, offset + 1, key=lambda entry: entry.next)
        del self.entries[at:]
        self.end_offset = self.entries[-1].next if self.entries else self.start_offset
        self.leader_epochs.truncate_end(self.end_offset)
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)

    def begin_at(self, offset: int, epoch: int, chain: int) -> None:
        """Begin anew with a snapshot."""
        self.cuts += 1
        self.entries = []
        self.start_offset = self.end_offset = self.high_watermark = self.recovery_point = offset
        self.start_chain = chain
        self.leader_epochs.truncate_end(0)
        self.leader_epochs.assign(epoch, offset)

    def delete_before(self, offset: int) -> None:
        """Let go of what a snapshot has."""
        chain = self.chain_at(offset)
        assert chain is not None, f"no batch ends at {offset}"
        del self.entries[: self.slot(offset - 1) + 1 if offset > self.start_offset else 0]
        self.start_offset, self.start_chain = offset, chain
        self.leader_epochs.truncate_start(offset)

    # The disk.

    def sync(self, end_offset: int, cuts: int) -> None:
        """A sync of all before `end_offset`, which began when the log had been truncated `cuts` times, is done."""
        if cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, end_offset)

    def lose_power(self, random: Random) -> None:
        """Lose some of the batches that were not synced, and forget what was committed."""
        ends = [entry.next for entry in self.entries if entry.next >= self.recovery_point]
        self.truncate_to(random.choice([max(self.recovery_point, self.start_offset), *ends]))
        self.high_watermark = self.start_offset
        self.leader_epochs.truncate_end(self.end_offset)


def as_log(log: MemoryLog) -> Any:
    return log
