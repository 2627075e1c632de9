"""Records to columns by compiled code, held against the plain decoder of the wire."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.client import Batch, Error, Fetched, Record, build, records
from moldau.spark.source.batches import decoded
from moldau.wire.errors import WireError
from moldau.wire.records import HEADER_SIZE, end_txn_marker, seal

BYTES = st.one_of(st.none(), st.binary(max_size=200))
HEADERS = st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(Record, timestamp=st.integers(0, 1 << 45), key=BYTES, value=BYTES, headers=HEADERS), min_size=1
)
BATCHES = st.lists(st.tuples(RECORDS, st.integers(0, 4), st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=6)


def fetched(*batches: bytes | bytearray, aborted: tuple[tuple[int, int], ...] = ()) -> Fetched:
    return Fetched(Error.NONE, memoryview(b"".join(batches)), aborted=aborted)


def rows(found: Fetched, first: int = 0, last: int = 1 << 62) -> list[Record]:
    return [one for chunk in decoded(found, first, last) for one in chunk.records(range(chunk.rows))]


@settings(deadline=None)  # the first one compiles
@given(BATCHES, st.data())
def test_compiled_code_finds_what_the_plain_decoder_finds(made: list[Any], data: st.DataObject) -> None:
    whole, offset = [], 0
    for items, codec, kind, gap in made:
        whole.append(build(items, base_offset=offset, compression=codec, timestamp_type=kind))
        offset += len(items) + gap
    first = data.draw(st.integers(0, offset))
    last = data.draw(st.integers(first, offset + 1))
    expected = [one for batch in whole for one in records(Batch(batch)) if first <= one.offset < last]
    assert rows(fetched(*whole), first, last) == expected


def test_markers_and_aborted_records_are_left_out_and_the_position_is_behind_them() -> None:
    good, bad = [Record(timestamp=1, value=b"good")], [Record(timestamp=1, value=b"bad")]
    whole = [
        build(bad, base_offset=0, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        build(good, base_offset=1, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True),
        end_txn_marker(False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=1, base_offset=2),
        end_txn_marker(True, producer_id=8, producer_epoch=0, coordinator_epoch=0, timestamp=1, base_offset=3),
    ]
    found = fetched(*whole, aborted=((7, 0),))
    assert [one.value for one in rows(found)] == [b"good"]
    assert found.next_offset(0) == 4
    assert fetched().next_offset(5) == 5


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    one, two = build([Record(value=b"1")]), build([Record(value=b"2")], base_offset=1)
    found = fetched(one, two[:-1])
    assert [row.value for row in rows(found)] == [b"1"]
    assert found.next_offset(0) == 1


def test_a_batch_with_a_wrong_checksum_is_refused() -> None:
    batch = build([Record(value=b"1")])
    batch[-1] ^= 1
    with pytest.raises(WireError, match="wrong CRC"):
        rows(fetched(batch))


@pytest.mark.parametrize("seed", range(20))
def test_bytes_that_lie_are_refused_or_read_but_never_beyond_their_end(seed: int) -> None:
    """The checksum is right, as a producer that lies would make it."""
    dice = random.Random(seed)
    items = [Record(0, 5, b"k" * dice.randrange(9), b"v" * dice.randrange(300), (("h", b"x"),)) for _ in range(20)]
    for _ in range(50):
        batch = build(items)
        for _ in range(dice.randrange(1, 4)):
            batch[dice.randrange(HEADER_SIZE, len(batch))] = dice.randrange(256)
        seal(memoryview(batch))
        try:
            found = rows(fetched(batch))
        except WireError:
            continue
        assert len(found) <= len(items)  # an offset that lies may be out of the range
        assert all(len(one.value or b"") <= len(batch) for one in found)


def test_a_number_of_records_that_cannot_be_is_refused() -> None:
    batch = build([Record(value=b"1")])
    batch[57:61] = (1 << 30).to_bytes(4, "big")
    seal(memoryview(batch))
    with pytest.raises(WireError, match="says that it has 1073741824 records"):
        rows(fetched(batch))


def test_without_numba_the_columns_are_the_same() -> None:
    program = """
import sys; sys.modules["numba"] = None
import pytest
wanted = "markers or cut_off or beyond_their_end and 1"
sys.exit(pytest.main(["-q", "-n0", "-p", "no:cacheprovider", sys.argv[1], "-k", wanted]))
"""
    done = subprocess.run([sys.executable, "-c", program, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
