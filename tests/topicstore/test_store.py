"""The contract of a store: replay, read your writes, one decision at a time, the fence, late starters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moldau.client import Client, ClientError, Error, Fetcher, Record, build, records
from moldau.testing import eventually
from moldau.topicstore import FENCED, StoreError, append, exists, prepare, settings_of, writer
from tests.topicstore.conftest import Table

Open = Callable[..., Table]
NewTopic = Callable[..., str]


def batches(client: Client, topic: str) -> list[tuple[int, int]]:
    """Offset and number of records of each batch in the log."""
    [fetched] = Fetcher(client).fetch({(topic, 0): 0}, max_wait_ms=0).values()
    return [(batch.base_offset, batch.count) for batch in fetched.batches()]


def test_whoever_changes_something_sees_it_and_so_do_the_others(open_table: Open, new_topic: NewTopic) -> None:
    topic = new_topic()
    first, second = open_table(topic), open_table(topic)
    first.store.take_over()
    first.put((b"a", b"1"))
    assert first.rows == {b"a": b"1"}
    assert second.store.wait_for(first.store.position) and second.rows == first.rows
    first.put((b"a", None), (b"b", b"2"))
    assert second.store.wait_for(first.store.position) and second.rows == {b"b": b"2"}


def test_each_decision_sees_those_before_it(open_table: Open, new_topic: NewTopic) -> None:
    table = open_table(new_topic())
    table.store.take_over()

    def add_one() -> tuple[list[Any], int]:
        count = int(table.rows.get(b"n", b"0")) + 1
        return [(b"n", b"%d" % count)], count

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: table.store.update(add_one), range(80)))
    assert sorted(answers) == list(range(1, 81)) and table.rows == {b"n": b"80"}


def test_a_decision_that_raises_writes_nothing(open_table: Open, new_topic: NewTopic) -> None:
    table = open_table(new_topic())
    table.store.take_over()
    before = table.store.position
    with pytest.raises(KeyError):
        table.store.update(lambda: {}["no"])
    assert table.store.update(lambda: ((), "nothing to do")) == "nothing to do"
    assert table.store.position == before


def test_a_successor_knows_all_that_was_written_before_it(open_table: Open, new_topic: NewTopic) -> None:
    topic = new_topic()
    first, second = open_table(topic), open_table(topic)
    first.store.take_over()
    for number in range(50):
        first.put((b"%d" % number, b"x"))
    second.store.take_over()
    assert second.store.update(lambda: ((), len(second.rows))) == 50


def test_a_deposed_writer_is_refused_and_leaves_nothing_in_the_log(open_table: Open, new_topic: NewTopic) -> None:
    topic = new_topic()
    first, second = open_table(topic), open_table(topic)
    first.store.take_over()
    first.put((b"a", b"first"))
    second.store.take_over()
    for _ in range(2):  # a second try does not get through either
        with pytest.raises(ClientError) as refused:
            first.put((b"a", b"late"))
        assert refused.value.error in FENCED
    second.put((b"b", b"second"))
    third = open_table(topic)
    assert third.rows == second.rows == {b"a": b"first", b"b": b"second"}
    first.store.take_over()
    first.put((b"a", b"again"))
    assert first.rows == {b"a": b"again", b"b": b"second"}


def test_a_writer_that_was_paused_while_it_decided_is_fenced(open_table: Open, new_topic: NewTopic) -> None:
    topic = new_topic()
    first, second = open_table(topic), open_table(topic)
    first.store.take_over()
    paused, resume = threading.Event(), threading.Event()

    def decide() -> tuple[list[Any], None]:
        paused.set()
        assert resume.wait(60.0)
        return [(b"id", b"first's")], None

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(first.store.update, decide)
        assert paused.wait(60.0)
        second.store.take_over()
        second.put((b"id", b"second's"))
        resume.set()
        error = late.exception(60.0)
    assert isinstance(error, ClientError) and error.error in FENCED
    assert first.store.wait_for(second.store.position) and first.rows == {b"id": b"second's"}


@pytest.mark.parametrize("arrived", [True, False])
def test_after_an_unanswered_write_the_next_decision_knows_what_became_of_it(
    open_table: Open, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    table = open_table(new_topic())
    table.store.take_over()
    lost: list[bytearray] = []

    def lose(client: Client, topic: str, partition: int, batch: bytearray, timeout_s: float) -> tuple[int, int]:
        lost.append(batch)
        if arrived:
            append(client, topic, partition, batch, timeout_s)
        raise ClientError(Error.NETWORK_EXCEPTION, "the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "append", lose)
        with pytest.raises(ClientError) as late:
            table.put((b"a", b"1"))
    assert late.value.error is Error.REQUEST_TIMED_OUT
    known = table.store.update(lambda: (((b"b", b"2"),), table.rows.get(b"a")))
    assert known == (b"1" if arrived else None)
    if not arrived:
        with pytest.raises(ClientError) as refused:
            append(table.client, table.topic, 0, lost[0])
        assert refused.value.error in FENCED


def test_a_write_that_was_not_read_back_is_read_before_the_next_decision(
    open_table: Open, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table(new_topic())
    table.store.take_over()
    with monkeypatch.context() as patch:
        patch.setattr(table.store, "_replay_own", lambda _: False)
        patch.setattr(table.store, "wait_for", lambda *_: False)
        with pytest.raises(ClientError, match="Reading back"):
            table.put((b"a", b"1"))
    assert table.store.update(lambda: ((), table.rows.get(b"a"))) == b"1"


def test_an_epoch_is_renewed_before_brokers_forget_it(
    open_table: Open, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    first, second = open_table(topic), open_table(topic)
    first.store.take_over()
    before = first.store.position
    monkeypatch.setattr(writer, "RENEW_S", 0.0)
    first.put((b"a", b"1"))
    assert first.store.position == before + 2  # the mark of the renewed epoch, and the change
    second.store.take_over()
    with pytest.raises(ClientError) as refused:
        first.put((b"a", b"2"))
    assert refused.value.error is Error.PRODUCER_FENCED


def test_where_the_transactional_id_is_denied_writes_go_on_and_a_warning_says_so(
    open_table: Open, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = open_table(new_topic())
    send = table.client.send

    def deny(message: Any, *to: Any, **more: Any) -> Any:
        answer = send(message, *to, **more)
        if getattr(message, "transactional_id", None) and hasattr(answer, "producer_epoch"):
            answer.error_code = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return answer

    monkeypatch.setattr(table.client, "send", deny)
    table.store.take_over()
    table.put((b"a", b"1"))
    assert table.rows == {b"a": b"1"} and "would not be fenced" in caplog.text


def test_a_change_is_one_batch_unless_the_topic_takes_only_smaller_ones(open_table: Open, new_topic: NewTopic) -> None:
    table = open_table(new_topic(**{"max.message.bytes": 5000}))
    table.store.take_over()
    table.put(*((b"%d" % number, b"x" * 100) for number in range(20)))
    assert batches(table.client, table.topic) == [(0, 1), (1, 20)]
    table.put(*((b"%d" % number, b"y" * 1000) for number in range(8)))
    assert batches(table.client, table.topic)[2:] == [(21, 4), (25, 4)]
    assert [table.rows[b"%d" % number][:1] for number in range(9)] == [b"y"] * 8 + [b"x"]
    with pytest.raises(ClientError) as refused:
        table.put((b"large", b"z" * 6000))
    assert refused.value.error is Error.MESSAGE_TOO_LARGE
    table.put((b"small", b"z"))


def test_a_late_starter_has_the_state_of_the_others_after_compaction(open_table: Open, new_topic: NewTopic) -> None:
    eager = {"segment.ms": 50, "min.cleanable.dirty.ratio": 0.01, "max.compaction.lag.ms": 100}
    table = open_table(new_topic(**eager))
    table.store.take_over()

    def compacted() -> bool:
        table.put((b"turn", b"%d" % table.store.position))
        return len(batches(table.client, table.topic)) < table.store.position // 2

    for number in range(40):
        table.put((b"key-%d" % (number % 4), b"%d" % number))
    table.put((b"key-0", None))
    eventually(compacted, what="that the topic is compacted")
    late = open_table(table.topic)
    assert late.rows == table.rows and late.rows.keys() == {b"key-1", b"key-2", b"key-3", b"turn"}


def test_what_makes_no_sense_is_left_out(
    open_table: Open, new_topic: NewTopic, caplog: pytest.LogCaptureFixture
) -> None:
    table = open_table(new_topic(**{"cleanup.policy": "delete"}))
    append(table.client, table.topic, 0, build([Record(0, 1, None, b"no key"), Record(0, 1, b"k", b"v")]))
    assert table.store.wait_for(2, 60.0) and table.rows == {b"k": b"v"}
    assert f"record 0 of {table.topic} makes no sense" in caplog.text


def test_a_snapshot_has_whole_changes_and_the_position_behind_them(open_table: Open, new_topic: NewTopic) -> None:
    table = open_table(new_topic())
    table.store.take_over()
    writing = threading.Event()

    def write() -> None:
        for number in range(40):
            table.put((b"a", b"%d" % number), (b"b", b"%d" % number))
        writing.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not writing.is_set():
        position, rows = table.store.snapshot(lambda: dict(table.rows))
        assert rows.get(b"a") == rows.get(b"b")
        assert position == (1 if not rows else 3 + 2 * int(rows[b"a"]))
        seen.add(position)
    thread.join()
    assert len(seen) > 1


def test_a_topic_is_created_or_checked(open_table: Open, new_topic: NewTopic) -> None:
    client = open_table(new_topic()).client
    assert not exists(client, "made")
    for _ in range(2):
        prepare(client, "made", settings={"segment.bytes": "1048576"})
    assert settings_of(client, "made", "cleanup.policy", "segment.bytes") == {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
    }
    deleting = new_topic(**{"cleanup.policy": "delete"})
    with pytest.raises(StoreError, match=r"has cleanup.policy=delete, .* set it to compact, or else\."):
        prepare(client, deleting, advice=", or else")
    prepare(client, deleting, validate=False)


def test_records_of_others_in_between_are_replayed_before_own_ones(open_table: Open, new_topic: NewTopic) -> None:
    table = open_table(new_topic())
    table.store.take_over()
    order: list[Any] = []
    replay = table.store._state.replay
    table.store._state.replay = lambda pair: (order.append(pair[1]), replay(pair))[1]
    for number in range(20):
        append(table.client, table.topic, 0, build([Record(0, 1, b"k", b"%d" % (2 * number))]))
        table.put((b"k", b"%d" % (2 * number + 1)))
        assert table.rows[b"k"] == b"%d" % (2 * number + 1)
    assert order == [b"%d" % number for number in range(40)]


def test_a_record_has_the_time_that_the_log_gave_it(open_table: Open, new_topic: NewTopic) -> None:
    table = open_table(new_topic(**{"message.timestamp.type": "LogAppendTime"}))
    table.store.take_over()
    [record] = table.store._writer.append([(b"k", b"v")], 10.0)
    [fetched] = Fetcher(table.client).fetch({(table.topic, 0): record.offset}, max_wait_ms=0).values()
    assert [one for batch in fetched.batches() for one in records(batch)] == [record]
