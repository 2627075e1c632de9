"""One partition as a share group sees it (KIP-932): who holds which record, and how often it was delivered.

A record is available, acquired by a member until its lock ends, acknowledged, or archived (rejected, delivered too
often, or gone from the log). What is before `start` is done with; what is from `next` on was never delivered.

A command that ends a delivery returns *changes*: runs as they are to be. The owner of this machine writes them to the
share coordinator, then has them applied. What is acquired is written nowhere: a new machine, made of what was
persisted, knows of no locks, and delivers again what was acquired but neither acknowledged nor released.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from moldau.machines.share.batches import StateBatch, first_of
from moldau.machines.share.runs import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    NO_BATCH,
    Range,
    RecordState,
    Run,
    Runs,
    clip,
    without,
)
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
FATE = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED, RENEW: ACQUIRED}
NOBODY_MINDS = 2  # deliveries that do not make a record suspicious


class Limits(NamedTuple):
    """What the group is allowed."""

    deliveries: int
    lock_ms: int
    locks: int
    may_renew: bool = True


class Wanted(NamedTuple):
    """What a fetch asks for: whole batches until there are enough records, or no record more than it says."""

    records: int
    batch_size: int
    strictly: bool = False


class Acknowledgement(NamedTuple):
    """What a member says of some offsets: one type for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class SharePartition:
    """The records in flight. Locks end by `expire`; `deadline_ms` tells when it is next worth a call."""

    def __init__(self, start: int, batches: Iterable[StateBatch], limits: Callable[[], Limits]) -> None:
        self.limits = limits
        self.start = start
        self.next = start
        self.runs = Runs()
        self.deadline_ms = inf
        self.has_available = True
        for first, last, state, count in batches:
            if first > self.next:  # delivered, but nothing was heard of it
                self.runs.append(Run(self.next, first - 1, AVAILABLE, 0))
            self.runs.append(Run(first, last, RecordState(state), count, batch=(first, last)))
            self.next = last + 1
        self.advance()

    # What a fetch needs to know.

    def fetch_offset(self) -> int:
        """Return the first offset that may be acquired."""
        if self.has_available:
            for run in self.runs:
                if run.state == AVAILABLE:
                    return run.first
            self.has_available = False
        return self.next

    def in_flight(self) -> int:
        return self.next - self.start if self.runs else 0

    def has_room(self) -> bool:
        """Return whether anything may be acquired now, if the log has it."""
        return self.fetch_offset() < self.next or self.in_flight() < self.limits().locks

    # Acquiring.

    def acquire(
        self, member: str, fetched: Sequence[Range], wanted: Wanted, now_ms: float, aborted: Sequence[Range] = ()
    ) -> list[Run]:
        """Give the member records of the batches that were read from `fetch_offset` on; those aborted are archived."""
        offset, limits = self.fetch_offset(), self.limits()
        first, last = max(fetched[0][0], self.start), fetched[-1][1]
        room = min(wanted.records, limits.locks - self.in_flight())
        if room <= 0:  # what was released may be delivered again, but nothing more
            room, last = min(wanted.records, self.next - offset), min(last, self.next - 1)
        if room <= 0:
            return []
        self.archive(clipped for clipped in self.runs.between(offset, first - 1) if clipped.state == AVAILABLE)
        taking = Taking(self, member, fetched, wanted, limits, room, now_ms + limits.lock_ms)
        taking.take_again(first, last)
        taking.take_new(first, last)
        if taking.taken:
            self.deadline_ms = min(self.deadline_ms, taking.deadline_ms)
        if aborted:
            kept = without(taking.taken, aborted)
            self.archive(without(taking.taken, [(run.first, run.last) for run in kept]))
            taking.taken = kept
        self.advance()
        return taking.taken

    def archive(self, runs: Iterable[Run]) -> None:
        """Records that the log does not have any more, or that were aborted: a new machine would find out again."""
        for run in list(runs):
            self.runs.lay(done(run, ARCHIVED))

    # Ends of deliveries.

    def acknowledge(self, member: str, said: Iterable[Acknowledgement], now_ms: float) -> list[Run]:
        """Return the changes that the member asks for; all of them are refused if one cannot be."""
        changes: list[Run] = []
        settled = self.start - 1
        for one in said:
            if one.last < self.start:
                continue
            if one.first <= settled and settled >= self.start:
                raise Refused(Error.INVALID_RECORD_STATE, "A record is acknowledged twice.")
            settled = one.last
            first = max(one.first, self.start)
            self.check_known(first, one.last)
            for run in self.runs.between(first, one.last):
                if run.state != ACQUIRED:
                    raise Refused(Error.INVALID_RECORD_STATE, "A record is not acquired.")
                if run.owner != member:
                    raise Refused(Error.INVALID_RECORD_STATE, "A record is acquired by another member.")
                changes += (self.ended(part, kind, now_ms) for part, kind in by_type(run, one))
        return changes

    def check_known(self, first: int, last: int) -> None:
        """Whether what is acknowledged was ever delivered."""
        if not self.runs or first < self.runs.items[0].first:
            raise Refused(Error.INVALID_RECORD_STATE, "The records are not in flight.")
        if last >= self.next:
            raise Refused(Error.INVALID_REQUEST, "The records were not delivered yet.")

    def ended(self, run: Run, kind: int, now_ms: float) -> Run:
        """Return what an acknowledgement makes of acquired records."""
        limits, fate = self.limits(), FATE[kind]
        if fate == ACQUIRED:
            if not limits.may_renew:
                raise Refused(Error.INVALID_RECORD_STATE, "The group does not allow to renew locks.")
            return run._replace(deadline_ms=now_ms + limits.lock_ms)
        if fate == AVAILABLE and run.deliveries >= limits.deliveries:
            fate = ARCHIVED
        return done(run, fate)

    def release(self, member: str) -> list[Run]:
        """Release all that a member holds which is gone."""
        return [self.ended(run, RELEASE, 0.0) for run in self.runs if run.state == ACQUIRED and run.owner == member]

    def expire(self, now_ms: float) -> list[Run]:
        """Locks that have ended: the records are available again, unless they were delivered too often."""
        return [
            self.ended(run, RELEASE, now_ms) for run in self.runs if run.state == ACQUIRED and run.deadline_ms <= now_ms
        ]

    def apply(self, changes: Iterable[Run]) -> None:
        """Carry out changes; what is done with at the beginning is let go."""
        for run in changes:
            self.runs.lay(run)
            self.has_available |= run.state == AVAILABLE
        self.advance()
        self.deadline_ms = min((run.deadline_ms for run in self.runs if run.state == ACQUIRED), default=inf)

    def done_count(self, changes: Iterable[Run]) -> int:
        """Records in flight that are done with, once the changes are applied."""
        return sum(run.records for run in (*self.runs, *changes) if run.is_final)

    # The beginning.

    def advance(self) -> None:
        """Move the start over all that is done with, and over holes behind it."""
        items = self.runs.items
        at = next((place for place, run in enumerate(items) if not run.is_final), len(items))
        if at:
            del items[:at]
            self.start = items[0].first if items else self.next

    def cut(self, log_start: int) -> None:
        """The log begins here now."""
        if log_start > self.start:
            self.runs.forget(log_start)
            self.start, self.next = log_start, max(self.next, log_start)
            self.advance()


