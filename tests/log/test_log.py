"""A partition's log: what is accepted, what is refused, and how it comes back."""

import errno
from pathlib import Path

import pytest

from moldau.log.answers import NOT_FOUND, Isolation, Origin
from moldau.log.config import LogConfig
from moldau.log.disk import Data, OsDisk, OsFile
from moldau.log.log import Log
from moldau.wire.compression import Compression
from moldau.wire.errors import Error
from moldau.wire.records import Record, batches, build, end_txn_marker, records, seal
from moldau.wire.refusal import Refused
from tests.log.logs import NOW, PLAIN, append, batch, config, contents, create, end, files_of, reopen, sequenced


def refused(log: Log, view: memoryview, origin: Origin = Origin.CLIENT) -> Refused:
    before = log.end_offset
    with pytest.raises(Refused) as caught:
        log.append(view, leader_epoch=0, now_ms=NOW, origin=origin)
    assert log.end_offset == before
    assert caught.value.message
    return caught.value


def changed(view: memoryview, at: int, value: bytes, *, sealed: bool = True) -> memoryview:
    view[at : at + len(value)] = value
    if sealed:
        seal(view)
    return view


COUNT, DELTA, ATTRIBUTES, MAGIC, LENGTH = 57, 23, 21, 16, 8
BAD = {
    "no bytes": (memoryview(bytearray()), Error.INVALID_RECORD),
    "half a header": (batch(b"x")[:30], Error.INVALID_RECORD),
    "half a batch": (batch(b"x" * 50)[:80], Error.INVALID_RECORD),
    "two batches": (memoryview(bytearray(batch(b"x")) * 2), Error.INVALID_RECORD),
    "magic 1": (changed(batch(b"x"), MAGIC, b"\x01"), Error.INVALID_RECORD),
    "short length": (changed(batch(b"x"), LENGTH, b"\0\0\0\x20"), Error.CORRUPT_MESSAGE),
    "negative length": (changed(batch(b"x"), LENGTH, b"\xff\xff\xff\xff"), Error.CORRUPT_MESSAGE),
    "an offset": (changed(batch(b"x"), 7, b"\x05"), Error.INVALID_RECORD),
    "a wrong crc": (changed(batch(b"x"), 65, b"\x7f", sealed=False), Error.CORRUPT_MESSAGE),
    "too many records": (changed(batch(b"x"), COUNT, b"\0\0\0\2"), Error.INVALID_RECORD),
    "no records": (changed(changed(batch(b"x"), COUNT, bytes(4)), DELTA, b"\xff" * 4), Error.INVALID_RECORD),
    "a delta": (changed(batch(b"x"), DELTA, b"\0\0\0\2"), Error.INVALID_RECORD),
    "a control batch": (changed(batch(b"x"), ATTRIBUTES, b"\0\x20"), Error.INVALID_RECORD),
    "an unknown codec": (changed(batch(b"x"), ATTRIBUTES, b"\0\x05"), Error.INVALID_RECORD),
    "no sequence": (batch(b"x", producer_id=3, producer_epoch=0), Error.INVALID_RECORD),
    "a late timestamp": (batch(b"x", timestamp=NOW + 3_600_001), Error.INVALID_TIMESTAMP),
    "too many bytes": (batch(b"x" * 1_048_588), Error.MESSAGE_TOO_LARGE),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_is_refused(tmp_path: Path, name: str) -> None:
    view, error = BAD[name]
    log = create(tmp_path)
    append(log, batch(b"before"))
    assert refused(log, view).error is error
    append(log, batch(b"after"))
    assert contents(log) == [(0, b"before"), (1, b"after")]


def test_a_batch_that_no_segment_holds_is_too_large(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=500))
    assert refused(log, batch(b"x" * 600)).error is Error.RECORD_LIST_TOO_LARGE


def test_bytes_behind_the_batch_that_are_none_are_left_out(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, memoryview(bytearray(batch(b"x")) + b"\0" * 8))
    append(log, batch(b"y"))
    assert contents(log) == [(0, b"x"), (1, b"y")]


def test_offset_and_epoch_are_set_in_place(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"a", b"b"))
    view = batch(b"c")
    assert log.append(view, leader_epoch=9, now_ms=NOW) == (2, 2, -1, 0, False)
    (found,) = batches(view)
    assert (found.base_offset, found.partition_leader_epoch) == (2, 9)
    found.verify()
    assert log.leader_epochs.entries == [(0, 0), (9, 2)]


