"""Replication throttles in simulated time: bytes are counted, no clock is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cluster.following import Fetcher, Followed, Limits
from moldau.cluster.throttling import GRACE_MS, UNLIMITED, Throttle, is_listed
from moldau.log.log import Log
from moldau.wire import messages as m
from tests.log.logs import NOW, TOPIC_ID, batch, create

RECORD = b"x" * 900
LIMITS = Limits(500, 1, 10 << 20, 4000, 1000)
STEP_MS = 10.0


@pytest.mark.parametrize(
    ("text", "is_named"),
    [("*", True), ("0:2", True), ("1:1, 0:2", True), ("0:1", False), ("1:2", False), ("", False), ("10:2", False)],
)
def test_replicas_are_listed_by_partition_and_broker(text: str, is_named: bool) -> None:
    assert is_listed(text, 0, 2) is is_named


def test_what_was_copied_is_paid_with_time() -> None:
    throttle = Throttle(lambda: 1000, lambda key: key[1] == 0)
    throttle.count(("t", 0), 500, 0.0)
    throttle.count(("t", 1), 10**9, 0.0)
    free_ms = 500.0 - GRACE_MS
    assert throttle.holds(("t", 0), 0.0) and throttle.holds(("t", 0), free_ms - 1)
    assert not throttle.holds(("t", 1), 0.0), "it is not one of those"
    assert throttle.free_ms(free_ms - 1) == free_ms
    assert not throttle.holds(("t", 0), free_ms)


def test_the_average_is_the_rate() -> None:
    throttle, copied = Throttle(lambda: 1000, lambda _: True), 0
    for now in range(100_000):
        if not throttle.holds(("t", 0), now):
            throttle.count(("t", 0), 700, now)
            copied += 700
    assert abs(copied - 100_000) <= 700 + 1000 * GRACE_MS / 1000


def test_a_rate_may_change_and_end() -> None:
    rate = 0
    throttle = Throttle(lambda: rate, lambda _: True)
    throttle.count(("t", 0), 5000, 0.0)
    assert throttle.holds(("t", 0), 10**9)
    assert throttle.free_ms(10**9) == 10**9 + 1000
    rate = UNLIMITED
    assert not throttle.holds(("t", 0), 10**9)


def leader_of(folder: Path, records: int) -> Log:
    log = create(folder / "leader")
    for _ in range(records):
        log.append(batch(RECORD), 0, NOW)
    log.advance_high_watermark(records)
    return log


def answer(leader: Log, request: m.FetchRequest) -> m.FetchResponse:
    """As a leader answers, for the one partition that is named or remembered."""
    rows = []
    for topic in request.topics:
        for part in topic.partitions:
            span = leader.read(part.fetch_offset, part.partition_max_bytes).span
            row = m.FetchResponse_PartitionData(part.partition, 0, leader.high_watermark)
            row.records = b"" if span is None else span.read()
            rows.append(row)
    return m.FetchResponse(responses=[m.FetchResponse_FetchableTopicResponse("", TOPIC_ID, rows)])


@pytest.mark.parametrize("rate", [5_000, 20_000, UNLIMITED])
def test_a_follower_asks_for_no_more_than_its_rate(tmp_path: Path, rate: int) -> None:
    leader, now = leader_of(tmp_path, 100), 0.0
    one = Followed(TOPIC_ID, 0, create(tmp_path / "follower"), leader_epoch=0)
    fetcher = Fetcher(2, lambda: 0, LIMITS, Throttle(lambda: rate, lambda _: True))
    fetcher.add(one)
    while one.log.end_offset < leader.end_offset and now < 60_000:
        if (request := fetcher.request(now)) is not None:
            fetcher.heard(answer(leader, request), now, NOW)
            assert one.log.size <= rate * (now + GRACE_MS) / 1000 + LIMITS.partition_bytes
        else:
            assert now < fetcher.next_ms() <= now + 1000
        now += STEP_MS
    assert one.log.end_offset == leader.end_offset and one.in_sync
    assert rate == UNLIMITED or leader.size - LIMITS.partition_bytes <= rate * now / 1000 <= leader.size + rate


def test_a_new_replica_has_its_turn_while_others_in_sync_get_records(tmp_path: Path) -> None:
    """Each answer brings some for those, and is followed at once by the next request."""
    one = Followed(TOPIC_ID, 0, create(tmp_path / "follower"), leader_epoch=0)
    other = Followed(TOPIC_ID, 1, create(tmp_path / "other"), leader_epoch=0)
    throttle = Throttle(lambda: 1_000_000, lambda _: True)
    fetcher = Fetcher(2, lambda: 0, LIMITS, throttle)
    leader, busy = leader_of(tmp_path, 4), create(tmp_path / "busy")
    fetcher.add(other)
    for step in range(20):
        request = fetcher.request(step * STEP_MS)
        assert request is not None
        busy.append(batch(RECORD), 0, NOW)
        busy.advance_high_watermark(step + 1)
        for topic in request.topics:
            topic.partitions = [part for part in topic.partitions if part.partition == 0]
        span = busy.read(step, LIMITS.partition_bytes).span
        assert span is not None
        row = m.FetchResponse_PartitionData(1, 0, step + 1, records=span.read())
        response = answer(leader, request)
        response.responses[0].partitions = [*response.responses[0].partitions, row]
        fetcher.heard(response, (step + 1) * STEP_MS, NOW)
        if step == 0:
            fetcher.add(one)
    assert one.log.end_offset == leader.end_offset


def test_a_follower_in_sync_is_not_held(tmp_path: Path) -> None:
    leader = leader_of(tmp_path, 4)
    one = Followed(TOPIC_ID, 0, create(tmp_path / "follower"), leader_epoch=0)
    throttle = Throttle(lambda: 1, lambda _: True)
    fetcher = Fetcher(2, lambda: 0, LIMITS, throttle)
    fetcher.add(one)
    fetcher.heard(answer(leader, fetcher.request(0.0)), 0.0, NOW)
    assert one.in_sync and throttle.holds(one.key, 0.0)
    assert fetcher.request(0.0) is not None
