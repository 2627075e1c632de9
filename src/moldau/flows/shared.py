"""A lane of a worker that carries many flows in one query: what is wanted of each becomes what the lane is told.

Each flow has a `Supervised` of its own that no supervisor has: the lane's, as far as it concerns the flow. So whoever
asks how a flow is doing need not know what it shares.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.flows.definition import Definition, Wanted
from moldau.flows.kinds import Place
from moldau.flows.lanes import family_of, steps_of
from moldau.plan.lane.driver import Lane, Loaded
from moldau.plan.lane.position import Carried
from moldau.plan.lane.wanted import HELD, MOVED, REMOVED, RUNNING, Want
from moldau.spark.connections import client_for
from moldau.spark.runner import QueryFailed, Supervised, Supervisor
from moldau.spark.runner.failures import text_of
from moldau.spark.runner.reporter import Reporter
from moldau.spark.runner.status import ENDED, QueryStatus, State

if TYPE_CHECKING:
    from moldau.plan.conveyor.start import Application

AGAIN_S = 5.0  # after which a lane that could not be opened is tried again
REST_S = 2.0  # after which a flow that is to go is in no batch that was planned before
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Member:
    """A flow of the lane: as it is wanted, what of it is loaded, and how it is doing."""

    flow: Definition
    view: Supervised
    loading: Future[Loaded] | None = None
    loaded: Loaded | None = None
    version: str | None = None  # that is loaded
    revision: int = 0  # with which the loaded version runs
    error: str | None = None
    failed: str | None = None  # the version that could not be loaded
    removed_at: float | None = None
    reporter: Reporter | None = None


class SharedLane:
    """One lane. `load` makes an application of a flow; it runs in the background."""

    def __init__(self, name: str, place: Place, load: Callable[[Definition, Place], Application]) -> None:
        self.name, self.place, self._load = name, place, load
        folder = place.folder.parent / "lanes" / name.replace("/", "-")
        about = steps_of(name), family_of(name)
        self.lane = Lane(name.replace("/", "-"), place.settings, place.state_dir, folder, *about)
        self.members: dict[str, Member] = {}
        self.query: Supervised | None = None
        self._opening: Future[None] | None = None
        self._open_at = 0.0
        self._seen: tuple[int, State] | None = None  # the last failure of the query: after how many restarts

    # One round.

    def round(self, flows: Iterable[Definition], supervisor: Supervisor, background: Executor) -> None:
        """Bring the lane nearer to what is wanted of its flows."""
        if not self._is_open(supervisor, background):
            return
        known = {flow.name: flow for flow in flows}
        for name in [name for name in self.members if name not in known]:
            del self.members[name]
        for flow in known.values():
            self._take(flow, background)
        wants = {one.flow.serial: want for one in self.members.values() if (want := self._want(one)) is not None}
        is_new = self.lane.want(wants)
        if is_new and self.query is not None and self.query.status.state is State.FAILED:
            supervisor.queries.remove(self.query)  # what has changed may help
            self.query = self._seen = None
        if self.query is None and any(self._needs_query(want, serial) for serial, want in wants.items()):
            self.query = Supervised(self.lane.name, self.lane.definition, QueryStatus(self.lane.name))
            supervisor.queries.append(self.query)
        if self.query is not None:
            self.lane.observe(self.query.progress)
            self._see_failure(self.query, supervisor)
        for one in self.members.values():
            self._look(one)

    def _is_open(self, supervisor: Supervisor, background: Executor) -> bool:
        """Open the lane in the background; raises why that failed, and tries it again later."""
        if self._opening is None:
            if time.monotonic() >= self._open_at:
                self._opening = background.submit(self.lane.open, supervisor.spark)
            return False
        if not self._opening.done():
            return False
        try:
            self._opening.result()
        except Exception:
            self._opening, self._open_at = None, time.monotonic() + AGAIN_S
            raise
        return True

    def _see_failure(self, query: Supervised, supervisor: Supervisor) -> None:
        """If the query has ended because of a flow, let it go on without it."""
        self.lane.end_stuck()
        status = query.status
        failure = status.restarts, status.state
        if status.state not in (State.RESTARTING, State.FAILED) or failure == self._seen:
            return
        self._seen = failure
        error = None if query.query is None else query.query.exception()
        details = query.failure.details if query.failure is not None else "" if error is None else text_of(error)
        if self.lane.blame(details) and status.state is State.FAILED:
            supervisor.queries.remove(query)
            self.query = self._seen = None

    def _needs_query(self, want: Want, serial: int) -> bool:
        if want.state == MOVED:
            return serial not in self.lane.last.left
        return want.state == RUNNING or (want.state == REMOVED and self.lane.known(serial, want.name) is not None)

    def _take(self, flow: Definition, background: Executor) -> None:
        one = self.members.get(flow.name)
        if one is None or one.flow.serial != flow.serial:
            view = Supervised(flow.name, self.lane.definition, QueryStatus(flow.name))
            one = self.members[flow.name] = Member(flow, view)
        if one.flow.revision != flow.revision:
            one.failed = one.error = None  # whoever changes a flow wants another try
        one.flow = flow
        if one.loading is not None:
            if one.loading.done():
                self._loaded(one)
        elif flow.leaving is None and flow.wanted is Wanted.RUNNING and flow.version not in (one.version, one.failed):
            one.loading = background.submit(self._prepare, flow)

    def _prepare(self, flow: Definition) -> Loaded:
        made = self._load(flow, self.place)
        return self.lane.load(made, flow.serial, flow.name)

    def _loaded(self, one: Member) -> None:
        assert one.loading is not None
        future, one.loading = one.loading, None
        # Code that is not ours may raise anything: its flow is held, and the others go on.
        error: BaseException | str | None = future.exception()
        if error is None and (keyed := future.result().keyed) != self.lane.steps:
            error = (
                f"This version has {keyed} levels with state, and its lane {self.lane.steps}: roll it back, move it by "
                f"`moldau streams move {one.flow.name} --lane own`, and upgrade it again."
            )
        if error is None:
            one.loaded, one.version = future.result(), one.flow.version
        else:
            log.warning("%s cannot be loaded: %s", one.flow.name, error)
            one.error, one.failed = str(error) or repr(error), one.flow.version

    def _want(self, one: Member) -> Want | None:
        """Return what the lane is told of a flow; None as long as it stays as it is."""
        flow, loaded = one.flow, one.loaded
        if flow.leaving is not None:
            return Want(
                flow.name, "", flow.revision, MOVED, self.lane.stood(flow.serial, flow.name) or dict(flow.begin or {})
            )
        if flow.wanted is Wanted.REMOVED:
            one.removed_at = one.removed_at or time.monotonic()
            return Want(flow.name, "", flow.revision, REMOVED, {})
        if loaded is None:
            return None
        is_wanted = flow.wanted is Wanted.RUNNING and one.error is None
        if is_wanted and one.version == flow.version:
            one.revision = flow.revision
        return Want(flow.name, loaded.parcel, one.revision, RUNNING if is_wanted else HELD, loaded.begin)

    def forget(self, flow: Definition) -> None:
        """Remove what the lane has kept of a flow that is gone."""
        one = self.members.get(flow.name)
        self.lane.forget(flow.serial, None if one is None or one.loaded is None else one.loaded.parcel)

    # How flows are doing.

    def _look(self, one: Member) -> None:
        """Let the view of a flow show what the lane knows of it."""
        view, query, flow = one.view, self.query, one.flow
        failure = self.lane.failures.first(flow.serial, flow.revision)  # not of what ran before
        carried = self.lane.known(flow.serial, flow.name)
        view.failure = None
        if one.error is not None:
            sentence, _, rest = one.error.partition("\n")
            view.failure = QueryFailed(flow.name, sentence, rest)
            view.status.state, view.status.error = State.FAILED, sentence
        elif failure is not None:
            view.failure = QueryFailed(flow.name, failure.error, failure.trace)
            view.status.state, view.status.error = State.FAILED, failure.error
        elif query is None or not is_carried(one, carried):
            view.status.state, view.status.error = State.STARTING, None
            view.status.batches = 0  # of this version there was none yet
        else:
            view.failure = query.failure
            view.status.state, view.status.error = query.status.state, query.status.error
            view.status.restarts = query.status.restarts
        at = None if carried is None else carried.at
        before = view.progress
        if at is not None and (before is None or before["sources"][0]["endOffset"] != at):
            begin = self.lane.last.began.get(flow.serial, at) if before is None else before["sources"][0]["endOffset"]
            view.progress = {"sources": [{"startOffset": begin, "endOffset": at}]}
            view.status.batches += before is not None
            view.status.batch = None if query is None else query.status.batch
            view.status.durations_ms = {} if query is None else query.status.durations_ms
        if one.reporter is None:
            one.reporter = Reporter(flow.name, lambda: client_for(dict(self.place.settings)), tuple)
        if at is not None:
            one.reporter.observe(view)

    def left(self, flow: Definition) -> Mapping[str, Any] | None:
        """Return the position of a flow after which a batch was without it; None as long as there was none."""
        return self.lane.last.left.get(flow.serial)

    def is_gone(self, flow: Definition) -> bool:
        """Whether a flow that is to be removed is in no batch any more."""
        one = self.members.get(flow.name)
        if one is None or one.removed_at is None or time.monotonic() < one.removed_at + REST_S:
            return False
        if self.lane.known(flow.serial, flow.name) is not None:
            return False
        return self.lane.planned().carried(flow.serial, flow.name) is None

    # The end.

    def halt(self, supervisor: Supervisor | None, *, at_once: bool = False) -> bool:
        """Stop the query; return whether it has ended."""
        for one in self.members.values():
            if one.loading is not None:
                one.loading.cancel()
        if self.query is None or supervisor is None:
            return True
        if at_once:
            supervisor.kill_one(self.query)
        else:
            supervisor.stop_one(self.query, time.monotonic())
        if self.query.status.state not in ENDED:
            return False
        supervisor.queries.remove(self.query)
        self.query = None
        return True


def is_carried(one: Member, carried: Carried | None) -> bool:
    """Whether the last batch was with this version of a flow, as it is wanted now."""
    if carried is None or one.loaded is None or one.version != one.flow.version:
        return False
    return (carried.parcel, carried.attempt) == (one.loaded.parcel, one.flow.revision)
