"""One world: a machine, a node on it, clients around it, and the faults that befall them.

Everything random comes from one generator, everything happens by `events`: a seed is a whole history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from moldau.broker.metadata import TOPIC as METADATA_TOPIC
from moldau.broker.node import Node
from moldau.broker.storage import StartError
from moldau.log.flush import Flush
from moldau.log.log import Log
from moldau.machines.metadata.cluster import Endpoint
from moldau.settings import Settings
from moldau.wire.errors import Error
from tests.simulation.admin import Admin
from tests.simulation.audit import Auditor
from tests.simulation.background import SlowThread
from tests.simulation.books import Books, check_replay, lived
from tests.simulation.copies.book import Book
from tests.simulation.copies.output import Side
from tests.simulation.crowd import Crowd
from tests.simulation.disk import Crash, Machine, SimDisk
from tests.simulation.events import Clock, Events
from tests.simulation.groups.roster import Roster
from tests.simulation.ledger import Ledger
from tests.simulation.network import Link
from tests.simulation.peers import SimPeers
from tests.simulation.plan import DIRECTORIES, MADE_AGAIN_MS, Plan
from tests.simulation.producers import Producer
from tests.simulation.properties import Broken, Property
from tests.simulation.shares.pool import Pool
from tests.simulation.topics import Topic

STRIKE = 0.1  # how often an answer is followed by lost power
SETTING_UP_MS = 20  # before that no fault befalls the world
ENDPOINT = Endpoint("PLAINTEXT", "127.0.0.1", 9092, 0)


class World:
    """The state of everything. `faults.py` and the clients act on it."""

    def __init__(self, seed: int, verbose: Callable[[str], None] | None = None, synced: bool = False) -> None:
        self.random = Random(seed)
        self.counts: Counter[str] = Counter()
        self.clock = Clock()
        self.events = Events(self.clock)
        self.events.verbose = verbose
        self.plan = Plan.of(self.random, synced)
        self.settings = Settings.load(self.plan.settings)
        self.machine = Machine(self.random, self.clock.wall_ms, self.counts)
        self.topics: dict[str, Topic] = {}
        self.producers: list[Producer] = []
        self.producer_ids: set[int] = set()
        self.links: list[Link] = []
        self.ready: list[Link] = []
        self.rosters: list[Roster] = []
        self.pools: list[Pool] = []
        self.sides: list[Side] = []
        self.book = Book()
        self.lived: dict[tuple[str, int], Books] = {}
        self.lost_power = self.draining = False
        self.link_serial = 0
        self.up = self.ending = self.over = False
        self.metadata_rotten = self.was_full = self.metadata_failed = False
        self.down_ms = self.uptime_ms = 0.0  # when the node went down last, and how long it had been up
        self.tick_at = 0.0
        self.room_since_ms = self.started_ms = 0.0
        self.prepare_media()
        self.boot()
        self.admin = Admin(self)
        self.crowd = Crowd(self)
        self.events.after(0, self.start)

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
        self.peers = SimPeers(self)
        self.node = Node(self.settings, self.disk, self.clock, self.random, self.background, self.peers)

    def start(self) -> None:
        """Start the node, and audit what it found. Either may be cut short by the next crash."""
        self.events.note("start")
        try:
            self.node.start((ENDPOINT,))
        except StartError as error:
            self.refused_to_start(str(error))
            return
        self.up = True
        self.metadata_failed = False
        self.note_failures(restarted=True)
        self.was_full = self.machine.full
        self.counts["starts"] += 1
        self.tick_at = self.started_ms = self.clock.now
        self.auditor = Auditor(self)
        self.auditor.audit_metadata()
        for ledger in self.ledgers():
            self.auditor.audit(ledger)
        check_replay(self, self.lived)
        self.auditor.audit_groups()
        self.auditor.audit_copies()
        self.tick()

    def refused_to_start(self, reason: str) -> None:
        """Only damaged metadata, or a disk without room, is a reason."""
        self.events.note(f"refused to start: {reason}")
        self.counts["starts refused"] += 1
        if self.metadata_rotten:
            self.over = True
        elif self.machine.full:
            self.go_down()
        else:
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
        self.lived = lived(self)
        for link in self.links:
            link.connection.closing = "the broker stops"
        self.node.stop()
        self.settle()
        self.background.finish()
        self.counts["clean stops"] += 1
        for ledger in self.ledgers():
            if not (ledger.faulty or ledger.rotten or ledger.index_rotten or ledger.unsure or self.was_full):
                ledger.safe = ledger.high
        self.forget_starts()
        self.go_down()

    def die(self, power: bool, torn: bool = False) -> None:
        """The process is gone; with the power, so is what was not synced."""
        self.events.note("power lost" if power else "process killed")
        self.disk.dead = True
        self.machine.fuse = None
        self.counts["machine crashes" if power else "process crashes"] += 1
        self.lived = {} if power else lived(self, torn)
        if power:
            self.machine.lose_power()
            self.lose_promises()
        for ledger in self.ledgers():
            ledger.unsure = ledger.unsure or (power and not (self.plan.synced and ledger.topic.lasting))
            ledger.forgetful = True
            if ledger.faulty:
                ledger.acks.clear()  # flush.ms could not be kept
        self.forget_starts()
        self.go_down()

    def lose_promises(self) -> None:
        """What groups and transactions were told is not synced, mostly: nothing of it is promised any more."""
        if self.plan.synced:
            self.counts["machine crashes that took nothing"] += 1
            return
        self.lost_power = True
        for group in self.groups():
            group.power_lost()
        for side in self.sides:
            side.forget()

    def forget_starts(self) -> None:
        """On a full disk it could not be written down where the logs begin."""
        if self.was_full:
            for ledger in self.ledgers():
                ledger.start = 0

    def go_down(self) -> None:
        if self.up:
            self.down_ms, self.uptime_ms = self.clock.now, self.clock.now - self.started_ms
        self.up = False
        stays = DIRECTORIES[1] in self.machine.broken and self.random.random() < 0.3
        self.machine.broken = {DIRECTORIES[1]} if stays else set()
        self.background.gone = self.peers.gone = True
        links, self.links = self.links, []
        self.ready.clear()
        for link in links:
            link.lose_node()
        for producer in self.producers:
            producer.node_restarted()
        self.boot()
        self.events.after(self.random.uniform(1, 60), self.start)

    def note_failures(self, restarted: bool = False) -> None:
        """Whatever lies below a failing folder may be offline until the next start."""
        for ledger in self.ledgers():
            homes = [path for path in DIRECTORIES if self.machine.find(f"{path}/{ledger}")] or DIRECTORIES
            failing = any(self.machine.fails(f"{path}/{ledger}") for path in homes)
            ledger.faulty = failing or (ledger.faulty and not restarted)

    def sync_fails(self, flush: Flush) -> bool:
        """Whether a background sync fails: its log is offline until the next start."""
        if self.ending or self.clock.now < SETTING_UP_MS or self.random.random() >= self.plan.sync_failures:
            return False
        assert isinstance(flush.log, Log)
        name = f"{flush.log.topic}-{flush.log.partition}"
        self.events.note(f"a sync of {name} fails")
        self.counts["failed syncs"] += 1
        self.metadata_failed = self.metadata_failed or flush.log.topic == METADATA_TOPIC
        for ledger in self.ledgers():
            ledger.faulty = ledger.faulty or str(ledger) == name
        return True

    def crashed(self) -> None:
        """The fuse burnt down within a step of the disk."""
        self.counts["crashes within a disk operation"] += 1
        self.die(self.random.random() < self.plan.power, torn=True)

    # Clients.

    def ledgers(self) -> list[Ledger]:
        return [ledger for topic in self.topics.values() for ledger in topic.ledgers]

    def groups(self) -> list[Roster | Pool]:
        return [*self.rosters, *self.pools]

    def delay(self) -> float:
        return self.random.uniform(0.05, self.plan.latency_ms)

    def ghost_ms(self) -> float:
        """So long a request of a connection that is lost may still arrive, and be carried out."""
        return 4 * self.plan.latency_ms + (10 * self.plan.sync_ms if self.plan.synced else 0)

    def tempt_fate(self) -> None:
        """Now and then the node dies within the next steps of the disk."""
        if self.random.random() < self.plan.spite and not self.ending:
            self.machine.fuse = self.random.randrange(1, 8)

    def tempt_power(self, answered_ms: float) -> None:
        """Sometimes the power goes right after an answer: what was told before it was synced is lost then."""
        plan, random = self.plan, self.random
        if plan.strikes and self.background.jobs and not self.ending and random.random() < STRIKE:
            plan.strikes -= 1
            node = self.node
            self.events.at(answered_ms + 0.01, lambda: self.die(power=True) if self.up and self.node is node else None)

    def coordinators_may_fail(self) -> bool:
        """Whether anything in this world is a reason for a coordinator to be away."""
        faults = self.plan.fillings or self.plan.failures or self.plan.sync_failures or self.lost_power
        return bool(faults or self.counts["clean stops"])

    def check_output(self, side: Side, error: Error) -> None:
        if not self.coordinators_may_fail():
            raise Broken(Property.SOUND_STAYS_ONLINE, f"{side}: {error.name}")

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

    def was_unmade(self, ledger: Ledger) -> bool:
        """Whether the partition could not be made, and its time to be tried again has not come."""
        return self.storage_may_fail() or self.clock.now - max(self.room_since_ms, self.started_ms) < MADE_AGAIN_MS

    def forget_topic(self, topic: Topic) -> None:
        if self.topics.get(topic.name) is topic:
            del self.topics[topic.name]
        for producer in self.producers:
            for ledger in topic.ledgers:
                producer.forget(ledger)

    def has_no_room(self) -> bool:
        """Now, or when an answer that arrives now was given."""
        return self.machine.full or self.clock.now - self.room_since_ms < 30 * self.plan.latency_ms

    def storage_may_fail(self) -> bool:
        """Whether a change of the metadata may be refused."""
        return self.has_no_room() or bool(self.machine.broken) or self.metadata_failed

    def check_refusal(self, ledger: Ledger, error: Error) -> None:
        """Whether a partition has a reason to refuse."""
        if error is Error.KAFKA_STORAGE_ERROR:
            fine = ledger.topic.doomed or ledger.faulty or ledger.rotten or ledger.index_rotten or self.has_no_room()
        elif error is Error.REQUEST_TIMED_OUT:
            fine = True
        else:
            unborn = ledger.high == 0 and self.was_unmade(ledger)
            fine = ledger.topic.doomed or unborn
        if not fine:
            raise Broken(Property.SOUND_STAYS_ONLINE, f"{ledger}: {error.name}")

    # The whole.

    def run_for(self, duration_ms: float) -> None:
        """Let things happen for a while; a crash within a step of the disk is one of them."""
        until = self.clock.now + duration_ms
        while True:
            try:
                self.events.run(until)
                return
            except Crash:
                self.crashed()

    def calm_down(self) -> None:
        """No more faults, no more new requests."""
        self.events.note("all faults end")
        self.ending = True
        self.machine.full = False
        self.machine.fuse = None
        self.machine.broken.clear()
        self.room_since_ms = self.clock.now
