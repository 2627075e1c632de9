"""Idempotence, transactions and snapshots of producers."""

from pathlib import Path

import pytest

from moldau.log.answers import Isolation, Origin
from moldau.log.disk import OsDisk
from moldau.log.log import Log
from moldau.log.producers import LAST_SEQUENCE, Marker, Producers, decode_snapshot, encode_snapshot
from moldau.wire.errors import Error, WireError
from moldau.wire.records import batches
from moldau.wire.refusal import Refused
from tests.log.logs import NOW, append, batch, config, create, end, reopen, sequenced


def refusal(log: Log, view: memoryview, origin: Origin = Origin.CLIENT) -> Error:
    with pytest.raises(Refused) as caught:
        log.append(view, leader_epoch=0, now_ms=NOW, origin=origin)
    return caught.value.error


def test_each_of_the_five_last_batches_is_recognised_as_a_duplicate(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"other"))
    for sequence in range(0, 18, 3):
        append(log, sequenced(sequence, 3))
    for sequence in range(3, 18, 3):
        again = log.append(sequenced(sequence, 3), leader_epoch=0, now_ms=NOW)
        assert again == (1 + sequence, 3 + sequence, NOW, 0, True)
    assert refusal(log, sequenced(0, 3)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, sequenced(15, 2)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 19


def test_a_gap_in_the_sequence_is_refused(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0))
    assert refusal(log, sequenced(2)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, sequenced(1))


def test_a_producer_that_is_not_known_begins_where_it_likes(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(17))
    append(log, sequenced(18))


def test_a_new_epoch_begins_with_sequence_zero(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0))
    assert refusal(log, sequenced(1, epoch=1)) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, sequenced(0, epoch=1))
    assert refusal(log, sequenced(1, epoch=0)) is Error.INVALID_PRODUCER_EPOCH
    append(log, sequenced(1, epoch=1))


def test_sequences_wrap_after_the_largest_integer(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(LAST_SEQUENCE - 1))
    first = append(log, sequenced(LAST_SEQUENCE, 3))  # 2^31 - 1, 0, 1
    assert log.producers.by_id[7].last_sequence == 1
    assert log.append(sequenced(LAST_SEQUENCE, 3), leader_epoch=0, now_ms=NOW).base_offset == first
    append(log, sequenced(2))
    log = create(tmp_path / "exact")
    append(log, sequenced(LAST_SEQUENCE))
    append(log, sequenced(0))


def test_a_coordinator_needs_no_sequence_but_the_newest_epoch(tmp_path: Path) -> None:
    log = create(tmp_path)
    view = batch(b"x", producer_id=7, producer_epoch=3)
    append(log, view, origin=Origin.COORDINATOR)
    append(log, batch(b"x", producer_id=7, producer_epoch=3), origin=Origin.COORDINATOR)
    old = batch(b"x", producer_id=7, producer_epoch=2)
    assert refusal(log, old, Origin.COORDINATOR) is Error.INVALID_PRODUCER_EPOCH


def test_silent_producers_expire_unless_they_are_in_a_transaction(tmp_path: Path) -> None:
    log = create(tmp_path, config(producer_id_expiration_ms=1000))
    append(log, sequenced(0, producer_id=1))
    append(log, sequenced(0, producer_id=2, transactional=True))
    log.sweep(NOW + 999)
    assert set(log.producers.by_id) == {1, 2}
    log.sweep(NOW + 1000)
    assert set(log.producers.by_id) == {2}
    append(log, sequenced(9, producer_id=1))


def test_an_open_transaction_holds_back_the_last_stable_offset(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"before"))
    append(log, sequenced(0, producer_id=1, transactional=True))
    append(log, sequenced(0, producer_id=2, transactional=True))
    assert log.last_stable_offset == 1
    end(log, True, producer_id=1)
    assert log.last_stable_offset == 2
    end(log, False, producer_id=2)
    assert log.last_stable_offset == log.end_offset == 5


def test_a_marker_counts_only_when_it_is_replicated(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0, transactional=True))
    from moldau.wire.records import end_txn_marker

    marker = memoryview(end_txn_marker(True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=NOW))
    log.append(marker, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    assert log.last_stable_offset == 0
    log.advance_high_watermark(2)
    assert log.last_stable_offset == 2


def test_readers_of_committed_records_learn_what_was_aborted(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0, producer_id=1, transactional=True))  # 0
    append(log, sequenced(0, producer_id=2, transactional=True))  # 1
    end(log, False, producer_id=1)  # 2
    end(log, True, producer_id=2)  # 3
    append(log, sequenced(1, producer_id=1, transactional=True))  # 4
    end(log, False, producer_id=1)  # 5
    append(log, batch(b"x"))  # 6
    assert log.read(0, 9999, isolation=Isolation.COMMITTED).aborted == [(1, 0), (1, 4)]
    assert log.read(3, 9999, isolation=Isolation.COMMITTED).aborted == [(1, 4)]
    assert log.read(6, 9999, isolation=Isolation.COMMITTED).aborted == []
    assert log.read(0, 9999).aborted is None
    log.roll(NOW)
    append(log, batch(b"y"))
    assert log.read(0, 9999, isolation=Isolation.COMMITTED).aborted == [(1, 0), (1, 4)]