def test_log_append_time_replaces_the_producers_time(tmp_path: Path) -> None:
    log = create(tmp_path, config(message_timestamp_type="LogAppendTime"))
    assert log.append(batch(b"x", timestamp=5), leader_epoch=0, now_ms=NOW).log_append_time_ms == NOW
    span = log.read(0, 999).span
    assert span is not None
    (found,) = batches(span.read())
    found.verify()
    assert [record.timestamp for record in records(found)] == [NOW]
    assert refused(log, batch(b"x", timestamp_type=1)).error is Error.INVALID_TIMESTAMP


def test_a_producer_cannot_choose_log_append_time(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"x", timestamp_type=1))
    span = log.read(0, 999).span
    assert span is not None
    (found,) = batches(span.read())
    found.verify()
    assert found.timestamp_type == 0


def test_old_timestamps_are_refused_where_the_topic_says_so(tmp_path: Path) -> None:
    log = create(tmp_path, config(message_timestamp_before_max_ms=1000))
    view = memoryview(build([Record(0, NOW - age, b"k", b"v") for age in (0, 1000, 1001, 5000)]))
    refusal = refused(log, view)
    assert refusal.error is Error.INVALID_TIMESTAMP
    assert [index for index, _ in refusal.record_errors] == [2, 3]
    append(log, batch(b"x", timestamp=-1))


def test_a_compacted_topic_takes_no_record_without_a_key(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact"))
    view = memoryview(build([Record(0, NOW, key, b"v") for key in (b"a", None, b"", None)], compression=3))
    refusal = refused(log, view)
    assert refusal.error is Error.INVALID_RECORD
    assert [index for index, _ in refusal.record_errors] == [1, 3]
    assert refused(log, changed(batch(b"v"), 61, b"\x7f")).error is Error.INVALID_RECORD
    append(log, batch(b"v"))


@pytest.mark.parametrize(
    ("wanted", "given", "stored"),
    [("producer", 4, 4), ("zstd", 0, 4), ("uncompressed", 1, 0), ("lz4", 3, 3), ("gzip", 2, 1)],
)
def test_the_topics_compression_is_used(tmp_path: Path, wanted: str, given: int, stored: int) -> None:
    log = create(tmp_path, config(compression_type=wanted))
    append(log, batch(b"before", compression=given))
    append(log, sequenced(5, 3, compression=given))
    span = log.read(1, 9999).span
    assert span is not None
    (found,) = batches(span.read())
    found.verify()
    assert (found.compression, found.base_sequence, found.count) == (Compression(stored), 5, 3)
    assert contents(log) == [(0, b"before"), (1, b"v5"), (2, b"v6"), (3, b"v7")]


def test_the_leaders_offsets_are_taken_as_they_are(tmp_path: Path) -> None:
    log = create(tmp_path)
    first = bytes(batch(b"a", base_offset=5, partition_leader_epoch=2))
    second = bytes(batch(b"b", base_offset=9, partition_leader_epoch=3))
    append(log, memoryview(bytearray(first + second)), origin=Origin.REPLICATION)
    assert contents(log) == [(5, b"a"), (9, b"b")]
    assert (log.end_offset, log.leader_epochs.entries) == (10, [(2, 5), (3, 9)])
    again = memoryview(bytearray(second))
    assert refused(log, again, Origin.REPLICATION).error is Error.OFFSET_OUT_OF_RANGE
    broken = changed(batch(b"c", base_offset=10), 65, b"\x7f", sealed=False)
    assert refused(log, broken, Origin.REPLICATION).error is Error.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("settings", "segments"),
    [
        (config(segment_bytes=400), 4),
        (config(segment_ms=25), 4),
        (config(segment_index_bytes=24, index_interval_bytes=0), 6),
        (PLAIN, 1),
    ],
)
def test_a_segment_is_rolled_by_size_time_and_index(tmp_path: Path, settings: LogConfig, segments: int) -> None:
    log = create(tmp_path, settings)
    for i in range(12):
        append(log, batch(b"x" * 40, timestamp=NOW + 10 * i), now_ms=NOW)
    assert len(log.segments) == segments
    assert contents(log) == [(i, b"x" * 40) for i in range(12)]
    assert contents(log, 1) == contents(log)


