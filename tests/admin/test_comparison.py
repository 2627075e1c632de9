"""Replicas are compared as bytes, and where compaction may have been at work record by record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.admin.comparison import DAMAGED, NOTHING, Compared, Piece, compare, piece
from moldau.wire.records import assemble, encode_record

ALL = 10**9


def batch(first: int, *values: bytes | None, epoch: int = 0) -> bytes:
    """A batch as a leader stores it; None is a record that compaction has taken away."""
    encoded = [encode_record(delta, b"k%d" % delta, value) for delta, value in enumerate(values) if value is not None]
    header = (first, epoch, 0, len(values) - 1, 1000, 1000, -1, -1, -1, len(encoded))
    return bytes(assemble(*header, b"".join(encoded)))


def compared(*replicas: bytes, offset: int = 0, end: int = ALL, compacted: bool = False) -> Compared:
    made = {number: piece(memoryview(one), offset, end, end) for number, one in enumerate(replicas, 1)}
    return compare(made, offset, compacted=compacted)


def test_copies_do_not_differ_and_are_compared_as_far_as_all_of_them_reach() -> None:
    first, second = batch(0, b"a", b"b"), batch(2, b"c")
    assert compared(first + second, first + second) == Compared(3, len(first + second), [])
    assert compared(first + second, first + second[:-1]) == Compared(2, len(first), []), "a batch that is cut off"


def test_a_replica_with_nothing_up_to_the_end_has_nothing_there() -> None:
    one = batch(0, b"a", b"b")
    assert piece(memoryview(b""), 5, 9, 9) == Piece(memoryview(b""), 9)
    assert piece(memoryview(b""), 5, 9, 7).reach == 5, "its high watermark is not there yet"
    [found] = compared(one, b"", end=2).differences
    assert (found.first, found.last, found.brokers[2]) == (0, 1, NOTHING)
    assert compared(one, b"", end=2, compacted=True).differences == []


def test_batches_that_end_after_the_high_watermark_are_not_looked_at() -> None:
    assert compared(batch(0, b"a") + batch(1, b"b"), batch(0, b"a") + batch(1, b"x"), end=1) == Compared(
        1, len(batch(0, b"a")), []
    )


def test_what_differs_is_named_by_its_offsets_and_brokers() -> None:
    good = batch(0, b"a", b"b") + batch(2, b"c", b"d") + batch(4, b"e")
    bad = batch(0, b"a", b"b") + batch(2, b"c", b"x") + batch(4, b"e")
    [found] = compared(good, good, bad).differences
    assert (found.first, found.last) == (2, 3)
    assert found.brokers[1] == found.brokers[2] != found.brokers[3]


def test_a_damaged_batch_is_called_damaged() -> None:
    good = batch(0, b"a", b"b")
    bad = bytearray(good)
    bad[-2] ^= 1
    [found] = compared(good, bytes(bad)).differences
    assert (found.first, found.last, found.brokers[2]) == (0, 1, DAMAGED)


def test_another_leader_epoch_is_a_difference_unless_the_topic_is_compacted() -> None:
    one, other = batch(0, b"a", epoch=1), batch(0, b"a", epoch=2)
    assert compared(one, other).differences
    assert not compared(one, other, compacted=True).differences


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20), st.integers(0, 19))
def test_replicas_may_be_compacted_differently(kept: list[tuple[bool, bool]], wrong: int) -> None:
    def replica(side: int, damage: int = -1) -> bytes:
        values = [
            (b"x" if number == damage else b"v%d" % number) if sides[side] else None
            for number, sides in enumerate(kept)
        ]
        return batch(0, *values) if any(value is not None for value in values) else b""

    end = len(kept)
    assert compared(replica(0), replica(1), end=end, compacted=True).differences == []
    found = compared(replica(0), replica(1, damage=wrong), end=end, compacted=True).differences
    assert [one.first for one in found] == ([wrong] if wrong < end and all(kept[wrong]) else [])
