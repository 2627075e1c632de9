"""One life of a node: from the start of its process to its stop, or to its death. It does what the rim does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.broker.node import Node
from moldau.cluster.lifecycle import State
from moldau.log.flush import Flush
from moldau.machines.metadata.cluster import RECOVERING, Endpoint
from tests.cluster.simulation.fabric import CLIENT_PORT, CONTROLLER_PORT, LISTENERS, Link, host_name
from tests.cluster.simulation.faults import tempt
from tests.cluster.simulation.lines import Lines
from tests.simulation.background import SlowThread
from tests.simulation.disk import Crash, SimDisk
from tests.simulation.events import EPOCH_MS, LOOK_MS, Clock

if TYPE_CHECKING:
    from tests.cluster.simulation.host import Host

TICK_LIMIT_MS = 100.0
HAND_OVER_MS = 3000.0
RESIGN_MS = 1000.0
LOOK_AGAIN_MS = 20.0

Call = Callable[[], None]


class HostClock:
    """The clock of one machine: it runs a little too fast or too slow, and its wall clock is wrong."""

    def __init__(self, clock: Clock, rate: float, skew_ms: int) -> None:
        self.clock = clock
        self.rate = rate
        self.skew_ms = skew_ms

    def wall_ms(self) -> int:
        return EPOCH_MS + self.skew_ms + int(self.clock.now)

    def monotonic_ms(self) -> float:
        self.clock.now += LOOK_MS
        return self.clock.now * self.rate


class OwnEvents:
    """What a process does later: nothing of it happens while it is paused, or after its death."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.events = process.world.events

    def after(self, delay_ms: float, call: Call) -> None:
        self.events.after(delay_ms, lambda: self.process.run(call))

    def at(self, time_ms: float, call: Call) -> None:
        self.events.at(time_ms, lambda: self.process.run(call))


