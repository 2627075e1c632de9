"""How a broker takes part in a cluster: it registers, tells that it is alive, and asks the active controller.

The controllers are other nodes, Moldau's or Apache Kafka's, or this node is one of them too (`node.quorum`). It
registers with the active one and tells it again and again that it is alive (`cluster/lifecycle.py`); and it is the way
by which everything else of this node asks that controller.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.features import KIND, SUPPORTED
from moldau.broker.forwarding import FORWARDED, forwarded
from moldau.broker.observation import Observation
from moldau.broker.outbox import Done, Lost, Peer
from moldau.broker.storage import id_bytes
from moldau.cluster.controller.heartbeats import CORDONED_SINCE
from moldau.cluster.lifecycle import CannotJoin, Lifecycle, State
from moldau.cluster.lifecycle import Limits as LifecycleLimits
from moldau.cluster.observing import Address
from moldau.machines.effects import Promise
from moldau.machines.metadata.cluster import Endpoint
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.broker.api import Handler
    from moldau.broker.node import Node
    from moldau.broker.quorum import Quorum

log = logs.get(__name__)

ASK_MS = 30_000.0


class Membership:
    """The node as a member of a cluster; it ends with `leave`."""

    def __init__(self, node: Node, quorum: Observation | Quorum, endpoints: Sequence[Endpoint]) -> None:
        settings = node.settings
        self.node = node
        self.quorum = quorum
        self.endpoints = tuple(endpoints)
        self.incarnation = self.begin_incarnation()
        self.waiting: list[tuple[float, int, Any, Done]] = []  # for a controller to be known
        self.serial = 0
        self.is_open = False
        self.stopping: set[tuple[int, int]] = set()  # other brokers, and their epochs
        self.controller: tuple[Address, int] | None = None  # the last one that was active, and its epoch
        self.problem: str | None = None  # why this node cannot take part, once that is certain
        self.on_change: Callable[[], None] = lambda: None
        self.lifecycle = Lifecycle(
            node.id,
            LifecycleLimits(
                settings["broker.heartbeat.interval.ms"], settings["initial.broker.registration.timeout.ms"]
            ),
            node.clock.monotonic_ms(),
            self.registration,
            on_change=self.changed,
        )

    def begin_incarnation(self) -> bytes:
        """Return as what this process registers: as the one before, if that was killed before it knew its epoch."""
        directories = self.node.replicas.directories
        before = {directory.incarnation for directory in directories}
        mine = bytes.fromhex(before.pop()) if len(before) == 1 and before != {""} else self.node.random.randbytes(16)
        for directory in directories:
            try:
                directory.note_incarnation(mine.hex())
            except OSError as error:
                log.warning("a directory does not know who registers", directory=directory.path, reason=str(error))
        return mine

    @property
    def state(self) -> State:
        return self.lifecycle.state

    def registration(self) -> Any:
        node = self.node
        features = [(feature.name, feature.low, feature.high) for feature in (*SUPPORTED, KIND)]
        return m.BrokerRegistrationRequest(
            broker_id=node.id,
            cluster_id=node.metadata.cluster_id,
            incarnation_id=self.incarnation,
            listeners=[m.BrokerRegistrationRequest_Listener(*endpoint) for endpoint in self.endpoints],
            features=[m.BrokerRegistrationRequest_Feature(*row) for row in features],
            rack=node.settings["broker.rack"],
            log_dirs=[id_bytes(directory.id) for directory in node.replicas.directories if directory.offline is None],
            previous_broker_epoch=min((d.broker_epoch for d in node.replicas.directories), default=-1),
        )

    def changed(self, state: State) -> None:
        log.info("the broker is", state=state.value, epoch=self.lifecycle.epoch)
        self.on_change()

    # Time.

    def tick(self, now_ms: float) -> None:
        """Send what is due to the active controller."""
        if self.problem is not None:
            return
        leader = self.quorum.leader
        while self.waiting and (leader is not None or self.waiting[0][0] <= now_ms):
            deadline, _, request, done = heapq.heappop(self.waiting)
            if leader is None:
                done(Lost("no controller is known"))
            else:
                self.send(leader, request, done, max(1.0, deadline - now_ms))
        if leader is None:
            self.check_time(now_ms)
        elif self.lifecycle.next_ms() <= now_ms:
            offline = [id_bytes(directory.id) for directory in self.node.replicas.directories if directory.offline]
            offset, timeout = self.node.metadata.applied - 1, self.node.settings["broker.session.timeout.ms"] / 2
            request = self.lifecycle.request(
                now_ms, offset, offline, want_fence=not self.is_open, cordoned_dirs=self.cordoned_directories()
            )
            self.send(leader, request, self.heard, timeout, "heartbeat")

    def cordoned_directories(self) -> list[bytes] | None:
        """Return the directories that get no new replicas; None where the cluster cannot be told yet."""
        if self.node.cluster.metadata_version < CORDONED_SINCE:
            return None
        replicas = self.node.replicas
        return [id_bytes(one.id) for one in replicas.directories if one.offline is None and replicas.is_cordoned(one)]

    def send(self, leader: tuple[str, int], request: Any, done: Done, timeout_ms: float, purpose: str = "") -> None:
        """Ask the active controller, which may be this very node."""
        if self.quorum.is_active:
            self.node.ask_itself(request, done)
        else:
            self.node.ask(Peer(*leader, purpose, is_controller=True), request, done, timeout_ms)

    def check_time(self, now_ms: float) -> None:
        try:
            self.lifecycle.check_time(now_ms)
        except CannotJoin as problem:
            self.give_up(f"{problem} Its controllers are {self.servers()}.")

    def servers(self) -> str:
        return ", ".join(f"{host}:{port}" for host, port in self.quorum.servers)

    def next_ms(self) -> float:
        if self.problem is not None:
            return inf
        due = [entry[0] for entry in self.waiting[:1]]
        if self.quorum.leader is not None:
            due.append(self.lifecycle.next_ms())
        return min(due, default=inf)

    def metadata_moved(self, now_ms: float) -> None:
        """Go on after the quorum has committed something, or has another leader."""
        self.note_controller()
        self.open_when_ready()
        self.note_stopping()
        self.tick(now_ms)

    def note_controller(self) -> None:
        """Let go of the controller before, once there is another: it may be frozen; who asked it asks again.

        That is so for the same node in a later epoch, too: it may have lost power with what it was asked.
        """
        leader, epoch = self.quorum.leader, self.quorum.epoch
        if leader is None or (leader, epoch) == self.controller:
            return
        if self.controller is not None:
            self.node.outbox.hang_up(self.controller[0], "a controller of a later epoch is active")
        self.controller = leader, epoch
        self.lifecycle.hurry()  # it knows of nobody how far he is, and lets nobody stop before
        log.info("the active controller is", node=self.quorum.leader_id, epoch=epoch)

    def note_stopping(self) -> None:
        """Say at once that this broker knows of another one that stops, and waits until everybody does."""
        brokers = self.node.cluster.brokers.values()
        stopping = {(one.id, one.epoch) for one in brokers if one.in_controlled_shutdown and not one.fenced}
        if stopping - self.stopping:
            self.lifecycle.hurry()
        self.stopping = stopping

    def open_when_ready(self) -> None:
        """Open the partitions once the metadata has this broker's registration in it, and so all that came before."""
        mine = self.node.cluster.brokers.get(self.node.id)
        if not self.is_open and mine is not None and mine.epoch == self.lifecycle.epoch:
            self.is_open = True
            self.node.open_partitions()
            self.note_epoch(mine.epoch)
            self.lifecycle.hurry()
            self.on_change()

    def note_epoch(self, epoch: int) -> None:
        for directory in self.node.replicas.directories:
            try:
                directory.note_epoch(epoch)
            except OSError as error:
                log.warning("a directory does not know whose it is", directory=directory.path, reason=str(error))

    # The controller.

    def forwarding(self, key: int, local: Handler) -> Handler:
        """Return who answers a request: for some of them it is the controller."""
        return forwarded(key, local) if key in FORWARDED else local

    def ask_controller(self, request: Any, done: Done, timeout_ms: float = ASK_MS) -> None:
        """Ask the active controller, as soon as it is known; `done` gets the response or a `Lost`, later."""
        leader = self.quorum.leader
        if leader is not None:
            self.send(leader, request, done, timeout_ms)
            return
        self.serial += 1
        heapq.heappush(self.waiting, (self.node.clock.monotonic_ms() + timeout_ms, self.serial, request, done))

    def call(self, request: Any, timeout_ms: float = ASK_MS) -> Promise:
        """Ask the active controller; the promise is kept with the response or a `Lost`."""
        promise = Promise(lambda error: Lost(error.message))
        self.ask_controller(request, promise.resolve, timeout_ms)
        return promise

    def heard(self, response: Any) -> None:
        """Take over the answer to a registration or a heartbeat."""
        now = self.node.clock.monotonic_ms()
        try:
            if isinstance(response, Lost):
                self.lifecycle.fail(now)
            else:
                error = Error(response.error_code)
                if error and error is not self.lifecycle.last_error:
                    log.warning("the controller refuses this broker", error=error.name, state=self.state.value)
                self.lifecycle.heard(response, now)
        except CannotJoin as problem:
            self.give_up(str(problem))
            return
        self.open_when_ready()
        self.tick(now)

    def give_up(self, problem: str) -> None:
        log.error(problem)
        self.problem = problem
        self.on_change()

    def leave(self) -> None:
        """Begin a controlled shutdown: `state` is STOPPED when the controller has given our partitions to others."""
        self.lifecycle.stop()
