"""A world: three to five machines with a production node on each, a network, clients, and the faults that befall them.

Everything random comes from one generator and everything happens by `events`: a seed is a whole history. The code of a
node runs in the steps of its `Process` only; clients and the network know no more of it than its frames.

- host.py, process.py: a machine, and one life of the node on it. fabric.py, lines.py: the network.
- producers.py, consumers.py, groups.py, transactions.py, admin.py: clients, which speak the protocol (callers.py).
- ledger.py, checker.py: what was seen and promised, and the judge. properties.py: what must hold.
- plan.py, faults.py: what a seed chooses. finale.py: faults end, and all must be well again. run.py: a whole seed.
- plants.py: bugs that are planted, and the seeds that find them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from moldau.settings import Settings
from tests.cluster.simulation.admin import Admin
from tests.cluster.simulation.checker import AUDIT_MS, Checker
from tests.cluster.simulation.consumers import Consumer
from tests.cluster.simulation.fabric import Fabric
from tests.cluster.simulation.groups import Group
from tests.cluster.simulation.host import Host
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.plan import VOTERS, Plan, node_settings
from tests.cluster.simulation.process import Process
from tests.cluster.simulation.producers import Producer
from tests.cluster.simulation.properties import Broken, Property
from tests.cluster.simulation.transactions import Transactor
from tests.simulation.events import Clock, Events


class World:
    """The state of everything."""

    cluster_id = "c2ltdWxhdGVkLWNsdXN0ZQ"

    def __init__(self, seed: int, verbose: Callable[[str], None] | None = None) -> None:
        self.random = Random(seed)
        self.counts: Counter[str] = Counter()
        self.clock = Clock()
        self.events = Events(self.clock)
        self.events.verbose = verbose
        self.plan = Plan.of(self.random)
        self.fabric = Fabric(self)
        self.checker = Checker(self)
        self.is_draining = self.is_over = self.is_calm = False
        self.topics: dict[str, tuple[bytes, int]] = {}  # that were acknowledged: id and partitions
        self.producer_ids: set[int] = set()
        # Machines that have lost power, or whose process was killed, and the broker's epoch of that time.
        self.powerless: dict[int, int] = {}
        self.killed: dict[int, int] = {}
        self.hosts = {
            place: Host(self, place, place <= VOTERS, Settings.load(node_settings(self.plan, place)))
            for place in range(1, VOTERS + self.plan.brokers + 1)
        }
        self.admin = Admin(self, "admin")
        self.producers = [Producer(self, f"p{number}") for number in range(self.plan.producers)]
        self.consumers = [Consumer(self, f"c{number}") for number in range(self.plan.consumers)]
        self.groups = [Group(self, "group")] if self.plan.has_group else []
        self.transactors = [Transactor(self, "transactor")] if self.plan.has_transactions else []
        for host in self.hosts.values():
            self.events.after(self.random.uniform(0, 50), host.start)
        self.events.after(AUDIT_MS, self.audit)

    def note(self, text: str) -> None:
        self.events.note(text)

    def audit(self) -> None:
        self.checker.audit_all()
        self.events.after(AUDIT_MS, self.audit)

    def ledgers(self) -> list[Ledger]:
        """Return the partitions that clients use."""
        return [
            self.checker.ledger(name, topic_id, index)
            for name, (topic_id, partitions) in self.topics.items()
            for index in range(partitions)
        ]

    def promise_topic(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.topics[name] = topic_id, partitions

    def find_topic(self, name: str, partitions: int) -> None:
        """A topic is there, and nobody was told its id: whoever has it in its image knows."""
        for host in self.hosts.values():
            known = host.process and host.process.node.cluster.topics.get(name)
            if known:
                self.promise_topic(name, known.id, partitions)
                return
        self.events.after(100, lambda: self.find_topic(name, partitions))

    def note_producer_id(self, producer_id: int) -> None:
        if producer_id in self.producer_ids:
            raise Broken(Property.METADATA_STAYS, f"producer id {producer_id} was given out twice")
        self.producer_ids.add(producer_id)

    def gave_up(self, process: Process, problem: str) -> None:
        raise Broken(Property.COMES_UP, f"{process} gives up: {problem}")

    def run_for(self, duration_ms: float) -> None:
        self.events.run(self.clock.now + duration_ms)

    def newest_image(self) -> Process | None:
        """Return the process that has seen most of the metadata."""
        up = [host.process for host in self.hosts.values() if host.process is not None]
        return max(up, key=lambda process: process.node.metadata.applied, default=None)
