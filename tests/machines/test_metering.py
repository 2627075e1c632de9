"""Which quota counts for whom, and how rates and buckets are measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.metadata.metering import Bucket, Limit, Rate, find_limit

KEY = "producer_byte_rate"
USER, DEFAULT_USER = ("user", "u"), ("user", None)
CLIENT, DEFAULT_CLIENT = ("client-id", "c"), ("client-id", None)
# From the most special to the most general.
ENTITIES = [
    (CLIENT, USER),
    (DEFAULT_CLIENT, USER),
    (USER,),
    (CLIENT, DEFAULT_USER),
    (DEFAULT_CLIENT, DEFAULT_USER),
    (DEFAULT_USER,),
    (CLIENT,),
    (DEFAULT_CLIENT,),
]
SHARED = [("u", "c"), ("u", "c"), ("u", None), ("u", "c"), ("u", "c"), ("u", None), (None, "c"), (None, "c")]


@pytest.mark.parametrize("place", range(len(ENTITIES)))
def test_the_most_special_quota_counts_and_says_who_shares_it(place: int) -> None:
    quotas = {entity: {KEY: float(at)} for at, entity in enumerate(ENTITIES) if at >= place}
    assert find_limit(quotas, KEY, "u", "c") == Limit(float(place), *SHARED[place])


def test_quotas_of_others_and_of_other_keys_do_not_count() -> None:
    quotas = {(("user", "x"),): {KEY: 1.0}, (CLIENT, ("user", "x")): {KEY: 1.0}, (USER,): {"other": 1.0}}
    assert find_limit(quotas, KEY, "u", "c") is None


def test_a_rate_that_has_just_begun_counts_over_all_windows_but_one() -> None:
    rate = Rate(11, 1000)
    rate.record(20_000, 0)
    assert rate.measure(0) == (2000, 10_000)
    assert rate.throttle_ms(1000, 0) == 10_000
    assert rate.throttle_ms(2000, 0) == 0


def test_a_rate_forgets() -> None:
    rate = Rate(11, 1000)
    rate.record(1000, 0)
    assert rate.measure(10_999)[0] > 0
    assert rate.measure(11_000) == (0, 10_000)


@given(st.lists(st.tuples(st.floats(0, 3000), st.floats(0, 1e6)), max_size=40), st.floats(1, 1e5))
def test_who_waits_as_told_stays_within_the_limit(steps: list[tuple[float, float]], limit: float) -> None:
    rate, now, total = Rate(11, 1000), 0.0, 0.0
    for pause, size in steps:
        now += pause
        rate.record(size, now)
        total += size
        now += rate.throttle_ms(limit, now)
    used = total - (steps[-1][1] if steps else 0)
    assert used <= limit * (now + 20_000) / 1000 + max((size for _, size in steps), default=0)


def test_a_bucket_may_be_overdrawn_once() -> None:
    bucket = Bucket()
    assert bucket.fill(1, 11, 0) == 11
    bucket.take(20)
    assert bucket.throttle_ms(1) == 9000
    assert bucket.fill(1, 11, 4000) == -5
    assert bucket.fill(1, 11, 100_000) == 11
