"""Heartbeats of brokers: who is alive, who may serve, who wants to stop, and whose disk has failed.

A broker is fenced until it has asked not to be and has seen its own registration. One that wants to stop first hands
over what it leads (KIP-841: it is marked as shutting down, leaves every ISR and is not taken back), and may stop when
every live broker has seen that: so nobody sends clients to it any more. One that is not heard for
`broker.session.timeout.ms` is fenced.

Who was heard when is not in the metadata log. It begins anew with each active controller: every broker that is not
fenced then gets a whole session's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any

from moldau.cluster.controller.changes import change, directory_of, in_isr, remove, rules_of
from moldau.cluster.controller.policy import Policy
from moldau.cluster.controller.result import Result, broker_error
from moldau.machines.metadata.cluster import NO_LEADER, Broker, Cluster
from moldau.machines.metadata.topics import DIRECTORIES_SINCE
from moldau.wire import messages as m

CORDONED_SINCE = 30  # metadata.version
FENCE, UNFENCE = 1, -1  # in a BrokerRegistrationChangeRecord
UNKNOWN = -1


class State(Enum):
    """What a broker is, or becomes by a heartbeat."""

    FENCED = "fenced"
    SERVING = "serving"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(slots=True)
class Session:
    """What is known of a broker's process, by its heartbeats."""

    epoch: int
    heard_ms: float
    metadata_offset: int = UNKNOWN
    stops_at: int = UNKNOWN  # the offset that all must have seen before it may stop


class Heartbeats:
    """The sessions of one active controller."""

    __slots__ = ("registered_at", "session_ms", "sessions")

    def __init__(self, session_ms: float) -> None:
        self.session_ms = session_ms
        self.sessions: dict[int, Session] = {}
        self.registered_at: dict[int, int] = {}

    def begin(self, image: Cluster, now_ms: float) -> None:
        """Give every broker that is not fenced a fresh session: this controller has just become the active one."""
        self.sessions = {one.id: Session(one.epoch, now_ms) for one in image.brokers.values() if not one.fenced}

    def registered(self, broker_id: int, offset: int) -> None:
        """Note the offset of a registration's last record, which the broker must have seen to be unfenced.

        A process that registers again must say again how far it is and that it wants to stop.
        """
        self.registered_at[broker_id] = offset
        if session := self.sessions.get(broker_id):
            session.metadata_offset = session.stops_at = UNKNOWN

    def is_alive(self, broker: Broker, now_ms: float) -> bool:
        """Whether the registered process of a broker was heard within a session's time."""
        session = self.sessions.get(broker.id)
        return session is not None and session.epoch == broker.epoch and not self._is_over(session, now_ms)

    def forget(self, broker_id: int) -> None:
        """End the session of a process that is gone, or was told to end: its successor need not wait (Kafka's does)."""
        self.sessions.pop(broker_id, None)

    def stale(self, now_ms: float) -> list[int]:
        """Return the brokers whose session is over, and forget their sessions: the caller fences them."""
        over = [broker_id for broker_id, session in self.sessions.items() if self._is_over(session, now_ms)]
        for broker_id in over:
            del self.sessions[broker_id]
        return over

    def next_ms(self) -> float:
        """Return when the next session is over if its broker is not heard before."""
        return min((session.heard_ms + self.session_ms for session in self.sessions.values()), default=inf)

    def _is_over(self, session: Session, now_ms: float) -> bool:
        return now_ms - session.heard_ms > self.session_ms

    def heartbeat(self, image: Cluster, request: Any, now_ms: float, next_offset: int, policy: Policy) -> Result:
        """Answer BrokerHeartbeat; `next_offset` is the offset that the first record will have."""
        if error := broker_error(image, request.broker_id, request.broker_epoch):
            return Result([], m.BrokerHeartbeatResponse(error_code=error))
        broker, session = image.brokers[request.broker_id], self._touch(request, now_ms)
        before = state_of(broker, session)
        after = self._next(image, broker, session, before, request)
        offline = frozenset(bytes(one) for one in request.offline_log_dirs)
        records = [*become(image, broker, before, after, policy, offline)]
        if image.metadata_version >= DIRECTORIES_SINCE:
            is_serving = before is after is State.SERVING
            records += lose_directories(image, broker, offline, policy, is_serving=is_serving)
        if image.metadata_version >= CORDONED_SINCE:
            records += cordon(broker, request.cordoned_log_dirs)
        session.metadata_offset = request.current_metadata_offset
        if after is State.STOPPING and session.stops_at == UNKNOWN:
            session.stops_at = next_offset + len(records) - 1
        elif after in (State.FENCED, State.STOPPED):
            session.stops_at = UNKNOWN
        return Result(records, answer(after, is_caught_up=self._has_seen_itself(broker, request)))

    def _touch(self, request: Any, now_ms: float) -> Session:
        session = self.sessions.get(request.broker_id)
        if session is None or session.epoch != request.broker_epoch:
            session = self.sessions[request.broker_id] = Session(request.broker_epoch, now_ms)
        session.heard_ms = now_ms
        return session

    def _next(self, image: Cluster, broker: Broker, session: Session, state: State, request: Any) -> State:
        """Decide what a broker becomes."""
        if state is State.STOPPING:
            is_seen = not leads(image, broker.id) and session.stops_at <= self.lowest_offset(image)
            return State.STOPPED if is_seen else State.STOPPING
        if state is State.FENCED:
            if request.want_shut_down:
                return State.STOPPED
            is_ready = not request.want_fence and self._has_seen_itself(broker, request)
            return State.SERVING if is_ready else State.FENCED
        if request.want_fence:
            return State.STOPPED if request.want_shut_down else State.FENCED
        if request.want_shut_down:
            return State.STOPPING if leads(image, broker.id) else State.STOPPED
        return State.SERVING

    def _has_seen_itself(self, broker: Broker, request: Any) -> bool:
        return request.current_metadata_offset >= max(broker.epoch, self.registered_at.get(broker.id, UNKNOWN))

    def lowest_offset(self, image: Cluster) -> float:
        """Return up to where all brokers that serve have seen the metadata; unknown of those not heard yet."""
        serving = [broker for broker in image.brokers.values() if not broker.fenced]
        return min((offset for broker in serving if (offset := self._offset(broker)) is not None), default=inf)

    def _offset(self, broker: Broker) -> int | None:
        """Return how far a broker is; None of one that stops."""
        session = self.sessions.get(broker.id)
        if session is None or session.epoch != broker.epoch:
            return UNKNOWN
        return session.metadata_offset if session.stops_at == UNKNOWN else None


