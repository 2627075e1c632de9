"""The node: frames in, frames out, all of it synchronous.

`receive` takes one request, `tick` lets time pass, `ask` sends a request to another node. Clock, randomness, disk,
background thread and network are passed in, so the simulator runs this very code. A handler returns a response, None
(no answer is due) or a `Wait`, which parks the request until something that it watches is signalled, or until its
deadline.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from moldau import settings as table
from moldau.broker import audit, learned_requests
from moldau.broker.api import Handler, known_to_controllers, known_with
from moldau.broker.assignments import Assignments
from moldau.broker.authorizer import make_authorizer
from moldau.broker.connection import Connection, Pending
from moldau.broker.coordinators import Coordinators
from moldau.broker.counters import ClusterCounters
from moldau.broker.fetch_sessions import FetchSessions
from moldau.broker.groups import forget_topic, group_coordinators
from moldau.broker.healing import Healing
from moldau.broker.metadata import Metadata
from moldau.broker.moves import Moves
from moldau.broker.outbox import Ask, Done, Lost, Network, Nowhere, Outbox, Peer
from moldau.broker.partition import Partition
from moldau.broker.peer_security import between_brokers, log_in
from moldau.broker.replicas import EFFECTS, Replicas
from moldau.broker.replication import Replication
from moldau.broker.share.partitions import SharePartitions
from moldau.broker.share.sessions import ShareSessions
from moldau.broker.share.state import ShareState, forget_shared, share_coordinators
from moldau.broker.storage import StartError, explain, id_bytes, open_directories, open_metadata_log
from moldau.broker.timers import TIMERS, interval_ms
from moldau.broker.transactions import transaction_coordinators
from moldau.broker.wait import NO_ANSWER, Wait, Waits
from moldau.broker.work import Workshop
from moldau.log.checkpoints import Damaged
from moldau.log.disk import Disk
from moldau.machines.effects import Promise, error_promise
from moldau.machines.metadata.acls import CLUSTER, CLUSTER_NAME
from moldau.machines.metadata.cluster import BROKER, Cluster, Endpoint, Topic
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.machines.metadata.locations import NOBODY
from moldau.settings import Settings
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.controller import Controller
    from moldau.broker.membership import Membership
    from moldau.broker.observation import Observation
    from moldau.broker.quorum import Quorum
    from moldau.broker.quotas import Quotas
    from moldau.broker.telemetry import Telemetry
    from moldau.log.cleaner import Cleaner
    from moldau.log.directory import Directory
    from moldau.tokens.web_tokens import Validator

Learn = Callable[["Node", Connection, memoryview, int, Any, Any], None]
Route = tuple[Handler, type[Any], Learn | None]

API_VERSIONS = 18
# Requests whose messages cost more than the work: their `learn` is told what was answered. See learned_requests.py.
LEARNERS = {0: "moldau.broker.api.produce_one", 8: "moldau.broker.api.commit_one"}
LEARNT_LATER = 1 << 14  # bytes of a request whose head is learnt when its answer was waited for; it is copied
SLICE_MS = 2.0  # how long background work may hold the node at a time
IDLE_TICK_MS = 1000.0


class Clock(Protocol):
    """Wall time for what is written, monotonic time for what is waited for; both in milliseconds."""

    def wall_ms(self) -> int: ...
    def monotonic_ms(self) -> float: ...


class Background(Protocol):
    """Runs what blocks (fdatasync, a login) elsewhere; `done` gets its result or exception, on the node's thread."""

    @property
    def pending(self) -> int:
        """Jobs whose `done` has not been called yet."""
        ...

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None: ...


def end_at_once(reason: str) -> None:
    raise RuntimeError(reason)


