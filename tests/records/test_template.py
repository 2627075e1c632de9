"""Templates: every token, escapes, and whatever stands between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.admin.mistakes import Mistake
from moldau.client import Record
from moldau.records.formats import Raw, part
from moldau.records.template import TOKENS, compiled, delimited, delimiter
from tests.cli.running import QUICK

RECORDS = [
    Record(7, 1000, b"k", b"value", (("h", b"1"), ("n", None))),
    Record(8, 2000, None, None),
]
KEY, VALUE = (part(index, Raw(), str, b"NULL") for index in (2, 3))


def laid(text: str) -> bytes:
    return compiled(text, KEY, VALUE)("orders", 3, RECORDS)


def test_every_token_is_written_as_kcat_does() -> None:
    assert laid(r"%t [%p] %o %T %k/%K %s/%S %h;\n") == (
        b"orders [3] 7 1000 k/1 value/5 h=1,n=NULL;\norders [3] 8 2000 NULL/-1 NULL/-1 ;\n"
    )
    assert laid("%R%s") == b"\0\0\0\x05value\xff\xff\xff\xffNULL"
    assert laid(r"%%\t\x41|") == b"%\tA|" * 2


@pytest.mark.parametrize("text", ["%", "%s %", "%%%", "%x", "%é"])
def test_what_is_no_token_is_told(text: str) -> None:
    with pytest.raises(Mistake, match="%"):
        laid(text)


@QUICK
@given(st.text(st.characters(exclude_characters="%\\", exclude_categories=("Cs",))))
def test_other_text_stands_as_it_is(text: str) -> None:
    assert laid(text) == text.encode() * 2


@QUICK
@given(st.lists(st.sampled_from([*TOKENS, "%"])))
def test_tokens_in_any_order_make_a_layout(tokens: list[str]) -> None:
    alone = [compiled(f"%{token}", KEY, VALUE)("orders", 3, RECORDS[:1]) for token in tokens]
    assert compiled("".join(f"%{token}" for token in tokens), KEY, VALUE)("orders", 3, RECORDS[:1]) == b"".join(alone)


def test_values_and_keys_with_what_stands_between() -> None:
    assert delimited(b"\n", None, KEY, VALUE)("t", 0, RECORDS) == b"value\nNULL\n"
    assert delimited(b"%\n", b"%d", KEY, VALUE)("t", 0, RECORDS) == b"k%dvalue%\nNULL%dNULL%\n"


def test_delimiters_are_written_with_escapes() -> None:
    assert delimiter(r"\n", "-D") == b"\n"
    assert delimiter(r"\x00|\t", "-D") == b"\0|\t"
    assert delimiter("::", "-K") == b"::"
    with pytest.raises(Mistake, match="-D"):
        delimiter("", "-D")
