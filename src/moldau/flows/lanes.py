"""Lanes: which flows share a query.

A lane that is shared has so many steps with state, and carries the flows that have as many. Flows that ask for it
(`flow.lane=own`), those with more steps than a shared lane has, and those that crowd others out (`fairness.py`), have a
lane to themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.flows.definition import Definition, FlowError, Wanted

AWAY = frozenset({Wanted.STOPPED})  # nobody needs to have such a flow
OF_FLOWS = "flow."  # how settings begin that say how a flow is carried
LANE, OWN, SHARED = "flow.lane", "own", "shared"  # the setting, and what it says
WORKER = "flow.worker"  # the setting: the worker that is to have the flow's own lane, as long as it is there
STEPS = "steps"  # in what is to run: levels with state
FAMILY = "family"  # in what is to run: whose serial numbers its own is one of, where that is not all of its kind
MOST_STEPS = 2  # of a shared lane


def lane_of(flow: Definition) -> str:
    """Return the name of the lane that carries a flow: until it has left its last one, that."""
    return flow.leaving or chosen_lane(flow)


def chosen_lane(flow: Definition) -> str:
    """Return the name of the lane that its definition chooses."""
    steps = flow.what.get(STEPS)
    if steps is None or int(steps) > MOST_STEPS or flow.settings.get(LANE) == OWN or flow.apart:
        return f"{flow.kind}/{flow.name}/{flow.serial}"  # by the serial number, as what the flow keeps
    return f"{SHARED}/{flow.what.get(FAMILY, flow.kind)}/{steps}"


def of_the_application(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without those of flows; FlowError if one of these makes no sense."""
    for name, text in settings.items():
        if name.startswith(OF_FLOWS) and name != WORKER and (name != LANE or text not in (OWN, SHARED)):
            raise FlowError(
                f"{name}={text} makes no sense: {LANE} is {OWN} or {SHARED}, {WORKER} is the name of a worker, and "
                "there is nothing else."
            )
    if WORKER in settings and settings.get(LANE) != OWN:
        raise FlowError(f"{WORKER} is for flows with a lane of their own: say {LANE}={OWN}, too.")
    return {name: text for name, text in settings.items() if not name.startswith(OF_FLOWS)}


def is_shared(lane: str) -> bool:
    return lane.startswith(f"{SHARED}/")


def steps_of(lane: str) -> int:
    """Return how many steps with state a shared lane has."""
    return int(lane.rpartition("/")[2])


def family_of(lane: str) -> str:
    """Return the family of a shared lane."""
    return lane.split("/")[1]


def lanes_of(flows: Iterable[Definition]) -> dict[str, tuple[Definition, ...]]:
    """Return all lanes that workers must have, and what they carry. A flow that is stopped needs none."""
    found: dict[str, tuple[Definition, ...]] = {}
    for flow in flows:
        lane = lane_of(flow)
        found[lane] = (*found.get(lane, ()), flow)
    return {lane: some for lane, some in found.items() if any(needs_lane(flow) for flow in some)}


def needs_lane(flow: Definition) -> bool:
    return flow.wanted not in AWAY or flow.leaving is not None


def wishes_of(flows: Iterable[Definition]) -> dict[str, str]:
    """Return the workers that lanes are wanted on."""
    return {lane_of(flow): flow.settings[WORKER] for flow in flows if WORKER in flow.settings and not flow.leaving}
