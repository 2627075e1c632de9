"""What compaction leaves of single batches."""

from collections.abc import Sequence

import pytest

from moldau.log.compaction_filter import Filter, LastOfProducer, Tally, Transactions
from moldau.log.compaction_keys import DIGEST_BYTES, ENTRY_BYTES, KeyMap, digest
from moldau.log.index import Aborted
from moldau.wire import records as r
from moldau.wire.compression import Compression
from moldau.wire.errors import WireError
from moldau.wire.records import Batch, Record, build, records
from moldau.wire.records.scan import Scan, places

T = 1_700_000_000_000
DAY = 86_400_000


def batch(items: Sequence[Record], base: int = 0, **fields: int | bool | None) -> Batch:
    return Batch(build(items, base_offset=base, **fields))  # type: ignore[arg-type]


def key_map(newest: dict[bytes, int], latest: int = 1000) -> KeyMap:
    found = KeyMap(1 << 20)
    for key, offset in newest.items():
        found.add(scan_of(batch([Record(0, T, key, b"")], offset)), 0)
    found.latest = latest
    return found


def filter_of(
    keys: KeyMap,
    *,
    aborted: Sequence[Aborted] = (),
    producers: dict[int, LastOfProducer] | None = None,
    upper: int = 2000,
    now_ms: int = T + DAY,
) -> Filter:
    return Filter(keys, Transactions(aborted), producers or {}, upper, now_ms, DAY, Tally())


def left_of(filter_: Filter, given: Batch) -> Batch | None:
    steps = filter_.apply(given)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            if end.value is None:
                return None
            found = Batch(end.value)
            found.verify()
            return found


def values(given: Batch | None) -> list[tuple[int, bytes | None]]:
    return [] if given is None else [(record.offset, record.value) for record in records(given)]


THREE = [
    Record(0, T + 50, b"a", b"1", (("h", b"x"),)),
    Record(0, T + 99, b"b", b"2"),
    Record(0, T + 10, b"c", b"3"),
]


@pytest.mark.parametrize("codec", Compression)
def test_superseded_records_go_and_all_else_stays(codec: Compression) -> None:
    given = batch(
        THREE, 10, compression=codec, producer_id=7, producer_epoch=1, base_sequence=5, partition_leader_epoch=3
    )
    kept = left_of(filter_of(key_map({b"a": 10, b"b": 500, b"c": 12})), given)
    assert kept is not None
    assert list(records(kept)) == [THREE[0]._replace(offset=10), THREE[2]._replace(offset=12)]
    assert kept.max_timestamp == T + 50
    assert kept.count == 2
    same = ("base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence", "attributes")
    assert all(getattr(kept, name) == getattr(given, name) for name in (*same, "partition_leader_epoch"))


@pytest.mark.parametrize("codec", Compression)
def test_a_batch_that_survives_is_the_same_bytes(codec: Compression) -> None:
    given = batch(THREE, 10, compression=codec)
    kept = left_of(filter_of(key_map({b"a": 10, b"b": 11})), given)
    assert kept is not None and kept.view == given.view


def test_a_batch_without_survivors_goes() -> None:
    assert left_of(filter_of(key_map({b"a": 900, b"b": 900, b"c": 900})), batch(THREE, 10)) is None


def test_records_beyond_the_map_stay() -> None:
    newest = {b"a": 900, b"b": 900, b"c": 900}
    assert values(left_of(filter_of(key_map(newest, latest=11)), batch(THREE, 10))) == [(12, b"3")]
    assert len(values(left_of(filter_of(key_map(newest, latest=9)), batch(THREE, 10)))) == 3


def test_records_without_a_key_go_and_are_counted() -> None:
    filter_ = filter_of(key_map({}))
    given = batch([Record(0, T, None, b"lost"), Record(0, T, b"k", b"kept")], 10)
    assert values(left_of(filter_, given)) == [(11, b"kept")]
    assert filter_.tally.keyless == 1


def test_with_log_append_time_the_batch_keeps_its_timestamp() -> None:
    raw = build(THREE, base_offset=10)
    r.patch(memoryview(raw), append_time=T + 12345)
    kept = left_of(filter_of(key_map({b"b": 900})), Batch(raw))
    assert kept is not None
    assert (kept.timestamp_type, kept.max_timestamp) == (1, T + 12345)


TOMBSTONES = [
    Record(0, T + 50, b"a", None, (("h", b"x"),)),
    Record(0, T + 99, b"b", b"2"),
    Record(0, T - 7, b"c", None),
]


@pytest.mark.parametrize("codec", Compression)
def test_tombstones_get_a_horizon_and_keep_their_timestamps(codec: Compression) -> None:
    given = batch(TOMBSTONES, 10, compression=codec)
    kept = left_of(filter_of(key_map({})), given)
    assert kept is not None
    assert kept.delete_horizon == T + DAY + DAY
    assert list(records(kept)) == list(records(given))
    assert (kept.max_timestamp, kept.last_offset) == (T + 99, 12)