def test_a_segment_is_rolled_before_its_offsets_outgrow_the_index(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"a"))
    far = memoryview(build([Record(0, NOW, b"k", b"b")], base_offset=2**31))
    append(log, far, origin=Origin.REPLICATION)
    assert log.segments.bases == [0, 1]  # as Kafka: the new one begins at the end of the log
    further = memoryview(build([Record(0, NOW, b"k", b"c")], base_offset=2**31 + 1))
    append(log, further, origin=Origin.REPLICATION)
    assert contents(log) == [(0, b"a"), (2**31, b"b"), (2**31 + 1, b"c")]


def test_reads_are_cut_at_max_bytes_but_the_first_batch_is_whole(tmp_path: Path) -> None:
    log = create(tmp_path)
    sizes = [len(view) for view in [batch(b"x" * 100), batch(b"y" * 300), batch(b"z")]]
    for value in (b"x" * 100, b"y" * 300, b"z"):
        append(log, batch(value))

    def size(offset: int, max_bytes: int, **how: bool) -> int:
        span = log.read(offset, max_bytes, **how).span
        return len(span) if span else 0

    assert size(0, 10_000) == sum(sizes)
    assert size(0, sizes[0] + 7) == sizes[0] + 7
    assert size(1, 10) == sizes[1]
    assert size(1, 0) == sizes[1]
    assert size(1, 10, min_one=False) == 0
    assert size(2, sizes[2], min_one=False) == sizes[2]
    assert size(3, 10) == 0


def test_reads_outside_the_log_are_refused(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"x"))
    log.delete_records(1)
    for offset in (0, 2, -1):
        with pytest.raises(Refused) as caught:
            log.read(offset, 100)
        assert caught.value.error is Error.OFFSET_OUT_OF_RANGE
    assert log.read(1, 100) == (None, None)


def test_reads_stop_at_the_high_watermark(tmp_path: Path) -> None:
    log = create(tmp_path)
    for i in range(3):
        log.append(batch(b"%d" % i), leader_epoch=0, now_ms=NOW)
    log.advance_high_watermark(2)
    span = log.read(0, 9999, isolation=Isolation.HIGH_WATERMARK).span
    assert span is not None
    assert [found.base_offset for found in batches(span.read())] == [0, 1]
    assert log.read(2, 9999, isolation=Isolation.HIGH_WATERMARK) == (None, None)
    assert log.readable_bytes(2) == 0
    assert log.readable_bytes(1) > 0


def test_a_read_goes_on_in_the_next_segment_where_compaction_left_a_hole(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"a", base_offset=0), origin=Origin.REPLICATION)
    log.roll(NOW)
    log.end_offset = 7  # what stood between was compacted away
    append(log, batch(b"b", base_offset=7), origin=Origin.REPLICATION)
    span = log.read(3, 999).span
    assert span is not None
    assert next(batches(span.read())).base_offset == 7