def state_of(broker: Broker, session: Session) -> State:
    if session.stops_at != UNKNOWN:
        return State.STOPPING
    return State.FENCED if broker.fenced else State.SERVING


def leads(image: Cluster, broker_id: int) -> bool:
    return any(part.leader == broker_id for _, part in image.partitions_of(broker_id))


def answer(state: State, *, is_caught_up: bool) -> Any:
    return m.BrokerHeartbeatResponse(
        is_caught_up=is_caught_up,
        is_fenced=state in (State.FENCED, State.STOPPED),
        should_shut_down=state is State.STOPPED,
    )


def become(
    image: Cluster, broker: Broker, before: State, after: State, policy: Policy, offline: frozenset[bytes]
) -> Iterable[Any]:
    """Return the records by which a broker becomes something else."""
    if before is after:
        return []
    if after is State.SERVING:
        return unfence(image, broker.id, policy, offline)
    return begin_stop(image, broker, policy) if after is State.STOPPING else fence(image, broker.id, policy)


def fence(image: Cluster, broker_id: int, policy: Policy) -> list[Any]:
    """Take a broker out of every ISR, elect others in its place, and mark it as fenced, unless it is."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return []
    elected = remove(rules_of(image, policy, leaving=broker_id), in_isr(image, broker_id), broker_id)
    marks = [] if broker.fenced else [m.BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=FENCE)]
    return [*elected, *marks]


def unfence(image: Cluster, broker_id: int, policy: Policy, offline: frozenset[bytes] = frozenset()) -> list[Any]:
    """Let a broker serve, and elect leaders for partitions that have none: it may be the one they wait for."""
    broker = image.brokers[broker_id]
    rules = rules_of(image, policy, arriving=broker_id, offline=offline)
    elected = (change(rules, topic, part) for topic, part in image.partitions_of(NO_LEADER))
    change_record = m.BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=UNFENCE)
    return [change_record, *(record for record in elected if record is not None)]


def begin_stop(image: Cluster, broker: Broker, policy: Policy) -> Iterator[Any]:
    """Mark a broker as shutting down, and give what it leads to others."""
    if not broker.in_controlled_shutdown:
        yield m.BrokerRegistrationChangeRecord(broker.id, broker.epoch, in_controlled_shutdown=1)
    yield from remove(rules_of(image, policy, leaving=broker.id), in_isr(image, broker.id), broker.id)


def lose_directories(
    image: Cluster, broker: Broker, offline: frozenset[bytes], policy: Policy, *, is_serving: bool
) -> Iterator[Any]:
    """Elect away what lies in directories that have failed, and mark them; a broker without any ends by itself."""
    if offline.isdisjoint(broker.log_dirs):
        return
    if is_serving:
        places = image.partitions_of(broker.id)
        hit = [(topic, part) for topic, part in places if directory_of(part, broker.id) in offline]
        yield from remove(rules_of(image, policy, leaving=broker.id), hit, broker.id)
    if left := [one for one in broker.log_dirs if one not in offline]:
        yield m.BrokerRegistrationChangeRecord(broker.id, broker.epoch, log_dirs=left)


def cordon(broker: Broker, cordoned: Iterable[bytes] | None) -> Iterator[Any]:
    """Note in which directories a broker takes no new replicas, if that has changed."""
    if cordoned is None:
        return
    wanted = [bytes(one) for one in cordoned]
    if broker.cordoned_dirs is None or set(wanted) != set(broker.cordoned_dirs):
        yield m.BrokerRegistrationChangeRecord(broker.id, broker.epoch, cordoned_log_dirs=wanted)