def test_a_horizon_is_set_once() -> None:
    given = batch(TOMBSTONES, 10, delete_horizon=T + DAY + 5)
    kept = left_of(filter_of(key_map({})), given)
    assert kept is not None and kept.view == given.view


def test_tombstones_go_when_their_horizon_has_passed() -> None:
    given = batch(TOMBSTONES, 10, delete_horizon=T + DAY)
    assert len(values(left_of(filter_of(key_map({}), now_ms=T + DAY - 1), given))) == 3
    kept = left_of(filter_of(key_map({}), now_ms=T + DAY), given)
    assert values(kept) == [(11, b"2")]
    assert kept is not None and (kept.delete_horizon, kept.max_timestamp) == (T + DAY, T + 99)


def test_tombstones_beyond_the_map_stay_although_their_horizon_has_passed() -> None:
    given = batch(TOMBSTONES, 10, delete_horizon=T + DAY)
    assert values(left_of(filter_of(key_map({}, latest=10)), given)) == [(11, b"2"), (12, None)]


def test_the_last_batch_of_a_live_producer_stays_empty() -> None:
    gone = key_map({b"a": 900, b"b": 900, b"c": 900})
    given = batch(THREE, 10, producer_id=7, producer_epoch=1, base_sequence=5, compression=Compression.ZSTD)
    kept = left_of(filter_of(gone, producers={7: (12, 1)}), given)
    assert kept is not None
    assert (kept.count, kept.size, kept.compression) == (0, r.HEADER_SIZE, Compression.NONE)
    assert (kept.base_offset, kept.last_offset, kept.last_sequence, kept.max_timestamp) == (10, 12, 7, T + 99)
    assert left_of(filter_of(gone, producers={7: (12, 1)}), kept) is not None
    assert left_of(filter_of(gone, producers={7: (40, 1)}), given) is None
    assert left_of(filter_of(gone, producers={7: (40, 1)}), kept) is None


def test_the_last_batch_of_the_range_stays_empty() -> None:
    kept = left_of(filter_of(key_map({b"a": 900, b"b": 900, b"c": 900}), upper=13), batch(THREE, 10))
    assert kept is not None
    assert (kept.count, kept.next_offset) == (0, 13)


def marker(commit: bool, base: int, producer_id: int = 7, horizon: int | None = None) -> Batch:
    raw = r.end_txn_marker(
        commit, producer_id=producer_id, producer_epoch=1, coordinator_epoch=3, timestamp=T, base_offset=base
    )
    if horizon is None:
        return Batch(raw)
    items = list(records(Batch(raw)))
    fields = {"producer_id": producer_id, "producer_epoch": 1, "transactional": True, "control": True}
    return batch(items, base, delete_horizon=horizon, **fields)


def data(base: int, producer_id: int = 7) -> Batch:
    return batch(THREE, base, producer_id=producer_id, producer_epoch=1, base_sequence=0, transactional=True)


ABORTED = Aborted(7, 10, 13, 13)


def test_aborted_data_goes_and_its_marker_stays_for_now() -> None:
    filter_ = filter_of(key_map({}), aborted=[ABORTED])
    assert left_of(filter_, data(10)) is None
    end = marker(False, 13)
    kept = left_of(filter_, end)
    assert kept is not None and kept.view == end.view


def test_data_of_another_producer_is_not_aborted() -> None:
    filter_ = filter_of(key_map({}), aborted=[ABORTED])
    assert left_of(filter_, data(10, producer_id=8)) is not None


def test_data_behind_a_lost_abort_marker_is_not_aborted() -> None:
    filter_ = filter_of(key_map({}), aborted=[ABORTED])
    assert left_of(filter_, data(10)) is None
    assert len(values(left_of(filter_, data(14)))) == 3


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_without_data_gets_a_horizon_and_goes_after_it(commit: bool) -> None:
    aborted = [] if commit else [ABORTED]
    kept = left_of(filter_of(key_map({}), aborted=aborted), marker(commit, 13))
    assert kept is not None
    assert (kept.delete_horizon, kept.count, kept.is_control) == (T + 2 * DAY, 1, True)
    (record,) = records(kept)
    assert (record.timestamp, r.coordinator_epoch(record)) == (T, 3)
    before = left_of(filter_of(key_map({}), aborted=aborted, now_ms=T + 2 * DAY - 1), kept)
    assert before is not None and before.view == kept.view
    assert left_of(filter_of(key_map({}), aborted=aborted, now_ms=T + 2 * DAY), kept) is None


