"""Retention as a table: segments of 100 offsets and 1,000 bytes, and how many of the oldest go."""

from dataclasses import dataclass, replace

import pytest

from moldau.log.config import LogConfig
from moldau.log.retention import Bounds, expired

HOUR = 3_600_000
NOW = 1_000 * HOUR
KEEP = LogConfig(retention_ms=-1, retention_bytes=-1)
ALL = Bounds(0, 500, 500)


@dataclass(slots=True)
class Piece:
    base_offset: int
    largest_timestamp: int
    size: int = 1000

    def look(self) -> int:
        return self.size


def pieces(*ages_in_hours: int) -> list[Piece]:
    return [Piece(100 * n, NOW - age * HOUR) for n, age in enumerate(ages_in_hours)]


FIVE = pieces(50, 40, 30, 20, 10)


def gone(segments: list[Piece], bounds: Bounds, config: LogConfig) -> list[int]:
    found = expired(segments, bounds, config, NOW)
    assert all(reason for _, reason in found)
    return [segment.base_offset // 100 for segment, _ in found]


@pytest.mark.parametrize(
    ("hours", "count"), [(60, 0), (50, 0), (49, 1), (35, 2), (10, 4), (9, 5), (0, 5)], ids=lambda n: str(n)
)
def test_segments_go_when_their_newest_record_is_older_than_retention_ms(hours: int, count: int) -> None:
    assert gone(FIVE, ALL, replace(KEEP, retention_ms=hours * HOUR)) == list(range(count))


@pytest.mark.parametrize(("limit", "count"), [(5000, 0), (4001, 0), (4000, 1), (2500, 2), (1000, 4), (0, 5), (-1, 0)])
def test_segments_go_while_the_rest_still_has_retention_bytes(limit: int, count: int) -> None:
    assert gone(FIVE, ALL, replace(KEEP, retention_bytes=limit)) == list(range(count))


@pytest.mark.parametrize(("start", "count"), [(0, 0), (99, 0), (100, 1), (250, 2), (499, 4), (500, 4)])
def test_segments_before_the_log_start_offset_go(start: int, count: int) -> None:
    """The last segment has no successor that begins at the start offset, so it stays."""
    assert gone(FIVE, Bounds(start, 500, 500), KEEP) == list(range(count))


@pytest.mark.parametrize(("watermark", "count"), [(0, 0), (99, 0), (100, 1), (399, 3), (499, 4), (500, 5)])
def test_retention_never_passes_the_high_watermark(watermark: int, count: int) -> None:
    bounds = Bounds(0, 500, watermark)
    assert gone(FIVE, bounds, replace(KEEP, retention_ms=0)) == list(range(count))
    assert gone(FIVE, bounds, replace(KEEP, retention_bytes=0)) == list(range(count))


def test_an_old_segment_behind_a_young_one_stays() -> None:
    assert gone(pieces(50, 1, 40), Bounds(0, 300, 300), replace(KEEP, retention_ms=10 * HOUR)) == [0]


def test_an_empty_active_segment_stays() -> None:
    segments = [*pieces(50, 40), Piece(200, NOW - 30 * HOUR, 0)]
    assert gone(segments, Bounds(0, 200, 200), replace(KEEP, retention_ms=HOUR)) == [0, 1]


def test_timestamps_in_the_future_keep_a_segment() -> None:
    assert gone(pieces(-5), Bounds(0, 100, 100), replace(KEEP, retention_ms=0)) == []


def test_each_rule_sees_what_the_one_before_has_left() -> None:
    config = replace(KEEP, retention_bytes=3500, retention_ms=25 * HOUR)
    found = expired(FIVE, Bounds(100, 500, 500), config, NOW)
    assert [segment.base_offset for segment, _ in found] == [0, 100, 200]
    assert ["start offset" in reason for _, reason in found] == [True, False, False]
    assert ["retention.ms" in reason for _, reason in found] == [False, True, True]


def test_a_compacted_log_obeys_the_start_offset_alone() -> None:
    config = replace(KEEP, retention_ms=0, retention_bytes=0, cleanup_policy=frozenset({"compact"}))
    assert gone(FIVE, Bounds(250, 500, 500), config) == [0, 1]
    both = replace(config, cleanup_policy=frozenset({"compact", "delete"}))
    assert gone(FIVE, Bounds(250, 500, 500), both) == [0, 1, 2, 3, 4]


def test_a_log_without_a_policy_keeps_all() -> None:
    config = replace(KEEP, retention_ms=0, retention_bytes=0, cleanup_policy=frozenset())
    assert gone(FIVE, Bounds(250, 500, 500), config) == []
