"""Crashes of the process and of the machine at any step: what was promised is there, in order, and nothing else.

The disk is the simulator's: a dead process loses only its last write, a dead machine any write that was not synced.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from random import Random

import pytest

from moldau.log.answers import Isolation
from moldau.log.config import LogConfig
from moldau.log.directory import HIGH_WATERMARKS, Directory
from moldau.log.disk import Files
from moldau.log.flush import Flush
from moldau.log.log import Log
from moldau.wire.refusal import Refused
from tests.log.logs import NOW, TOPIC_ID, append, contents, end, sequenced
from tests.simulation.disk import Crash, Machine, SimDisk


class World:
    """One partition on a machine that fails, and what its only producer was told.

    `acked` are the values that were acknowledged. What was not may be there all the same, after those: the process died
    while it was written, or the disk was full, and the machine lost what took it back. `synced` is the offset before
    which a completed flush covers all.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.machine = Machine(self.random, lambda: NOW, Counter())
        settings = {"segment_bytes": self.random.choice([300, 900, 1 << 20]), "index_interval_bytes": 100}
        self.config = LogConfig(**settings)
        self.acked: list[tuple[int, bytes]] = []
        self.doubtful: list[list[tuple[int, bytes]]] = []
        self.synced = 0
        self.flushes: list[Flush] = []
        self.log: Log
        self.disk = SimDisk(self.machine)
        self.directory = Directory(Files(self.disk, self.random.choice([1, 100])), "/data")
        self.directory.open()
        self.log = self.directory.create("t", 0, self.config, topic_id=TOPIC_ID, now_ms=NOW)

    def append(self) -> None:
        with suppress(Refused):  # the disk is full
            sequence = self.log.producers.by_id[7].last_sequence + 1 if 7 in self.log.producers.by_id else 0
            count, base = self.random.randrange(1, 4), self.log.end_offset
            made = [(base + i, b"v%d" % (sequence + i)) for i in range(count)]
            self.doubtful.append(made)
            append(self.log, sequenced(sequence, count))
            self.acked += made

    def abort(self) -> None:
        """Another producer's transaction, which comes to nothing."""
        with suppress(Refused):
            sequence = self.log.producers.by_id[8].last_sequence + 1 if 8 in self.log.producers.by_id else 0
            base = self.log.end_offset
            self.doubtful.append([(base, b"v%d" % sequence)])
            append(self.log, sequenced(sequence, producer_id=8, transactional=True))
            self.acked += self.doubtful[-1]
            end(self.log, False, producer_id=8)

    def flush(self) -> None:
        with suppress(Refused):
            self.log.flush(NOW)
            self.synced = self.log.recovery_point

    def begin_flush(self) -> None:
        with suppress(Refused):
            if flush := self.log.prepare_flush(NOW):
                self.flushes.append(flush)

    def end_flush(self) -> None:
        """Sync what was prepared; what is appended between the sync and its end may not be covered."""
        if self.flushes:
            flush = self.flushes.pop(0)
            flush.sync()
            if self.random.random() < 0.5:
                self.truncate()
                self.append()
            flush.complete()
            self.synced = max(self.synced, self.log.recovery_point)

    def roll(self) -> None:
        with suppress(Refused, OSError):
            self.log.roll(NOW)

    def checkpoint(self) -> None:
        self.directory.checkpoint()

    def truncate(self) -> None:
        """Take records back, as a follower does: all that stand after some batch, or all that there are."""
        bases = [batch.base_offset for segment in self.log.segments for _, batch in segment.batches()]
        offset = self.random.choice([*bases, self.log.end_offset])
        self.take_back(offset, lambda: self.log.truncate_to(offset, NOW))

    def begin_anew(self) -> None:
        if self.random.random() < 0.3:
            self.take_back(0, lambda: self.log.truncate_fully(0, NOW))

    def take_back(self, offset: int, truncate: Callable[[], None]) -> None:
        """While it happens any part of what goes may be there; after a refusal all of it is, or the log is empty."""
        before, sure = self.acked, self.synced
        gone = [one for one in before if one[0] >= offset]
        self.acked, self.synced = before[: len(before) - len(gone)], min(sure, offset)
        self.doubtful += [gone[: at + 1] for at in range(len(gone))]
        try:
            truncate()
        except Refused:  # the disk is full
            assert self.machine.full and self.log.offline is None
            if self.log.end_offset > offset:
                self.acked, self.synced = before, sure
        if gone:
            del self.doubtful[-len(gone) :]

    def fill(self) -> None:
        self.machine.full = not self.machine.full

    def stop(self) -> None:
        self.machine.full = False
        self.directory.close()
        self.synced = self.log.end_offset
        self.start()

    def kill(self) -> None:
        self.disk.dead = True
        self.start()
        self.check(at_least=len(self.acked))

    def lose_power(self) -> None:
        self.disk.dead = True
        self.machine.lose_power()
        self.start()
        self.check(at_least=sum(offset < self.synced for offset, _ in self.acked))
        self.synced = min(self.synced, self.log.end_offset)

    def start(self) -> None:
        """A new process; it may die while it starts, and be started again."""
        self.machine.full = False
        self.flushes = []
        while True:
            self.disk = SimDisk(self.machine)
            self.machine.fuse = self.random.randrange(1, 60) if self.random.random() < 0.3 else None
            try:
                self.directory = Directory(Files(self.disk), "/data")
                self.directory.open()
                if ("t", 0) in self.directory.found:
                    self.log = self.directory.load("t", 0, self.config, now_ms=NOW)
                else:
                    assert self.synced == 0
                    self.log = self.directory.create("t", 0, self.config, topic_id=TOPIC_ID, now_ms=NOW)
                assert self.log.offline is None, self.log.offline
                self.log.advance_high_watermark(self.log.end_offset)
                self.log.wake()
            except Crash:
                continue
            self.machine.fuse = None
            return

    def check(self, at_least: int) -> None:
        found = contents(self.log)
        same = sum(1 for one, other in zip(found, self.acked, strict=False) if one == other)
        assert same >= at_least
        assert found[same:] in ([], *self.doubtful), (found, self.acked)
        self.acked = [(offset, value or b"") for offset, value in found]
        self.check_transactions()

    def check_transactions(self) -> None:
        """Producer 8 only ever aborts: each of its transactions is listed as aborted, or is still open."""
        log = self.log
        owners = {batch.base_offset: batch for segment in log.segments for _, batch in segment.batches()}
        firsts = {offset for offset, batch in owners.items() if batch.producer_id == 8 and not batch.is_control}
        listed = log.read(log.start_offset, 1 << 30, isolation=Isolation.COMMITTED).aborted or []
        for slot in range(1, len(log.segments)):
            offset = log.segments.bases[slot]
            if offset < log.last_stable_offset:
                listed += log.read(offset, 1 << 30, isolation=Isolation.COMMITTED).aborted or []
        opened = log.producers.by_id[8].txn_first_offset if 8 in log.producers.by_id else -1
        ended = {offset for offset in firsts if offset < (opened if opened >= 0 else 2**63)}
        assert {first for _, first in listed} == {min(run) for run in runs(ended, owners)} | set()

    def play(self, steps: int) -> None:
        actions = [self.append] * 10 + [self.abort, self.flush, self.begin_flush, self.end_flush, self.roll]
        actions += [self.checkpoint, self.fill, self.stop, self.kill, self.lose_power, self.truncate, self.begin_anew]
        for _ in range(steps):
            act = self.random.choice(actions)
            if self.random.random() < 0.1:
                self.machine.fuse = self.random.randrange(1, 12)
            try:
                act()
            except Crash:
                self.machine.fuse = None
                self.random.choice([self.kill, self.lose_power])()
            self.machine.fuse = None
            if self.log.offline is not None:
                raise AssertionError(self.log.offline)


