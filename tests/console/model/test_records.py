"""Records as pages show them: whatever is in them."""

from __future__ import annotations

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from moldau.client import Record
from moldau.console.decoding import Decoder
from moldau.console.model.problems import Refused
from moldau.console.model.records import (
    KEPT,
    LONG,
    SHORT,
    TREE_NODES,
    Part,
    Row,
    as_csv,
    headers,
    hex_rows,
    json_lines,
    plain,
    tree,
)
from moldau.console.model.snippets import curl, python
from moldau.serdes.registry import Registry, RegistryError

ANY = st.one_of(
    st.none(), st.binary(max_size=300), st.text(max_size=100).map(lambda text: text.encode(errors="replace"))
)


def row(key: bytes | None, value: bytes | None) -> Row:
    return Row(0, 7, 1000, plain(key), plain(value), ())


@given(ANY, ANY, st.lists(st.tuples(st.text(max_size=10), ANY), max_size=3))
def test_any_record_can_be_sent_to_a_browser_and_exported(
    key: bytes | None, value: bytes | None, pairs: list[tuple[str, bytes | None]]
) -> None:
    record = Record(7, 1000, key, value, tuple(pairs))
    made = Row(0, 7, 1000, plain(key), plain(value), headers(record))
    json.dumps(made.cells()).encode()
    made.key.long.encode(), made.value.about.encode()
    assert json.loads(json_lines([made]))["offset"] == 7
    assert len(list(csv.reader(io.StringIO(as_csv([made]).decode(), newline="")))) == 2


def test_bytes_are_json_or_text_or_neither() -> None:
    assert plain(None).kind == "null"
    assert plain(b'{"a": [1]}').document == {"a": [1]}
    assert (plain(b"{no").kind, plain(b"42").kind) == ("text", "text")
    assert plain(b"\xff\0").kind == "bytes" and plain(b"\xff\0").text == "ff 00"


def test_json_that_nests_too_deeply_is_text() -> None:
    assert plain(b"[" * 100_000).kind == "text"
    assert plain(b'{"a":' * 900 + b"1" + b"}" * 900).kind in ("json", "text")


def test_half_a_surrogate_is_replaced() -> None:
    part = plain(b'{"a": "\\ud800"}')
    part.text.encode()
    assert [node["label"] for node in tree(part.document)[0]["children"]] == ['a: "?"']


def test_what_is_large_is_cut_and_says_so() -> None:
    part = plain(b"\xc3\xa4" * 5_000_000)
    assert part.kind == "text" and len(part.data) == KEPT and part.size == 10_000_000 and len(part.long) <= LONG
    assert "10.0 MB" in part.about and "are shown" in part.about
    assert len(part.short) == SHORT + 1 and part.short.endswith("…")
    assert plain(b"x" * (KEPT - 1) + b"\xc3\xa4").kind == "text", "the last character alone was cut"


def test_a_tree_ends_somewhere() -> None:
    def count(nodes: list[dict]) -> int:
        return sum(1 + count(node.get("children", [])) for node in nodes)

    assert count(tree(list(range(10 * TREE_NODES)))) <= TREE_NODES + 1
    assert tree({"a": {"b": [1, None]}})[0]["children"][0]["children"][0]["label"] == "b: [2]"


def test_bytes_in_hex_have_their_places() -> None:
    assert hex_rows(b"ab\0") == "00000000  61 62 00" + " " * 39 + "  ab·"
    assert hex_rows(bytes(5000)).endswith("904 B more")


def test_a_spreadsheet_gets_no_formula() -> None:
    lines = as_csv([row(b"=cmd()", b"-5"), row(b"@x", b"+1 x")]).decode().splitlines()
    assert "'=cmd()" in lines[1] and ",-5," in lines[1]
    assert "'@x" in lines[2] and "'+1 x" in lines[2]


def test_what_is_copied_stays_data() -> None:
    evil = row(b"'; rm -rf /", b"$(rm)")
    assert "rm" not in curl("t", evil) and "Content-Type" in curl("t", evil)
    compile(python("t", evil, "h:1', evil('"), "snippet", "exec")
    huge = Part("text", "", b"x" * 100_000, 100_000)
    try:
        curl("t", Row(0, 0, 0, huge, huge, ()))
    except Refused as error:
        assert "export" in str(error)
    else:
        raise AssertionError


class Away:
    """A registry that counts how often it is asked."""

    asked = 0

    def connect(self) -> Registry:
        self.asked += 1
        raise RegistryError("the schema registry cannot be reached")


def test_a_registry_that_is_away_is_asked_once_and_told_of() -> None:
    away = Away()
    decoder = Decoder("t", away.connect)
    rows = [decoder.row(0, Record(n, 0, None, b"\0\0\0\0\1abc", ())) for n in range(20)]
    assert away.asked == 1
    assert all("cannot be reached" in one.value.note for one in rows) and rows[0].value.kind == "text"
