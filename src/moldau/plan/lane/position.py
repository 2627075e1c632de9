"""The position of a lane: which flows a batch carries, and how far each has come. No I/O.

It is the JSON that Spark keeps for a batch: `flows` by serial number, each with its name, the parcel that it runs, its
attempt and its own position; `began`, where those begin that are new in this batch or go back, so that a replay decides
nothing again; `wake`, whose shards are to look at what they hold. A flow that a batch leaves out is cleared away in it;
`left` has the positions of those that are to go on in another lane, as long as that is wanted. `tasks` is how many
tasks read a batch at most: a replay, which may be on another machine, must have as many as at first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.plan.lane.failures import Failures
from moldau.plan.lane.wanted import MOVED, REMOVED, RUNNING, Want
from moldau.spark.source.planning import LANE, ForeignOffset

FORMAT = 1
At = dict[str, Any]  # a position of one flow
End = Callable[[int, Want, At], At]  # where the next batch of a flow ends


@dataclass(frozen=True, slots=True)
class Carried:
    """A flow in a position."""

    name: str
    parcel: str
    attempt: int
    at: At


@dataclass(frozen=True, slots=True)
class LanePosition:
    """What Spark keeps of a batch."""

    flows: Mapping[int, Carried] = field(default_factory=dict[int, Carried])
    began: Mapping[int, At] = field(default_factory=dict[int, At])
    wake: tuple[int, ...] = ()
    left: Mapping[int, At] = field(default_factory=dict[int, At])
    tasks: int | None = None  # None: of a release without this limit

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> LanePosition:
        if document.get(LANE) != FORMAT:
            raise ForeignOffset(f"The checkpoint is not of a lane that is known here, for {document}")
        flows = {int(serial): Carried(*row) for serial, row in document["flows"].items()}
        began = {int(serial): at for serial, at in document["began"].items()}
        left = {int(serial): at for serial, at in document.get("left", {}).items()}
        return cls(flows, began, tuple(document["wake"]), left, document.get("tasks"))

    def carried(self, serial: int, name: str) -> Carried | None:
        """Return a flow. Numbers begin anew if the topic of definitions is deleted, so the name must be the same."""
        found = self.flows.get(serial)
        return found if found is not None and found.name == name else None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON, always in the same order: Spark takes a different text for new data."""
        flows = {str(serial): list(row_of(self.flows[serial])) for serial in sorted(self.flows)}
        began = {str(serial): self.began[serial] for serial in sorted(self.began)}
        left = {"left": {str(serial): self.left[serial] for serial in sorted(self.left)}} if self.left else {}
        tasks = {} if self.tasks is None else {"tasks": self.tasks}
        return {LANE: FORMAT, "flows": flows, "began": began, "wake": list(self.wake), **left, **tasks}


def row_of(one: Carried) -> tuple[str, str, int, At]:
    return one.name, one.parcel, one.attempt, one.at


def following(start: LanePosition, wants: Mapping[int, Want], failures: Failures, end: End) -> LanePosition | None:
    """Return the position after the next batch; None if there is nothing to do.

    A flow that nobody says anything about stays as it is. One that has failed goes back to where it goes on. If a
    number is another's now, as after the topic of definitions was deleted, this batch clears away what had it, and the
    next one begins with what has it.
    """
    flows = dict(start.flows)
    began: dict[int, At] = {}
    for serial, one in start.flows.items():
        at = failures.resumed(serial, one.attempt, one.at)
        if at != one.at:
            flows[serial], began[serial] = replace(one, at=at), at
    wake: list[int] = []
    left = {serial: at for serial, at in start.left.items() if serial in wants and wants[serial].state == MOVED}
    for serial, want in sorted(wants.items()):
        known = flows.get(serial)
        if known is not None and known.name != want.name:
            del flows[serial]
            began.pop(serial, None)
            left.pop(serial, None)
            continue
        if want.state == MOVED and serial not in left:
            left[serial] = want.begin if known is None else known.at
        if want.state in (REMOVED, MOVED):
            flows.pop(serial, None)
            began.pop(serial, None)
            continue
        if known is None:
            if want.state != RUNNING:
                continue
            began[serial] = want.begin
        at = want.begin if known is None else known.at
        attempt = known.attempt if known is not None else want.attempt
        if want.state == RUNNING:
            if want.attempt > attempt:
                wake.append(serial)
            attempt = want.attempt
            if not failures.has(serial, attempt):
                at = end(serial, want, at)
        flows[serial] = Carried(want.name, want.parcel, attempt, at)
    if flows == start.flows and left == start.left and not wake:
        return None
    return LanePosition(flows, began, tuple(wake), left)
