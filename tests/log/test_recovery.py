"""After a crash: torn tails are cut, damage is reported, interrupted work is finished or undone."""

import shutil
from collections import Counter
from errno import ENOSPC
from pathlib import Path
from random import Random

import pytest

from moldau.log.answers import Isolation
from moldau.log.disk import OsDisk, OsFile
from moldau.log.index import OFFSET_ENTRY
from moldau.log.log import Log
from moldau.wire.refusal import Refused
from tests.log.logs import NOW, Hasty, append, batch, config, contents, create, end, files_of, reopen, sequenced
from tests.simulation.disk import Machine, SimDisk

SMALL = config(index_interval_bytes=200)


def three_segments(folder: Path) -> Log:
    """Offsets 0-9, 10-19 and 20-29, one record a batch; nothing is synced."""
    log = create(folder, SMALL)
    for i in range(30):
        if i in (10, 20):
            log.roll(NOW)
        append(log, sequenced(i), epoch=i // 15)
    return log


def segment(folder: Path, base: int) -> Path:
    return folder / "t-0" / f"{base:020d}.log"


def values(count: int) -> list[tuple[int, bytes]]:
    return [(i, b"v%d" % i) for i in range(count)]


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def test_everything_that_was_written_is_there_after_a_kill(tmp_path: Path) -> None:
    three_segments(tmp_path)
    log = reopen(tmp_path, SMALL)
    assert contents(log) == values(30)
    assert log.leader_epochs.entries == [(0, 0), (1, 15)]
    assert log.producers.by_id[7].last_sequence == 29
    assert append(log, sequenced(30)) == 30


def test_a_crash_at_each_byte_of_the_tail_costs_only_the_torn_batch(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    sizes = [0]
    for i in range(4):
        append(log, sequenced(i))
        sizes.append(log.size)
    whole = segment(tmp_path, 0).read_bytes()
    for cut in range(len(whole) + 1):
        segment(tmp_path, 0).write_bytes(whole[:cut])
        again = reopen(tmp_path, SMALL)
        kept = sum(size <= cut for size in sizes[1:])
        assert again.offline is None
        assert contents(again) == values(kept)
        assert segment(tmp_path, 0).stat().st_size == sizes[kept]
        assert append(again, sequenced(kept)) == kept


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\x02" * 3000, bytes(range(256)) * 8])
def test_a_tail_of_other_bytes_is_cut(tmp_path: Path, tail: bytes) -> None:
    three_segments(tmp_path)
    with segment(tmp_path, 20).open("ab") as file:
        file.write(tail)
    log = reopen(tmp_path, SMALL)
    assert contents(log) == values(30)


@pytest.mark.parametrize("at", [8, 16, 30, 65])
def test_damage_before_valid_records_of_the_last_segment_is_reported(tmp_path: Path, at: int) -> None:
    log = three_segments(tmp_path)
    position = log.segments.items[2].recent_position[4]
    before = files_of(tmp_path)
    damage(segment(tmp_path, 20), position + at)
    again = reopen(tmp_path, SMALL)
    assert again.offline is not None
    assert f"position {position} (offset 24)" in again.offline
    after = files_of(tmp_path)
    assert {name: len(data) for name, data in before.items() if name.endswith(".log")} == {
        name: len(data) for name, data in after.items() if name.endswith(".log")
    }


@pytest.mark.parametrize("lost_writes", [False, True])
def test_damage_before_a_later_segment_is_reported_unless_the_machine_lost_writes(
    tmp_path: Path, lost_writes: bool
) -> None:
    three_segments(tmp_path)
    path = segment(tmp_path, 10)
    path.write_bytes(path.read_bytes()[:-7])
    log = reopen(tmp_path, SMALL, lost_writes=lost_writes)
    if lost_writes:
        assert contents(log) == values(19)
        assert not segment(tmp_path, 20).exists()
        assert append(log, sequenced(19)) == 19
    else:
        assert log.offline is not None
        assert segment(tmp_path, 20).exists()


@pytest.mark.parametrize("lost_writes", [False, True])
def test_damage_to_what_was_synced_is_always_reported(tmp_path: Path, lost_writes: bool) -> None:
    three_segments(tmp_path)
    damage(segment(tmp_path, 20), 70)
    log = reopen(tmp_path, SMALL, recovery_point=25, lost_writes=lost_writes)
    assert log.offline is not None
    assert "synced up to offset 25" in log.offline


def test_a_log_that_ends_before_its_recovery_point_is_reported(tmp_path: Path) -> None:
    three_segments(tmp_path)
    segment(tmp_path, 20).unlink()
    log = reopen(tmp_path, SMALL, recovery_point=25)
    assert log.offline is not None
    assert "ends at offset 20, but was synced up to offset 25" in log.offline
    assert contents(reopen(tmp_path, SMALL)) == values(20)


def test_segments_before_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    class Watched(OsDisk):
        opened: list[str]

        def open(self, path: str, *, create: bool = False) -> OsFile:
            self.opened.append(path.rpartition("/")[2])
            return super().open(path, create=create)

    three_segments(tmp_path).flush()
    disk = Watched()
    disk.opened = []
    log = reopen(tmp_path, SMALL, disk=disk, recovery_point=20)
    assert log.end_offset == 30
    assert {name for name in disk.opened if name.endswith(".log")} == {f"{20:020d}.log"}


def test_what_ends_at_the_recovery_point_needs_no_check(tmp_path: Path) -> None:
    log = three_segments(tmp_path)
    log.close()
    damage(segment(tmp_path, 20), 70)  # in the first batch, which nobody reads
    again = reopen(tmp_path, SMALL, recovery_point=30)
    assert again.offline is None
    assert again.producers.by_id[7].last_sequence == 29


def test_indexes_are_the_same_after_recovery(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    for i in range(40):
        if i == 20:
            log.roll(NOW)
        append(log, sequenced(i, timestamp=NOW + i))
    log.close()
    before = files_of(tmp_path)
    for kind in ("index", "timeindex"):
        for path in (tmp_path / "t-0").glob(f"*.{kind}"):
            path.write_bytes(b"nonsense" * 100)
    again = reopen(tmp_path, SMALL)
    again.close()
    assert files_of(tmp_path) == before
    assert len(before[f"{0:020d}.index"]) % OFFSET_ENTRY.size == 0 < len(before[f"{0:020d}.index"])


def test_aborted_transactions_are_found_again(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0, transactional=True))
    log.roll(NOW)
    end(log, False)
    append(log, sequenced(1, transactional=True))
    for path in (tmp_path / "t-0").glob("*.txnindex"):
        path.unlink()
    again = reopen(tmp_path, high_watermark=3)
    assert again.last_stable_offset == 2
    assert again.read(0, 999, isolation=Isolation.COMMITTED).aborted == [(7, 0)]


def test_a_damaged_snapshot_only_costs_a_longer_walk(tmp_path: Path) -> None:
    three_segments(tmp_path).close()
    for path in (tmp_path / "t-0").glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1])
    log = reopen(tmp_path, SMALL, clean=True, recovery_point=30)
    assert log.append(sequenced(29), leader_epoch=1, now_ms=NOW).duplicate
    log = reopen(tmp_path, SMALL)
    assert log.append(sequenced(29), leader_epoch=1, now_ms=NOW).duplicate