def test_offsets_are_found_by_time(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=700, index_interval_bytes=0))
    for i in range(12):
        view = memoryview(build([Record(0, NOW + 20 * i + 10 * j, b"k", b"v" * 40) for j in range(2)]))
        append(log, view, epoch=i // 6)
    assert len(log.segments) > 2
    for i in range(24):
        assert log.offset_for_time(NOW + 10 * i) == (i, NOW + 10 * i, i // 12)
        assert log.offset_for_time(NOW + 10 * i - 9).offset == i
    assert log.offset_for_time(NOW + 231) == NOT_FOUND
    assert log.offset_for_time(0).offset == 0
    assert log.offset_for_time(-1) == (24, -1, 1)
    assert log.offset_for_time(-2) == log.offset_for_time(-4) == (0, -1, 0)
    assert log.offset_for_time(-3) == (23, NOW + 230, 1)
    assert log.offset_for_time(-5) == NOT_FOUND
    log.delete_records(13)
    assert log.offset_for_time(NOW).offset == 13
    assert log.offset_for_time(-2) == (13, -1, 1)


def test_the_newest_record_need_not_be_the_last(tmp_path: Path) -> None:
    log = create(tmp_path)
    assert log.offset_for_time(-3) == NOT_FOUND
    for timestamp in (NOW, NOW + 50, NOW + 20):
        append(log, memoryview(build([Record(0, timestamp - 1, b"k"), Record(0, timestamp, b"k"), Record(0, 5, b"k")])))
    assert log.offset_for_time(-3) == (4, NOW + 50, 0)
    log.high_watermark = 4
    assert log.offset_for_time(-3, Isolation.HIGH_WATERMARK) == NOT_FOUND
    assert log.offset_for_time(-1, Isolation.HIGH_WATERMARK) == (4, -1, 0)


def test_a_batch_whose_records_do_not_parse_is_found_by_its_header(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, changed(batch(b"x"), 61, b"\x7f"))
    assert log.offset_for_time(NOW) == (0, NOW, 0)
    assert log.offset_for_time(-3) == (0, NOW, 0)


def test_flush_settings_say_when_to_sync(tmp_path: Path) -> None:
    log = create(tmp_path, config(flush_messages=3, flush_ms=1000))
    append(log, batch(b"a", b"b"))
    assert not log.flush_due(NOW)
    assert log.flush_due(NOW + 1000)
    append(log, batch(b"c"))
    assert log.flush_due(NOW)
    flush = log.prepare_flush(NOW + 7)
    assert flush is not None
    append(log, batch(b"d"))  # while the disk is busy
    flush.sync()
    flush.complete()
    assert (log.recovery_point, log.unflushed, log.last_flush_ms) == (3, 1, NOW + 7)
    log.flush(NOW + 8)
    assert log.unflushed == 0
    assert log.prepare_flush(NOW) is None


def test_a_roll_asks_for_a_flush_of_what_it_leaves_behind(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"a"))
    assert not log.flush_due(NOW + 10**9)
    log.roll(NOW)
    assert log.flush_due(NOW)
    log.flush(NOW)
    assert not log.flush_due(NOW)


def test_records_are_deleted_up_to_the_high_watermark(tmp_path: Path) -> None:
    log = create(tmp_path)
    for i in range(5):
        append(log, batch(b"%d" % i), epoch=i // 2)
    assert log.delete_records(3) == 3
    assert log.delete_records(1) == 3
    assert contents(log) == [(3, b"3"), (4, b"4")]
    assert log.leader_epochs.entries == [(1, 3), (2, 4)]
    for offset in (6, -2):
        with pytest.raises(Refused) as caught:
            log.delete_records(offset)
        assert caught.value.error is Error.OFFSET_OUT_OF_RANGE
    assert log.delete_records(-1) == 5
    assert contents(log) == []


def test_deleted_segments_are_renamed_and_removed_after_the_delay(tmp_path: Path) -> None:
    log = create(tmp_path, config(file_delete_delay_ms=500))
    for i in range(3):
        append(log, batch(b"%d" % i))
        log.roll(NOW)
    span = log.read(0, 999).span
    log.delete_segments(log.segments.items[:2], NOW)
    assert (log.start_offset, contents(log)) == (2, [(2, b"2")])
    assert len([name for name in files_of(tmp_path) if name.endswith(".deleted")]) == 6
    log.sweep(NOW + 499)
    assert any(name.endswith(".deleted") for name in files_of(tmp_path))
    log.sweep(NOW + 500)
    assert not any(name.endswith(".deleted") for name in files_of(tmp_path))
    assert span is not None
    assert next(batches(span.read())).base_offset == 0


def test_a_log_that_loses_all_segments_goes_on_where_it_was(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"a"))
    log.delete_segments(log.segments.items, NOW)
    assert (log.start_offset, log.end_offset, len(log.segments)) == (1, 1, 1)
    assert append(log, batch(b"b")) == 1
    log.close()
    assert contents(reopen(tmp_path)) == [(1, b"b")]


def test_truncation_takes_records_epochs_and_producers_back(tmp_path: Path) -> None:
    log = create(tmp_path)
    for i in range(4):
        append(log, sequenced(i, 2 if i == 2 else 1), epoch=i) if i < 3 else append(log, batch(b"x"), epoch=i)
        log.roll(NOW) if i == 1 else None
    log.truncate_to(3)  # within the batch of offsets 2 and 3
    assert (log.end_offset, log.high_watermark) == (2, 2)
    assert contents(log) == [(0, b"v0"), (1, b"v1")]
    assert log.leader_epochs.entries == [(0, 0), (1, 1)]
    assert log.producers.by_id[7].last_sequence == 1
    assert append(log, sequenced(2)) == 2
    log.truncate_to(1)
    assert contents(log) == [(0, b"v0")]
    assert append(log, sequenced(1)) == 1
    assert [name for name in files_of(tmp_path) if name.endswith(".log")] == [f"{0:020d}.log"]


def test_truncation_takes_aborted_transactions_back(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0, transactional=True))
    end(log, False)
    log.truncate_to(1)
    log.advance_high_watermark(1)
    assert log.last_stable_offset == 0
    assert log.read(0, 999, isolation=Isolation.LOG_END).span is not None
    assert list(log.segments.items[0].txns) == []


