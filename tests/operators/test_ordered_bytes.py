"""Ordered bytes: a dict with ranges, whatever is done in between."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.operators.stores.ordered import MemoryBytes

keys = st.binary(max_size=3)
bounds = st.none() | keys
changes = st.tuples(keys, st.none() | st.binary(max_size=2))


@given(st.lists(st.lists(changes, max_size=30), max_size=6), bounds, bounds, st.booleans())
@settings(deadline=None)
def test_it_equals_a_dict_sorted_by_key(
    rounds: list[list[tuple[bytes, bytes | None]]], low: bytes | None, high: bytes | None, reverse: bool
) -> None:
    store, model = MemoryBytes(), dict[bytes, bytes]()
    for changed in rounds:
        for key, value in changed:
            store.put(key, value)
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
            assert store.get(key) == value
        within = [
            (key, value)
            for key, value in sorted(model.items(), reverse=reverse)
            if (low is None or low <= key) and (high is None or key <= high)
        ]
        assert list(store.range(low, high, reverse)) == within
        assert store.approximate_count() == len(model)


def test_a_range_is_a_snapshot_of_the_keys() -> None:
    store = MemoryBytes()
    for key in (b"a", b"b", b"c"):
        store.put(key, b"1")
    walked = []
    for key, _ in store.range():
        walked.append(key)
        store.put(b"b", None)
        store.put(b"d", b"1")
    assert walked == [b"a", b"c"]
