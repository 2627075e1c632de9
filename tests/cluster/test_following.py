"""A follower's log, by what its leader answers."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from moldau.cluster.following import Fetcher, Followed, Limits
from moldau.cluster.throttling import GRACE_MS, Throttle
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.log.logs import NOW, TOPIC_ID, batch, create

LIMITS = Limits(500, 1, 10 << 20, 1 << 20, 1000)


def following(folder: Path) -> tuple[Fetcher, Followed]:
    fetcher = Fetcher(2, lambda: 0, LIMITS)
    one = Followed(TOPIC_ID, 0, create(folder / "follower"), leader_epoch=0)
    fetcher.add(one)
    return fetcher, one


def answer(fetcher: Fetcher, **row: Any) -> list[Followed]:
    """Let the leader answer the next request with one row."""
    assert fetcher.request(0.0) is not None
    part = m.FetchResponse_PartitionData(**({"partition_index": 0, "high_watermark": 0, "records": b""} | row))
    topic = m.FetchResponse_FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[part])
    return fetcher.heard(m.FetchResponse(responses=[topic]), 0.0, NOW)


def test_a_log_begins_anew_with_the_batch_in_which_the_leaders_log_begins(tmp_path: Path) -> None:
    """DeleteRecords has moved the leader's start into the middle of a batch, past this follower's end."""
    leader = create(tmp_path / "leader")
    for values in ([b"a"] * 4, [b"b"] * 4, [b"c"] * 2):
        leader.append(batch(*values), 0, NOW)
    leader.advance_high_watermark(10)
    leader.delete_records(6)
    fetcher, one = following(tmp_path)
    answer(fetcher, error_code=Error.OFFSET_OUT_OF_RANGE)
    assert one.lost and fetcher.request(0.0) is None
    fetcher.resume(one, 6, 10, NOW)
    sent = leader.read(one.log.end_offset, 1 << 20).span
    assert sent is not None
    answer(fetcher, records=sent.read(), high_watermark=10, log_start_offset=6)
    log = one.log
    assert (log.start_offset, log.end_offset, log.high_watermark) == (6, 10, 10)
    assert one.failed is None and not one.lost


def test_a_log_that_is_longer_than_the_leaders_is_cut(tmp_path: Path) -> None:
    fetcher, one = following(tmp_path)
    for values in ([b"a"] * 4, [b"b"] * 4):
        one.log.append(batch(*values), 0, NOW)
    answer(fetcher, error_code=Error.OFFSET_OUT_OF_RANGE)
    fetcher.resume(one, 0, 4, NOW)
    assert (one.log.start_offset, one.log.end_offset) == (0, 4)


def test_the_start_of_the_log_is_the_leaders_and_never_beyond_what_is_committed(tmp_path: Path) -> None:
    fetcher, one = following(tmp_path)
    for values in ([b"a"] * 4, [b"b"] * 4):
        one.log.append(batch(*values), 0, NOW)
    assert answer(fetcher, high_watermark=6, log_start_offset=5) == [one]
    assert (one.log.start_offset, one.log.high_watermark) == (5, 6)
    answer(fetcher, high_watermark=7, log_start_offset=8)
    assert (one.log.start_offset, one.log.high_watermark) == (7, 7)


# What a request names: the work grows with what has changed.


def crowd(folder: Path, count: int) -> tuple[Fetcher, list[Followed]]:
    """Return a fetcher whose session knows so many partitions."""
    fetcher = Fetcher(2, lambda: 0, LIMITS)
    some = [Followed(TOPIC_ID, index, create(folder / str(index)), leader_epoch=0) for index in range(count)]
    for one in some:
        fetcher.add(one)
    assert named(fetcher.request(0.0)) == list(range(count))
    reply(fetcher, range(count))
    assert named(fetcher.request(0.0)) == []
    return fetcher, some


def reply(fetcher: Fetcher, indexes: Iterable[int], now: float = 0.0, **row: Any) -> list[Followed]:
    """Let the leader answer the request that is under way, with the same for each of these partitions."""
    rows = [
        m.FetchResponse_PartitionData(**({"partition_index": index, "high_watermark": 0, "records": b""} | row))
        for index in indexes
    ]
    topics = [m.FetchResponse_FetchableTopicResponse(topic_id=TOPIC_ID, partitions=rows)] if rows else []
    return fetcher.heard(m.FetchResponse(session_id=7, responses=topics), now, NOW)


def named(request: m.FetchRequest | None) -> list[int]:
    assert request is not None
    return [row.partition for topic in request.topics for row in topic.partitions]


def forgotten(request: m.FetchRequest | None) -> list[int]:
    assert request is not None
    return sorted(index for topic in request.forgotten_topics_data for index in topic.partitions)


def test_a_request_looks_only_at_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher, some = crowd(tmp_path, 20)
    looked: list[int] = []
    real = Fetcher.position_of
    monkeypatch.setattr(
        Fetcher, "position_of", lambda self, one, now_ms: looked.append(one.index) or real(self, one, now_ms)
    )
    assert reply(fetcher, [3], records=bytes(batch(b"new")), high_watermark=0) == [some[3]]
    assert named(fetcher.request(0.0)) == [3] == looked
    reply(fetcher, [])
    assert named(fetcher.request(0.0)) == [] and looked == [3]


def test_a_log_that_retention_has_shortened_is_told_to_the_leader(tmp_path: Path) -> None:
    fetcher, some = crowd(tmp_path, 3)
    reply(fetcher, [1], records=bytes(batch(b"a", b"b")), high_watermark=2)
    assert named(fetcher.request(0.0)) == [1]
    reply(fetcher, [])
    some[1].log.delete_records(1)
    fetcher.touch(some[1].key)
    assert named(fetcher.request(0.0)) == [1]


def test_partitions_that_go_are_forgotten_once_and_those_that_wait_come_back(tmp_path: Path) -> None:
    fetcher, some = crowd(tmp_path, 4)
    fetcher.remove(some[0].key)
    reply(fetcher, [1], error_code=Error.UNKNOWN_LEADER_EPOCH)
    request = fetcher.request(0.0)
    assert (named(request), forgotten(request)) == ([], [0, 1])
    reply(fetcher, [])
    request = fetcher.request(999.0)
    assert (named(request), forgotten(request)) == ([], [])
    reply(fetcher, [], now=999.0)
    assert named(fetcher.request(1000.0)) == [1]


def test_a_partition_under_another_epoch_is_named_again_and_the_late_answer_ignored(tmp_path: Path) -> None:
    fetcher, some = crowd(tmp_path, 2)
    fetcher.add(Followed(TOPIC_ID, 1, some[1].log, leader_epoch=1))
    assert reply(fetcher, [1], records=bytes(batch(b"late")), high_watermark=0) == []
    assert some[1].log.end_offset == 0
    request = fetcher.request(0.0)
    assert named(request) == [1] and request is not None
    assert request.topics[0].partitions[0].current_leader_epoch == 1
    assert not forgotten(request)


def test_after_silence_everything_is_named_again_and_a_new_partition_need_not_wait(tmp_path: Path) -> None:
    fetcher, some = crowd(tmp_path, 3)
    fetcher.fail(0.0)
    assert fetcher.next_ms() == 1000.0 and fetcher.request(999.0) is None
    fetcher.add(Followed(TOPIC_ID, 1, some[1].log, leader_epoch=1))
    request = fetcher.request(999.0)
    assert sorted(named(request)) == [0, 1, 2] and request is not None and request.session_epoch == 0


def test_a_log_that_cannot_be_opened_is_reported_once_and_the_others_go_on(tmp_path: Path) -> None:
    fetcher, some = crowd(tmp_path, 3)
    some[2].log.fail("it is gone")
    reply(fetcher, [])
    fetcher.touch(some[2].key)
    assert forgotten(fetcher.request(0.0)) == [2]
    assert fetcher.take_troubled() == [some[2]] and some[2].failed == "it is gone"
    assert fetcher.take_troubled() == []


def test_a_log_that_has_no_room_to_be_opened_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was given up for good (seed 5654)."""
    fetcher, some = crowd(tmp_path, 2)
    reply(fetcher, [])
    with monkeypatch.context() as patch:
        full = Refused(Error.KAFKA_STORAGE_ERROR, "The disk is full.")
        patch.setattr(type(some[1].log), "wake", Mock(side_effect=full))
        fetcher.touch(some[1].key)
        assert forgotten(fetcher.request(0.0)) == [1] and fetcher.take_troubled() == []
        reply(fetcher, [])
    assert named(fetcher.request(1000.0)) == [1]


