"""Carries out the run of a journal, a step at a time; whoever calls `tick` may stop after any of them, or be killed.

Each step looks at the cluster, decides, and acts; nothing that matters is remembered in between. What is remembered
here is only patience: since when the cluster has been unwell, and how often it has refused a move.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from moldau.admin import elections, reassignments
from moldau.balance import observing, throttles
from moldau.balance.journal import RUNNING, Forgotten, Journal, Row, Run, ending
from moldau.balance.model import Place
from moldau.balance.moves import Move
from moldau.balance.progress import Pace, Status, Step, View, Wish, copied, decide, status
from moldau.balance.throttles import Throttle
from moldau.client import Client, Error

log = logging.getLogger(__name__)

PATIENCE_S = 60.0  # with a cluster that is unwell
MOST_REFUSALS = 10  # of one move
SHOWN = 3
FINE = (Error.NONE, Error.NO_REASSIGNMENT_IN_PROGRESS)  # the latter: it has ended before it was called off
SETTLED = (Status.DONE, Status.LOST)


class Cluster(Protocol):
    """What a run needs of a cluster."""

    def view(self) -> View: ...
    def assign(self, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, str]:
        """Begin moves, or call them off (None); return the reasons why some are refused."""
        ...

    def elect(self, places: Sequence[Place]) -> None: ...
    def prepare(self, moves: Sequence[Move], rate: int) -> list[Throttle]: ...
    def put(self, those: Sequence[Throttle]) -> None: ...
    def take_away(self, those: Sequence[Throttle]) -> None: ...


class KafkaCluster:
    """A real cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def view(self) -> View:
        return observing.view(self.client)

    def assign(self, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, str]:
        outcomes = reassignments.alter(self.client, targets)
        return {place: words or error.message for place, (error, words) in outcomes.items() if error not in FINE}

    def elect(self, places: Sequence[Place]) -> None:
        elections.elect(self.client, elections.ElectionType.PREFERRED, places)

    def prepare(self, moves: Sequence[Move], rate: int) -> list[Throttle]:
        return throttles.prepare(self.client, moves, rate)

    def put(self, those: Sequence[Throttle]) -> None:
        throttles.put(self.client, those)

    def take_away(self, those: Sequence[Throttle]) -> None:
        throttles.take_away(self.client, those)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; `state` is that of the run."""

    state: str
    moves: int = 0
    moves_done: int = 0
    bytes: int = 0
    bytes_done: int = 0
    trouble: tuple[str, ...] = ()


def progress(run: Run, moves: Sequence[Move], view: View, trouble: tuple[str, ...] = ()) -> Progress:
    """Tell how far a run is."""
    done = sum(status(move, view) in SETTLED for move in moves)
    carried = sum(copied(move, view) for move in moves)
    return Progress(run.state, len(moves), done, sum(move.bytes for move in moves), carried, trouble)


class Executor:
    """The one that carries out runs. `write` appends rows to the journal and returns once they are replayed."""

    def __init__(
        self,
        cluster: Cluster,
        journal: Journal,
        write: Callable[[Sequence[Row]], None],
        clock: Callable[[], float],
        pace: Pace | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._cluster, self._journal, self._write, self._clock = cluster, journal, write, clock
        self._pace, self._patience_s = pace or Pace(), patience_s
        self._run = ""
        self._unwell_since: float | None = None
        self._refusals: Counter[Place] = Counter()
        self._stop = ""
        self.halted = False  # set to end soon: moves under way are called off, and the run may be resumed

    def tick(self) -> Progress:
        """Do what is due now, and tell how far the run is."""
        run = self._journal.run
        if run is None or run.state != RUNNING:
            self._clean_up()
            return Progress("" if run is None else run.state)
        if self._run != run.id:
            self._run, self._stop, self._unwell_since = run.id, "", None
            self._refusals.clear()
            self._throttle(run)
        moves = self._journal.moves()
        view = self._cluster.view()
        wish = Wish.HALT if self._stop or self.halted else self._journal.wish()
        step = decide(moves, wish, view, self._pace, frozenset(run.away), frozenset(run.known))
        self._act(step)
        self._judge(step)
        if step.end:
            self._clean_up()
            self._write(ending(self._journal, run, self._stop or step.end))
            self._run = ""
        return progress(self._journal.run or run, moves, view, step.trouble)

    def _throttle(self, run: Run) -> None:
        """Set the throttles of a run; those that a process before this one has written down are set again."""
        known = list(self._journal.throttles.values())
        if not known and run.throttle and self._journal.wish() is Wish.RUN:
            known = self._cluster.prepare(self._journal.moves(), run.throttle)
            self._write(known)
        if known:
            self._cluster.put(known)

    def _act(self, step: Step) -> None:
        targets: dict[Place, Sequence[int] | None] = {move.place: move.after for move in step.begin}
        targets |= {move.place: None for move in step.call_off}
        targets |= {move.place: move.before for move in step.restore}
        refused = self._cluster.assign(targets) if targets else {}
        for place, reason in refused.items():
            self._refusals[place] += 1
            log.warning("%s-%d is not moved: %s", *place, reason)
            if self._refusals[place] >= MOST_REFUSALS and not self._stop:
                self._stop = f"{place[0]}-{place[1]} cannot be moved: {reason}"
        if step.elect:
            self._cluster.elect(step.elect)

    def _judge(self, step: Step) -> None:
        """Stop once the cluster has been unwell for too long."""
        if not step.trouble:
            self._unwell_since = None
            return
        now = self._clock()
        self._unwell_since = now if self._unwell_since is None else self._unwell_since
        if now - self._unwell_since >= self._patience_s and not self._stop:
            more = f" and {len(step.trouble) - SHOWN} more" if len(step.trouble) > SHOWN else ""
            self._stop = f"The cluster is unwell: {'; '.join(step.trouble[:SHOWN])}{more}."

    def _clean_up(self) -> None:
        """Take away the throttles that are written down."""
        known = list(self._journal.throttles.values())
        if known:
            self._cluster.take_away(known)
            self._write([Forgotten(f"throttle/{one.key}") for one in known])