def test_a_log_start_offset_behind_the_end_empties_the_log(tmp_path: Path) -> None:
    three_segments(tmp_path)
    log = reopen(tmp_path, SMALL, start_offset=50)
    assert (log.start_offset, log.end_offset, contents(log)) == (50, 50, [])


def test_a_start_offset_within_the_log_is_kept(tmp_path: Path) -> None:
    three_segments(tmp_path)
    assert contents(reopen(tmp_path, SMALL, start_offset=12)) == values(30)[12:]


def copy_as(folder: Path, base: int, suffix: str, *, of: int | None = None) -> None:
    for kind in (".log", ".index", ".timeindex"):
        source = folder / "t-0" / f"{base if of is None else of:020d}{kind}"
        if source.exists():
            shutil.copy(source, folder / "t-0" / f"{base:020d}{kind}{suffix}")


def compacted(folder: Path) -> None:
    """A segment that replaces offsets 0 to 19, of which only the last is left."""
    three_segments(folder)
    source = segment(folder, 10).read_bytes()
    last = source[-len(sequenced(19)) :]
    (folder / "t-0" / f"{0:020d}.log.swap").write_bytes(last)
    for kind in (".index", ".timeindex"):
        (folder / "t-0" / f"{0:020d}{kind}.swap").write_bytes(b"")


