"""A flow has one lane at a time, also while it moves, and what cannot move is refused with the reason."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from moldau.client import Client, Record
from moldau.flows.definition import Definition, FlowError, Wanted, changed, deployed, rolled_back
from moldau.flows.lanes import LANE, OWN, SHARED, STEPS, WORKER, lane_of, lanes_of, of_the_application, wishes_of
from moldau.flows.moving import ANY, arrived, forget_own, moved, stays, taken_over
from moldau.flows.records import decode, encode
from moldau.spark.sink.marker_topic import Ledger
from moldau.spark.sink.markers import TOPIC as MARKERS
from moldau.spark.sink.markers import Decision
from moldau.testing import broker

FLOW = Definition("counts", "streams", "v1", {"file": "app.py", STEPS: 1}, serial=7)
OWN_LANE, SHARED_LANE = "streams/counts/7", "shared/streams/1"
AT = {"t": {"0": 5}}


def test_a_flow_is_in_its_old_lane_until_that_has_told_its_position() -> None:
    going = moved({"counts": FLOW}, "counts", 9, OWN, None)
    assert (lane_of(FLOW), lane_of(going), going.revision) == (SHARED_LANE, SHARED_LANE, 2)
    stopped = changed({"counts": going}, "counts", Wanted.STOPPED, 9)
    assert lanes_of([stopped]) == {SHARED_LANE: (stopped,)}, "nobody else knows where it stands"
    upgraded = deployed({"counts": going}, replace(FLOW, version="v2", settings=going.settings))
    assert lane_of(upgraded) == SHARED_LANE
    with pytest.raises(FlowError, match="still moving, out of shared/streams/1"):
        moved({"counts": going}, "counts", 9, SHARED, None)
    there = arrived({"counts": upgraded}, going, AT)
    assert there is not None and (lane_of(there), there.begin, there.version) == (OWN_LANE, AT, "v2")
    assert arrived({"counts": there}, going, AT) is None, "it has arrived already"
    assert arrived({"counts": replace(going, serial=8)}, going, AT) is None, "it is another one"
    key, value = encode(there)
    assert decode(Record(99, 0, key, value)) == there
    back = moved({"counts": there}, "counts", 9, SHARED, None)
    assert (lane_of(back), back.leaving, back.begin) == (OWN_LANE, OWN_LANE, AT)
    new = arrived({"counts": back}, back, {})
    assert new is not None and (lane_of(new), new.begin) == (SHARED_LANE, AT), "it has done nothing in between"


def test_a_lane_may_be_wanted_on_a_worker() -> None:
    own = replace(FLOW, settings={LANE: OWN})
    pinned = moved({"counts": own}, "counts", 9, None, "desk")
    assert pinned.leaving is None and wishes_of([pinned]) == {OWN_LANE: "desk"}
    free = moved({"counts": pinned}, "counts", 9, None, ANY)
    assert not wishes_of([free])
    going = moved({"counts": FLOW}, "counts", 9, OWN, "desk")
    assert not wishes_of([going]), "the lane that it leaves is of others, too"
    shared = moved({"counts": pinned}, "counts", 9, SHARED, None)
    assert WORKER not in shared.settings


@pytest.mark.parametrize(
    ("flow", "lane", "worker", "why"),
    [
        (FLOW, SHARED, None, "is in this lane already: shared/streams/1"),
        (replace(FLOW, settings={LANE: OWN}), OWN, None, "is in this lane already: streams/counts/7"),
        (FLOW, None, "desk", "shares a lane, which cannot follow one flow: say --lane own, too"),
        (replace(FLOW, what={STEPS: None}), SHARED, None, "cannot share a lane: its settings or its packages need"),
        (replace(FLOW, what={STEPS: 3}), SHARED, None, "cannot share a lane: it has 3 levels with state"),
        (replace(FLOW, wanted=Wanted.STOPPED), OWN, None, "is stopped, and in no lane"),
        (replace(FLOW, wanted=Wanted.REMOVED), OWN, None, "is being removed"),
    ],
)
def test_what_cannot_move_is_refused(flow: Definition, lane: str | None, worker: str | None, why: str) -> None:
    with pytest.raises(FlowError, match=why):
        moved({"counts": flow}, "counts", 9, lane, worker)


def test_a_version_that_needs_another_lane_does_not_come_back_by_itself() -> None:
    now = replace(FLOW, version="v2", previous=("v1", {"file": "app.py", STEPS: None}))
    with pytest.raises(FlowError, match="moldau streams move counts --lane own"):
        stays({"counts": now}, rolled_back({"counts": now}, "counts", 9))
    own = replace(now, settings={LANE: OWN})
    assert stays({"counts": own}, rolled_back({"counts": own}, "counts", 9)).version == "v1"


def test_a_worker_is_chosen_for_lanes_of_their_own_only() -> None:
    assert of_the_application({LANE: OWN, WORKER: "desk", "a": "b"}) == {"a": "b"}
    with pytest.raises(FlowError, match=r"say flow\.lane=own, too"):
        of_the_application({WORKER: "desk"})
    with pytest.raises(FlowError, match="there is nothing else"):
        of_the_application({"flow.rate": "1"})


def test_a_query_of_its_own_hands_its_position_on_and_is_forgotten_before_the_next() -> None:
    with broker() as started, Client({"bootstrap.servers": started.bootstrap_servers}) as client:
        assert taken_over(client, "counts") == {}, "nothing was ever written"
        forget_own(client, "counts")
        ledger = Ledger(client, MARKERS, "counts")
        ledger.catch_up()
        ledger.decide(Decision("query", 3, (None,), (json.dumps(AT),)))
        assert taken_over(client, "counts") == taken_over(client, "counts") == AT
        ledger.catch_up()
        assert ledger.decision is not None and ledger.decision.released, "whoever still runs it is refused"
        forget_own(client, "counts")
        ledger.catch_up()
        assert ledger.decision is None and taken_over(client, "counts") == {}