@dataclass(slots=True)
class Taking:
    """One acquisition under way: what was taken, and how much more may be."""

    partition: SharePartition
    member: str
    fetched: Sequence[Range]
    wanted: Wanted
    limits: Limits
    room: int
    deadline_ms: float
    taken: list[Run] = field(default_factory=list[Run])
    careful: bool = False  # what is taken may be bad

    def take_again(self, first: int, last: int) -> None:
        """Take what was delivered before, or was to be, and is available."""
        for run in self.partition.runs.between(first, last):
            if run.state != AVAILABLE:
                continue
            if self.room <= 0 or not self.fits(run):
                self.room = 0
                return
            if run.deliveries == 0:  # nothing is known of the batches that it was part of
                taken = self.take_fresh(run.first, min(run.last, self.end_of(run.first)))
            else:
                whole = not self.wanted.strictly and not self.careful
                taken = [self.take(run if whole else clip(run, run.first, run.first + self.room - 1))]
            for one in taken:
                self.partition.runs.lay(one)

    def fits(self, run: Run) -> bool:
        """Return whether a run may be delivered with what was taken. It may be that it makes its consumers fail.

        What fails takes others along, so each delivery has half as many of them; the last is alone.
        """
        most = self.limits.deliveries
        suspicious = max(NOBODY_MINDS, (most + 1) // 2)
        if run.deliveries < suspicious:
            return not self.careful or run.batch == self.taken[-1].batch
        if self.taken and (not self.careful or run.batch != self.taken[-1].batch):
            return False
        if run.deliveries == most - 1 and most > NOBODY_MINDS:
            self.room = 0 if self.taken else 1
        elif not self.careful:
            size = run.batch[1] - run.batch[0] + 1
            self.room = min(self.room, max(1, size >> (run.deliveries - suspicious + 1)))
        self.careful = True
        return self.room > 0

    def take_new(self, first: int, last: int) -> None:
        """Take what was never delivered."""
        partition = self.partition
        first = max(first, partition.next)
        if self.room <= 0 or self.careful or first > last:
            return
        if not partition.runs:
            partition.start = first
        for run in self.take_fresh(first, min(last, self.end_of(first))):
            partition.runs.append(run)
            partition.next = run.last + 1

    def take_fresh(self, first: int, last: int) -> list[Run]:
        """Take records that were not delivered yet, in batches of about the size that the member asks for."""
        return [self.take(Run(*piece, AVAILABLE, 0, batch=piece)) for piece in self.pieces(first, last)]

    def end_of(self, first: int) -> int:
        """Return where records from `first` on must end; to give a member part of a batch saves nothing."""
        last = first + self.room - 1
        if self.wanted.strictly:
            return last
        place = bisect_right(self.fetched, last, key=first_of) - 1
        return max(last, self.fetched[place][1]) if place >= 0 else last

    def pieces(self, first: int, last: int) -> list[Range]:
        """Cut a range where batches of the log begin, so that no piece is smaller than the size asked for."""
        starts = [first]
        if not self.wanted.strictly:
            for base, _ in self.fetched:
                if first < base <= last and base - starts[-1] >= self.wanted.batch_size:
                    starts.append(base)
        return [(low, high - 1) for low, high in zip(starts, [*starts[1:], last + 1], strict=True)]

    def take(self, run: Run) -> Run:
        held = run._replace(state=ACQUIRED, owner=self.member, deadline_ms=self.deadline_ms)
        taken = held._replace(deliveries=run.deliveries + 1)
        self.taken.append(taken)
        self.room -= taken.records
        return taken


def done(run: Run, state: RecordState) -> Run:
    """Return a run that nobody holds any more."""
    return run._replace(state=state, owner="", deadline_ms=0.0, batch=run.batch if state == AVAILABLE else NO_BATCH)


def by_type(run: Run, said: Acknowledgement) -> list[tuple[Run, int]]:
    """Return a run cut into parts of which the member says the same."""
    if len(said.types) == 1:
        return [(run, said.types[0])]
    parts: list[tuple[Run, int]] = []
    at = run.first
    for offset in range(run.first, run.last + 1):
        kind = said.types[offset - said.first]
        if offset == run.last or said.types[offset + 1 - said.first] != kind:
            parts.append((clip(run, at, offset), kind))
            at = offset + 1
    return parts


def state_batches(changes: Iterable[Run]) -> list[StateBatch]:
    """Return what is persisted of changes: locks are not."""
    return [StateBatch(run.first, run.last, run.state, run.deliveries) for run in changes if run.state != ACQUIRED]