def test_a_complete_swap_is_finished(tmp_path: Path) -> None:
    compacted(tmp_path)
    log = reopen(tmp_path, SMALL)
    assert contents(log) == values(30)[19:]
    assert not list((tmp_path / "t-0").glob("*.swap"))
    assert not segment(tmp_path, 10).exists()


def test_a_swap_is_finished_when_the_old_segments_are_gone_already(tmp_path: Path) -> None:
    compacted(tmp_path)
    for path in (tmp_path / "t-0").glob(f"{0:020d}.*"):
        if path.suffix != ".swap":
            path.rename(path.with_name(path.name + ".deleted"))
    log = reopen(tmp_path, SMALL)
    assert contents(log) == values(30)[19:]
    assert not list((tmp_path / "t-0").glob("*.deleted"))


def test_a_swap_whose_log_is_in_place_is_finished(tmp_path: Path) -> None:
    compacted(tmp_path)
    (tmp_path / "t-0" / f"{0:020d}.log.swap").rename(segment(tmp_path, 0))
    segment(tmp_path, 10).unlink()
    assert contents(reopen(tmp_path, SMALL)) == values(30)[19:]


def test_unfinished_cleaning_is_undone(tmp_path: Path) -> None:
    three_segments(tmp_path)
    copy_as(tmp_path, 0, ".cleaned")
    copy_as(tmp_path, 10, ".swap")
    log = reopen(tmp_path, SMALL)
    assert contents(log) == values(30)
    assert not [name for name in files_of(tmp_path) if name.endswith((".swap", ".cleaned"))]


def test_leftovers_are_cleared_at_a_clean_start_too(tmp_path: Path) -> None:
    three_segments(tmp_path).close()
    copy_as(tmp_path, 0, ".deleted")
    log = reopen(tmp_path, SMALL, clean=True, recovery_point=30)
    assert contents(log) == values(30)
    assert not [name for name in files_of(tmp_path) if name.endswith(".deleted")]


def test_segments_are_swapped_so_that_each_step_can_be_the_last(tmp_path: Path) -> None:
    """Stop the replacement after every rename and removal: the old records or the new ones, never anything else."""

    class Stop(Exception):
        pass

    class Counted(OsDisk):
        left = 0

        def rename(self, source: str, target: str) -> None:
            if not self.left:
                raise Stop
            self.left -= 1
            super().rename(source, target)

    seen: set[int] = set()
    for steps in range(40):
        folder = tmp_path / str(steps)
        disk = Counted()
        disk.left = 1000
        log = create(folder, SMALL, disk=disk)
        for i in range(30):
            if i in (10, 20):
                log.roll(NOW)
            append(log, sequenced(i))
        old = log.segments.items[:2]
        new = log.segments.make(0)
        new = type(new)(log.files, log.path, 0, interval=200, suffix=".cleaned")
        new.start()
        new.append(bytes(old[1].batch_at(old[1].locate(19)[0]).view), 19, NOW)  # pyright: ignore
        new.seal()
        disk.left = steps
        try:
            log.replace_segments(old, [new], NOW)
        except Stop:
            disk.left = 1000
            log = reopen(folder, SMALL)
        else:
            assert contents(log) == values(30)[19:]
            break
        kept = contents(log)
        assert kept in (values(30), values(30)[19:])
        seen.add(len(kept))
    assert seen == {30, 11}


