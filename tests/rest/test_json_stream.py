"""Documents are found in a stream, however it is cut."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moldau.rest.json_stream import Broken, Splitter

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3) | st.lists(VALUES, max_size=3), max_size=6)
SPACES = st.text(" \t\r\n", max_size=3)


def split(data: bytes, sizes: list[int], most: int = 10_000) -> tuple[list[bytes], Broken | None]:
    splitter, found = Splitter(most), []
    while data:
        size = sizes.pop() if sizes else len(data)
        documents, broken = splitter.feed(data[:size])
        found += documents
        if broken:
            return found, broken
        data = data[size:]
    return found, splitter.end()


@given(DOCUMENTS, SPACES, st.booleans(), st.lists(st.integers(1, 9), max_size=40))
def test_documents_come_out_as_they_went_in(rows: list[Any], space: str, ascii: bool, sizes: list[int]) -> None:
    data = space.join(json.dumps(row, ensure_ascii=ascii) for row in rows).encode("utf-8", "surrogatepass")
    found, broken = split(data, sizes)
    assert broken is None
    assert [json.loads(one) for one in found] == rows


@given(DOCUMENTS, st.sampled_from([b"x", b"}", b"1", b'"a"', b"{", b'{"', b"[1"]), st.lists(st.integers(1, 9)))
def test_what_stands_before_junk_is_kept(rows: list[Any], junk: bytes, sizes: list[int]) -> None:
    found, broken = split(b"\n".join([json.dumps(row).encode() for row in rows] + [junk]), sizes)
    assert broken is not None
    assert [json.loads(one) for one in found] == rows


def test_a_document_beyond_the_limit_ends_the_stream_where_it_stands() -> None:
    found, broken = split(b'{"a":1}{"a":"xxxxxxxxxx"}{"a":2}', [], most=12)
    assert found == [b'{"a":1}']
    assert "larger than" in str(broken)
    assert "larger than" in str(split(b'{"a":"xxxxxxxxxxxxxxx', [], most=12)[1])
    assert isinstance(split(b"[" * 501, [])[1], Broken)
