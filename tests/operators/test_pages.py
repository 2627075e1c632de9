"""Ordered bytes in pages behave as ordered bytes in memory, through writes and fresh starts at any point."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moldau.operators.stores import ordered, pages
from moldau.operators.stores.ordered import MemoryBytes
from moldau.operators.stores.pages import COUNT, INDEX, PagedBytes, PageError
from tests.operators.kept import Kept

KEYS = st.binary(max_size=3)
BOUNDS = st.none() | KEYS


class PagesAndMemory(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.kept = Kept()
        self.paged, self.memory = PagedBytes(self.kept), MemoryBytes()

    @rule(key=KEYS, value=st.none() | st.binary(max_size=40))
    def put(self, key: bytes, value: bytes | None) -> None:
        self.paged.put(key, value)
        self.memory.put(key, value)

    @rule(keys=st.lists(KEYS, min_size=10, max_size=60), value=st.binary(min_size=5, max_size=40))
    def put_many(self, keys: list[bytes], value: bytes) -> None:
        for key in keys:
            self.put(key, value)

    @rule(low=BOUNDS, high=BOUNDS)
    def delete_range(self, low: bytes | None, high: bytes | None) -> None:
        """While it is walked."""
        for key, _ in self.paged.range(low, high):
            self.paged.put(key, None)
        for key, _ in self.memory.range(low, high):
            self.memory.put(key, None)

    @rule(low=KEYS, high=KEYS)
    def remove(self, low: bytes, high: bytes) -> None:
        ordered.remove_range(self.paged, low, high)
        ordered.remove_range(self.memory, low, high)

    @rule(low=BOUNDS, high=BOUNDS, reverse=st.booleans(), keys=st.lists(KEYS, max_size=20))
    def change_while_walking(self, low: bytes | None, high: bytes | None, reverse: bool, keys: list[bytes]) -> None:
        assert self.walked(self.paged, low, high, reverse, keys) == self.walked(self.memory, low, high, reverse, keys)

    def walked(
        self, store: PagedBytes | MemoryBytes, low: bytes | None, high: bytes | None, reverse: bool, keys: list[bytes]
    ) -> list[tuple[bytes, bytes]]:
        found, coming = [], iter(keys)
        for key, value in store.range(low, high, reverse):
            found.append((key, value))
            new = next(coming, None)
            if new is not None:
                store.put(new, None if store.get(new) else b"new")
        return found

    @rule()
    def write(self) -> None:
        self.paged.write()

    @rule()
    def start_anew(self) -> None:
        self.paged.write()
        self.paged = PagedBytes(self.kept)

    @rule(key=KEYS)
    def get(self, key: bytes) -> None:
        assert self.paged.get(key) == self.memory.get(key)

    @rule(low=BOUNDS, high=BOUNDS, reverse=st.booleans())
    def range(self, low: bytes | None, high: bytes | None, reverse: bool) -> None:
        assert list(self.paged.range(low, high, reverse)) == list(self.memory.range(low, high, reverse))

    @invariant()
    def counts_agree(self) -> None:
        assert self.paged.approximate_count() == self.memory.approximate_count()


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LEAF_BYTES", 200)
    monkeypatch.setattr(ordered, "FEW", 3)


TestPagesAndMemory = pytest.mark.usefixtures("small_leaves")(PagesAndMemory.TestCase)
TestPagesAndMemory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def filled(count: int) -> Kept:
    kept = Kept()
    store = PagedBytes(kept)
    for number in range(count):
        store.put(b"%06d" % number, b"value")
    store.write()
    return kept


def test_the_work_grows_with_the_keys_that_are_touched_not_with_the_keys_there_are() -> None:
    kept = filled(5000)
    assert len(kept.pages) > 300
    kept.reads = kept.writes = 0
    store = PagedBytes(kept)
    store.put(b"002500", b"other")
    store.write()
    assert (kept.reads, kept.writes) == (3, 2)  # index, count and leaf; count and leaf


def test_a_prefix_reads_only_the_leaves_that_have_it() -> None:
    kept = filled(5000)
    store = PagedBytes(kept)
    kept.reads = 0
    assert [key for key, _ in store.range(b"00123", b"00123\xff")] == [b"00123%d" % digit for digit in range(10)]
    assert kept.reads <= 4


def test_no_leaf_is_much_larger_than_the_limit() -> None:
    assert max(len(page) for number, page in filled(5000).pages.items() if number > COUNT) <= 200


def test_an_empty_store_leaves_no_leaves_behind() -> None:
    kept = filled(500)
    store = PagedBytes(kept)
    for key, _ in store.range():
        store.put(key, None)
    store.write()
    assert set(kept.pages) == {INDEX, COUNT}
    assert list(PagedBytes(kept).range()) == []


def test_a_page_of_another_format_is_refused_with_a_sentence() -> None:
    kept = filled(1)
    kept.pages[INDEX] = b"\x09" + kept.pages[INDEX][1:]
    with pytest.raises(PageError, match="has the format 9, and this version reads 2"):
        PagedBytes(kept)


def test_a_page_is_the_same_whether_it_was_unpacked_or_not() -> None:
    """A replay may find it unpacked in another process."""
    untouched = filled(40)
    pages_of: list[dict[int, bytes]] = []
    for is_walked in (False, True):
        kept = Kept()
        kept.pages.update(untouched.pages)
        store = PagedBytes(kept)
        if is_walked:
            list(store.range())
        for number, value in ((3, b"longer than before"), (7, b""), (8, b"other"), (39, b"last")):
            store.put(b"%06d" % number, value)
        store.write()
        store.put(b"000007", b"again")  # the leaf goes on from what was written
        store.write()
        pages_of.append(dict(kept.pages))
    assert pages_of[0] == pages_of[1]
    assert dict(PagedBytes(kept).range()) == {
        **{b"%06d" % number: b"value" for number in range(40)},
        b"000003": b"longer than before",
        b"000007": b"again",
        b"000008": b"other",
        b"000039": b"last",
    }


def test_what_is_removed_at_once_leaves_the_pages_that_it_leaves_when_removed_key_by_key() -> None:
    pages_of: list[dict[int, bytes]] = []
    for remove in (PagedBytes.remove_range, remove_one_by_one):
        kept = filled(5000)
        store = PagedBytes(kept)
        remove(store, b"000777", b"003333")
        store.write()
        pages_of.append(kept.pages)
        assert store.approximate_count() == 5000 - (3333 - 777 + 1)
    assert pages_of[0] == pages_of[1]


def remove_one_by_one(store: PagedBytes, low: bytes, high: bytes) -> None:
    for key, _ in store.range(low, high):
        store.put(key, None)