def test_a_file_that_is_missing_takes_only_its_partition_offline(tmp_path: Path) -> None:
    log = reopen(tmp_path)
    assert log.offline is not None
    assert "cannot be opened" in log.offline


def test_offsets_that_go_back_are_damage(tmp_path: Path) -> None:
    """The CRC does not cover the base offset: a damaged one shows at the batch that follows."""
    log = three_segments(tmp_path)
    damage(segment(tmp_path, 20), log.segments.items[2].recent_position[4] + 5)
    again = reopen(tmp_path, SMALL)
    assert again.offline is not None
    assert "valid records follow" in again.offline


def test_a_segment_that_lost_its_end_with_the_machine_is_the_last_one(tmp_path: Path) -> None:
    log = three_segments(tmp_path)
    position = log.segments.items[1].locate(17)
    assert position is not None
    with segment(tmp_path, 10).open("r+b") as file:
        file.truncate(position[0])
    again = reopen(tmp_path, SMALL, lost_writes=True)
    assert contents(again) == values(17)
    assert again.end_offset == 17
    assert append(again, sequenced(17)) == 17


def test_one_batch_behind_the_recovery_point_can_be_read_at_once(tmp_path: Path) -> None:
    append(create(tmp_path, SMALL), sequenced(0))
    for lost_writes in (False, True):
        assert contents(reopen(tmp_path, SMALL, lost_writes=lost_writes), max_bytes=1) == values(1)


def test_a_log_that_does_not_end_where_it_was_closed_is_damaged(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    for i in range(0, 12, 3):
        append(log, sequenced(i, 3))
    log.close()
    last = log.segments.items[-1].locate(9)
    assert last is not None
    damage(segment(tmp_path, 0), last[0] + 26)  # the last offset delta of the last batch
    again = reopen(tmp_path, SMALL, clean=True, recovery_point=12)
    with pytest.raises(Refused, match="synced up to offset 12"):
        again.read(0, 1000)


@pytest.mark.parametrize("seed", range(10))
def test_what_was_given_up_for_a_later_start_does_not_come_back(seed: int) -> None:
    machine = Machine(Random(seed), lambda: NOW, Counter())
    SimDisk(machine).mkdir("/data")
    machine.root.sync()
    log = create(Path("/data"), disk=SimDisk(machine))
    append(log, sequenced(0, 5))
    log.flush()
    log = reopen(Path("/data"), disk=SimDisk(machine), lost_writes=True, start_offset=7)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (7, 7, 7)
    machine.lose_power()
    log = reopen(Path("/data"), disk=SimDisk(machine), lost_writes=True, start_offset=7, recovery_point=7)
    assert (log.start_offset, log.end_offset, log.offline) == (7, 7, None)


def test_flush_ms_does_not_begin_anew_with_a_restart(tmp_path: Path) -> None:
    append(create(tmp_path, config(flush_ms=5000)), sequenced(0))
    again = reopen(tmp_path, config(flush_ms=5000))
    assert again.flush_due(NOW)
    again.flush(NOW)
    append(again, sequenced(1))
    assert not again.flush_due(NOW + 4999)
    assert again.flush_due(NOW + 5000)


class Full(Hasty):
    """A disk with no room for another file."""

    is_full = True

    def open(self, path: str, *, create: bool = False) -> OsFile:
        if create and self.is_full:
            raise OSError(ENOSPC, "no room", path)
        return super().open(path, create=create)


def test_a_log_that_needs_room_to_be_opened_waits_for_it(tmp_path: Path) -> None:
    """It was offline until the next start (seed 5238)."""
    create(tmp_path).close()
    for file in (tmp_path / "t-0").glob("*.log"):  # the segment was not written before the crash
        file.unlink()
    disk = Full()
    with pytest.raises(Refused, match=r"The disk of .* is full\."):
        reopen(tmp_path, disk=disk)
    disk.is_full = False
    log = reopen(tmp_path, disk=disk)
    append(log, batch(b"a"))
    assert log.offline is None and log.end_offset == 1
