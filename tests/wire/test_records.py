"""Record batches: golden bytes of Java's own builder, round trips, patches, and damage of every kind."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.wire import records as r
from moldau.wire.compression import Compression
from moldau.wire.errors import WireError
from moldau.wire.numbers import zigzag
from moldau.wire.records import Batch, Record, batches, build, identify, patch, records, starts

T = 1_700_000_000_000

# What Java's MemoryRecordsBuilder of Kafka 4.3 makes of RECORDS, and of single control records.
RECORDS = [
    Record(1000, T, b"k1", b"value one", (("h", b"x"), ("é", None))),
    Record(1001, T + 70, b"k2", None),
    Record(1002, T - 5, None, bytes(100)),
    Record(1003, T + 3, b"", b""),
]
PRODUCER = {"producer_id": 4242, "producer_epoch": 7}
GOLDEN_CODECS = {
    "none": bytes.fromhex(
        "00000000000003e8000000c90000000c0287ad5ddb0010000000030000018bcfe568000000018bcfe5684600000000000010"
        "920007000000630000000432000000046b311276616c7565206f6e65040268027804c3a90112008c0102046b320100d60100"
        "090401c801000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000c000606000000"
    ),
    "gzip": bytes.fromhex(
        "00000000000003e80000007a0000000c02fbcb4d600011000000030000018bcfe568000000018bcfe5684600000000000010"
        "92000700000063000000041f8b08000000000000ff3362606060c936142a4bcc294d55c8cf4b6561ca60aa6039bc925188a1"
        "87918925db8891e11a2303270be30946067a001e0636362005003ff4745198000000"
    ),
    "snappy": bytes.fromhex(
        "00000000000003e8000000850000000c02eec099960012000000030000018bcfe568000000018bcfe5684600000000000010"
        "920007000000630000000482534e41505059000000000100000001000000409801b832000000046b311276616c7565206f6e"
        "65040268027804c3a90112008c0102046b320100d60100090401c801000000fe0200860200180c000606000000"
    ),
    "lz4": bytes.fromhex(
        "00000000000003e80000007a0000000c020cd8c0860013000000030000018bcfe568000000018bcfe5684600000000000010"
        "920007000000630000000404224d186040823a000000ff1e32000000046b311276616c7565206f6e65040268027804c3a901"
        "12008c0102046b320100d60100090401c80100010051700c00060600000000000000"
    ),
    "zstd": bytes.fromhex(
        "00000000000003e8000000790000000c02dd1643420014000000030000018bcfe568000000018bcfe5684600000000000010"
        "920007000000630000000428b52ffd0058e40100440332000000046b311276616c7565206f6e65040268027804c3a9011200"
        "8c0102046b320100d60100090401c801000c00060600000001000d292803010000"
    ),
}
GOLDEN = {
    "append_time": bytes.fromhex(
        "0000000000000005000000c9ffffffff025eb389290008000000030000018bcfe568000000018bcfe56be7ffffffffffffff"
        "ffffffffffffff0000000432000000046b311276616c7565206f6e65040268027804c3a90112008c0102046b320100d60100"
        "090401c801000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000c000606000000"
    ),
    "horizon": bytes.fromhex(
        "00000000000000320000003c0000000302db52393600400000000a0000018bd50bc4000000018bcfe56800ffffffffffffff"
        "ffffffffffffff000000011400ffefb25204026b0100"
    ),
    "commit": bytes.fromhex(
        "000000000000001f00000042000000090241c5d90f0030000000000000018bcfe568000000018bcfe5680000000000000010"
        "920007ffffffff000000012000000008000000010c00000000001100"
    ),
    "abort": bytes.fromhex(
        "000000000000001f000000420000000902b5fb0f470030000000000000018bcfe568000000018bcfe5680000000000000010"
        "920007ffffffff000000012000000008000000000c00000000001100"
    ),
    "leader": bytes.fromhex(
        "000000000000000000000045000000040213d27a030020000000000000018bcfe568000000018bcfe56800ffffffffffffff"
        "ffffffffffffff000000012600000008000000021200000000000101010000"
    ),
    "empty": bytes.fromhex(
        "000000000000000a000000310000000502f73cb9a800100000000affffffffffffffff0000018bcfe5680000000000000010"
        "9200070000006300000000"
    ),
}

BYTES = st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)
RECORD = st.builds(
    Record, st.just(0), st.integers(0, 2**61), st.none() | BYTES, st.none() | BYTES | st.just(bytes(20_000)), HEADERS
)
CODECS = st.sampled_from(list(Compression))


def golden_kwargs() -> dict[str, int]:
    return {"base_offset": 1000, "base_sequence": 99, "partition_leader_epoch": 12, **PRODUCER}


@pytest.mark.parametrize("codec", Compression)
def test_batches_of_java_are_read(codec: Compression) -> None:
    (batch,) = batches(GOLDEN_CODECS[codec.name.lower()])
    batch.verify()
    assert list(records(batch)) == RECORDS
    assert (batch.compression, batch.is_transactional, batch.is_control) == (codec, True, False)
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.count) == (1000, 1003, 1004, 4)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (4242, 7, 99, 102)
    assert (batch.partition_leader_epoch, batch.base_timestamp, batch.max_timestamp) == (12, T, T + 70)
    assert (batch.timestamp_type, batch.delete_horizon) == (0, None)


def test_a_plain_batch_is_java_s_byte_for_byte() -> None:
    assert build(RECORDS, transactional=True, **golden_kwargs()) == GOLDEN_CODECS["none"]


def test_patching_log_append_time_is_java_s_byte_for_byte() -> None:
    batch = build(RECORDS)
    patch(memoryview(batch), base_offset=5, append_time=T + 999)
    assert batch == GOLDEN["append_time"]
    parsed = Batch(batch)
    assert parsed.timestamp_type == 1
    assert {record.timestamp for record in records(parsed)} == {T + 999}


def test_a_delete_horizon_is_java_s_byte_for_byte() -> None:
    one = Record(52, T, b"k", None)
    horizon = T + 86_400_000
    kept = build(
        [one],
        base_offset=50,
        sparse=True,
        last_offset_delta=10,
        delete_horizon=horizon,
        partition_leader_epoch=3,
    )
    assert kept == GOLDEN["horizon"]
    batch = Batch(kept)
    assert batch.delete_horizon == horizon
    assert list(records(batch)) == [one]


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_markers_are_java_s_byte_for_byte(commit: bool) -> None:
    marker = r.end_txn_marker(
        commit, coordinator_epoch=17, timestamp=T, partition_leader_epoch=9, base_offset=31, **PRODUCER
    )
    assert marker == GOLDEN["commit" if commit else "abort"]
    batch = Batch(marker)
    (record,) = records(batch)
    assert batch.is_control and batch.is_transactional
    assert r.control_type(record.key) == (r.ControlType.COMMIT if commit else r.ControlType.ABORT)
    assert r.coordinator_epoch(record) == 17


def test_other_control_records_take_a_payload() -> None:
    (given_record,) = records(Batch(GOLDEN["leader"]))
    assert r.control_type(given_record.key) == r.ControlType.LEADER_CHANGE
    made = r.control_record(r.ControlType.LEADER_CHANGE, given_record.value or b"", T)
    assert build([made], control=True, partition_leader_epoch=4) == GOLDEN["leader"]


def test_an_empty_batch_keeps_offsets_and_sequences() -> None:
    batch = Batch(GOLDEN["empty"])
    batch.verify()
    assert list(records(batch)) == []
    assert (batch.last_offset, batch.last_sequence, batch.max_timestamp) == (20, 109, T)


@given(st.lists(RECORD, max_size=20), CODECS, st.integers(0, 2**62), st.booleans(), st.booleans())
@settings(deadline=None)
def test_what_is_built_is_read_back(
    given_records: list[Record], codec: Compression, base: int, transactional: bool, control: bool
) -> None:
    data = build(given_records, base_offset=base, compression=codec, transactional=transactional, control=control)
    (batch,) = batches(data)
    batch.verify()
    assert (batch.is_transactional, batch.is_control, batch.compression) == (transactional, control, codec)
    wanted = [record._replace(offset=base + i) for i, record in enumerate(given_records)]
    assert list(records(batch)) == wanted
    assert batch.max_timestamp == max((record.timestamp for record in wanted), default=r.NO_TIMESTAMP)


def test_sparse_offsets_are_kept() -> None:
    kept = [Record(7, 1, b"a", b""), Record(900, 2, b"b", b""), Record(2_000_000_000, 3, b"c", b"")]
    batch = Batch(build(kept, base_offset=7, sparse=True))
    assert list(records(batch)) == kept
    assert batch.last_offset == 2_000_000_000


def test_header_keys_that_are_no_text_survive() -> None:
    record = Record(0, 0, b"", b"", ((b"\xff\x00".decode(errors="surrogateescape"), b"v"),))
    assert next(records(Batch(build([record])))) == record


def test_batches_begin_where_the_ones_before_end_up_to_one_that_is_cut_off() -> None:
    first, second = build(RECORDS), build(RECORDS[:1], base_offset=9)
    data = bytes(first + second)
    assert list(starts(data + data[:70])) == [0, len(first), len(data)][: 3 if len(first) <= 70 else 2]
    assert list(starts(data[:-1])) == [0]
    with pytest.raises(WireError):
        list(starts(bytes(61)))


def test_patching_offset_and_epoch_leaves_the_crc_right() -> None:
    data = bytearray(b"".join(build(RECORDS, base_offset=n) for n in range(3)))
    view = memoryview(data)
    for batch in batches(data):
        patch(batch.view, base_offset=batch.base_offset + 100, leader_epoch=5)
    patched = list(batches(view))
    assert [batch.base_offset for batch in patched] == [100, 101, 102]
    assert {batch.partition_leader_epoch for batch in patched} == {5}
    assert all(batch.is_valid() for batch in patched)


def test_large_batches_have_the_same_crc_in_any_buffer() -> None:
    data = build([Record(0, 1, b"k", bytes(range(256)) * 1000)])
    Batch(data).verify()
    Batch(bytes(data)).verify()
    data[200_000] ^= 1
    assert not Batch(data).is_valid()
    assert not Batch(bytes(data)).is_valid()


def test_sequences_wrap_to_zero() -> None:
    batch = Batch(build(RECORDS[:3], base_sequence=2**31 - 2, producer_id=1, producer_epoch=0))
    assert batch.last_sequence == 0


def test_a_header_alone_can_be_looked_at() -> None:
    batch = Batch(GOLDEN_CODECS["none"][: r.HEADER_SIZE])
    assert batch.size == len(GOLDEN_CODECS["none"])
    assert not batch.is_whole and not batch.is_valid()
    with pytest.raises(WireError):
        list(records(batch))


def corrupt(field: int, number: int) -> bytearray:
    fields = list(r.HEADER.unpack_from(GOLDEN_CODECS["none"]))
    fields[field] = number
    return bytearray(r.HEADER.pack(*fields) + GOLDEN_CODECS["none"][r.HEADER_SIZE :])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(GOLDEN_CODECS["none"][:60], id="less than a header"),
        pytest.param(GOLDEN_CODECS["none"][:-1], id="torn"),
        pytest.param(GOLDEN_CODECS["none"] + b"\0", id="a byte behind"),
        pytest.param(corrupt(1, 48), id="a length below the header"),
        pytest.param(corrupt(1, -1), id="a negative length"),
        pytest.param(corrupt(1, 2**31 - 1), id="a huge length"),
        pytest.param(corrupt(3, 1), id="magic 1"),
        pytest.param(corrupt(12, 3), id="one record less"),
        pytest.param(corrupt(12, 5), id="one record more"),
        pytest.param(corrupt(12, -1), id="a negative count"),
        pytest.param(corrupt(12, 2**31 - 1), id="a huge count"),
        pytest.param(corrupt(5, 7), id="an unknown codec"),
        pytest.param(corrupt(5, 4), id="another codec"),
    ],
)
def test_malformed_batches_raise_one_error(data: bytes | bytearray) -> None:
    with pytest.raises(WireError):
        for batch in batches(data):
            list(records(batch))


def batch_of(body: bytes, count: int = 1) -> Batch:
    return Batch(r.assemble(0, 0, 0, 0, 0, 0, -1, -1, -1, count, body))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x01", id="a negative size"),
        pytest.param(b"\x00", id="size 0"),
        pytest.param(zigzag(100) + bytes(6), id="a size beyond the batch"),
        pytest.param(zigzag(5) + bytes(6), id="a size below the fields"),
        pytest.param(zigzag(6) + b"\0\0\0" + zigzag(50) + b"\0\0", id="a key beyond the record"),
        pytest.param(zigzag(6) + b"\0\0\0\0" + zigzag(2**31 - 1)[:1] + b"\0", id="a value beyond the record"),
        pytest.param(zigzag(6) + b"\0\0\0\0\0" + zigzag(-1), id="a negative number of headers"),
        pytest.param(zigzag(7) + b"\0\0\0\0\0" + zigzag(80), id="more headers than bytes"),
        pytest.param(zigzag(7) + b"\0\0\0\0\0" + zigzag(1) + b"\x01\0", id="a header without key"),
        pytest.param(zigzag(6) + bytes(6) + b"\0", id="a trailing byte"),
    ],
)
def test_malformed_records_raise_one_error(body: bytes) -> None:
    with pytest.raises(WireError):
        list(records(batch_of(body)))


@given(st.binary(max_size=300), st.integers(-1, 50), st.integers(0, 7))
def test_any_bytes_are_records_or_a_wire_error(body: bytes, count: int, codec: int) -> None:
    batch = Batch(r.assemble(0, 0, codec, 0, 0, 0, -1, -1, -1, count, body))
    with contextlib.suppress(WireError):
        assert len(list(records(batch, 10_000))) == count


@given(st.data(), CODECS)
def test_flipped_bytes_are_records_or_a_wire_error(data: st.DataObject, codec: Compression) -> None:
    raw = bytearray(build(RECORDS, compression=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(8, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        for batch in batches(raw):
            for record in records(batch, 100_000):
                assert isinstance(record, Record)
    except WireError:
        pass


def test_a_control_record_with_a_short_key_is_refused() -> None:
    for key in (None, b"", b"\0\0\0"):
        with pytest.raises(WireError):
            r.control_type(key)
    with pytest.raises(WireError):
        r.coordinator_epoch(Record(0, 0, b"", b"\0"))


@pytest.mark.parametrize("transactional", [True, False])
def test_a_batch_is_told_whose_it_is(transactional: bool) -> None:
    whole = build([Record(0, 5, b"k", b"v")], compression=Compression.GZIP, transactional=not transactional)
    identify(memoryview(whole), 77, 3, 12, transactional=transactional)
    batch = Batch(whole)
    assert batch.is_valid()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 3, 12)
    assert (batch.is_transactional, batch.compression) == (transactional, Compression.GZIP)
    assert [record.value for record in records(batch)] == [b"v"]
