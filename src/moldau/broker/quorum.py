"""How a controller takes part in the quorum of the metadata log: see cluster/raft.py, which decides.

Its requests are sent and its votes saved here; what it commits is made true on this node; and when this node leads the
quorum and has seen all that was committed before, it is the active controller (`node.controller`) until it leads no
more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.controller import Controller
from moldau.broker.features import SUPPORTED
from moldau.broker.metadata import snapshot_id, snapshot_name
from moldau.broker.observation import address, or_end, static_voters
from moldau.broker.outbox import QUICK_FENCING, Lost, Peer
from moldau.broker.storage import StartError
from moldau.broker.wait import Wait
from moldau.cluster.elections import Election, UnreadableElection, election_text, read_election
from moldau.cluster.raft import Limits, Raft, Send
from moldau.cluster.voters import DYNAMIC, Voter, fixed_voters
from moldau.cluster.voters import Endpoint as QuorumEndpoint
from moldau.machines.metadata.cluster import Endpoint
from moldau.machines.metadata.features import KRAFT_VERSION
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

STATE_FILE = "quorum-state"
QUORUM = "controller.quorum."
REGISTERED_SINCE = 15  # metadata.version
REGISTER_AGAIN_MS = 1000.0
LOOK_MS = 20.0
ADD = 80


class Quorum:
    """This controller's part in the quorum."""

    def __init__(self, node: Node, endpoints: Sequence[Endpoint]) -> None:
        settings, metadata = node.settings, node.metadata
        self.node = node
        self.endpoints = tuple(endpoints)
        self.incarnation = node.random.randbytes(16)
        self.is_registering = False
        self.register_ms = 0.0
        self.seen: tuple[Any, ...] = ()
        self.gone: set[tuple[str, int]] = set()  # where nobody listens any more
        listener = settings["controller.listener.names"][0].upper()
        voters = static_voters(settings["controller.quorum.voters"])
        self.raft = Raft(
            node.id,
            metadata.directory_id,
            metadata.cluster_id,
            metadata.log,
            voters=fixed_voters(voters.items(), listener),
            servers=[address(text) for text in settings["controller.quorum.bootstrap.servers"]],
            listeners=[QuorumEndpoint(one.listener, one.host, one.port) for one in endpoints],
            controller_listener=listener,
            election=self.load_state(),
            save=self.save_state,
            random=node.random,
            limits=limits(settings),
            snapshot=metadata.newest_snapshot,
            read_snapshot=self.read_snapshot,
            auto_join=settings["controller.quorum.auto.join.enable"],
        )

    def start(self) -> None:
        self.raft.start(self.node.clock.monotonic_ms(), self.node.clock.wall_ms())
        self.settle()

    # What the others may know.

    @property
    def is_active(self) -> bool:
        """Tell whether this node is the active controller."""
        return self.node.controller is not None

    @property
    def leader(self) -> tuple[str, int] | None:
        """Return where the active controller is; None while nobody is, as far as this node knows."""
        return None if self.raft.is_leader and not self.is_active else self.raft.leader

    @property
    def is_voter(self) -> bool:
        return self.raft.is_voter

    @property
    def has_left(self) -> bool:
        """Tell whether all who had to hear that this controller stops have heard it."""
        return self.raft.has_left

    @property
    def is_hopeless(self) -> bool:
        """Tell whether so many voters are gone that the others cannot elect a leader."""
        voters = self.raft.voters
        left = [one for one in voters.members if one.address(self.raft.listener) not in self.gone]
        return len(left) < voters.majority

    @property
    def leader_id(self) -> int:
        return self.raft.leader_id

    @property
    def epoch(self) -> int:
        return self.raft.epoch

    @property
    def servers(self) -> list[tuple[str, int]]:
        listener = self.raft.listener
        voters = (voter.address(listener) for voter in self.raft.voters.members)
        return [where for where in voters if where is not None] or self.raft.servers

    @property
    def voters(self) -> Sequence[Voter]:
        return self.raft.voters.members

    @property
    def kraft_version(self) -> int:
        return int(self.raft.voters.is_dynamic)

    @property
    def features(self) -> dict[str, int]:
        """Return the level of the quorum's own feature, which is not in the metadata."""
        return {KRAFT_VERSION: self.kraft_version} if self.kraft_version else {}

    # Files.

    @property
    def state_path(self) -> str:
        return f"{self.node.metadata.log.path}/{STATE_FILE}"

    def load_state(self) -> Election:
        """Return what this node has promised; a missing file means that it has promised nothing.

        It is written again: a process that died while it saved a vote may have left it to be seen, and not synced.
        """
        disk = self.node.disk
        try:
            data = disk.read(self.state_path)
            election = read_election(data.decode())
        except FileNotFoundError:
            return Election()
        except (UnreadableElection, UnicodeDecodeError) as error:
            raise StartError(f"{self.state_path} cannot be read: {error}. A vote may be lost with it.") from None
        disk.write_atomic(self.state_path, data)
        return election

    def save_state(self, election: Election) -> None:
        """Write down what this node promises. If that fails it ends (`or_end`): it could forget it, and vote twice."""
        self.node.disk.write_atomic(self.state_path, election_text(election, self.raft.voters).encode())

    def read_snapshot(self, end_offset: int, epoch: int, position: int, size: int) -> tuple[bytes, int] | None:
        """Return a piece of a snapshot, and how large it is as a whole; None if there is no such snapshot."""
        try:
            opened = self.node.disk.open(f"{self.node.metadata.log.path}/{snapshot_name(end_offset, epoch)}")
        except FileNotFoundError:
            return None
        with closing(opened) as file:
            return file.pread(size, position), file.size()

    def has_snapshot(self, name: str) -> None:
        """A snapshot was written, or came from the leader."""
        self.raft.snapshot = snapshot_id(name)

    def voter_records(self, end_offset: int, wall_ms: int) -> list[Record]:
        """Return the control records that a snapshot has about the voters."""
        return self.raft.snapshot_records(end_offset, wall_ms)

    # Time, and what is sent.

    def next_ms(self) -> float:
        controller = self.node.controller
        register_ms = self.register_ms if self.must_register() else inf
        return min(self.raft.next_ms(), register_ms, inf if controller is None else controller.next_ms())

    def tick(self, now_ms: float) -> None:
        with or_end(self.node, "controller"):
            self.advance(now_ms)

    def advance(self, now_ms: float) -> None:
        for send in self.raft.tick(now_ms, self.node.clock.wall_ms()):
            timeout = self.node.settings["controller.quorum.request.timeout.ms"]
            self.node.ask(
                Peer(*send.to, send.purpose, is_controller=True),
                send.request,
                partial(self.heard, send),
                float(timeout),
            )
        self.settle()
        if self.node.controller is not None:
            self.node.controller.tick(now_ms)
        if self.register_ms <= now_ms and self.must_register():
            self.register()

    def heard(self, send: Send, response: Any) -> None:
        """Take over an answer of another voter."""
        now = self.node.clock.monotonic_ms()
        self.gone.discard(send.to)
        with or_end(self.node, "controller"):
            if isinstance(response, Lost):
                self.lost(send, response, now)
            else:
                snapshot = self.raft.heard(send, response, now, self.node.clock.wall_ms())
                if snapshot is not None:
                    self.node.metadata.install(snapshot.end_offset, snapshot.epoch, bytes(snapshot.data))
            self.settle()

    def lost(self, send: Send, lost: Lost, now_ms: float) -> None:
        self.raft.lost(send, now_ms)
        if lost.is_refused:
            self.gone.add(send.to)
            if send.to == self.raft.leader and self.node.settings[QUICK_FENCING]:
                self.raft.suspect(now_ms)

    def look_around(self) -> None:
        """See which voters are still there. A leader asks them nothing: it hears of them when they fetch."""
        hello = m.ApiVersionsRequest(client_software_name="moldau", client_software_version="1")
        for voter in self.raft.voters.members:
            where = voter.address(self.raft.listener)
            if where is not None and voter.id != self.node.id:
                self.node.ask(Peer(*where, "probe", is_controller=True), hello, partial(self.looked, where))

    def looked(self, where: tuple[str, int], response: Any) -> None:
        is_gone = isinstance(response, Lost) and response.is_refused
        (self.gone.add if is_gone else self.gone.discard)(where)

    def synced(self) -> None:
        """The disk has what was appended."""
        with or_end(self.node, "controller"):
            self.raft.synced(self.node.clock.monotonic_ms())
            self.settle()

    def append(self, items: Sequence[Record], wall_ms: int) -> None:
        """Append records as the leader; raises Refused where this node is not the active controller."""
        self.raft.append(bytes(build(items, partition_leader_epoch=self.raft.epoch)), wall_ms)

    def resign(self) -> None:
        """Hand the lead over before this node stops."""
        self.raft.resign(self.node.clock.monotonic_ms())
        self.tick(self.node.clock.monotonic_ms())

    # Who this controller is, which the active one writes down.

    def must_register(self) -> bool:
        image = self.node.cluster
        known = image.controllers.get(self.node.id)
        is_known = known is not None and known.incarnation == self.incarnation
        return not (self.is_registering or is_known or self.leader is None or image.metadata_version < REGISTERED_SINCE)

    def register(self) -> None:
        """Tell the active controller how this one is reached and what it supports."""
        self.is_registering = True
        listeners = [m.ControllerRegistrationRequest_Listener(*one) for one in self.endpoints]
        features = [m.ControllerRegistrationRequest_Feature(one.name, one.low, one.high) for one in SUPPORTED]
        request = m.ControllerRegistrationRequest(
            self.node.id, self.incarnation, zk_migration_ready=False, listeners=listeners, features=features
        )
        if self.is_active:
            self.node.ask_itself(request, self.registered)
        elif self.leader is not None:
            self.node.ask(Peer(*self.leader, "registration", is_controller=True), request, self.registered)

    def registered(self, response: Any) -> None:
        """What was not taken is told again, unless it comes with the metadata."""
        self.is_registering = False
        self.register_ms = self.node.clock.monotonic_ms() + REGISTER_AGAIN_MS
        if not isinstance(response, Lost) and response.error_code not in (Error.NONE, Error.NOT_CONTROLLER):
            log.warning("the active controller refuses this one", error=Error(response.error_code).name)

    # What others ask.

    def answer(self, request: Any) -> Any:
        """Answer a request of a voter or an observer."""
        clock = self.node.clock
        with or_end(self.node, "controller"):
            response = ANSWERS[request.SCHEMA.key](self.raft, request, clock.monotonic_ms(), clock.wall_ms())
            self.moved()
            return response

    def moved(self) -> None:
        """Go on after somebody has asked something of this controller: it may have to ask others."""
        self.settle()
        self.node.on_due()

    def fetch(self, request: Any) -> Any:
        """Answer a fetch of the metadata log; it waits until there is something to tell."""
        now = self.node.clock.monotonic_ms()
        outcome = self.raft.fetch(request, now, is_new=True, is_last=request.max_wait_ms <= 0)
        self.settle()
        if outcome is not None:
            return outcome
        return Wait(now + request.max_wait_ms, partial(self.fetch_again, request), (self,))

    async def change_voters(self, request: Any) -> tuple[Error, str | None]:
        """Add or remove a voter; returns what came of it."""
        node = self.node
        begin = self.raft.add_voter if request.SCHEMA.key == ADD else self.raft.remove_voter
        change = begin(request, node.clock.monotonic_ms(), node.clock.wall_ms())
        self.moved()
        while change.outcome is None:
            await node.after(LOOK_MS)
        return change.outcome

    def set_version(self, level: int, *, validate_only: bool) -> None:
        """Change kraft.version: from 1 on the voters stand in the log, and can be changed. Raises Refused."""
        now = self.kraft_version
        if level == now:
            return
        if level != DYNAMIC:
            problem = f"kraft.version cannot be set to level {level}: it is {now}, and never goes back."
            raise Refused(Error.INVALID_UPDATE_VERSION, problem)
        if not validate_only:
            if error := self.raft.upgrade(self.node.clock.monotonic_ms(), self.node.clock.wall_ms()):
                problem = "kraft.version cannot be raised: not every voter has said that it can."
                raise Refused(error, problem)
            self.moved()

    def describe(self) -> Any:
        return self.raft.describe(self.node.clock.monotonic_ms(), self.node.clock.wall_ms())

    def fetch_again(self, request: Any, expired: bool) -> Any:
        return self.raft.fetch(request, self.node.clock.monotonic_ms(), is_new=False, is_last=expired)

    # What comes of it.

    def settle(self) -> None:
        """Act on whatever has changed: sync what was appended, make true what is committed, lead or stop leading."""
        node, raft, own = self.node, self.raft, self.node.metadata.log
        seen = raft.role, raft.epoch, raft.leader_id, own.end_offset, own.high_watermark
        if seen == self.seen:
            return
        before, self.seen = self.seen, seen
        if own.end_offset > own.recovery_point:
            node.replicas.flush(node.metadata.home)
        if before[:3] != seen[:3]:
            log.info("quorum", role=raft.role.value, epoch=raft.epoch, leader=raft.leader_id)
        if node.controller is not None and (not raft.is_leader or raft.epoch != node.controller.epoch):
            node.controller = None
            node.metadata.home.abandon(Error.NOT_CONTROLLER)
            node.metadata.forget_plans()
        node.metadata.catch_up()
        if raft.is_leader and node.controller is None and node.metadata.applied > raft.epoch_start:
            node.controller = Controller(node, raft.epoch)
            node.controller.begin()
        node.metadata.home.settle()
        node.signal(self)
        node.metadata_moved(node.clock.monotonic_ms())


ANSWERS: dict[int, Callable[[Raft, Any, float, int], Any]] = {
    52: lambda raft, request, now_ms, _: raft.vote(request, now_ms),
    53: lambda raft, request, now_ms, _: raft.begin_quorum_epoch(request, now_ms),
    54: lambda raft, request, now_ms, _: raft.end_quorum_epoch(request, now_ms),
    59: lambda raft, request, now_ms, _: raft.fetch_snapshot(request, now_ms),
    82: Raft.update_voter,
}


def limits(settings: Any) -> Limits:
    """Return the settings of the quorum."""
    return Limits(
        retry_backoff_ms=settings[QUORUM + "retry.backoff.ms"],
        fetch_max_bytes=settings[QUORUM + "fetch.max.bytes"],
        snapshot_max_bytes=settings[QUORUM + "fetch.snapshot.max.bytes"],
        election_timeout_ms=settings[QUORUM + "election.timeout.ms"],
        election_backoff_max_ms=settings[QUORUM + "election.backoff.max.ms"],
        fetch_timeout_ms=settings[QUORUM + "fetch.timeout.ms"],
        request_timeout_ms=settings[QUORUM + "request.timeout.ms"],
    )
