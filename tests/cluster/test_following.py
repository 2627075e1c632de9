"""A follower's log, by what its leader answers."""

from __future__ import annotations

from pathlib import Path

from moldau.cluster.following import Fetcher, Followed, Limits
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.log.logs import NOW, TOPIC_ID, batch, create

LIMITS = Limits(500, 1, 10 << 20, 1 << 20, 1000)


def following(folder: Path) -> tuple[Fetcher, Followed]:
    fetcher = Fetcher(2, lambda: 0, LIMITS)
    one = Followed(TOPIC_ID, 0, create(folder / "follower"), leader_epoch=0)
    fetcher.add(one)
    return fetcher, one


def answer(fetcher: Fetcher, **row: object) -> list[Followed]:
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
