"""Values at the speed of a regular expression are the values that the loop finds, or none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.client import Batch, Record, build, records
from moldau.records import quick
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
    found = quick.values(batch)
    assert found is None or found == [record.value for record in records(batch)]


@QUICK
@given(st.lists(TEXT.filter(lambda record: b"\0" not in (record.value or b"")), min_size=1, max_size=150))
def test_lines_of_text_are_found(given_records: list[Record]) -> None:
    batch = Batch(build(given_records))
    assert quick.values(batch) == [record.value for record in given_records]