def test_committed_reads_stop_at_the_first_open_transaction(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, batch(b"x"))
    append(log, sequenced(0, transactional=True))
    read = log.read(0, 9999, isolation=Isolation.COMMITTED)
    assert read.span is not None
    assert [b.base_offset for b in batches(read.span.read())] == [0]
    assert log.read(1, 9999, isolation=Isolation.COMMITTED) == (None, [])


def test_a_plain_batch_within_a_transaction_is_refused(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0, transactional=True))
    assert refusal(log, sequenced(1)) is Error.INVALID_TXN_STATE


def marker_refusal(producers: Producers, epoch: int, coordinator: int, version: int) -> Error | None:
    try:
        producers.check_marker(7, epoch, Marker(True, coordinator, NOW), version)
    except Refused as refused:
        return refused.error
    return None


def test_markers_of_fenced_producers_and_coordinators_are_refused(tmp_path: Path) -> None:
    producers = Producers(OsDisk(), str(tmp_path))
    assert marker_refusal(producers, 0, 0, 0) is None
    producers.apply(7, 5, 0, 0, 0, NOW, True)
    assert marker_refusal(producers, 4, 0, 0) is Error.INVALID_PRODUCER_EPOCH
    assert marker_refusal(producers, 5, 0, 0) is None
    assert marker_refusal(producers, 5, 0, 2) is Error.INVALID_PRODUCER_EPOCH  # KIP-890: the epoch is raised first
    assert marker_refusal(producers, 6, 0, 2) is None
    producers.apply_marker(7, 6, 1, Marker(False, 3, NOW))
    assert marker_refusal(producers, 6, 3, 2) is None  # sent once more
    assert marker_refusal(producers, 6, 2, 0) is Error.TRANSACTION_COORDINATOR_FENCED


def test_a_snapshot_has_kafkas_bytes() -> None:
    producers = Producers(OsDisk(), "/nowhere")
    producers.apply(0x0102, 3, 9, 100, 104, NOW, True)
    data = encode_snapshot(producers.by_id.values())
    assert data[:2] == b"\x00\x01"
    assert data[6:].hex() == (
        "00000001" "0000000000000102" "0003" "00000009" "0000000000000068" "00000004" "0000018bcfe56800" "ffffffff"
        "0000000000000064"
    )  # fmt: skip
    (loaded,) = decode_snapshot(data)
    assert (loaded.producer_id, loaded.epoch, loaded.txn_first_offset) == (0x0102, 3, 100)
    assert loaded.batches == [(9, 104, 4, NOW)]


@pytest.mark.parametrize("at", range(56))
def test_a_damaged_snapshot_is_noticed(at: int) -> None:
    producers = Producers(OsDisk(), "/nowhere")
    producers.apply(1, 0, 0, 0, 0, NOW, False)
    data = bytearray(encode_snapshot(producers.by_id.values()))
    assert len(data) == 56
    with pytest.raises(WireError):
        decode_snapshot(bytes(data[:at]))
    data[at] ^= 0x10
    with pytest.raises(WireError):
        decode_snapshot(bytes(data))


def test_producers_survive_a_clean_stop_and_a_crash(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, sequenced(0, 2))
    log.roll(NOW)
    append(log, sequenced(2, transactional=True))
    log.close()
    clean = reopen(tmp_path, clean=True, recovery_point=3)
    assert clean.append(sequenced(2, transactional=True), leader_epoch=0, now_ms=NOW).duplicate
    assert clean.last_stable_offset == 0  # nothing is replicated yet
    clean.advance_high_watermark(3)
    assert clean.last_stable_offset == 2
    crashed = reopen(tmp_path)
    assert crashed.append(sequenced(2, transactional=True), leader_epoch=0, now_ms=NOW).base_offset == 2
    assert crashed.append(sequenced(3, transactional=True), leader_epoch=0, now_ms=NOW).base_offset == 3


def test_snapshots_stay_with_their_segments(tmp_path: Path) -> None:
    log = create(tmp_path)
    for _ in range(3):
        append(log, batch(b"x"))
        log.roll(NOW)
    assert log.producers.snapshots == [1, 2, 3]
    log.delete_segments(log.segments.items[:2], NOW)
    assert log.producers.snapshots == [2, 3]
    assert {path.name for path in (tmp_path / "t-0").glob("*.snapshot")} == {f"{2:020d}.snapshot", f"{3:020d}.snapshot"}
