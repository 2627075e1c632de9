"""How the position of a lane goes on: what flows do to themselves, they do to no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.plan.conveyor.source import Packing
from moldau.plan.lane.failures import OF_A_BATCH, Failure, Failures, failure_of, key_of, of_family
from moldau.plan.lane.position import At, Carried, LanePosition, following
from moldau.plan.lane.rows import WAKE, Whose
from moldau.plan.lane.source import shared_out
from moldau.plan.lane.wanted import HELD, MOVED, REMOVED, RUNNING, Want
from moldau.spark.source.planning import ForeignOffset, Range

BEGIN = {"t": {"0": 0}}


def want(state: str = RUNNING, attempt: int = 1, parcel: str = "p") -> Want:
    return Want("name", parcel, attempt, state, BEGIN)


def more(serial: int, one: Want, at: At) -> At:
    """Two records further."""
    return {"t": {"0": at["t"]["0"] + 2}}


def none(serial: int, one: Want, at: At) -> At:
    return at


def at(offset: int) -> At:
    return {"t": {"0": offset}}


def test_a_newcomer_begins_where_it_is_told_and_a_replay_knows_where_that_was() -> None:
    first = following(LanePosition(), {7: want()}, Failures(), more)
    assert first is not None
    assert (first.began, first.flows[7].at) == ({7: BEGIN}, at(2))
    second = following(first, {7: want()}, Failures(), more)
    assert second is not None
    assert (second.began, second.flows[7].at) == ({}, at(4))


def test_where_nothing_happens_there_is_no_batch() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(2))})
    assert following(start, {7: want()}, Failures(), none) is None
    assert following(start, {}, Failures(), more) is None, "a flow of which nobody says anything stays as it is"
    assert following(start, {7: want(HELD)}, Failures(), more) is None
    assert following(LanePosition(), {7: want(HELD)}, Failures(), more) is None


def test_a_flow_that_is_wanted_anew_is_woken_once() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(2))})
    held = following(start, {7: want(HELD, 2)}, Failures(), none)
    assert held is None
    woken = following(start, {7: want(RUNNING, 3)}, Failures(), none)
    assert woken is not None
    assert (woken.wake, woken.flows[7].attempt) == ((7,), 3)
    assert following(woken, {7: want(RUNNING, 3)}, Failures(), none) is None


def test_an_upgrade_takes_effect_with_a_batch_though_there_is_nothing_to_read() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(2))})
    changed = following(start, {7: want(RUNNING, 2, "q")}, Failures(), none)
    assert changed is not None
    assert changed.flows[7].parcel == "q"


def test_a_flow_that_has_failed_stands_still_and_goes_on_where_it_failed() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(6)), 8: Carried("name", "p", 1, at(6))})
    failures = Failures([Failure(7, 1, "t-0", "", "", "t", 0, 4)])
    wants = {7: want(), 8: want()}
    stopped = following(start, wants, failures, more)
    assert stopped is not None
    assert (stopped.flows[7].at, stopped.flows[8].at) == (at(4), at(8))
    resumed = following(stopped, {**wants, 7: want(RUNNING, 2)}, failures, more)
    assert resumed is not None
    assert (resumed.flows[7].at, resumed.wake) == (at(6), (7,))


def test_a_flow_that_is_resumed_at_once_reads_again_what_it_has_not_done() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(6))})
    failures = Failures([Failure(7, 1, "t-0", "", "", "t", 0, 4)])
    resumed = following(start, {7: want(RUNNING, 2)}, failures, more)
    assert resumed is not None
    assert (resumed.began, resumed.flows[7].at) == ({7: at(4)}, at(6)), "from 4 to 6, though it was at 6 before"


def test_a_flow_that_a_batch_was_done_without_goes_back_to_where_the_batch_began() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(6))})
    failures = Failures([Failure(7, 1, OF_A_BATCH, "", "", at=at(3))])
    stopped = following(start, {7: want()}, failures, more)
    assert stopped is not None
    assert stopped.flows[7].at == at(3)


def test_a_flow_that_is_removed_is_left_out() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(2)), 8: Carried("name", "p", 1, at(2))})
    gone = following(start, {7: want(REMOVED)}, Failures(), none)
    assert gone is not None
    assert set(gone.flows) == {8}
    assert following(gone, {7: want(REMOVED)}, Failures(), none) is None


def test_a_number_that_is_anothers_now_is_cleared_away_before_that_begins() -> None:
    start = LanePosition({7: Carried("before", "p", 1, at(9)), 8: Carried("name", "p", 1, at(2))})
    first = following(start, {7: want(), 8: want()}, Failures(), more)
    assert first is not None and set(first.flows) == {8} and first.flows[8].at == at(4)
    second = following(first, {7: want(), 8: want()}, Failures(), none)
    assert second is not None and second.began == {7: BEGIN} and second.flows[7] == Carried("name", "p", 1, BEGIN)
    moved = following(start, {7: want(MOVED)}, Failures(), more)
    assert moved is not None and not moved.left
    assert start.carried(7, "name") is None and start.carried(7, "before") == start.flows[7]


@settings(max_examples=200)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 4), st.tuples(st.sampled_from([RUNNING, HELD, REMOVED]), st.booleans())),
        max_size=12,
    )
)
def test_no_flow_is_moved_by_another(steps: list[dict[int, tuple[str, bool]]]) -> None:
    """Each flow alone, in a lane of its own, comes to the same position."""
    together, alone = LanePosition(), {serial: LanePosition() for serial in range(5)}
    wants: dict[int, Want] = {}
    attempts = dict.fromkeys(range(5), 1)
    for step in steps:
        for serial, (state, anew) in step.items():
            attempts[serial] += anew
            wants[serial] = want(state, attempts[serial])
        together = following(together, wants, Failures(), more) or together
        assert LanePosition.of_json(json.loads(json.dumps(together.to_json()))) == together
        for serial, before in alone.items():
            own = {serial: wants[serial]} if serial in wants else {}
            alone[serial] = following(before, own, Failures(), more) or before
            assert together.flows.get(serial) == alone[serial].flows.get(serial)


@pytest.mark.parametrize("document", [{}, {"orders": {"0": 1}}, {"@lane": 2, "flows": {}}])
def test_a_position_of_another_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ForeignOffset):
        LanePosition.of_json(document)


def test_a_failure_says_the_same_whenever_it_is_told() -> None:
    """A batch that is replayed must write what it wrote before: addresses of objects differ."""

    def told() -> bytes:
        try:
            raise ValueError(f"no {object()}")
        except ValueError as error:
            return failure_of(error, 7, 1, "0_0").to_bytes()

    assert told() == told()
    assert Failure.of_bytes(told()).error == "ValueError: no <object object at 0x...>"


def test_a_flow_that_moves_leaves_its_position_until_nobody_waits_for_it() -> None:
    start = LanePosition({7: Carried("name", "p", 1, at(6)), 8: Carried("name", "q", 1, at(2))})
    failed = Failures([Failure(7, 1, "t-0", "error", "trace", "t", 0, 4)])
    left = following(start, {7: want(MOVED), 8: want()}, failed, none)
    assert left is not None and LanePosition.of_json(json.loads(json.dumps(left.to_json()))) == left
    assert (set(left.flows), left.left, left.began) == ({8}, {7: at(4)}, {}), (
        "it goes on at the record that it failed on"
    )
    assert following(left, {7: want(MOVED), 8: want()}, failed, none) is None, "once"
    later = following(left, {8: want()}, Failures(), none)
    assert later is not None and later.left == {} and "left" not in later.to_json()
    back = following(later, {7: want(), 8: want()}, Failures(), none)
    assert back is not None and back.began == {7: BEGIN}


def test_a_flow_that_moves_before_its_first_batch_says_where_it_would_have_begun() -> None:
    left = following(LanePosition(), {7: want(MOVED)}, Failures(), more)
    assert left is not None and (left.flows, left.left) == ({}, {7: BEGIN})


def test_a_replay_has_as_many_tasks_as_the_batch_had() -> None:
    parts = [(Whose(serial, "p", 1), Packing((Range("t", 0, 0, 1000),), frozenset(), None)) for serial in range(20)]
    assert [len(shared_out(parts, most)) for most in (None, 1, 2, 100)] == [20, 1, 2, 20]
    assert [len(some) for some in shared_out(parts, 2)] == [10, 10]
    assert len(shared_out([(Whose(1, "p", 1), WAKE)], 2)) == 1
    planned = LanePosition(tasks=2)
    assert LanePosition.of_json(json.loads(json.dumps(planned.to_json()))) == planned
    assert LanePosition.of_json(LanePosition().to_json()).tasks is None, "of a release before"


def test_failures_of_other_families_are_not_ours_though_serial_numbers_are_equal() -> None:
    one = failure_of(ValueError("no"), 7, 1, "in-0")
    records = [(key_of(family, one), one.to_bytes()) for family in ("streams", "query-a_", "query-b_")]
    assert len({key for key, _ in records}) == 3
    assert of_family("query-a_", records) == [one] == of_family("query-b_", records)
    gone = [(key_of("query-a_", one), None)]
    assert of_family("query-a_", gone) == [] == of_family("query", records)


def test_failures_without_a_family_are_of_deployed_applications() -> None:
    one = failure_of(ValueError("no"), 7, 1, "in-0")
    records = [(one.key.encode(), one.to_bytes())]
    assert of_family("streams", records) == [one] and of_family("query-a_", records) == []
