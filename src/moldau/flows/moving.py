"""Moving a flow to another lane, or its lane to another worker.

A flow that is to move names in its definition the lane that it is leaving. That lane ends a batch without it, whoever
has the lane meanwhile, and the position of that batch says how far the flow has come (`plan/lane/position.py`; a query
of its own ends, and its sink knows it). Only when this position is in the definition does the new lane have the flow:
it restores the flow's stores from their changelogs and goes on there. So the two lanes never have it at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moldau.client import Client
from moldau.flows.definition import Definition, FlowError, Known, Wanted, find, ours
from moldau.flows.lanes import LANE, MOST_STEPS, OWN, SHARED, STEPS, WORKER, chosen_lane, is_shared

ANY = "any"  # in place of a worker


def moved(known: Known, name: str, now_ms: int, lane: str | None, worker: str | None) -> Definition:
    """Return the definition of a flow that is to have another lane, or another worker; None leaves that as it is."""
    before = ours(find(known, name))
    if before.wanted is Wanted.REMOVED:
        raise FlowError(f"{name} is being removed.")
    if before.leaving is not None:
        raise FlowError(f"{name} is still moving, out of {before.leaving}: wait for that.")
    if before.wanted is Wanted.STOPPED:
        raise FlowError(f"{name} is stopped, and in no lane: resume it, or deploy it with {LANE}.")
    settings = dict(before.settings)
    if lane is not None:
        settings[LANE] = lane
        settings.pop(WORKER, None)
    if worker is not None:
        settings.pop(WORKER, None)
        settings |= {} if worker == ANY else {WORKER: worker}
    apart = before.apart and lane is None
    made = replace(before, settings=settings, apart=apart, revision=before.revision + 1, changed_ms=now_ms)
    check(before, made)
    return leaving(before, made)


def leaving(before: Definition, made: Definition) -> Definition:
    """Return a definition that names the lane that it leaves, if it does."""
    old, new = chosen_lane(before), chosen_lane(made)
    return made if old == new else replace(made, leaving=old)


def parted(known: Known, flow: Definition, apart: bool, now_ms: int, note: str | None) -> Definition | None:
    """Return the definition of a flow that gets a lane of its own, or shares one again, without being told to; None if
    it was changed meanwhile.
    """
    now = known.get(flow.name)
    if now != flow or flow.apart is apart:
        return None
    made = replace(flow, apart=apart, note=note, revision=flow.revision + 1, changed_ms=now_ms)
    return leaving(flow, made)


def check(before: Definition, made: Definition) -> None:
    """Refuse what cannot be, or is so already."""
    name, steps = made.name, made.what.get(STEPS)
    if made.settings.get(LANE) == SHARED and not is_shared(chosen_lane(made)):
        why = (
            "its settings or its packages need a query of its own"
            if steps is None
            else f"it has {steps} levels with state, and shared lanes have at most {MOST_STEPS}"
        )
        raise FlowError(f"{name} cannot share a lane: {why}.")
    if WORKER in made.settings and is_shared(chosen_lane(made)):
        raise FlowError(f"{name} shares a lane, which cannot follow one flow: say --lane {OWN}, too.")
    if (chosen_lane(before), before.settings.get(WORKER)) == (chosen_lane(made), made.settings.get(WORKER)):
        raise FlowError(f"{name} is in this lane already: {chosen_lane(made)}.")


def stays(known: Known, made: Definition) -> Definition:
    """Return a definition that leaves a flow in its lane; FlowError if it does not."""
    before = ours(find(known, made.name))
    if chosen_lane(before) != chosen_lane(made):
        raise FlowError(
            f"{made.name} {made.version[:12]} was in a lane of its own, and is not any more: move it back first, by "
            f"`moldau streams move {made.name} --lane {OWN}`."
        )
    return made


def arrived(known: Known, flow: Definition, begin: Mapping[str, Any]) -> Definition | None:
    """Return the definition of a flow that has left its lane in a position; None if it was changed meanwhile. An empty
    position is that of a flow that has done nothing there: it stands where it stood before.
    """
    now = known.get(flow.name)
    if not isinstance(now, Definition) or (now.serial, now.leaving) != (flow.serial, flow.leaving):
        return None
    return replace(now, leaving=None, begin=begin or now.begin, revision=now.revision + 1)


def taken_over(client: Client, name: str) -> dict[str, Any]:
    """Return how far the query of a flow has come that has ended; whoever still runs it is refused from now on."""
    from moldau.spark.sink.marker_topic import Ledger, exists
    from moldau.spark.sink.markers import TOPIC as MARKERS

    if not exists(client, MARKERS):
        return {}
    ledger = Ledger(client, MARKERS, name)
    ledger.catch_up()
    found: dict[str, Any] = {} if ledger.decision is None else json.loads(ledger.hand_on())
    return found


def forget_own(client: Client, name: str) -> None:
    """Forget what a query of the flow's own has done, before it has one again: that was long ago."""
    from moldau.spark.sink.marker_topic import Ledger, exists
    from moldau.spark.sink.markers import TOPIC as MARKERS

    if exists(client, MARKERS):
        ledger = Ledger(client, MARKERS, name)
        ledger.catch_up()
        if ledger.decision is not None:
            ledger.forget()