class Process:
    """The node, and what the simulator knows of this life of it."""

    running: Process | None = None  # whose step it is, for those who read the logs

    def __init__(self, host: Host) -> None:
        self.host = host
        self.world = host.world
        self.place = host.place
        # What the background thread wants of its world.
        self.random, self.plan, self.counts = host.world.random, host.world.plan, host.world.counts
        self.clock = host.world.clock
        self.events = OwnEvents(self)
        self.is_gone = self.is_stopping = False
        self.accepts = False  # connections of clients and brokers; those of controllers always
        self.is_open = False  # nobody else can connect before this broker is registered
        self.links: list[Link] = []
        self.ready: list[Link] = []
        self.tick_at = float("inf")
        self.seen: tuple[Any, ...] = ()  # what the last step has left, for those who wait for a change
        self.disk = SimDisk(host.machine)
        self.background = SlowThread(self)
        self.lines = Lines(self)
        self.node = Node(host.settings, self.disk, host.clock, self.random, self.background, self.lines)
        self.node.on_due = lambda: self.events.after(0, self.heard)
        self.node.on_fatal = self.fail
        if self.plan.is_unclean:
            self.watch_elections()

    def __str__(self) -> str:
        return str(self.host)

    def run(self, call: Call) -> None:
        """Do something in this process: later if it is paused, never if it is gone."""
        if self.is_gone:
            return
        if self.host.is_paused:
            self.host.deferred.append((self, call))
            return
        Process.running = self
        try:
            call()
            if not self.is_gone:
                self.world.checker.look(self)
                if self.plan.spite:
                    tempt(self)
        except Crash:
            if not self.is_gone:
                self.host.crashed()
        Process.running = None

    def fail(self, reason: str) -> None:
        """The node ends its process."""
        self.host.give_up(reason)
        raise Crash

    def watch_elections(self) -> None:
        """Let the judge know of an unclean election before this node acts on it."""
        node, checker = self.node, self.world.checker
        apply, replace_image = node.apply, node.replace_image

        def watched_apply(records: Any) -> None:
            for record in records:
                if record.SCHEMA.name == "PartitionChangeRecord" and record.leader_recovery_state == RECOVERING:
                    checker.tear(bytes(record.topic_id), record.partition_id)
            apply(records)

        def watched_replace(image: Any) -> None:
            for topic in image.topics.values():
                for part in topic.partitions.values():
                    if part.recovery_state == RECOVERING:
                        checker.tear(topic.id, part.index)
            replace_image(image)

        node.apply, node.replace_image = watched_apply, watched_replace

    def start(self) -> None:
        """Start the node; raises StartError."""
        name = host_name(self.place)
        clients = Endpoint(LISTENERS[CLIENT_PORT], name, CLIENT_PORT, 0)
        controllers = Endpoint(LISTENERS[CONTROLLER_PORT], name, CONTROLLER_PORT, 0)
        self.node.start((clients,) * self.host.serves, (controllers,) * self.host.controls)
        if self.node.membership is not None:
            self.node.membership.on_change = self.changed
        self.tick_at = self.clock.now
        self.tick()

    def changed(self) -> None:
        member = self.node.membership
        assert member is not None
        if member.problem is not None:
            self.world.gave_up(self, member.problem)
        self.is_open |= member.state is not State.REGISTERING
        if member.state is State.RUNNING and not self.accepts:
            self.accepts = True
            self.ready.extend(self.links)

    # Time, and turns.

    def tick(self) -> None:
        if self.clock.now >= self.tick_at and not self.is_gone:
            self.tick_at = float("inf")
            delay_ms = self.node.tick()
            self.settle()
            self.wake_in(min(delay_ms, TICK_LIMIT_MS))

    def wake_by(self, deadline_ms: float) -> None:
        """The node wants a tick by this time of its clock."""
        self.wake_in(deadline_ms - self.node.clock.monotonic_ms())

    def wake_in(self, delay_ms: float) -> None:
        at = self.clock.now + max(0.01, min(delay_ms, TICK_LIMIT_MS) / self.host.clock.rate)
        if at < self.tick_at:
            self.tick_at = at
            self.events.at(at, self.tick)

    def settle(self, first: Link | None = None) -> None:
        """Go on with a link, and with all that the node called ready meanwhile."""
        if first is not None:
            self.ready.append(first)
        while self.ready and not self.is_gone:
            self.ready.pop(0).go_on()

    def heard(self) -> None:
        """Go on after another node or the disk has answered: something may be due earlier than before."""
        self.settle()
        if not self.is_gone:
            self.wake_in(self.node.idle_ms())

    def sync_fails(self, flush: Flush) -> bool:
        return False

    def tempt_power(self, answered_ms: float) -> None:
        """A job of the background thread is done: see SlowThread."""
        self.heard()

    # The end.

    def leave(self) -> None:
        """Stop in order: hand over what this node leads, then the lead of the quorum, and close everything."""
        member = self.node.membership
        self.is_stopping = True
        if member is not None:
            member.leave()
            self.heard()
        self.wait_for(lambda: member is None or member.state is State.STOPPED, HAND_OVER_MS, self.resign)

    def resign(self) -> None:
        quorum = self.node.quorum
        assert quorum is not None
        if quorum.is_voter:
            quorum.resign()
        self.wait_for(lambda: not quorum.is_voter or quorum.has_left, RESIGN_MS, self.stop_when_idle)

    def wait_for(self, condition: Callable[[], bool], limit_ms: float, then: Call) -> None:
        """Go on when something has happened, or when it has not in time."""
        deadline_ms = self.clock.now + limit_ms

        def look() -> None:
            if condition() or self.clock.now >= deadline_ms:
                then()
            else:
                self.events.after(LOOK_AGAIN_MS, look)

        look()

    def stop_when_idle(self) -> None:
        if self.background.jobs:
            self.events.after(LOOK_AGAIN_MS, self.stop_when_idle)
            return
        for link in self.links:
            link.connection.closing = "the broker stops"
        self.node.stop()
        self.settle()
        self.background.finish()
        self.host.stopped()

    def end(self, loud: bool) -> None:
        """Nothing of this process happens any more."""
        self.is_gone = self.background.gone = True
        self.disk.dead = True
        for link in list(self.links):
            link.forget_process(loud)
        for link in self.lines.links.values():
            if link is not None and loud:
                link.close()