def runs(offsets: set[int], batches: dict[int, object]) -> list[set[int]]:
    """Each transaction of producer 8 has one batch; an interrupted one goes on with the next."""
    found: list[set[int]] = []
    ended = True
    for offset in sorted(batches):
        batch = batches[offset]
        if getattr(batch, "producer_id", -1) == 8:
            if getattr(batch, "is_control", False):
                ended = True
            elif offset in offsets:
                found = [*found, {offset}] if ended else [*found[:-1], found[-1] | {offset}]
                ended = False
    return found


@pytest.mark.parametrize("block", range(20))
def test_what_was_promised_survives_every_crash(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        try:
            World(seed).play(60)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("seed", range(30))
def test_what_is_synced_in_a_folder_stays_although_its_maker_died_before_a_sync(seed: int) -> None:
    world = World(seed)
    world.kill()
    world.append()
    world.flush()
    world.lose_power()
    assert contents(world.log)
    assert world.log.topic_id == TOPIC_ID


def test_a_sync_does_not_cover_what_was_written_over_truncated_records() -> None:
    log = World(0).log
    for sequence in range(3):
        append(log, sequenced(sequence))
    flush = log.prepare_flush(NOW)
    assert flush is not None
    flush.sync()
    log.truncate_to(1, NOW)
    for sequence in range(1, 5):
        append(log, sequenced(sequence))
    flush.complete()
    assert log.recovery_point == 0
    log.flush(NOW)
    assert log.recovery_point == 5


def test_truncation_of_synced_records_waits_for_room_and_leaves_the_log_in_use() -> None:
    for seed in range(30):
        world = World(seed)
        log = world.log
        for sequence in range(20):
            append(log, sequenced(sequence))
        log.flush(NOW)
        world.directory.checkpoint()
        world.machine.full = True
        for truncate in (lambda log=log: log.truncate_to(5, NOW), lambda log=log: log.truncate_fully(5, NOW)):
            with pytest.raises(Refused, match="is full"):
                truncate()
            assert (log.offline, log.recovery_point, log.end_offset) == (None, 20, 20)
        world.machine.full = False
        log.truncate_to(5, NOW)
        assert (log.recovery_point, log.end_offset) == (5, 5)
        append(log, sequenced(5))
        world.acked, world.synced = [(offset, b"v%d" % offset) for offset in range(6)], 5
        world.lose_power()


def test_truncation_of_records_that_were_never_synced_needs_no_room() -> None:
    for seed in range(30):
        world = World(seed)
        log = world.log
        for sequence in range(20):
            append(log, sequenced(sequence))
        log.epochs.write()
        world.machine.full = True
        log.truncate_to(5, NOW)
        assert [offset for offset, _ in contents(log)] == list(range(5))
        with suppress(Refused):  # there may be no room for a segment
            log.truncate_fully(30, NOW)
        assert (log.offline, log.start_offset, log.end_offset, log.epochs.entries) == (None, 30, 30, [])
        world.machine.full = False
        assert log.leader_epochs.entries == []
        append(log, sequenced(0))
        assert contents(log) == [(30, b"v0")]


def test_a_checkpoint_that_had_room_for_some_files_knows_which() -> None:
    """The recovery points of the disk would otherwise be taken for those of the time before, and not be written."""
    log, directory = (world := World(0)).log, world.directory
    append(log, sequenced(0))
    log.flush(NOW)
    directory.checkpoint()
    append(log, sequenced(1))
    log.flush(NOW)
    log.advance_high_watermark(2)
    write = world.disk.write_atomic

    def refuse(path: str, data: bytes, *, sync: bool = True) -> None:
        if path.endswith(HIGH_WATERMARKS):
            raise OSError(ENOSPC, "no room", path)
        write(path, data, sync=sync)

    world.disk.write_atomic = refuse  # type: ignore[method-assign]
    assert not directory.checkpoint()
    world.disk.write_atomic = write  # type: ignore[method-assign]
    log.truncate_to(1, NOW)
    world.acked, world.synced = [(0, b"v0")], 1
    world.kill()
