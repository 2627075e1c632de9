"""One world: a machine, a node on it, clients around it, and the faults that befall them.

Everything random comes from one generator, everything happens by `events`: a seed is a whole history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from moldau.broker.node import Node
from moldau.broker.storage import StartError
from moldau.machines.cluster import Endpoint
from moldau.settings import Settings
from moldau.wire.errors import Error
from tests.simulation.audit import Auditor
from tests.simulation.background import SlowThread
from tests.simulation.disk import Crash, Machine, SimDisk
from tests.simulation.events import Clock, Events
from tests.simulation.ledger import Ledger
from tests.simulation.network import Link
from tests.simulation.plan import DIRECTORIES, Plan
from tests.simulation.producers import Producer
from tests.simulation.properties import Broken, Property
from tests.simulation.topics import Topic

ENDPOINT = Endpoint("PLAINTEXT", "127.0.0.1", 9092, 0)


class World:
    """The state of everything. `faults.py` and the clients act on it."""

    def __init__(self, seed: int, verbose: Callable[[str], None] | None = None) -> None:
        self.random = Random(seed)
        self.counts: Counter[str] = Counter()
        self.clock = Clock()
        self.events = Events(self.clock)
        self.events.verbose = verbose
        self.plan = Plan.of(self.random)
        self.machine = Machine(self.random, self.clock.wall_ms, self.counts)
        self.topics: dict[str, Topic] = {}
        self.producers: list[Producer] = []
        self.producer_ids: set[int] = set()
        self.links: list[Link] = []
        self.ready: list[Link] = []
        self.link_serial = 0
        self.up = self.ending = False
        self.power_lost_ms = 0.0
        self.tick_at = 0.0
        self.room_since_ms = 0.0
        self.prepare_media()
        self.boot()

    def prepare_media(self) -> None:
        """The data directories are there from the start, as those of a volume are."""
        disk = SimDisk(self.machine)
        for path in DIRECTORIES:
            disk.mkdir(path)
        self.machine.root.sync()

    # The node's life.

    def boot(self) -> None:
        """Build a node over the media; `start` lets it run."""
        self.disk = SimDisk(self.machine)
        self.background = SlowThread(self)
        settings = Settings.load(self.plan.settings)
        self.node = Node(settings, self.disk, self.clock, self.random, self.background)

    def start(self) -> None:
        """Start the node, and audit what it found. Either may be cut short by the next crash."""
        self.events.note("start")
        try:
            self.node.start((ENDPOINT,))
        except StartError as error:
            self.refused_to_start(str(error))
            return
        self.up = True
        self.counts["starts"] += 1
        self.tick_at = self.clock.now
        self.auditor = Auditor(self)
        for ledger in self.ledgers():
            self.auditor.audit(ledger)
        self.tick()

    def refused_to_start(self, reason: str) -> None:
        raise Broken(Property.COMES_UP, reason)

    def tick(self) -> None:
        if self.up and self.clock.now >= self.tick_at:
            delay_ms = self.node.tick()
            self.tick_at = float("inf")
            self.settle()
            self.wake_by(self.clock.now + delay_ms)

    def wake_by(self, deadline_ms: float) -> None:
        """The node wants a tick by then."""
        if deadline_ms < self.tick_at:
            self.tick_at = max(deadline_ms, self.clock.now + 0.01)
            self.events.at(self.tick_at, self.tick)

    def stop(self) -> None:
        """A clean stop."""
        self.events.note("stop")
        for link in self.links:
            link.connection.closing = "the broker stops"
        self.node.stop()
        self.settle()
        self.background.finish()
        self.counts["clean stops"] += 1
        for ledger in self.ledgers():
            if not ledger.faulty and not ledger.unsure:
                ledger.safe = ledger.high
        self.go_down()

    def die(self, power: bool) -> None:
        """The process is gone; with the power, so is what was not synced."""
        self.events.note("power lost" if power else "process killed")
        self.disk.dead = True
        self.machine.fuse = None
        self.counts["machine crashes" if power else "process crashes"] += 1
        if power:
            self.machine.lose_power()
            self.power_lost_ms = self.clock.now
            for ledger in self.ledgers():
                ledger.unsure = True
        self.go_down()

    def go_down(self) -> None:
        self.up = False
        self.background.gone = True
        links, self.links = self.links, []
        self.ready.clear()
        for link in links:
            link.lose_node()
        for producer in self.producers:
            producer.node_restarted()
        self.boot()
        self.events.after(self.random.uniform(1, 60), self.start)

    def crashed(self) -> None:
        """The fuse burnt down within a step of the disk."""
        self.counts["crashes within a disk operation"] += 1
        self.die(self.random.random() < self.plan.power)

    # Clients.

    def ledgers(self) -> list[Ledger]:
        return [ledger for topic in self.topics.values() for ledger in topic.ledgers]

    def delay(self) -> float:
        return self.random.uniform(0.05, self.plan.latency_ms)

    def connect(self, client: str) -> Link | None:
        if not self.up:
            return None
        self.link_serial += 1
        link = Link(self, client, self.link_serial)
        self.links.append(link)
        return link

    def settle(self, first: Link | None = None) -> None:
        """Go on with a link, and with all that the node called ready meanwhile."""
        if first is not None:
            self.ready.append(first)
        while self.ready:
            self.ready.pop(0).go_on()

    def note_producer_id(self, producer_id: int) -> None:
        if producer_id in self.producer_ids:
            raise Broken(Property.METADATA, f"producer id {producer_id} was given out twice")
        self.producer_ids.add(producer_id)

    def check_refusal(self, ledger: Ledger, error: Error) -> None:
        """Whether a partition has a reason to refuse."""
        if error is Error.KAFKA_STORAGE_ERROR:
            full = self.machine.full or self.clock.now - self.room_since_ms < 4 * self.plan.latency_ms
            fine = ledger.faulty or ledger.rotten or full
        elif error is Error.REQUEST_TIMED_OUT:
            fine = True
        else:
            fine = self.topics.get(ledger.topic.name) is not ledger.topic
        if not fine:
            raise Broken(Property.SOUND_STAYS_ONLINE, f"{ledger}: {error.name}")

    # The whole.

    def run(self) -> None:
        """Let the world be until its plan is over."""
        until = self.plan.length_ms
        self.events.after(0, self.start)
        while True:
            try:
                self.events.run(until)
                return
            except Crash:
                self.crashed()
