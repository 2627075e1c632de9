"""A flow that is behind in every batch gets a lane of its own, and comes back when it has read everything for long."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from moldau.client import Record
from moldau.flows.definition import Definition, Wanted, deployed
from moldau.flows.fairness import BACK_S, BATCHES, MOST, WHY, Share, crowding, leaves_more
from moldau.flows.lanes import LANE, OWN, SHARED, STEPS, chosen_lane, lane_of
from moldau.flows.moving import moved, parted
from moldau.flows.records import decode, encode
from moldau.spark.runner import Supervised
from moldau.spark.runner.status import QueryStatus, State

FLOW = Definition("counts", "streams", "v1", {"file": "app.py", STEPS: 1}, serial=7)
OWN_LANE, SHARED_LANE = "streams/counts/7", "shared/streams/1"


def at(offset: int, more: bool) -> dict[str, Any]:
    return {"t": {"0": offset}, "@more": [["t", 0]] if more else []}


def query(batches: int = 0, more: bool = False) -> Supervised:
    """A query after so many batches."""
    status = QueryStatus("counts", State.RUNNING, batch=batches)
    return Supervised("counts", cast(Any, None), status, progress={"sources": [{"endOffset": at(batches, more)}]})


def share(behind: int) -> Share:
    made = Share()
    for batch in range(behind):
        made.look(query(batch, more=True), float(batch))
    return made


def flows(count: int, **settings: str) -> list[Definition]:
    return [replace(FLOW, name=f"f{number}", settings=settings, serial=number) for number in range(count)]


def test_share_counts_batches_in_a_row_and_each_once() -> None:
    made = Share()
    for batch, more in enumerate((True, True, False, True)):
        for now in (batch, batch + 0.5):
            made.look(query(batch, more), now)
    assert (made.behind, made.calm_since) == (1, 3)
    made.look(None, 4.0)
    assert not made.is_calm(3 + BACK_S), "nobody knows whether it has read the rest"
    made.look(query(4), 5.0)
    assert not made.is_calm(3 + BACK_S - 1) and made.is_calm(3 + BACK_S)
    idle = Share()
    idle.look(None, 10.0)
    idle.look(query(0), 11.0)
    assert not idle.is_calm(9 + BACK_S) and idle.is_calm(10 + BACK_S), "also one that never had a batch"


def test_position_is_read_as_spark_reports_it() -> None:
    assert leaves_more([{"endOffset": json.dumps(at(1, True))}]) and not leaves_more([{"endOffset": at(1, False)}])
    assert not leaves_more([{"endOffset": None}, {}])


@pytest.mark.parametrize(
    ("lagging", "count", "apart", "settings", "leaves"),
    [
        (1, 2, 0, {}, True),
        (1, 1, 0, {}, False),  # it disturbs nobody
        (2, 4, MOST - 1, {}, True),
        (3, 4, 0, {}, False),  # then none is unlike the others
        (1, 2, MOST, {}, False),
        (1, 2, 0, {LANE: SHARED}, False),  # somebody wants it here
    ],
)
def test_flow_that_crowds_others_out_leaves(
    lagging: int, count: int, apart: int, settings: dict[str, str], leaves: bool
) -> None:
    lane = [(flow, share(BATCHES if n < lagging else BATCHES - 1)) for n, flow in enumerate(flows(count, **settings))]
    found = crowding(lane, apart)
    assert found == (lane[0][0] if leaves else None)
    going = [(replace(flow, leaving=SHARED_LANE), one) for flow, one in lane]
    paused = [(replace(flow, wanted=Wanted.PAUSED), one) for flow, one in lane]
    assert crowding(going, apart) is None is crowding(paused, apart)


def test_flow_that_is_apart_moves_as_others_do() -> None:
    going = parted({"counts": FLOW}, FLOW, True, 9, WHY)
    assert going is not None
    assert (lane_of(going), chosen_lane(going), going.note) == (SHARED_LANE, OWN_LANE, WHY)
    assert parted({"counts": going}, FLOW, True, 9, WHY) is None, "it was changed meanwhile"
    assert parted({"counts": going}, going, True, 9, WHY) is None, "it is apart already"
    key, value = encode(going)
    assert decode(Record(99, 0, key, value)) == going
    there = replace(going, leaving=None)
    assert chosen_lane(deployed({"counts": there}, replace(FLOW, version="v2"))) == OWN_LANE, "an upgrade stays there"
    back = parted({"counts": there}, there, False, 9, None)
    assert back is not None and (lane_of(back), chosen_lane(back), back.note) == (OWN_LANE, SHARED_LANE, None)
    told = moved({"counts": there}, "counts", 9, SHARED, None)
    assert (told.apart, told.leaving) == (False, OWN_LANE)
    own = moved({"counts": replace(FLOW, settings={LANE: SHARED})}, "counts", 9, OWN, None)
    assert parted({"counts": own}, own, False, 9, None) is None
