"""Which worker has which lane: every lane once, what need not move stays, and loads become equal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.flows.assignment import cost_of, share_out

LANES = [f"lane-{number}" for number in range(12)]
WORKERS = [f"worker-{number}" for number in range(5)]


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, float], dict[str, set[str]]]:
    """Lanes with their costs, and workers of which each has some; some are of lanes that are gone."""
    costs = {lane: draw(st.integers(1, 9)) / 2 for lane in draw(st.sets(st.sampled_from(LANES)))}
    owned: dict[str, set[str]] = {worker: set() for worker in draw(st.sets(st.sampled_from(WORKERS), min_size=1))}
    for lane in draw(st.sets(st.sampled_from(LANES))):
        owned[draw(st.sampled_from(sorted(owned)))].add(lane)
    return costs, owned


def settled(
    costs: dict[str, float], owned: dict[str, set[str]], wished: dict[str, str] | None = None
) -> dict[str, set[str]]:
    """Let workers let go and take what they were given, until nothing changes."""
    for _ in range(8):  # rounds of the group
        given = {worker: set(lanes) for worker, lanes in share_out(costs, owned, wished or {}).items()}
        if given == owned:
            return owned
        owned = given
    raise AssertionError("it does not come to rest")


@given(groups())
def test_no_lane_is_given_away_before_its_worker_let_it_go(group: tuple[dict[str, float], dict[str, set[str]]]) -> None:
    costs, owned = group
    made = share_out(costs, owned)
    everywhere = [lane for lanes in made.values() for lane in lanes]
    assert len(everywhere) == len(set(everywhere))
    for worker, lanes in made.items():
        for other, theirs in owned.items():
            assert other == worker or not theirs & set(lanes)


@given(groups())
def test_all_lanes_run_and_no_worker_has_much_more_than_another(
    group: tuple[dict[str, float], dict[str, set[str]]],
) -> None:
    costs, owned = group
    last = settled(costs, owned)
    assert sorted(lane for lanes in last.values() for lane in lanes) == sorted(costs)
    loads = {worker: sum(costs[lane] for lane in lanes) for worker, lanes in last.items()}
    busiest = max(loads, key=lambda worker: loads[worker])
    gap = loads[busiest] - min(loads.values())
    assert all(costs[lane] >= gap * (1 - 1e-6) for lane in last[busiest])


@given(groups(), st.sampled_from(WORKERS))
def test_a_worker_that_goes_moves_only_its_own_lanes_where_that_is_fair(
    group: tuple[dict[str, float], dict[str, set[str]]], gone: str
) -> None:
    costs = dict.fromkeys(group[0], 1.0)
    before = settled(costs, group[1])
    left = {worker: lanes for worker, lanes in before.items() if worker != gone}
    if left:
        for worker, lanes in share_out(costs, left).items():
            assert left[worker] <= set(lanes)


def test_a_busy_lane_costs_as_much_as_several_idle_ones() -> None:
    busy, *idle = LANES[:5]
    costs = {busy: cost_of(0.9), **dict.fromkeys(idle, cost_of(0.1))}
    assert [cost_of(load) for load in (0.0, 0.19, 0.3, 0.5, 1.0)] == [1, 1, 2, 4, 8]
    owned = {"worker-1": {busy, *idle}, "worker-2": set[str]()}
    assert settled(costs, owned) == {"worker-1": set(idle), "worker-2": {busy}}
    nearly = {**costs, idle[0]: cost_of(0.15)}
    assert settled(nearly, owned) == settled(costs, owned), "small differences move nothing"


@given(groups(), st.dictionaries(st.sampled_from(LANES), st.sampled_from(WORKERS)))
def test_a_wish_is_followed_while_its_worker_is_there_and_all_lanes_run(
    group: tuple[dict[str, float], dict[str, set[str]]], wished: dict[str, str]
) -> None:
    costs, owned = group
    last = settled(costs, owned, wished)
    assert sorted(lane for lanes in last.values() for lane in lanes) == sorted(costs)
    for lane, worker in wished.items():
        assert worker not in owned or lane not in costs or lane in last[worker]