def test_a_follower_that_is_throttled_is_left_out_until_the_debt_is_paid(tmp_path: Path) -> None:
    fetcher, some = crowd(tmp_path, 3)
    fetcher.throttle = Throttle(lambda: 1000, lambda key: key[1] == 1)
    size = len(batch(b"x" * 500))
    reply(fetcher, [1], records=bytes(batch(b"x" * 500)), high_watermark=9)
    assert not some[1].in_sync
    assert forgotten(fetcher.request(0.0)) == [1]
    reply(fetcher, [])
    paid = size - GRACE_MS  # a millisecond pays for a byte, and what is left then holds back nobody
    assert named(fetcher.request(paid - 1)) == []
    reply(fetcher, [], now=paid - 1)
    assert named(fetcher.request(paid)) == [1]


def test_nothing_more_is_asked_for_before_a_promised_sync_is_done(tmp_path: Path) -> None:
    """To fetch on is to say that the rest is here: the leader would acknowledge what a loss of power can take."""
    fetcher, one = following(tmp_path)
    leader = create(tmp_path / "leader")
    leader.append(batch(b"a"), 0, NOW)
    sent = leader.read(0, 1 << 20).span
    assert sent is not None
    answer(fetcher, records=sent.read())
    fetcher.unsynced.add(one.key)
    assert fetcher.request(0.0) is None and fetcher.next_ms() == inf
    fetcher.unsynced.clear()
    (topic,) = fetcher.request(0.0).topics
    assert topic.partitions[0].fetch_offset == 1
