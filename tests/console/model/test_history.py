"""Rates, lags and health from what the sampler saw."""

from __future__ import annotations

from moldau.admin.clusters import BrokerState, ClusterState
from moldau.admin.topics import PartitionState, TopicState
from moldau.console.model import figures
from moldau.console.model.history import POINTS, Flow, History, Read, Sample, health

CLUSTER = ClusterState("c", 1, (BrokerState(1, "h", 9092, None, True, False),))


def sample(at_s: float, ends: dict[str, int], **lags: int) -> Sample:
    return Sample(at_s, CLUSTER, (), ends, lags)


def test_rates_are_differences_over_time() -> None:
    history = History()
    assert history.rates() == {} and history.throughput() == [] and history.lag_lines() == {}
    history.add(sample(10, {"a": 100, "gone": 50}))
    history.add(sample(12, {"a": 300, "new": 7}))
    assert history.rates() == {"a": 100.0, "new": 0.0}
    assert history.throughput() == [(12, 78.5)]
    history.add(sample(12, {"a": 300}))
    assert len(history.throughput()) == 1, "no time has passed"


def test_what_groups_read_is_a_difference_too() -> None:
    history = History()
    assert history.flow() == Flow()
    place = ("billing", "orders")
    history.add(Sample(10, CLUSTER, (), {"orders": 100}, {}, {place: Read(40, 60)}))
    assert history.flow() == Flow(lag={place: 60})
    history.add(Sample(12, CLUSTER, (), {"orders": 110}, {}, {place: Read(60, 50), ("new", "orders"): Read(1, 109)}))
    assert history.flow() == Flow({"orders": 5.0}, {place: 10.0}, {place: 50, ("new", "orders"): 109})


def test_history_is_bounded_and_lags_are_those_that_matter() -> None:
    history = History()
    for at in range(2 * POINTS):
        history.add(sample(at, {}, **{f"g{n}": n * at for n in range(20)}))
    assert len(history.points) == POINTS
    assert list(history.lag_lines()) == ["g19", "g18", "g17", "g16", "g15"]


def test_health_says_what_is_wrong() -> None:
    parts = (PartitionState(0, -1, 0, (1, 2), (1,)), PartitionState(1, 1, 0, (1,), (1,)))
    topic = TopicState("t", bytes(16), False, parts)
    state = health(Sample(0, CLUSTER, (topic,), {}, {}))
    assert not state.is_well and state.sentence == "1 partition has no leader; 1 partition lacks replicas."
    assert health(sample(0, {})).sentence == "All is well."


def test_figures_are_as_people_read_them() -> None:
    assert [figures.count(one) for one in (None, 0, 1234567, 2.34, 1234.5)] == ["–", "0", "1,234,567", "2.3", "1,234"]
    assert [figures.size(one) for one in (None, 0, 999, 1500, 10**9)] == ["–", "0 B", "999 B", "1.5 KB", "1.0 GB"]
    assert figures.moment(1_000_000_000_123) == "2001-09-09 01:46:40.123"
    assert figures.moment(-1) == "–" and figures.moment(2**62) == f"{2**62} ms"