def test_a_commit_marker_stays_as_long_as_data_is_seen() -> None:
    filter_ = filter_of(key_map({}))
    assert left_of(filter_, data(10)) is not None
    end = marker(True, 13, horizon=T)
    kept = left_of(filter_, end)
    assert kept is not None and kept.view == end.view


def test_the_last_marker_of_a_producer_without_data_stays_empty() -> None:
    kept = left_of(filter_of(key_map({}), producers={7: (None, 1)}), marker(True, 13, horizon=T))
    assert kept is not None
    assert (kept.count, kept.is_control, kept.producer_epoch) == (0, True, 1)
    assert left_of(filter_of(key_map({}), producers={7: (None, 1)}), kept) is not None
    assert left_of(filter_of(key_map({}), producers={7: (None, 2)}), kept) is None


def test_other_control_batches_stay() -> None:
    given = batch([r.control_record(r.ControlType.LEADER_CHANGE, b"", T)], 10, control=True)
    kept = left_of(filter_of(key_map({})), given)
    assert kept is not None and kept.view == given.view


def test_a_batch_with_a_wrong_crc_stays_and_is_reported() -> None:
    raw = build(THREE, base_offset=10)
    raw[-3] ^= 0xFF
    filter_ = filter_of(key_map({b"a": 900, b"b": 900, b"c": 900}))
    steps = filter_.apply(Batch(raw))
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == raw
    assert len(filter_.tally.damaged) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x01",
        b"\x0c" + bytes(5),
        b"\x0c" + bytes(7),
        b"\x0a\x00\x00\x00\x14",
        b"\xff" * 20,
        b"\x0c\0\0\x08\0\0\0",
    ],
    ids=lambda body: body.hex(),
)
def test_a_batch_whose_records_do_not_parse_stays_and_is_reported(body: bytes) -> None:
    raw = r.assemble(10, 0, 0, 0, T, T, -1, -1, -1, 1, body)
    filter_ = filter_of(key_map({}))
    kept = left_of(filter_, Batch(raw))
    assert kept is not None and kept.view == raw
    assert len(filter_.tally.damaged) == 1


def test_a_long_batch_is_interrupted() -> None:
    given = batch([Record(0, T, b"%d" % n, b"") for n in range(3500)], 0)
    assert len(list(filter_of(key_map({})).apply(given))) == 3


def test_long_keys_are_held_as_digests() -> None:
    long, short = b"k" * 500, b"k" * (DIGEST_BYTES - 1)
    assert len(digest(long)) == DIGEST_BYTES
    assert digest(short) == short
    given = batch([Record(0, T, long, b"1"), Record(0, T, short, b"2"), Record(0, T, long, b"3")], 10)
    assert values(left_of(filter_of(key_map({long: 12, short: 11})), given)) == [(11, b"2"), (12, b"3")]


def scan_of(given: Batch) -> Scan:
    found = Scan()
    found.extend(given.body(), given.count, given.base_offset)
    return found


def test_a_scan_finds_keys_offsets_places_and_tombstones() -> None:
    items = [
        Record(3, T, b"x" * 100, None),
        Record(200, T + 2**40, None, b"v" * 9000),
        Record(90_000, T - 2**40, b"", b"", (("h", None),)),
    ]
    given = batch(items, 0, sparse=True)
    found = scan_of(given)
    assert found.keys == [item.key for item in items]
    assert found.offsets == [3, 200, 90_000]
    assert found.nulls == [0]
    assert found.end == len(given.body())
    assert places(given.body(), 3)[-1] == found.end


def test_the_key_map_is_full_when_its_memory_is_used() -> None:
    keys = KeyMap(100 * ENTRY_BYTES, 0.5)
    keys.add(scan_of(batch([Record(0, T, b"%d" % n, b"") for n in range(49)], 0)), 0)
    assert not keys.is_full
    keys.add(scan_of(batch([Record(0, T, b"x", b"")], 49)), 0)
    assert keys.is_full


def test_the_key_map_skips_old_offsets_and_missing_keys() -> None:
    keys = KeyMap(1 << 20)
    keys.add(scan_of(batch([Record(0, T, b"a", b""), Record(0, T, None, b""), Record(0, T, b"b", b"")], 10)), 11)
    assert keys.newest([b"a", b"b"]) == [-1, 12]
    assert len(keys) == 1


def test_a_scan_of_garbage_is_a_wire_error() -> None:
    for body in (b"\x01", b"\xff" * 12, b"\x0c\0\0\0"):
        with pytest.raises(WireError):
            Scan().extend(body, 1, 0)


def test_a_transaction_that_ended_before_the_walk_does_not_hide_the_next_one() -> None:
    filter_ = filter_of(key_map({}), aborted=[ABORTED, Aborted(7, 20, 23, 23)])
    assert left_of(filter_, data(20)) is None
    assert len(values(left_of(filter_, data(24)))) == 3
