"""Fairness: a flow that never has enough of its share gets a lane of its own, and shares one again later. No I/O.

The flows of a shared lane share the records of a batch. One that leaves some of them unread in each batch, because it
is far behind, makes the batches of all others long. If those are the majority, it is taken apart; once it has read
everything for a while, it comes back. Each move restores its stores from their changelogs, so neither happens soon.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.flows.definition import Definition, Wanted
from moldau.flows.lanes import LANE
from moldau.spark.source.planning import MORE

if TYPE_CHECKING:
    from moldau.spark.runner import Supervised

BATCHES = 20  # in a row, that a flow has not read to the end
MOST = 4  # lanes that flows have by this, in the cluster: each is a query of its own
BACK_S = 300.0  # without such a batch
WHY = f"It had more to read than its share in {BATCHES} batches in a row, so it has a lane of its own for now."


@dataclass(slots=True)
class Share:
    """How a flow gets along with its share of batches."""

    behind: int = 0  # batches in a row that left something to read
    calm_since: float | None = None
    _batch: int | None = None

    def look(self, query: Supervised | None, now: float) -> None:
        """Take in the last batch of a flow, if it is a new one."""
        if self.calm_since is None:
            self.calm_since = now
        if query is None or query.progress is None or query.status.batch == self._batch:
            return
        self._batch = query.status.batch
        if leaves_more(query.progress["sources"]):
            self.behind, self.calm_since = self.behind + 1, now
        else:
            self.behind = 0

    def is_calm(self, now: float) -> bool:
        """Whether it has read everything for long; one whose batches have stopped in the middle has not."""
        return not self.behind and self.calm_since is not None and now - self.calm_since >= BACK_S


def leaves_more(sources: Sequence[Any]) -> bool:
    """Whether there was more to read after a batch than it has read."""
    ends = [json.loads(end) if isinstance(end := source.get("endOffset"), str) else end for source in sources]
    return any(end and end.get(MORE) for end in ends)


def is_free(flow: Definition) -> bool:
    """Whether nobody has chosen a lane for a flow that runs and stays where it is."""
    return LANE not in flow.settings and flow.wanted is Wanted.RUNNING and flow.leaving is None


def crowding(lane: Sequence[tuple[Definition, Share]], apart: int) -> Definition | None:
    """Return the flow that is to leave a shared lane, of those that run in it; `apart` is how many have done so."""
    behind = [flow for flow, share in lane if share.behind >= BATCHES]
    if apart >= MOST or len(behind) * 2 > len(lane):
        return None
    return next(filter(is_free, behind), None)