def test_a_log_can_begin_anew_at_any_offset(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0))
    log.truncate_fully(500, NOW)
    assert (log.start_offset, log.end_offset, contents(log)) == (500, 500, [])
    assert append(log, sequenced(7)) == 500
    log.close()
    assert contents(reopen(tmp_path)) == [(500, b"v7")]


def test_a_clean_start_reads_nothing_but_names(tmp_path: Path) -> None:
    class Watched(OsDisk):
        def open(self, path: str, *, create: bool = False) -> OsFile:
            raise AssertionError(path)

        def read(self, path: str) -> bytes:
            raise AssertionError(path)

        def size(self, path: str) -> int:
            raise AssertionError(path)

    log = create(tmp_path)
    append(log, sequenced(0))
    log.close()
    asleep = reopen(tmp_path, disk=Watched(), clean=True, recovery_point=1, high_watermark=1)
    assert (asleep.start_offset, asleep.end_offset, asleep.high_watermark) == (0, 1, 1)
    assert contents(reopen(tmp_path, clean=True, recovery_point=1)) == [(0, b"v0")]


def test_a_clean_start_without_a_checkpoint_looks_for_the_end(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"a", b"b"))
    log.close()
    again = reopen(tmp_path, clean=True)
    assert (again.end_offset, again.recovery_point) == (2, 2)


def test_an_empty_partition_opens_however_it_was_left(tmp_path: Path) -> None:
    log = create(tmp_path)
    assert (log.end_offset, log.offline) == (0, None)
    for again in (reopen(tmp_path), reopen(tmp_path, clean=True, recovery_point=0)):
        assert contents(again) == []
        assert again.offset_for_time(-1) == (0, -1, -1)


