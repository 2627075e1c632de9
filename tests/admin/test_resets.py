"""Durations, times and files of offsets, as users write them; and plans on a real cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.admin import resets
from moldau.admin.resets import ResetError
from moldau.client import Client, Record, build, produce
from moldau.testing import Broker
from tests.cli.running import QUICK

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90m", timedelta(minutes=90)),
        ("2h30m", timedelta(hours=2, minutes=30)),
        ("7d", timedelta(days=7)),
        ("1.5s", timedelta(seconds=1.5)),
        ("500ms", timedelta(milliseconds=500)),
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("P1DT2H", timedelta(days=1, hours=2)),
        ("P2W", timedelta(weeks=2)),
        ("PT0.5S", timedelta(seconds=0.5)),
        ("-PT1H", timedelta(hours=-1)),
    ],
)
def test_durations_are_short_or_of_iso(text: str, expected: timedelta) -> None:
    assert resets.duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "h", "1", "1y", "5 m", "1h?"])
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(ResetError, match="duration"):
        resets.duration(text)


def test_times_are_iso_in_utc_milliseconds_or_ago() -> None:
    ten = int(datetime(2026, 11, 15, 10, tzinfo=UTC).timestamp() * 1000)
    assert resets.moment_ms("2026-11-15T10:00:00") == ten
    assert resets.moment_ms("2026-11-15T11:00:00+01:00") == ten
    assert resets.moment_ms(str(ten)) == ten
    assert resets.moment_ms("-2h", NOW) == ten
    assert resets.moment_ms("now", NOW) == ten + 7_200_000
    with pytest.raises(ResetError, match="no time"):
        resets.moment_ms("yesterday")


NAMES = st.text("abcXYZ019._-", min_size=1, max_size=20)
PLACES = st.tuples(NAMES, st.integers(0, 2**31 - 1))


@QUICK
@given(st.dictionaries(PLACES, st.integers(0, 2**63 - 1)), st.sampled_from([None, "g,1", 'a"b']))
def test_a_file_of_offsets_is_read_as_it_was_written(offsets: dict[tuple[str, int], int], group: str | None) -> None:
    assert resets.from_csv(resets.to_csv(group, offsets), group or "any") == offsets


def test_lines_of_other_groups_are_passed_over_and_wrong_ones_named() -> None:
    assert resets.from_csv("mine,t,0,5\nother,t,0,7\n\n", "mine") == {("t", 0): 5}
    with pytest.raises(ResetError, match="Line 2"):
        resets.from_csv("t,0,5\nt,x,5\n", "mine")


def test_a_plan_never_leaves_a_partition(kafka_shared: Broker) -> None:
    topic, client = (
        kafka_shared.create_topic(partitions=2),
        Client({"bootstrap.servers": kafka_shared.bootstrap_servers}),
    )
    produce(client, topic, 0, build([Record(timestamp=1, value=value.encode()) for value in "abcde"]))
    zero, one = (topic, 0), (topic, 1)
    plans: list[tuple[resets.Wanted, dict[tuple[str, int], int]]] = [
        (resets.Earliest(), {zero: 0, one: 0}),
        (resets.Latest(), {zero: 5, one: 0}),
        (resets.To(3), {zero: 3, one: 0}),
        (resets.Shift(-1), {zero: 1, one: 0}),
        (resets.Shift(99), {zero: 5, one: 0}),
        (resets.At(0), {zero: 0, one: 0}),
        (resets.At(2**45), {zero: 5, one: 0}),
        (resets.Current(), {zero: 2, one: 0}),
    ]
    for wanted, expected in plans:
        assert resets.plan(client, wanted, [zero, one], {zero: 2, one: 0}) == expected, wanted
    with pytest.raises(ResetError, match="nothing to shift"):
        resets.plan(client, resets.Shift(1), [zero], {})
    client.close()
