"""A worker: one Spark session, and the lanes that its group has given it.

One thread does the work, round after round: it looks at what is wanted (definitions), at what it was given (lanes) and
at what runs (queries), starts and stops the difference, and says of each flow what has become of it. Membership in the
group has threads of its own, which only leave word of what they were given.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moldau.client import Client, ClientError, Generation, Member, Peer
from moldau.flows import figures, states
from moldau.flows.assignment import GROUP, cost_of, share_out
from moldau.flows.catalog import Catalog, now_ms, opened
from moldau.flows.definition import Definition, FlowError, Wanted
from moldau.flows.fairness import WHY, Share, crowding, is_free
from moldau.flows.figures import Figures, LaneFigures, Meter, Teller
from moldau.flows.kinds import KINDS, FlowReader, Place, Query, is_used, kind_of, read_kinds
from moldau.flows.lanes import is_shared, lanes_of, wishes_of
from moldau.flows.logs import FlowLogs, text_of
from moldau.flows.moving import forget_own, taken_over
from moldau.flows.shared import SharedLane
from moldau.flows.states import FlowState
from moldau.flows.topics import make
from moldau.spark.runner import Policy, Supervised, Supervisor
from moldau.spark.runner.status import ENDED, QueryStatus, State
from moldau.spark.sink.markers import Refused
from moldau.topicstore import await_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP_TYPE, PROTOCOL = "moldau-flows", "lanes-1"
MEMBERSHIP = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "2000"}
PREPARING = 2  # flows at a time
ROUND_S = 0.1
FIRST_BATCHES = 5  # in which a new version must prove itself
MOVING = "moving"  # the state of a flow that is leaving its lane
RELEASE_S = 20.0  # for a batch to end before its lane goes to another worker
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Carried:
    """A flow in a lane of this worker: what it is of, its query, and what was said of it last."""

    flow: Definition
    preparing: Future[Query] | None = None
    query: Supervised | None = None
    said: FlowState | None = None
    error: str | None = None
    is_cleared: bool = False
    meter: Meter = field(default_factory=Meter)
    share: Share = field(default_factory=Share)

    @property
    def runs(self) -> bool:
        return self.query is not None and self.query.status.state is State.RUNNING


@dataclass(slots=True)
class Given:
    """What the group has given this worker; its threads write it, and the worker's reads it."""

    lanes: frozenset[str] = frozenset()
    is_lost: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, lanes: frozenset[str], *, is_lost: bool = False) -> None:
        with self.lock:
            self.lanes, self.is_lost = lanes, self.is_lost or is_lost

    def look(self) -> tuple[frozenset[str], bool]:
        with self.lock:
            lost, self.is_lost = self.is_lost, False
            return self.lanes, lost


