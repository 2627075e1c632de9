"""Which log is compacted, how far, and what is remembered of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from moldau.log.checkpoints import read_offsets
from moldau.log.cleaner import CHECKPOINT, Candidate, Cleaner, candidate, filthiest, first_dirty_offset
from moldau.log.compaction import Sync
from moldau.log.config import LogConfig
from moldau.log.disk import Files, OsDisk
from moldau.log.log import Log
from moldau.wire.records import Record, build

T = 1_700_000_000_000
HOUR = 3_600_000
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=1000, min_cleanable_dirty_ratio=0.5)
MEMORY = 1 << 20


def make(folder: Path, name: str = "t", config: LogConfig = CONFIG) -> Log:
    return Log.create(Files(OsDisk()), str(folder / f"{name}-0"), name, 0, config, topic_id=bytes(16), now_ms=T)


def write(log: Log, count: int, keys: int = 3, time: int = T) -> None:
    """Four batches of about 210 bytes to a segment, one hour from segment to segment."""
    for n in range(count):
        stamp = time + n // 4 * HOUR
        raw = build([Record(0, stamp, b"%d" % (n % keys), b"x" * 137)])
        log.append(memoryview(raw), leader_epoch=0, now_ms=stamp)
        log.advance_high_watermark(log.end_offset)


def finish(cleaner: Cleaner) -> None:
    while (step := cleaner.step()) is not None:
        if isinstance(step, Sync):
            step.sync()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = make(tmp_path)
    write(made, 40)
    assert len(made.segments) == 10
    return made


def test_a_new_log_is_dirty_up_to_its_active_segment(log: Log) -> None:
    found = candidate(log, None, T)
    assert (found.first_dirty, found.upper, found.clean_bytes) == (0, 36, 0)
    assert found.dirty_bytes == sum(segment.look() for segment in log.segments.items[:9])
    assert found.dirty_ratio == 1.0


def test_what_lies_before_the_checkpoint_is_clean(log: Log) -> None:
    found = candidate(log, 12, T)
    sizes = [segment.look() for segment in log.segments]
    assert (found.first_dirty, found.clean_bytes, found.dirty_bytes) == (12, sum(sizes[:3]), sum(sizes[3:9]))


@pytest.mark.parametrize(("checkpoint", "wanted"), [(None, 5), (4, 5), (5, 5), (20, 20), (40, 40), (41, 5)])
def test_a_checkpoint_outside_of_the_log_is_no_checkpoint(log: Log, checkpoint: int | None, wanted: int) -> None:
    log.delete_records(5)
    assert first_dirty_offset(log, checkpoint) == wanted


def test_nothing_at_or_behind_the_last_stable_offset_is_cleaned(tmp_path: Path) -> None:
    log = make(tmp_path)
    write(log, 9)
    raw = build([Record(0, T, b"k", b"")], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.append(memoryview(raw), leader_epoch=0, now_ms=T)
    write(log, 30)
    assert log.last_stable_offset == 9
    assert candidate(log, None, T).upper == 8


@pytest.mark.parametrize(("lag_hours", "upper"), [(0, 36), (1, 36), (2, 32), (5, 20), (9, 4), (10, 0)])
def test_segments_younger_than_the_minimum_lag_stay(log: Log, lag_hours: int, upper: int) -> None:
    log.configure(replace(CONFIG, min_compaction_lag_ms=lag_hours * HOUR))
    assert candidate(log, None, T + 9 * HOUR).upper == upper


def test_a_log_that_waited_for_longer_than_the_maximum_lag_is_overdue(log: Log) -> None:
    log.configure(replace(CONFIG, max_compaction_lag_ms=4 * HOUR))
    assert candidate(log, None, T + 4 * HOUR).overdue_ms == 0
    assert candidate(log, None, T + 6 * HOUR).overdue_ms == 2 * HOUR
    assert candidate(log, 12, T + 6 * HOUR).overdue_ms == 0


def numbers(log: Log, clean: int, dirty: int, overdue: int = 0) -> Candidate:
    return Candidate(log, 0, 100, clean, dirty, overdue)


def test_the_filthiest_log_over_its_ratio_is_chosen(log: Log) -> None:
    some = [numbers(log, 50, 50), numbers(log, 40, 60), numbers(log, 45, 55)]
    assert filthiest(some) is some[1]
    assert filthiest(some[:1]) is None
    assert filthiest([]) is None


def test_an_overdue_log_is_chosen_below_its_ratio_if_there_is_something_to_clean(log: Log) -> None:
    late = numbers(log, 90, 10, overdue=1)
    assert filthiest([late]) is late
    assert filthiest([numbers(log, 90, 0, overdue=1)]) is None


def test_a_cleaned_log_is_remembered_in_the_checkpoint(tmp_path: Path, log: Log) -> None:
    cleaner = Cleaner(OsDisk(), memory_bytes=MEMORY)
    cleaning = cleaner.next([log], T)
    assert cleaning is not None
    finish(cleaner)
    assert cleaning.result is not None and cleaning.result.tally.kept_records == 3
    assert read_offsets(OsDisk(), str(tmp_path / CHECKPOINT)) == {("t", 0): 36}
    assert cleaner.next([log], T) is None
    assert Cleaner(OsDisk(), memory_bytes=MEMORY).next([log], T) is None


def test_logs_that_are_not_compacted_are_left_alone(tmp_path: Path) -> None:
    log = make(tmp_path, config=replace(CONFIG, cleanup_policy=frozenset({"delete"})))
    write(log, 40)
    assert Cleaner(OsDisk(), memory_bytes=MEMORY).next([log], T) is None


def test_a_damaged_log_is_not_tried_again(log: Log) -> None:
    cleaner = Cleaner(OsDisk(), memory_bytes=MEMORY)
    with Path(log.segments.items[3].path).open("r+b") as file:
        file.seek(16)
        file.write(b"\x07")
    assert cleaner.next([log], T) is not None
    finish(cleaner)
    assert "position 0" in cleaner.uncleanable["t", 0]
    assert cleaner.next([log], T) is None


def test_a_damaged_checkpoint_makes_everything_dirty(tmp_path: Path, log: Log) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"\xff\xfe")
    cleaner = Cleaner(OsDisk(), memory_bytes=MEMORY)
    assert cleaner.next([log], T) is not None
    finish(cleaner)
    assert read_offsets(OsDisk(), str(tmp_path / CHECKPOINT)) == {("t", 0): 36}


def test_truncation_and_deletion_change_the_checkpoint(tmp_path: Path, log: Log) -> None:
    cleaner = Cleaner(OsDisk(), memory_bytes=MEMORY)
    cleaner.checkpoints.put(log, 36)
    cleaner.truncated(log, 38)
    assert cleaner.checkpoints.get(log) == 36
    cleaner.truncated(log, 20)
    assert cleaner.checkpoints.get(log) == 20
    cleaner.forget(log)
    assert read_offsets(OsDisk(), str(tmp_path / CHECKPOINT)) == {}


def test_a_log_that_is_deleted_takes_its_compaction_with_it(log: Log) -> None:
    cleaner = Cleaner(OsDisk(), memory_bytes=MEMORY)
    assert cleaner.next([log], T) is not None
    for _ in range(45):
        cleaner.step()
    cleaner.forget(log)
    assert cleaner.current is None and cleaner.step() is None
    log.delete()


def test_a_log_that_is_closed_under_the_work_is_left_as_it_was(log: Log) -> None:
    cleaner = Cleaner(OsDisk(), memory_bytes=MEMORY)
    assert cleaner.next([log], T) is not None
    for _ in range(10):
        cleaner.step()
    log.close()
    finish(cleaner)
    assert cleaner.current is None
    assert cleaner.checkpoints.get(log) is None
