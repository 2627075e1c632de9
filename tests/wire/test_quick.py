"""Values and records at the speed of a regular expression are those that the loop finds, or none."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client import Batch, Record, build, records
from moldau.records.writing import cuts
from moldau.wire.records import build_encoded, quick
from moldau.wire.records.bulk import encode_values
from tests.cli.running import QUICK

VALUES = st.binary(max_size=40) | st.sampled_from([b"\0\x0c\0\0\0\1\2x\0", b"\0\1", b"\x80", b"x" * 70_000])
RECORDS = st.builds(
    Record,
    timestamp=st.integers(0, 2**40),
    key=st.none() | st.sampled_from([b"", b"k"]),
    value=st.none() | VALUES,
    headers=st.sampled_from([(), (("h", b"1"),)]),
)
NOTHING = {"key": st.none(), "headers": st.just(())}
BARE = st.builds(Record, timestamp=st.integers(0, 2**40), value=VALUES, **NOTHING)
TEXT = st.builds(
    Record, timestamp=st.integers(0, 9), **NOTHING, value=st.text(min_size=0, max_size=300).map(str.encode)
)


@QUICK
@given(st.lists(BARE, min_size=1, max_size=80) | st.lists(RECORDS, min_size=1, max_size=20), st.sampled_from([0, 3, 4]))
def test_it_is_never_wrong(given_records: list[Record], codec: int) -> None:
    batch = Batch(build(given_records, compression=codec))
    expected = list(records(batch))
    values, rows = quick.values(batch), quick.rows(batch)
    assert values is None or values == [record.value for record in expected]
    assert rows is None or rows == expected
    pairs = quick.pairs(batch)
    assert pairs is None or list(zip(*pairs, strict=True)) == [(record.key, record.value) for record in expected]


@QUICK
@given(st.lists(TEXT.filter(lambda record: b"\0" not in (record.value or b"")), min_size=1, max_size=150))
def test_lines_of_text_are_found(given_records: list[Record]) -> None:
    batch = Batch(build(given_records))
    assert quick.values(batch) == [record.value for record in given_records]
    assert quick.rows(batch) == list(records(batch))
    keyed = Batch(build([record._replace(key=b"k%d" % at) for at, record in enumerate(given_records)]))
    if all(record.value for record in given_records):
        assert quick.rows(keyed) == list(records(keyed))
        found = quick.pairs(keyed)
        assert found is not None
        assert list(zip(*found, strict=True)) == [(record.key, record.value) for record in records(keyed)]


@pytest.mark.parametrize("size", [1, 62, 63, 64, 65, 66, 8190, 8191, 8192, 8193, 8194, 70_000])
def test_lengths_of_one_byte_and_of_more(size: int) -> None:
    written = [Record(timestamp=1, key=b"x" * size, value=b"y" * size), Record(timestamp=9, key=b"k", value=b"v")]
    batch = Batch(build(written))
    assert quick.rows(batch) in (list(records(batch)), None) and (quick.rows(batch) is None) == (size > 8191)


@QUICK
@given(st.lists(VALUES, min_size=1, max_size=30))
def test_what_is_written_quickly_is_read_as_it_was(values: list[bytes]) -> None:
    batch = Batch(build_encoded(encode_values(values), len(values), 1))
    assert [(record.key, record.value) for record in records(batch)] == [(None, value) for value in values]


@given(st.lists(st.integers(1, 50)), st.integers(1, 100))
def test_cuts_are_as_large_as_may_be(sizes: list[int], room: int) -> None:
    found = list(cuts(sizes, room))
    assert [size for cut in found for size in sizes[cut]] == sizes
    assert all(sum(sizes[cut]) <= room or cut.stop - cut.start == 1 for cut in found)
    assert all(sum(sizes[a]) + sizes[b.start] > room for a, b in pairwise(found))