class Worker:
    """One member of the workers' group. `make_session` is called when the first flow is run here."""

    def __init__(self, name: str, place: Place, make_session: Callable[[], SparkSession]) -> None:
        self.name, self.place = name, place
        self.carried: dict[str, Carried] = {}  # flows that have a lane to themselves, by lane
        self.shared: dict[str, SharedLane] = {}
        self.members: dict[str, dict[str, Carried]] = {}  # flows of shared lanes, by lane and name
        self.given = Given()
        self.supervisor: Supervisor | None = None
        self._make_session = make_session
        self._preparing = ThreadPoolExecutor(PREPARING, "prepare")
        self._catalog: Catalog | None = None
        self._readers: list[FlowReader] = []  # of kinds whose definitions are not in the catalog
        self._client: Client | None = None
        self._member: Member | None = None
        self._shared_out: tuple[frozenset[str], dict[str, str]] = frozenset(), {}  # lanes and wishes that were followed
        self._untold: dict[str, FlowState | None] = {}
        self._logs, self._teller = FlowLogs(place.logs), Teller(name, place.logs)

    # The life of a worker.

    def run(self, is_stopped: Callable[[float], bool]) -> None:
        """Work until `is_stopped`, which waits for so many seconds, returns true. Spark starts with the first flow.

        Until somebody has deployed something on this cluster, nothing is created in it.
        """
        if not await_use(self.place.settings, is_used, is_stopped):
            return
        with ExitStack() as parts:
            self._catalog = parts.enter_context(opened(self.place.settings))
            self._readers = [parts.enter_context(kind.reading(self.place)) for kind in read_kinds()]
            self._client = parts.enter_context(self.place.client())
            make(self._client, states.TOPIC)
            figures.forget_predecessors(self._client, self.name, self.place.logs)
            member = Member(
                parts.enter_context(Client({**MEMBERSHIP, **self.place.settings})),
                GROUP,
                GROUP_TYPE,
                self._introduction,
                self._assign,
                on_assigned=self._assigned,
                on_revoked=lambda _: None,  # what moves is told by the next assignment
                on_lost=lambda _: self.given.take(frozenset(), is_lost=True),
            )
            self._member = member
            parts.callback(member.close)
            parts.callback(self._end)
            parts.callback(self._preparing.shutdown, wait=False, cancel_futures=True)
            member.start()
            while not is_stopped(ROUND_S):
                self.round()

    def _flows(self) -> dict[str, Definition]:
        """Return all definitions that this release understands."""
        assert self._catalog is not None
        return {**self._catalog.flows, **{name: flow for one in self._readers for name, flow in one.flows.items()}}

    def _end(self) -> None:
        """Let the lanes end after their batches, so that nobody has to repeat them."""
        deadline = time.monotonic() + RELEASE_S
        if self.supervisor is None:
            return
        self.supervisor.stop(time.monotonic())
        while not self.supervisor.ended and time.monotonic() < deadline:
            self.supervisor.step(time.monotonic())
            time.sleep(ROUND_S)
        self.supervisor.kill()
        self._say_all()

    # What the group agrees on.

    def _introduction(self) -> list[tuple[str, bytes]]:
        who = {
            "worker": self.name,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "lanes": sorted({*self.carried, *self.shared}),
        }
        return [(PROTOCOL, json.dumps(who).encode())]

    def _assign(self, _: str, peers: Sequence[Peer]) -> dict[str, bytes]:
        owned = {peer.id: json.loads(peer.metadata)["lanes"] for peer in peers}
        lanes, wishes = self._wanted()
        self._shared_out = frozenset(lanes), wishes
        ids = {json.loads(peer.metadata)["worker"]: peer.id for peer in peers}
        wished = {lane: ids[worker] for lane, worker in wishes.items() if worker in ids}
        made = share_out({**dict.fromkeys(lanes, cost_of(0)), **self._costs(lanes)}, owned, wished)
        return {worker: json.dumps({"lanes": given}).encode() for worker, given in made.items()}

    def _wanted(self) -> tuple[dict[str, tuple[Definition, ...]], dict[str, str]]:
        """Return the lanes that workers must have, and the workers that some are wanted on."""
        flows = self._flows().values()
        return lanes_of(flows), wishes_of(flows)

    def _costs(self, lanes: Container[str]) -> dict[str, float]:
        """Return what lanes cost by the figures of workers; nothing where they cannot be read."""
        try:
            with self.place.client() as client:
                found = sorted(figures.read(client).values(), key=lambda one: one.at_ms)
        except ClientError as error:
            log.warning("what lanes cost is not known: %s", error)
            return {}
        return {lane: cost_of(one.load) for worker in found for lane, one in worker.lanes.items() if lane in lanes}

    def _assigned(self, generation: Generation) -> None:
        self.given.take(frozenset(json.loads(generation.assignment or b'{"lanes":[]}')["lanes"]))

    # One round.

    def round(self) -> None:
        """Bring what runs nearer to what is wanted. What goes wrong with the cluster is tried again."""
        assert self._member is not None
        if self._member.failure is not None:
            raise FlowError(f"This worker cannot be in the group {GROUP}: {self._member.failure}")
        lanes, is_lost = self.given.look()
        if is_lost:
            log.warning("the group has lost this worker; its lanes stop at once")
            self._let_go([*self.carried, *self.shared], at_once=True)
        flows, wishes = self._wanted()
        self._let_go([lane for lane in (*self.carried, *self.shared) if lane not in lanes or lane not in flows])
        for lane in sorted(lanes):
            if lane in flows and is_shared(lane):
                self._share(lane, flows[lane])
            elif lane in flows:
                self._carry(lane, flows[lane][0])
        if self.supervisor is not None:
            self.supervisor.step(time.monotonic())
        self._say_all()
        self._report()
        generation = self._member.generation
        if generation is not None and generation.is_leader and (frozenset(flows), wishes) != self._shared_out:
            self._shared_out = frozenset(flows), wishes
            self._member.rejoin()

    def _let_go(self, lanes: list[str], *, at_once: bool = False) -> None:
        """Stop lanes that are others' now, or nobody's; when one has ended, the group may give it away."""
        assert self._member is not None
        known = self._flows() if lanes else {}
        for lane in lanes:
            if lane in self.shared:
                if not self.shared[lane].halt(self.supervisor, at_once=at_once):
                    continue
                del self.shared[lane]
                gone = list(self.members.pop(lane, {}).values())
            else:
                if not self._halt(self.carried[lane], at_once=at_once):
                    continue
                gone = [self.carried.pop(lane)]
            for one in gone:
                flow = known.get(one.flow.name)
                if flow is not None and flow.serial == one.flow.serial and flow.wanted is Wanted.STOPPED:
                    self._tell(self._state_of(lane, Carried(flow)), flow.version)
            self._member.rejoin()

    def _halt(self, one: Carried, *, at_once: bool = False) -> bool:
        """Stop the query of a flow; return whether it has ended."""
        if one.preparing is not None:
            one.preparing.cancel()
            one.preparing = None
        if one.query is None:
            return True
        assert self.supervisor is not None
        if at_once:
            self.supervisor.kill_one(one.query)
        else:
            self.supervisor.stop_one(one.query, time.monotonic())
        if one.query.status.state not in ENDED:
            return False
        self.supervisor.queries.remove(one.query)
        one.query = None
        one.meter.begin_anew()
        return True

    def _share(self, lane: str, flows: Sequence[Definition]) -> None:
        """Let the flows of a shared lane be as they are wanted."""
        kind = kind_of(flows[0])
        assert kind is not None, f"the lane {lane} is of a kind that nobody knows"
        members = self.members.setdefault(lane, {})
        try:
            shared = self.shared.get(lane) or SharedLane(lane, self.place, kind.load)
            self.shared[lane] = shared
            shared.round(flows, self._supervised(), self._preparing)
        except Exception as error:  # Java is missing, or the cluster is away
            log.warning("the lane %s cannot run: %s", lane, error)
            for flow in flows:
                members[flow.name] = Carried(flow, error=str(error) or repr(error))
            return
        for name in members.keys() - {flow.name for flow in flows}:
            del members[name]
        for flow in flows:
            one = members.setdefault(flow.name, Carried(flow))
            one.flow, one.error = flow, None
            member = shared.members.get(flow.name)
            if flow.leaving is not None:
                one.query = None
                if (left := shared.left(flow)) is not None:
                    self._arrive(one, lambda flow=flow, left=left: self._left(flow, left))
                continue
            one.query = member.view if member is not None and flow.wanted is Wanted.RUNNING else None
            if flow.wanted is Wanted.REMOVED and shared.is_gone(flow):
                self._clear(one)
                shared.forget(flow)

    def _left(self, flow: Definition, at: Mapping[str, Any]) -> Mapping[str, Any]:
        """Forget what a query of the flow's own has done before it was in this lane: it may have one again."""
        with self.place.client() as client:
            forget_own(client, flow.name)
        return at

    def _taken_over(self, flow: Definition) -> Mapping[str, Any]:
        with self.place.client() as client:
            return taken_over(client, flow.name)

    def _arrive(self, one: Carried, position: Callable[[], Mapping[str, Any]]) -> None:
        """Let a flow that has left this lane go on in the next one."""
        assert self._catalog is not None
        try:
            self._catalog.arrive(one.flow, position())
            one.error = None
        except (ClientError, FlowError, Refused) as error:
            one.error = str(error) or repr(error)
            log.warning("%s cannot leave its lane: %s", one.flow.name, error)

    def _supervised(self) -> Supervisor:
        if self.supervisor is None:
            self.supervisor = Supervisor(self._make_session(), [], Policy(stop_s=RELEASE_S))
        return self.supervisor

    def _all(self) -> Iterator[tuple[str, Carried]]:
        """Return all flows that are here, each with its lane."""
        yield from list(self.carried.items())
        for lane, members in list(self.members.items()):
            yield from [(lane, one) for one in list(members.values())]

    def _carry(self, lane: str, flow: Definition) -> None:
        """Let a flow of one of our lanes be as it is wanted."""
        one = self.carried.setdefault(lane, Carried(flow))
        if flow.leaving is not None:
            one.flow = flow
            if self._halt(one):
                self._arrive(one, lambda: self._taken_over(flow))
            return
        if one.flow.identity != flow.identity or flow.wanted is not Wanted.RUNNING:
            if not self._halt(one):
                return
            if one.flow.identity != flow.identity:
                one.error = None
        if one.flow.wanted is not flow.wanted:
            one.error = None  # whoever pauses, resumes or removes a flow wants another try
        one.flow = flow
        if flow.wanted is Wanted.REMOVED:
            self._clear(one)
        elif flow.wanted is Wanted.RUNNING and one.query is None and one.error is None:
            self._start(one)

    def _start(self, one: Carried) -> None:
        """Prepare a flow in the background, and hand its query to the supervisor when that is done."""
        if one.preparing is None:
            kind = kind_of(one.flow)
            if kind is None:
                one.error = f"This worker knows no flows of the kind {one.flow.kind}, only {', '.join(KINDS)}."
            else:
                one.preparing = self._preparing.submit(kind.prepare, one.flow, self.place)
            return
        if not one.preparing.done():
            return
        prepared, one.preparing = one.preparing, None
        try:
            query = prepared.result()
            supervisor = self._supervised()
        except Exception as error:  # of code that is not ours, or Java is missing; the flow is held, others go on
            log.warning("%s cannot be prepared: %s", one.flow.name, error)
            one.error = str(error) or repr(error)
            return
        status = QueryStatus(one.flow.name)
        one.query = Supervised(one.flow.name, query.definition, status, observe=query.observe)
        supervisor.queries.append(one.query)

    def _clear(self, one: Carried) -> None:
        """Remove what a flow has kept, and then its definition."""
        assert self._catalog is not None
        kind = kind_of(one.flow)
        try:
            if kind is not None and not one.is_cleared:
                kind.clear(one.flow, self.place)
                one.is_cleared = True
            self._untold[one.flow.name] = None
            self._logs.forget(one.flow.name)
            reader = next((one_of for one_of in self._readers if one.flow.name in one_of.flows), self._catalog)
            reader.forget(one.flow)
        except (ClientError, FlowError, OSError) as error:
            one.error = str(error)
            log.warning("%s cannot be cleared away: %s", one.flow.name, error)

    # What is said of flows.

    def _say_all(self) -> None:
        for lane, one in self._all():
            now = self._state_of(lane, one)
            if one.flow.name not in self._untold and now != one.said:
                one.said = now
                self._tell(now, one.flow.version)
                if now.error is not None:
                    one.meter.fail()
        try:
            for name, row in list(self._untold.items()):
                assert self._client is not None
                states.write(self._client, row, name)
                del self._untold[name]
        except ClientError as error:
            log.warning("the states of flows cannot be told: %s", error)

    def _tell(self, state: FlowState, version: str) -> None:
        self._logs.write(state.name, text_of(state, version))
        self._untold[state.name] = replace(state, at_ms=now_ms())

    def _report(self) -> None:
        """Write figures if they are new, and go back to the version before where a new one does not prove itself."""
        assert self._client is not None
        now = time.monotonic()
        for _, one in self._all():
            one.meter.look(one.query)
            one.share.look(one.query, now)
        news = self._teller.news(*self.figures())
        try:
            if news is not None:
                figures.write(self._client, news)
            for _, one in self._all():
                if one.flow.rollback:
                    self._judge(one)
            self._be_fair(now)
        except (ClientError, FlowError) as error:
            log.warning("what became of flows cannot be told: %s", error)

    def _be_fair(self, now: float) -> None:
        """Give a flow that crowds others out a lane of its own, and let one that does not any more share one again."""
        assert self._catalog is not None
        known = self._catalog.flows
        apart = sum(flow.apart for flow in known.values())
        for members in self.members.values():
            flow = crowding([(one.flow, one.share) for one in members.values() if one.runs], apart)
            if flow is not None and flow.name in known:
                self._logs.write(flow.name, WHY)
                self._catalog.part(flow, True, WHY)
        for one in self.carried.values():
            if one.runs and one.flow.apart and is_free(one.flow) and one.share.is_calm(now):
                self._catalog.part(one.flow, False, None)

    def figures(self) -> tuple[dict[str, LaneFigures], dict[str, Figures]]:
        """Return what lanes and flows have done; any thread may ask."""
        flows: dict[str, Figures] = {}
        lanes: dict[str, LaneFigures] = {}
        for lane, one in self._all():
            made = flows[one.flow.name] = one.meter.done
            before = lanes.get(lane, LaneFigures())
            batches, batch_ms = max(before.batches, made.batches), max(before.batch_ms, made.batch_ms)
            seconds = max(before.seconds, made.seconds)
            lanes[lane] = LaneFigures((*before.flows, one.flow.name), batches, batch_ms, seconds)
        return lanes, flows

    def _judge(self, one: Carried) -> None:
        """Go back from a version that fails in its first batches; one that has done them stays."""
        assert self._catalog is not None
        flow, batches = one.flow, 0 if one.query is None else one.query.status.batches
        if one.said is not None and one.said.state == State.FAILED and one.said.is_of(flow) and flow.previous:
            note = f"Version {flow.version[:12]} failed, so {flow.previous[0][:12]} runs again: {one.said.error}"
            self._logs.write(flow.name, note)
            self._catalog.roll_back(flow.name, flow.revision, note)
        elif batches > FIRST_BATCHES:
            self._catalog.settle(flow.name, flow.revision)

    def _state_of(self, lane: str, one: Carried) -> FlowState:
        """Return what there is to say of a flow, without the time."""
        flow = one.flow
        if one.query is not None:
            status, failure = one.query.status, one.query.failure
            state, restarts, error, trace = status.state, status.restarts, status.error, failure and failure.details
        elif one.error is not None:
            sentence, _, rest = one.error.partition("\n")
            state, restarts, error, trace = State.FAILED, 0, sentence, rest
        else:
            state, restarts = State.STARTING if flow.wanted is Wanted.RUNNING else flow.wanted, 0
            state = MOVING if flow.leaving is not None else state
            error = trace = None
        about = flow.name, flow.serial, flow.revision
        return FlowState(*about, str(state), self.name, lane, 0, restarts, error or None, trace or None)
