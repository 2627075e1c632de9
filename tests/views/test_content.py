"""What a view holds can be looked at as it was, as far back as it remembers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.views.content import OVERHEAD, Content

KEYS = st.sampled_from([b"a", b"ab", b"b", b"c"])
CHANGES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=3))), max_size=40)


def states(changes: list[tuple[bytes, bytes | None]]) -> list[dict[bytes, bytes]]:
    """What a dict has before each change, and behind the last."""
    found: list[dict[bytes, bytes]] = [{}]
    for key, value in changes:
        now = dict(found[-1])
        now.pop(key, None)
        if value is not None:
            now[key] = value
        found.append(now)
    return found


@given(CHANGES, CHANGES, st.integers(1, 60))
def test_the_past_is_what_it_was_and_stays_so(
    before: list[tuple[bytes, bytes | None]], after: list[tuple[bytes, bytes | None]], history: int
) -> None:
    content = Content(history)
    for number, (key, value) in enumerate(before):
        content.offset = number
        content.put(key, value)
    pasts = {offset: content.before(offset) for offset in range(len(before) + 1)}
    for number, (key, value) in enumerate(after, len(before)):
        content.offset = number
        content.put(key, value)
    for offset, expected in enumerate(states(before)):
        past = pasts[offset]
        if past is not None:
            assert dict(past.range()) == expected
            assert [key for key, _ in past.range(b"ab", b"b", reverse=True)] == sorted(
                (key for key in expected if b"ab" <= key <= b"b"), reverse=True
            )
            assert all(past.get(key) == expected.get(key) for key in (b"a", b"ab", b"b", b"c"))
    assert dict(content.range()) == states([*before, *after])[-1]


def test_what_is_forgotten_is_told() -> None:
    content = Content(history=2)
    for offset in range(5):
        content.offset = offset
        content.put(b"k", b"%d" % offset)
    assert content.before(2) is None
    past = content.before(3)
    assert past is not None
    assert past.get(b"k") == b"2"


def test_its_size_is_that_of_what_is_there() -> None:
    content = Content(10)
    content.put(b"key", b"value")
    content.put(b"key", b"more value")
    assert content.size == len(b"key" + b"more value") + OVERHEAD
    content.put(b"key", None)
    assert content.size == 0
