"""From text to records: cutting, keys, nulls, envelopes; and batches that are encoded quickly."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moldau.admin.mistakes import Mistake
from moldau.client import Record, build
from moldau.records import envelope
from moldau.records.formats import Raw
from moldau.records.lines import Item, Rules, latin1, split, whole
from moldau.wire.records import HEADER_SIZE
from moldau.wire.records.bulk import encode_lines, encode_values
from tests.cli.running import QUICK

RULES = Rules("orders", Raw(), Raw())


@QUICK
@given(
    st.lists(st.binary(max_size=20).filter(lambda data: b"|" not in data and b"~" not in data)),
    st.sampled_from([b"|", b"|~", b"|~|"]),
    st.integers(1, 7),
    st.booleans(),
)
def test_text_is_cut_at_the_delimiter_however_it_arrives(
    pieces: list[bytes], delimiter: bytes, at_once: int, ends: bool
) -> None:
    text = delimiter.join(pieces) + (delimiter if ends and pieces else b"")
    source = io.BytesIO(text)
    found = [line for lines in split(lambda: source.read(at_once), delimiter, "it") for line in lines]
    expected = text.split(delimiter)
    assert found == expected[:-1] + ([expected[-1]] if expected[-1] else [])
    source.seek(0)
    characters = split(lambda: latin1(source.read(at_once)), latin1(delimiter), "it")
    assert [line.encode("latin-1") for lines in characters for line in lines] == found


def test_a_record_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.records.lines.LONGEST", 10)
    source = io.BytesIO(b"x" * 100)
    with pytest.raises(Mistake, match="delimiter"):
        list(split(lambda: source.read(4), b"\n", "it"))


def test_keys_headers_and_nulls() -> None:
    keyed = Rules("t", Raw(), Raw(), between=b"::", headers=(("h", b"1"),))
    assert keyed.item(b"a::b::c", 1) == Item(b"a", b"b::c", (("h", b"1"),))
    assert keyed.item(b"alone", 1) == Item(None, b"alone", (("h", b"1"),))
    nulls = Rules("t", Raw(), Raw(), between=b":", empty_is_null=True)
    assert nulls.item(b"7:", 1) == Item(b"7", None)
    assert nulls.item(b":v", 1) == Item(None, b"v")
    assert Rules("t", Raw(), Raw(), key="k", partition=2, timestamp=5).item(b"v", 1) == Item(b"k", b"v", (), 2, 5)
    assert RULES.plain and not keyed.plain


NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
HEADERS = st.lists(st.tuples(NAMES, st.none() | NAMES.map(str.encode)), max_size=3).map(tuple)
DATA = st.none() | st.binary(max_size=30)


@QUICK
@given(DATA, DATA, HEADERS, st.integers(0, 2**40), st.integers(0, 99))
def test_an_envelope_brings_back_what_it_was_made_of(
    key: bytes | None, value: bytes | None, headers: tuple, timestamp: int, partition: int
) -> None:
    record = Record(5, timestamp, key, value, headers)
    made = envelope.written(
        "t",
        partition,
        record,
        append_time=False,
        key=lambda r: envelope.text_or_base64(r.key),
        value=lambda r: envelope.text_or_base64(r.value),
    )
    line = envelope.lines([made])
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    read = Rules("t", Raw(), Raw(), envelopes=True).item(line.rstrip(b"\n"), 1)
    assert read == Item(key, value, headers, partition, timestamp)


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b'{"partition": "x"}', b'{"ts": true}', b'{"headers": [1, 2]}', b'{"headers": ["a"]}',
     b'{"payload": "?", "payload_encoding": "base64"}'],
)  # fmt: skip
def test_what_is_no_envelope_is_told_with_its_line(line: bytes) -> None:
    with pytest.raises(Mistake, match="Line 9"):
        envelope.read(line, 9)


def test_whole_files_are_records(tmp_path: Path) -> None:
    file = tmp_path / "picture"
    file.write_bytes(b"\0\n\xff")
    assert list(whole([file])) == [[b"\0\n\xff"]]
    with pytest.raises(Mistake, match="No such file"):
        list(whole([tmp_path / "none"]))


@QUICK
@given(st.lists(st.binary(max_size=200) | st.sampled_from([b"", b"x" * 5000]), min_size=1, max_size=200))
def test_the_quick_way_encodes_as_the_long_one(values: list[bytes]) -> None:
    made = build([Record(0, 1234, None, value) for value in values])
    assert encode_values(values) == bytes(made[HEADER_SIZE:])


LINES = st.binary(max_size=180) | st.sampled_from([b"k::" + b"x" * 5000, b"k" * 100 + b"::v", b"k::" + b"x" * 70_000])


@QUICK
@given(st.lists(LINES, min_size=1, max_size=100), st.sampled_from([b"::", b":", b"\xc3"]))
@example([b"a::b::c", b"x", b"::y", b"z::", b"", b"\xff::\0\n\x85"], b"::")
def test_so_do_lines_with_keys(lines: list[bytes], mark: bytes) -> None:
    rules = Rules("t", Raw(), Raw(), between=mark)
    items = [rules.item(line, 1) for line in lines]
    made = build([Record(0, 1234, item.key, item.value) for item in items])
    assert encode_lines([latin1(line) for line in lines], latin1(mark)) == bytes(made[HEADER_SIZE:])


def test_many_records_have_long_offsets() -> None:
    values = [b"v"] * 5000
    assert encode_values(values) == bytes(build([Record(0, 1, None, value) for value in values])[HEADER_SIZE:])
