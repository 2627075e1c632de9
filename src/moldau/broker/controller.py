"""The active controller: what brokers tell it and what is due by the clock becomes changes of the metadata.

`cluster/controller` decides; here its decisions are proposed, and answered once they are committed. A controller is
made when this node leads the quorum and has seen all that was committed before; with the lead it ends. What it knows
besides the metadata (who was heard when) begins anew with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.api import Answer, Handler
from moldau.broker.connection import Connection
from moldau.broker.forwarding import CONFIGS, answered_here, refusal
from moldau.broker.metadata import Proposal
from moldau.broker.outbox import QUICK_FENCING, Lost, Peer
from moldau.broker.peer_security import reached_by
from moldau.broker.steps import start
from moldau.broker.timers import CONTROLLER_TIMERS, interval_ms
from moldau.cluster.controller.elections import elect_missing_leaders
from moldau.cluster.controller.heartbeats import Heartbeats, fence
from moldau.cluster.controller.policy import Policy
from moldau.cluster.controller.preferred import elect_missing, give_back
from moldau.cluster.controller.result import Result
from moldau.machines.metadata.acls import CLUSTER_ACTION
from moldau.machines.metadata.cluster import Broker, Cluster
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

Decision = Callable[[Proposal, float], Result]
# Requests that every controller answers, whether it is the active one or not.
ANYBODY = frozenset({1, 17, 18, 29, 32, 36, 52, 53, 54, 55, 59, 60, 80, 81, 82})
FETCH = 1
PROBE_MS = 2000.0
# A process that ends closes its sockets one after the other: for a while others may end before its listener does.
PROBES_AFTER_MS = (0, 5, 20, 80, 320)


class Controller:
    """The active controller of one epoch of the quorum."""

    def __init__(self, node: Node, epoch: int) -> None:
        self.node = node
        self.epoch = epoch
        self.heartbeats = Heartbeats(node.settings["broker.session.timeout.ms"])
        now = node.clock.monotonic_ms()
        self.due = [now, *(now + interval_ms(node, timer) for timer in CONTROLLER_TIMERS[1:])]
        self.end_offset = -1  # of the log when it was last looked at
        self.heard_by: dict[int, int] = {}  # which broker uses which connection
        self.probes: Counter[int] = Counter()  # under way, by broker

    def begin(self) -> None:
        """Set up a cluster that is new; in one that is not, everybody is thought to be alive."""
        now, metadata = self.node.clock.monotonic_ms(), self.node.metadata
        log.info("this is the active controller", epoch=self.epoch)
        self.heartbeats.begin(metadata.cluster, now)
        self.replace_myself()
        proposal = metadata.propose()
        if not metadata.cluster.features:
            proposal.add(metadata.first_records())
        proposal.add(elect_missing_leaders(proposal.image, proposal.policy))
        self.write(proposal)
        for broker in metadata.cluster.live_brokers():
            self.look_for(broker.id)

    # Decisions.

    async def decide(self, decision: Decision) -> Any:
        """Propose what is decided, and return the answer when it is committed."""
        proposal = self.node.metadata.propose()
        result = decision(proposal, self.node.clock.monotonic_ms())
        proposal.add(result.records)
        if error := await proposal.commit():
            result.response.error_code = error
        return result.response

    def write(self, proposal: Proposal) -> None:
        """Write what nobody has asked for; if it is not committed, another controller decides anew."""
        if proposal.records:
            start(self.node, settled(proposal))

    def change(self, records: Callable[[Cluster, Policy], Iterable[Any]]) -> None:
        """Propose and write the records of a decision that the clock has asked for."""
        proposal = self.node.metadata.propose()
        proposal.add(list(records(proposal.image, proposal.policy)))
        self.write(proposal)

    # Time.

    def next_ms(self) -> float:
        return min(self.heartbeats.next_ms(), *self.due)

    def tick(self, now_ms: float) -> None:
        for broker in self.heartbeats.stale(now_ms):
            self.fence(broker, "it was not heard in time")
        for number, timer in enumerate(CONTROLLER_TIMERS):
            if self.due[number] <= now_ms and self.node.controller is self:
                self.due[number] = now_ms + interval_ms(self.node, timer)
                timer.run(self.node)

    def fence(self, broker: int, reason: str) -> None:
        """Take a broker out, and elect others in its place."""
        known = self.node.metadata.planned.brokers.get(broker)
        if known is not None and not known.fenced:
            log.warning("a broker is fenced", broker=broker, reason=reason)
            self.change(lambda image, policy: fence(image, broker, policy))

    def let_go(self, broker: int) -> None:
        """A broker's process ends, or has ended: its next one need not wait for the end of its session."""
        if self.node.settings[QUICK_FENCING]:
            self.heartbeats.forget(broker)

    # Brokers that are gone. One whose connection breaks, and whose listener refuses another, is not waited for.

    def heard(self, broker: int, connection: Connection) -> None:
        """A broker uses this connection: for its heartbeats, or for its fetches, which come sooner."""
        self.heard_by[connection.id] = broker

    def disconnected(self, connection: Connection) -> None:
        broker = self.heard_by.pop(connection.id, None)
        if broker is not None:
            self.look_for(broker)

    def look_for(self, broker: int) -> None:
        """See whether a broker's process is still there. If it is not, the next one need not wait for its session."""
        known = self.node.cluster.brokers.get(broker)
        if known is not None and broker != self.node.id and self.node.settings[QUICK_FENCING]:
            start(self.node, self.look(known))

    def replace_myself(self) -> None:
        """The process that was this node before is gone, if the metadata still has it: this one has its directories."""
        member, known = self.node.membership, self.node.cluster.brokers.get(self.node.id)
        if member is not None and known is not None and known.incarnation != member.incarnation:
            self.let_go(known.id)

    def has_successor(self, broker: int) -> None:
        """Another process wants to be this broker: see whether the one before is still there."""
        if not self.probes[broker]:
            self.look_for(broker)

    async def look(self, known: Broker) -> None:
        self.probes[known.id] += 1
        try:
            await self.probe(known)
        finally:
            self.probes[known.id] -= 1

    async def probe(self, known: Broker) -> None:
        """Connect until somebody answers or nobody listens: a connection that breaks proves neither."""
        node, reached = self.node, reached_by(self.node.settings, is_controller=False)[0]
        endpoint = next((one for one in known.endpoints if one.listener == reached), known.endpoints[0])
        hello = m.ApiVersionsRequest(client_software_name="moldau", client_software_version="1")
        for pause_ms in PROBES_AFTER_MS:
            if pause_ms:
                await node.after(pause_ms)
            response = await node.call(Peer(endpoint.host, endpoint.port, "probe"), hello, PROBE_MS)
            now = node.cluster.brokers.get(known.id)
            is_same = node.controller is self and now is not None and now.epoch == known.epoch
            if not is_same or not isinstance(response, Lost):
                return
            if response.is_refused:
                self.let_go(known.id)
                self.fence(known.id, "its process is gone")
                return

    # What is done again and again.

    def beat(self) -> None:
        """Write an empty record when nothing else was written: whoever follows sees that the log is alive."""
        if self.node.metadata.end_offset == self.end_offset:
            self.change(lambda image, policy: [m.NoOpRecord()])
        self.end_offset = self.node.metadata.end_offset

    def balance(self) -> None:
        """Give partitions back to their preferred leaders."""
        if self.node.settings["auto.leader.rebalance.enable"]:
            self.change(give_back)

    def help_out(self) -> None:
        """Elect leaders where there are none."""
        self.change(elect_missing)


async def settled(proposal: Proposal) -> None:
    if (error := await proposal.commit()) and error is not Error.NOT_CONTROLLER:
        log.error("a decision was not committed", error=error.name)


def controlling(key: int, handle: Handler) -> Handler:
    """Return who answers a request on a listener of the controller."""
    if key == FETCH:
        return fetch_metadata
    if key in ANYBODY:
        return handle

    def answer(node: Node, connection: Connection, request: Any, version: int) -> Answer:
        if node.controller is not None:
            return handle(node, connection, request, version)
        here = answered_here(node, connection, request) if key in CONFIGS else None
        return here or refusal(request, version, Error.NOT_CONTROLLER)

    return answer


def fetch_metadata(node: Node, connection: Connection, request: Any, version: int) -> Answer:
    from moldau.broker.api.fetch import replica_of
    from moldau.broker.api.quorum import quorum_of

    if not node.may(connection, CLUSTER_ACTION):
        return refusal(request, version, Error.CLUSTER_AUTHORIZATION_FAILED)
    replica = replica_of(request)  # none if a client reads the log
    if node.controller is not None and replica is not None:
        node.controller.heard(replica[0], connection)
    return quorum_of(node).fetch(request)
