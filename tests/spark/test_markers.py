"""What a sink task does is a table: what was decided, what was marked, which batch it is."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.spark.sink.markers import (
    Book,
    Content,
    Decision,
    Marker,
    Refused,
    Skip,
    Write,
    batch_key,
    decided,
    decision_value,
    marker_value,
    of_decided,
    of_marker,
    task_key,
    torn,
)
from moldau.wire.records import Batch, Record, build, end_txn_marker

APP = "orders"
SOME = Content(3, 30, 7)
OPEN = (11, 0, 2)


def decision(batch: int = 5, query: str = "q", tasks: int = 2, released: bool = False) -> Decision:
    rows = tuple((11 + task, 0, 2) for task in range(tasks))
    return Decision(query, batch, rows, ('{"t":{"0":5}}',), "/checkpoint", released)


BEFORE = [  # the last decision, this batch: is it this batch's?
    (None, 0, False),
    (decision(4), 5, False),
    (decision(5), 5, True),
    (decision(7, "another", released=True), 0, False),
]


@pytest.mark.parametrize(("last", "batch", "found"), BEFORE)
def test_a_decision_is_carried_out_when_it_is_of_this_batch(last: Decision | None, batch: int, found: bool) -> None:
    assert (decided(last, APP, "q", batch) is not None) is found


def test_another_query_under_the_same_name_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        Refused, match=r"batch 5 of query q with the checkpoint /checkpoint.*moldau spark resume orders"
    ):
        decided(decision(5), APP, "new", 0)


def test_a_checkpoint_that_is_behind_the_topic_is_refused() -> None:
    with pytest.raises(Refused, match="has written batch 5 already, and this query is at batch 4"):
        decided(decision(5), APP, "q", 4)


AFTER = [  # the task's marker, this batch -> what it does
    (None, 5, Write()),
    (Marker("q", 4, SOME), 5, Write()),
    (Marker("q", 5, SOME), 5, Skip()),
    (Marker("another", 9, SOME), 5, Write()),
]


@pytest.mark.parametrize(("marker", "batch", "step"), AFTER)
def test_a_task_skips_what_its_marker_says_is_there(marker: Marker | None, batch: int, step: Skip | Write) -> None:
    assert of_marker(marker, "q", batch) == step


def test_a_task_of_an_older_batch_is_refused() -> None:
    with pytest.raises(Refused, match="batch 4 comes after batch 5"):
        of_marker(Marker("q", 5, SOME), "q", 4)


def test_a_batch_that_was_carried_out_is_skipped_whatever_tasks_there_are() -> None:
    for task in range(9):
        assert of_decided(decision(), frozenset(), None, task) == Skip()


def test_of_a_torn_batch_the_missing_tasks_write_and_the_others_must_have_the_same_rows() -> None:
    marker = Marker("q", 5, SOME)
    assert of_decided(decision(tasks=3), frozenset({1}), None, 1) == Write(3)
    assert of_decided(decision(tasks=3), frozenset({1}), marker, 0) == Skip(SOME, 3)
    with pytest.raises(Refused, match=r"by 3 tasks.*but there are more than 3"):
        of_decided(decision(tasks=3), frozenset({1}), None, 3)


def test_a_batch_is_torn_where_a_marker_is_missing() -> None:
    made = Decision("q", 5, ((11, 0, 2), None, (13, 0, 2), (14, 0, 2)))
    markers = {(APP, 0): Marker("q", 5, SOME), (APP, 2): Marker("q", 4, SOME)}
    assert torn(made, APP, markers) == {2, 3}


def data(task: int, batch: int, producer: int) -> bytearray:
    record = Record(0, 0, task_key(APP, task), marker_value(Marker("q", batch, SOME)))
    return build([record], producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)


def ended(producer: int, commit: bool) -> bytearray:
    return end_txn_marker(commit, producer_id=producer, producer_epoch=1, coordinator_epoch=0, timestamp=0)


def folded(batches: Iterable[bytearray]) -> Book:
    book = Book()
    for offset, raw in enumerate(batches):
        raw[0:8] = offset.to_bytes(8, "big")
        book.read(Batch(raw))
    return book


def test_a_marker_counts_when_its_transaction_is_committed_though_others_are_open() -> None:
    book = folded([data(0, 5, 11), data(1, 5, 12), data(2, 5, 13), ended(12, True), ended(13, False)])
    assert book.markers == {(APP, 1): Marker("q", 5, SOME)}
    assert book.position == 5
    assert book.is_open(Decision("q", 5, ((11, 0, 2),)))
    assert not book.is_open(Decision("q", 5, ((11, 1, 2), (12, 0, 2))))


def test_what_was_read_before_is_not_read_again() -> None:
    book = folded([data(0, 5, 11), ended(11, True)])
    again = data(0, 4, 11)
    again[0:8] = (0).to_bytes(8, "big")
    book.read(Batch(again))
    assert not book.pending


def plain(*rows: tuple[bytes, bytes | None]) -> bytearray:
    return build([Record(0, 0, key, value) for key, value in rows])


def test_a_decision_of_a_driver_that_was_thought_dead_changes_nothing() -> None:
    late = (batch_key(APP), decision_value(decision(4)))
    book = folded([plain((batch_key(APP), decision_value(decision(5)))), plain(late)])
    assert book.decisions[APP].batch == 5
    assert book.decisions[APP] == decision(5)


def test_tombstones_forget() -> None:
    book = folded(
        [
            data(0, 5, 11),
            ended(11, True),
            plain((batch_key(APP), decision_value(decision()))),
            plain((batch_key(APP), None), (task_key(APP, 0), None)),
        ]
    )
    assert not book.markers
    assert not book.decisions


def test_a_record_that_is_no_marker_is_told() -> None:
    for row in ((b"key", b"value"), (b'["task"]', b"{}"), (batch_key(APP), b"[]"), (b"", None)):
        with pytest.raises(Refused, match="no marker"):
            folded([plain(row)])
    with pytest.raises(Refused, match="format 9"):
        folded([plain((batch_key(APP), b'{"version":9}'))])


@given(st.integers(0, 2**40), st.lists(st.none() | st.tuples(*[st.integers(0, 2**31)] * 3), max_size=5), st.booleans())
def test_a_decision_is_read_as_it_was_written(batch: int, rows: list[tuple[int, int, int] | None], gone: bool) -> None:
    made = Decision("q", batch, tuple(rows), (None, '{"a":1}'), None, gone)
    assert folded([plain((batch_key(APP), decision_value(made)))]).decisions == {APP: made}