class Failing(OsDisk):
    """A disk on which writes to segments fail when told to."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error = 0

    def open(self, path: str, *, create: bool = False) -> OsFile:
        disk, opened = self, super().open(path, create=create)

        class Watched(OsFile):
            __slots__ = ()

            def append(self, data: Data) -> None:
                if disk.error:
                    super().append(bytes(data)[:5])
                    self.end -= 5
                    raise OSError(disk.error, "the disk says no")
                super().append(data)

        fd, opened.fd = opened.fd, -1
        return Watched(fd)


def test_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    disk = Failing()
    log = create(tmp_path, disk=disk)
    append(log, sequenced(0))
    size = log.size
    disk.error = errno.ENOSPC
    assert refused(log, sequenced(1)).error is Error.KAFKA_STORAGE_ERROR
    assert (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size == size
    assert log.offline is None
    assert contents(log) == [(0, b"v0")]
    disk.error = 0
    append(log, sequenced(1))
    assert contents(log) == [(0, b"v0"), (1, b"v1")]


def test_a_broken_disk_takes_the_partition_offline(tmp_path: Path) -> None:
    disk = Failing()
    log = create(tmp_path, disk=disk)
    append(log, sequenced(0))
    disk.error = errno.EIO
    assert refused(log, sequenced(1)).error is Error.KAFKA_STORAGE_ERROR
    assert log.offline is not None
    disk.error = 0
    for use in (lambda: append(log, sequenced(1)), lambda: log.read(0, 9), lambda: log.offset_for_time(-1)):
        with pytest.raises(Refused) as caught:
            use()
        assert caught.value.error is Error.KAFKA_STORAGE_ERROR
    assert contents(reopen(tmp_path)) == [(0, b"v0")]


@pytest.mark.parametrize("kind", [".snapshot", ".index", ".timeindex", ".log"])
def test_a_disk_that_is_full_when_a_segment_is_rolled_leaves_the_old_one(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = create(tmp_path, config(segment_bytes=400))
    for i in range(5):
        append(log, sequenced(i))
    full = True
    opened, atomic = type(log.files.disk).open, type(log.files.disk).write_atomic

    def refuse(path: str) -> None:
        if full and path.endswith(kind):
            raise OSError(errno.ENOSPC, "no room", path)

    monkeypatch.setattr(
        type(log.files.disk), "open", lambda d, p, create=False: (refuse(p), opened(d, p, create=create))[1]
    )
    monkeypatch.setattr(
        type(log.files.disk),
        "write_atomic",
        lambda d, p, data, sync=True: (refuse(p), atomic(d, p, data, sync=sync))[1],
    )
    for _ in range(2):
        assert refused(log, sequenced(5)).error is Error.KAFKA_STORAGE_ERROR
        assert log.offline is None
    full = False
    for i in range(5, 12):
        append(log, sequenced(i))
    expected = [(i, b"v%d" % i) for i in range(12)]
    assert contents(log) == expected
    log.shut("crashed")
    assert contents(reopen(tmp_path)) == expected


class Recorded(OsDisk):
    """A disk that remembers what was synced."""

    __slots__ = ("synced",)

    def __init__(self) -> None:
        self.synced: list[str] = []

    def open(self, path: str, *, create: bool = False) -> OsFile:
        synced, opened = self.synced, super().open(path, create=create)

        class Watched(OsFile):
            __slots__ = ()

            def sync(self) -> None:
                synced.append(path.rpartition("/")[2])

        fd, opened.fd = opened.fd, -1
        return Watched(fd)

    def sync_dir(self, path: str) -> None:
        self.synced.append(f"{path.rpartition('/')[2]}/")


def test_a_flush_syncs_all_that_the_records_need(tmp_path: Path) -> None:
    disk = Recorded()
    log = create(tmp_path / "data", disk=disk)
    append(log, batch(b"a"))
    log.flush(NOW)
    zero, one = f"{0:020d}", f"{1:020d}"
    assert set(disk.synced) == {f"{zero}.log", "partition.metadata", "t-0/", "data/"}
    disk.synced.clear()
    append(log, batch(b"b"))
    log.flush(NOW)
    assert disk.synced == [f"{zero}.log"]
    log.truncate_to(1)
    log.roll(NOW)
    append(log, sequenced(0, transactional=True))
    end(log, False)
    disk.synced.clear()
    log.flush(NOW)
    sealed = {f"{zero}{kind}" for kind in (".log", ".index", ".timeindex")}
    assert set(disk.synced) == {*sealed, f"{one}.log", f"{one}.txnindex", "t-0/"}


def test_a_segment_that_begins_during_a_flush_is_synced_by_the_next(tmp_path: Path) -> None:
    disk = Recorded()
    log = create(tmp_path / "data", disk=disk)
    append(log, batch(b"a"))
    flush = log.prepare_flush(NOW)
    assert flush is not None
    log.roll(NOW)
    append(log, batch(b"b"))
    flush.sync()
    flush.complete()
    disk.synced.clear()
    log.flush(NOW)
    assert "t-0/" in disk.synced
    assert f"{1:020d}.log" in disk.synced


def test_new_settings_are_obeyed_at_once(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"x" * 100))
    log.configure(config(max_message_bytes=100))
    assert refused(log, batch(b"x" * 100)).error is Error.MESSAGE_TOO_LARGE


def test_settings_are_taken_from_kafkas_names() -> None:
    found = LogConfig.of({"cleanup.policy": "compact, delete", "segment.bytes": 5, "follower.x": 1, "retention.ms": 7})
    assert found.cleanup_policy == {"compact", "delete"}
    assert (found.segment_bytes, found.retention_ms, found.flush_ms) == (5, 7, 2**63 - 1)
    assert LogConfig.of({"cleanup.policy": ["compact"]}).compacted
    assert not LogConfig.of({"cleanup.policy": ""}).cleanup_policy


def test_jitter_brings_a_roll_forward_and_is_the_same_each_time(tmp_path: Path) -> None:
    settings = config(segment_ms=1000, segment_jitter_ms=1000)
    logs = [create(tmp_path / name, settings) for name in ("a", "b")]
    assert all(0 <= log.wake().base_offset + log.jitter_ms < 1000 for log in logs)


def test_control_batches_of_a_coordinator_are_not_a_producers_data(tmp_path: Path) -> None:
    log = create(tmp_path)
    marker = end_txn_marker(True, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp=NOW)
    append(log, memoryview(marker), origin=Origin.COORDINATOR)
    assert (log.end_offset, log.last_stable_offset) == (1, 1)
    append(log, sequenced(0, producer_id=5))
