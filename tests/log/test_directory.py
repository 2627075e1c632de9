"""A log directory: ownership, lock, clean stops, crashes, deletion, and disks that fail."""

from pathlib import Path

import pytest

from moldau.log.checkpoints import Damaged
from moldau.log.directory import Directory, InUse, Meta, partition_of
from moldau.log.disk import Files, OsDisk
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.log.logs import NOW, PLAIN, TOPIC_ID, Hasty, append, batch, config, contents, sequenced


def opened(path: Path, disk: OsDisk | None = None) -> Directory:
    directory = Directory(Files(disk or Hasty()), str(path))
    directory.open()
    return directory


def filled(path: Path) -> Directory:
    directory = opened(path)
    for partition in range(3):
        log = directory.create("a-b.c", partition, PLAIN, topic_id=TOPIC_ID, now_ms=NOW)
        append(log, sequenced(0, partition + 1))
    return directory


def load_all(directory: Directory) -> dict[int, list[tuple[int, bytes | None]]]:
    logs = [directory.load(*found, PLAIN, now_ms=NOW) for found in sorted(directory.found)]
    return {log.partition: contents(log) for log in logs}


VALUES = {p: [(i, b"v%d" % i) for i in range(p + 1)] for p in range(3)}


def test_a_clean_stop_leaves_kafkas_files(tmp_path: Path) -> None:
    filled(tmp_path).close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    offsets = "0\n3\na-b.c 0 1\na-b.c 1 2\na-b.c 2 3\n"
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == offsets
    assert (tmp_path / "replication-offset-checkpoint").read_text() == offsets
    names = sorted(path.name for path in (tmp_path / "a-b.c-2").iterdir())
    zero = "00000000000000000000"
    assert names == [
        f"{zero}.index",
        f"{zero}.log",
        f"{zero}.timeindex",
        f"{3:020d}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_everything_is_there_after_a_clean_stop(tmp_path: Path) -> None:
    filled(tmp_path).close()
    directory = opened(tmp_path)
    assert directory.clean
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert load_all(directory) == VALUES
    assert {log.topic_id for log in directory} == {TOPIC_ID}


def test_everything_is_there_after_a_crash(tmp_path: Path) -> None:
    filled(tmp_path).release_lock()
    directory = opened(tmp_path)
    assert not directory.clean
    assert not directory.lost_writes
    assert load_all(directory) == VALUES


def test_a_restart_of_the_machine_is_noticed(tmp_path: Path) -> None:
    class Restarted(OsDisk):
        def boot_id(self) -> str:
            return "another"

    filled(tmp_path).release_lock()
    assert opened(tmp_path, Restarted()).lost_writes


def test_a_killed_broker_is_known_again_unless_the_machine_went_down_too(tmp_path: Path) -> None:
    class Restarted(OsDisk):
        def boot_id(self) -> str:
            return "another"

    directory = filled(tmp_path)
    directory.note_epoch(17)
    directory.release_lock()
    again = opened(tmp_path)
    assert again.broker_epoch == 17
    again.release_lock()
    assert opened(tmp_path, Restarted()).broker_epoch == -1


def test_a_process_that_is_killed_before_it_knows_its_epoch_leaves_its_incarnation(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    directory.note_epoch(17)
    directory.release_lock()
    directory = opened(tmp_path)
    directory.note_incarnation("0f" * 16)
    directory.release_lock()
    directory = opened(tmp_path)
    assert (directory.broker_epoch, directory.incarnation) == (17, "0f" * 16)
    directory.note_epoch(18)
    directory.release_lock()
    again = opened(tmp_path)
    assert (again.broker_epoch, again.incarnation) == (18, "")


def test_an_incarnation_that_has_served_is_not_left_when_there_is_no_room_for_its_epoch(tmp_path: Path) -> None:
    class Full(OsDisk):
        def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
            raise OSError(28, "No space left on device", path)

    directory = filled(tmp_path)
    directory.note_incarnation("0f" * 16)
    directory.files.disk = Full()
    with pytest.raises(OSError, match="No space"):
        directory.note_epoch(18)
    directory.release_lock()
    again = opened(tmp_path)
    assert (again.broker_epoch, again.incarnation) == (-1, "")


def test_the_mark_of_a_clean_stop_is_gone_for_good_before_anything_is_written(tmp_path: Path) -> None:
    class Recorded(OsDisk):
        synced: list[str]

        def sync_dir(self, path: str) -> None:
            assert not (tmp_path / ".kafka_cleanshutdown").exists()
            self.synced.append(path)

    filled(tmp_path).close()
    disk = Recorded()
    disk.synced = []
    opened(tmp_path, disk)
    assert disk.synced == [str(tmp_path)]


def test_a_second_broker_is_refused_with_a_sentence(tmp_path: Path) -> None:
    first = filled(tmp_path)
    with pytest.raises(InUse, match="in use by another broker"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_a_damaged_partition_stays_offline_after_a_stop(tmp_path: Path) -> None:
    filled(tmp_path).release_lock()
    path = tmp_path / "a-b.c-1" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    path.write_bytes(bytes([*data[:70], data[70] ^ 1, *data[71:]]) + bytes(batch(b"x", base_offset=2)))
    for _ in range(2):
        directory = opened(tmp_path)
        states = {p: directory.load("a-b.c", p, PLAIN, now_ms=NOW).offline for p in range(3)}
        assert [state is None for state in states.values()] == [True, False, True]
        directory.close()
        assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_offsets_of_partitions_that_are_not_loaded_are_kept(tmp_path: Path) -> None:
    filled(tmp_path).close()
    directory = opened(tmp_path)
    directory.load("a-b.c", 1, PLAIN, now_ms=NOW)
    directory.close()
    assert load_all(opened(tmp_path)) == VALUES


def test_start_offsets_and_high_watermarks_survive(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    directory.logs["a-b.c", 2].delete_records(2)
    directory.checkpoint()
    directory.release_lock()
    again = opened(tmp_path)
    log = again.load("a-b.c", 2, PLAIN, now_ms=NOW)
    assert (log.start_offset, log.high_watermark, contents(log)) == (2, 3, [(2, b"v2")])


def test_a_damaged_checkpoint_costs_only_time(tmp_path: Path) -> None:
    filled(tmp_path).close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n9\n")
    assert load_all(opened(tmp_path)) == VALUES


def test_a_deleted_partition_is_renamed_and_removed_later(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    log = directory.logs["a-b.c", 1]
    log.configure(config(file_delete_delay_ms=100))
    directory.delete(log, "0123456789abcdef" * 2, now_ms=NOW)
    moved = tmp_path / "a-b.c-1.0123456789abcdef0123456789abcdef-delete"
    assert moved.is_dir()
    with pytest.raises(Refused) as caught:
        append(log, batch(b"x"))
    assert caught.value.error is Error.KAFKA_STORAGE_ERROR
    directory.sweep(NOW + 99)
    assert moved.is_dir()
    directory.sweep(NOW + 100)
    assert not moved.exists()
    again = directory.create("a-b.c", 1, PLAIN, topic_id=bytes(16), now_ms=NOW)
    assert append(again, batch(b"x")) == 0


def test_a_new_partition_does_not_inherit_offsets_of_a_deleted_one(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    log = directory.logs["a-b.c", 2]
    log.flush()
    log.delete_records(3)
    directory.checkpoint()
    directory.delete(log, "0" * 32, now_ms=NOW)
    append(directory.create("a-b.c", 2, PLAIN, topic_id=bytes(16), now_ms=NOW), batch(b"x"))
    directory.release_lock()
    assert load_all(opened(tmp_path))[2] == [(0, b"x")]


def test_a_truncation_is_not_taken_for_a_loss(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    log = directory.logs["a-b.c", 2]
    append(log, batch(b"x"))
    log.flush()
    directory.checkpoint()
    log.truncate_to(3)
    directory.release_lock()
    assert load_all(opened(tmp_path)) == VALUES


def test_a_deletion_is_finished_by_the_next_start(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    directory.delete(directory.logs["a-b.c", 1], "0" * 32, now_ms=NOW)
    directory.close()
    again = opened(tmp_path)
    assert again.found == {("a-b.c", 0), ("a-b.c", 2)}
    again.sweep(NOW)
    assert not list(tmp_path.glob("*-delete"))


def test_the_longest_topic_can_be_deleted(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.create("t" * 249, 0, PLAIN, topic_id=TOPIC_ID, now_ms=NOW)
    directory.delete(log, "0" * 32, now_ms=NOW)
    assert directory.offline is None
    assert len(next(tmp_path.glob("*-delete")).name) == 255


def test_strays_are_set_aside_and_kept(tmp_path: Path) -> None:
    filled(tmp_path).close()
    directory = opened(tmp_path)
    directory.set_stray_aside("a-b.c", 0, "f" * 32)
    directory.close()
    assert (tmp_path / f"a-b.c-0.{'f' * 32}-stray" / f"{0:020d}.log").exists()
    assert opened(tmp_path).found == {("a-b.c", 1), ("a-b.c", 2)}


def test_many_partitions_are_synced_together(tmp_path: Path) -> None:
    class Counted(OsDisk):
        calls: list[str]

        def sync_all(self, path: str) -> None:
            self.calls.append(path)
            super().sync_all(path)

    disk = Counted()
    disk.calls = []
    directory = opened(tmp_path, disk)
    for partition in range(20):
        append(directory.create("t", partition, PLAIN, topic_id=TOPIC_ID, now_ms=NOW), batch(b"x"))
    directory.close()
    assert disk.calls == [str(tmp_path)]
    again = opened(tmp_path)
    assert again.clean
    assert set(map(len, load_all(again).values())) == {1}


def test_meta_properties_say_whom_a_directory_belongs_to(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert directory.read_meta() is None
    meta = Meta("MkU3OEVBNTcwNTJENDM2Qg", 1, "q1w2e3r4t5y6u7i8o9p0aA")
    directory.write_meta(meta)
    assert directory.read_meta() == meta
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=3\n")
    with pytest.raises(Damaged, match="version"):
        directory.read_meta()


def test_a_directory_that_cannot_be_made_is_offline(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    directory = opened(tmp_path / "file" / "logs")
    assert directory.offline is not None
    with pytest.raises(Refused) as caught:
        directory.create("t", 0, PLAIN, topic_id=TOPIC_ID, now_ms=NOW)
    assert caught.value.error is Error.KAFKA_STORAGE_ERROR
    directory.checkpoint()
    directory.close()


def test_a_read_only_directory_is_offline_and_others_go_on(tmp_path: Path) -> None:
    class ReadOnly(OsDisk):
        def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
            if "bad" in path:
                raise OSError(30, "Read-only file system", path)
            super().write_atomic(path, data, sync=sync)

    disk = ReadOnly()
    good, bad = opened(tmp_path / "good", disk), opened(tmp_path / "bad", disk)
    with pytest.raises(Refused):
        bad.create("t", 0, PLAIN, topic_id=TOPIC_ID, now_ms=NOW)
    log = good.create("t", 0, PLAIN, topic_id=TOPIC_ID, now_ms=NOW)
    assert append(log, batch(b"x")) == 0


def test_a_failed_directory_takes_its_partitions_along(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    directory.fail("the disk was pulled out")
    assert {log.offline for log in directory} == {"the disk was pulled out"}
    directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a-0", ("a", 0)),
        ("a-b-12", ("a-b", 12)),
        ("__cluster_metadata-0", ("__cluster_metadata", 0)),
        ("a", None),
        ("a-x", None),
        ("a-0.0123-delete", None),
        ("a-0.0123-future", None),
        ("a-0.0123-stray", None),
    ],
)
def test_folders_are_named_after_topic_and_partition(name: str, found: tuple[str, int] | None) -> None:
    assert partition_of(name) == found