class Node:
    """One broker: the metadata, the partitions it keeps, and the requests that wait."""

    def __init__(
        self,
        settings: Settings,
        disk: Disk,
        clock: Clock,
        random: Random,
        background: Background,
        network: Network | None = None,
    ) -> None:
        self.settings = settings
        self.disk = disk
        self.clock = clock
        self.random = random
        self.background = background
        self.id: int = settings["node.id"]
        self.is_controller = "controller" in settings["process.roles"]
        self.is_broker = "broker" in settings["process.roles"]
        self.apis = known_with(settings)
        self.routes: dict[tuple[int, int], Route] = {}
        self.controller_routes: dict[tuple[int, int], Route] = {}  # on listeners of the controller
        self.heads: learned_requests.Heads = {}  # forgotten when the metadata changes
        self.max_elements: int = settings["moldau.request.max.elements"]
        self.request_counts = dict.fromkeys(self.apis, 0)
        self.cluster_counters = ClusterCounters()
        self.connections: dict[int, Connection] = {}
        self.waits = Waits()
        self.timers: list[tuple[float, int]] = []
        self.work = Workshop()
        self.outbox = Outbox(network or Nowhere(), f"broker-{self.id}", partial(log_in, self))
        self.fetch_sessions = FetchSessions(settings["max.incremental.fetch.session.cache.slots"], random, self.waits)
        self._telemetry: Telemetry | None = None
        self._cleaner: Cleaner | None = None
        self.groups = group_coordinators(self)
        self.transactions = transaction_coordinators(self)
        self.shares = share_coordinators(self)
        self.share_state = ShareState(self)
        self.share_state_here = ShareState(self, is_here=True)
        self.share_partitions = SharePartitions(self)
        self.share_sessions = ShareSessions(settings["group.share.max.share.sessions"])
        self.coordinators: list[Coordinators[Any]] = [self.groups, self.transactions, self.shares]
        self.replicas = Replicas(self)
        self.replication = Replication(self)
        self.assignments = Assignments(self)
        self.healing = Healing(self)
        self.moves = Moves(self)
        self.metadata = Metadata(self)
        # In a cluster of several nodes; a node that is alone has neither.
        self.quorum: Observation | Quorum | None = None
        self.membership: Membership | None = None
        self.controller: Controller | None = None  # while this node is the active one
        self.itself: list[tuple[Any, Done]] = []  # requests of this broker to this controller
        self.on_fatal: Callable[[str], object] = end_at_once  # what nobody can go on after
        self.on_due: Callable[[], object] = lambda: None  # something is due earlier than the last tick has said
        self.inter_broker_listener = ""
        self.check_settings: Callable[[Settings], object] = lambda _: None  # raises SettingError; see rim/entrances.py
        self.quotas: Quotas | None = None  # while there are quotas of clients
        self.validators: dict[str, Validator] = {}  # of tokens, by listener
        self.authorizer = make_authorizer(settings, self.cluster.acls)

    # Not cached_property: that looks at __dict__, which makes every attribute of the node slower from then on.
    @property
    def telemetry(self) -> Telemetry:
        if self._telemetry is None:
            from moldau.broker.telemetry import Telemetry

            self._telemetry = Telemetry()
        return self._telemetry

    @property
    def cleaner(self) -> Cleaner:
        if self._cleaner is None:
            from moldau.log.cleaner import Cleaner

            self._cleaner = Cleaner(self.disk, memory_bytes=self.settings["log.cleaner.dedupe.buffer.size"])
        return self._cleaner

    @property
    def cluster(self) -> Cluster:
        return self.metadata.cluster

    def start(self, endpoints: Sequence[Endpoint], controllers: Sequence[Endpoint] = ()) -> None:
        """Open the data directories and take part in the cluster; raises StartError with a sentence if it cannot.

        A controller without a listener of its own (`controllers`) is alone: nobody else can ever join it.
        """
        is_alone = self.is_controller and not controllers
        voters = [text.partition("@")[0] for text in self.settings["controller.quorum.voters"]]
        self.replicas.directories = open_directories(self, may_begin=is_alone or voters == [str(self.id)])
        try:
            if is_alone:
                self.metadata.load(open_metadata_log(self))
                self.metadata.take_part(endpoints, [id_bytes(d.id) for d in self.replicas.directories])
                self.open_partitions()
            else:
                self.metadata.load_followed(open_metadata_log(self))
                self.join(endpoints, controllers)
        except (Damaged, OSError, Refused, StartError, WireError) as error:
            self.abandon()
            raise explain(self, error) from error

    def join(self, endpoints: Sequence[Endpoint], controllers: Sequence[Endpoint]) -> None:
        """Take part in the quorum, with a vote or without, and in the cluster as a broker."""
        from moldau.broker.membership import Membership

        if self.is_controller:
            from moldau.broker.quorum import Quorum

            self.quorum = Quorum(self, controllers)
        else:
            from moldau.broker.observation import Observation

            self.quorum = Observation(self)
        if self.is_broker:
            self.inter_broker_listener = between_brokers(self.settings) or endpoints[0].listener
            self.membership = Membership(self, self.quorum, endpoints)
        else:
            self.start_timers()
        self.quorum.start()

    def metadata_moved(self, now_ms: float) -> None:
        """Go on after the quorum has committed something, or has another leader."""
        if self.membership is not None:
            self.membership.metadata_moved(now_ms)

    def cannot_take_part(self, problem: str) -> None:
        if self.membership is not None:
            self.membership.give_up(problem)

    def open_partitions(self) -> None:
        """Open what the metadata gives to this node, and begin to serve."""
        self.load_dynamic_settings()
        self.enforce_quotas()
        self.replicas.open_all()
        self.start_timers()
        for coordinators in self.coordinators:
            self.work.add(coordinators.load_all())

    def start_timers(self) -> None:
        now = self.clock.monotonic_ms()
        self.timers = [(now + interval_ms(self, timer), number) for number, timer in enumerate(TIMERS)]
        heapq.heapify(self.timers)

    def stop(self) -> None:
        """Answer who waits, and close every log, so that the next start needs no recovery."""
        for coordinators in self.coordinators:
            coordinators.stop()
        self.outbox.close()
        self.moves.close()
        self.waits.expire(inf)
        self.cleaner.cancel()
        for directory in self.replicas.directories:
            directory.close(broker_epoch=self.stopping_epoch(directory))

    def stopping_epoch(self, directory: Directory) -> int:
        """Return for which epoch a clean stop vouches: this process's own, or the one before that it has found sound.

        What the metadata says is no evidence: a process that never registered may have lost records before it began.
        """
        if self.membership is None:
            return self.metadata.broker_epoch
        own = self.membership.lifecycle.epoch
        return own if own >= 0 else directory.broker_epoch

    def abandon(self) -> None:
        """Let go of the files as a crash would: nothing is synced, nothing is marked."""
        for directory in self.replicas.directories:
            directory.close(clean=False)

    def load_dynamic_settings(self) -> None:
        """Apply settings that were changed at run time; they win over those given at start."""
        mine, everybody = self.cluster.config(BROKER, str(self.id)), self.cluster.config(BROKER, "")
        self.settings = self.settings.with_dynamic(
            table.understood(table.BROKER, mine), table.understood(table.CLUSTER, everybody)
        )

    def forget_heads(self) -> None:
        """Forget what requests were learnt, and by another dict what connections were cleared for."""
        self.heads = {}

    def apply(self, records: Sequence[Any]) -> None:
        """Make committed records of the metadata true, here and for all who ask from now on."""
        removed = [r.topic_id for r in records if r.SCHEMA.name == "RemoveTopicRecord"]
        gone = [topic for topic_id in removed if (topic := self.cluster.topics_by_id.get(topic_id)) is not None]
        self.forget_heads()
        for record in records:
            if record.SCHEMA.name == "PartitionChangeRecord":
                self.cluster_counters.note_election(self.cluster, record)
            self.cluster.replay(record)
        if self.membership is not None and not self.membership.is_open:
            return
        for topic in gone:
            self.forget(topic)
        for record in records:
            effect = EFFECTS.get(record.SCHEMA.name)
            if effect is not None:
                effect(self, record)
        self.signal(self.metadata)

    def forget(self, topic: Topic) -> None:
        """Let everything go that belongs to a topic which is gone."""
        self.replicas.remove_topic(topic)
        for coordinators in self.coordinators:
            coordinators.forget_topic(topic.name)
        forget_topic(self, topic)
        forget_shared(self, topic)
        self.share_partitions.forget_topic(topic.id)

    def replace_image(self, image: Cluster) -> None:
        """Go on with an image that came as a whole: this node was behind for too long to be told each change."""
        before, self.metadata.cluster = self.metadata.cluster, image
        self.forget_heads()
        self.authorizer = make_authorizer(self.settings, image.acls)
        self.routes.clear()
        if self.membership is not None and self.membership.is_open:
            for topic in before.topics.values():
                if topic.id not in image.topics_by_id:
                    self.forget(topic)
            self.load_dynamic_settings()
            for topic in image.topics.values():
                self.replicas.open_topic(topic)
            self.replicas.reconfigure()
            self.enforce_quotas()
            self.signal(self.metadata)

    def enforce_quotas(self) -> None:
        if self.quotas is not None or self.cluster.quotas:
            from moldau.broker.quotas import apply_quotas

            apply_quotas(self)

    def ip_limit(self, host: str) -> float | None:
        """Return how many connections a second an address may open, if that is limited."""
        for name in (host, None):
            value = self.cluster.quotas.get((("ip", name),), {}).get("connection_creation_rate")
            if value is not None:
                return value
        return None

    def leadership_changed(self, partition: Partition) -> None:
        """Coordinators go where their partitions are led. At a start all are loaded afterwards."""
        for coordinators in self.coordinators:
            if coordinators.topic == partition.topic and self.replicas.all_found:
                coordinators.leadership_changed(partition.index)

    def brokers(self, listener: str) -> list[tuple[int, str, int, str | None]]:
        """Return id, host, port and rack of the live brokers, as seen from a listener."""
        return [
            (broker.id, endpoint.host, endpoint.port, broker.rack)
            for broker in self.cluster.live_brokers()
            for endpoint in broker.endpoints
            if endpoint.listener == listener
        ]

    def controller_among(self, live: Sequence[int]) -> int:
        """Return which of the live brokers clients are to take for the controller: this one, unless it is fenced.

        Any will do, for all pass requests on. But a client waits a minute for one that is not among them.
        """
        return self.id if self.id in live else next(iter(live), NOBODY)

    def may(self, client: Connection, operation: int, resource_type: int = CLUSTER, name: str = CLUSTER_NAME) -> bool:
        """Tell whether a client may do something. Without an authorizer everybody may do everything."""
        known = self.authorizer
        if known is None or known.allows(client.principal, client.host, operation, resource_type, name):
            return True
        audit.denied(client, operation, resource_type, name)
        return False

    def connect(self, connection: Connection) -> None:
        self.connections[connection.id] = connection

    def disconnect(self, connection: Connection) -> None:
        self.connections.pop(connection.id, None)
        for wait in connection.waits():
            self.waits.forget(wait)
        if connection.session is not None:
            self.waits.forget(connection.session)
        connection.pending.clear()
        connection.pending_bytes = 0
        self.share_partitions.end_connection(connection.id)
        if self.controller is not None:
            self.controller.disconnected(connection)

    def receive(self, connection: Connection, frame: memoryview) -> None:
        """Answer one request, or park it. Raises WireError where the peer is at fault: the rim then hangs up."""
        if (answer := learned_requests.serve(self, connection, frame)) is not None:
            if isinstance(answer, Wait):
                pending = connection.park(answer, len(frame))
                self.waits.park(answer, partial(self.answer_bytes, connection, pending))
            elif connection.pending:
                connection.write([answer])
            else:
                connection.out.append(answer)
            return
        try:
            key, version, correlation_id, client_id, position = frames.request_header(frame, self.max_elements)
        except frames.UnsupportedRequest as unsupported:
            self.answer_unsupported(connection, unsupported)
            return
        routes = self.controller_routes if connection.is_controller else self.routes
        route = routes.get((key, version)) or self.route(key, version, connection.is_controller)
        if route is None:
            self.answer_unsupported(connection, frames.UnsupportedRequest(key, version, correlation_id, client_id))
            return
        self.request_counts[key] = self.request_counts.get(key, 0) + 1
        connection.client_id = client_id
        handle, cls, learn = route
        # Bytes behind the request are ignored, as Kafka does: librdkafka 2.16 sends some with Metadata v13.
        request, _ = codec.decode_from(cls, version, frame, position, self.max_elements)
        outcome = handle(self, connection, request, version)
        if outcome.__class__ is Wait:
            pending = connection.park(outcome, len(frame))
            release = partial(self.answer, connection, pending, key, version, correlation_id)
            if learn is not None and len(frame) <= LEARNT_LATER:
                release = partial(self.answer_and_learn, release, learn, connection, bytes(frame), version, request)
            self.waits.park(outcome, release)
        elif outcome is not None:
            connection.write(frames.response_frame(key, version, correlation_id, outcome))
            if learn is not None:
                learn(self, connection, frame, version, request, outcome)
        if connection.throttle_ms and self.quotas is not None:
            self.quotas.mute(connection, connection.throttle_ms)
            connection.throttle_ms = 0.0

    def route(self, key: int, version: int, of_controller: bool = False) -> Route | None:
        """Return who answers a request, if anybody. Modules and classes are loaded when first needed."""
        api = (known_to_controllers() if of_controller else self.apis).get(key)
        if api is None or not api.low <= version <= api.high:
            return None
        handle, learner = api.handler(), LEARNERS.get(key)
        if of_controller:
            from moldau.broker.controller import controlling

            handle = controlling(key, handle)
        if self.authorizer is not None:
            from moldau.broker import authorization

            handle = authorization.guarded(key, handle)
        if self.quotas is not None:
            handle = self.quotas.wrap_changes(key, handle)
        if self.membership is not None and not of_controller:
            handle = self.membership.forwarding(key, handle)
        if not of_controller:
            handle = audit.recorded(key, handle)
        if self.quotas is not None and not of_controller:
            handle = self.quotas.wrap(key, handle)
        learn = import_module(learner).learn if learner else None
        routes = self.controller_routes if of_controller else self.routes
        route = routes[key, version] = (handle, m.request_class(key), learn)
        return route

    def answer_unsupported(self, connection: Connection, request: frames.UnsupportedRequest) -> None:
        """Answer an ApiVersions that is too new in version 0, as clients expect; hang up on all else."""
        if request.key != API_VERSIONS:
            raise WireError(f"request key {request.key} version {request.version} is not supported")
        from moldau.broker.api.api_versions import unsupported

        connection.write(frames.response_frame(API_VERSIONS, 0, request.correlation_id, unsupported()))

    def answer(
        self, connection: Connection, pending: Pending, key: int, version: int, correlation_id: int, response: Any
    ) -> None:
        """Release the answer of a parked request."""
        none = response is NO_ANSWER
        connection.answer(pending, [] if none else frames.response_frame(key, version, correlation_id, response))

    def answer_and_learn(
        self,
        answer: Callable[[Any], None],
        learn: Learn,
        connection: Connection,
        frame: bytes,
        version: int,
        request: Any,
        response: Any,
    ) -> None:
        """Release the answer of a parked request whose head is worth to be known."""
        if response is not NO_ANSWER:
            learn(self, connection, memoryview(frame), version, request, response)
        answer(response)

    def answer_bytes(self, connection: Connection, pending: Pending, response: bytes) -> None:
        """Release the answer of a parked request that was never decoded."""
        connection.answer(pending, [response])

    def signal(self, watch: object) -> None:
        """Tell the waiting requests that something they watch has changed."""
        if watch in self.waits.watched:
            self.waits.signal(watch)

    def ask(self, peer: Peer, request: Any, done: Done, timeout_ms: float | None = None) -> None:
        """Send a request to another node; `done` gets the response or a `Lost`, later. See outbox.py."""
        if timeout_ms is None:
            timeout_ms = float(self.settings["request.timeout.ms"])
        self.outbox.put(peer, Ask(request, done), self.clock.monotonic_ms() + timeout_ms)

    def call(self, peer: Peer, request: Any, timeout_ms: float | None = None) -> Promise:
        """Send a request to another node; the promise is kept with the response or a `Lost`."""
        promise = Promise(lambda error: Lost(error.message))
        self.ask(peer, request, promise.resolve, timeout_ms)
        return promise

    def ask_itself(self, request: Any, done: Done) -> None:
        """Send a request of this broker to the controller that this node is too; `done` is called later."""
        self.itself.append((request, done))
        self.on_due()

    def answer_itself(self) -> None:
        from moldau.broker.controller import controlling

        asked, self.itself = self.itself, []
        for request, done in asked:
            schema = request.SCHEMA
            handle = controlling(schema.key, known_to_controllers()[schema.key].handler())
            outcome = handle(self, Connection(0, is_controller=True), request, schema.versions[1])
            if outcome.__class__ is Wait:
                self.waits.park(outcome, done)
            else:
                done(outcome)

    def leader_of(self, topic: str, index: int) -> int | None:
        """Return the broker that leads a partition, -1 while nobody does; None if there is no such partition."""
        placement = self.placement_of(topic, index)
        return None if placement is None else placement.leader

    def placement_of(self, topic: bytes | str, index: int) -> Placement | None:
        """Return who keeps and leads a partition, of a topic by its name or its id."""
        known = self.cluster.topics.get(topic) if isinstance(topic, str) else self.cluster.topics_by_id.get(topic)
        return known.partitions.get(index) if known else None

    def after(self, delay_ms: float) -> Promise:
        """Return a promise that is kept after a while."""
        return self.until(lambda: False, delay_ms)

    def until(self, condition: Callable[[], bool], timeout_ms: float = inf) -> Promise:
        """Return a promise that is kept when the metadata has made something true, or after a while."""
        promise = error_promise()
        if condition():
            promise.resolve(Error.NONE)
            return promise
        deadline = self.clock.monotonic_ms() + timeout_ms
        wait = Wait(deadline, lambda expired: expired or condition() or None, (self.metadata,))
        self.waits.park(wait, promise.resolve)
        return promise

    def tick(self) -> float:
        """Let time pass: deadlines, timers, a slice of background work. Returns after how many ms to come again."""
        now = self.clock.monotonic_ms()
        self.waits.expire(now)
        self.outbox.tick(now)
        if self.quorum is not None:
            self.quorum.tick(now)
            if self.itself:
                self.answer_itself()
        if self.membership is not None:
            self.membership.tick(now)
            self.replication.tick(now)
        while self.timers and self.timers[0][0] <= now:
            number = self.timers[0][1]
            heapq.heapreplace(self.timers, (now + interval_ms(self, TIMERS[number]), number))
            TIMERS[number].run(self)
        for coordinators in self.coordinators:
            coordinators.tick()
        self.share_partitions.tick(now)
        self.work.advance(lambda: self.clock.monotonic_ms() >= now + SLICE_MS)
        return self.idle_ms()

    def idle_ms(self) -> float:
        """Return how many milliseconds nothing is due."""
        if self.work:  # between its slices the sockets have their turn; for coordinators clients wait
            return 0.0 if any(coordinators.loads for coordinators in self.coordinators) else SLICE_MS
        now = self.clock.monotonic_ms()
        due = [IDLE_TICK_MS + now, self.outbox.next_deadline_ms(), *(timer[0] for timer in self.timers[:1])]
        due += (coordinators.next_deadline_ms() for coordinators in self.coordinators)
        due.append(self.share_partitions.deadline_ms)
        if self.quorum is not None:
            due.append(0.0 if self.itself else self.quorum.next_ms())
        if self.membership is not None:
            due += self.membership.next_ms(), self.replication.next_ms()
        deadline = self.waits.next_deadline_ms()
        if deadline is not None:
            due.append(deadline)
        return max(0.0, min(due) - now)
