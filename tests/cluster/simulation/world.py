"""A world: three to seven machines with a production node on each, a network, clients, and the faults that befall them.

Everything random comes from one generator and everything happens by `events`: a seed is a whole history. The code of a
node runs in the steps of its `Process` only; clients and the network know no more of it than its frames.

- host.py, process.py: a machine, and one life of the node on it. fabric.py, lines.py: the network.
- producers.py, consumers.py, groups.py, shares.py, transactions.py, admin.py: clients; callers.py: their connections.
- ledger.py, checker.py: what was seen and promised, and the judge. properties.py: what must hold.
- plan.py, faults.py: what a seed chooses; focus.py: faults that come together. run.py: a whole seed.
- finale.py: faults end, and all must be well again.
- plants.py: bugs that are planted, and the seeds that find them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from moldau.settings import Settings
from tests.cluster.simulation.admin import Admin
from tests.cluster.simulation.checker import AUDIT_MS, Checker
from tests.cluster.simulation.consumers import Consumer
from tests.cluster.simulation.fabric import Fabric
from tests.cluster.simulation.groups import Group
from tests.cluster.simulation.host import Host
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.plan import Plan, node_settings
from tests.cluster.simulation.process import Process
from tests.cluster.simulation.producers import Producer
from tests.cluster.simulation.properties import Broken, Property
from tests.cluster.simulation.shares import Sharer
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
        self.doomed: dict[bytes, bool] = {}  # topics that are to be deleted, and whether that was acknowledged
        self.producer_ids: set[int] = set()
        self.powerless: dict[int, int] = {}  # who has lost power, and the broker's epoch of that time
        self.is_disk_lost = False  # by the first of them
        self.hosts = {
            place: Host(self, place, Settings.load(node_settings(self.plan, place)))
            for place in range(1, self.plan.shape.nodes + 1)
        }
        self.brokers = [place for place in self.hosts if self.plan.shape.serves(place)]
        self.admin = Admin(self, "admin")
        self.producers = [Producer(self, f"p{number}") for number in range(self.plan.producers)]
        self.consumers = [Consumer(self, f"c{number}") for number in range(self.plan.consumers)]
        self.groups = [Group(self, "group")] if self.plan.has_group else []
        self.transactors = [Transactor(self, "transactor")] if self.plan.has_transactions else []
        self.sharers = [Sharer(self, "shares")] if self.plan.has_shares else []
        for host in self.hosts.values():
            self.events.after(self.random.uniform(0, 50), host.start)
        self.events.after(AUDIT_MS, self.audit)

    def note(self, text: str) -> None:
        self.events.note(text)

    def audit(self) -> None:
        self.checker.audit_all()
        self.events.after(AUDIT_MS, self.audit)

    def ledgers(self, *, lasting: bool = False) -> list[Ledger]:
        """Return the partitions that clients use, or those that are never deleted."""
        return [
            self.checker.ledger(name, topic_id, index)
            for name, (topic_id, partitions) in self.topics.items()
            for index in range(partitions)
            if not lasting or name != self.plan.fleeting
        ]

    def is_doomed(self, ledger: Ledger) -> bool:
        return ledger.topic_id in self.doomed

    def promise_topic(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.topics[name] = topic_id, partitions

    def find_topic(self, name: str, partitions: int) -> bool:
        """A topic is said to be there, and its id was told to nobody: an earlier request was carried out, and its
        answer was lost. Whoever has the topic in its image knows the id. If nobody does, a controller that has lost the
        lead unawares has spoken of the topic that was deleted.
        """
        for host in self.hosts.values():
            known = host.process and host.process.node.cluster.topics.get(name)
            if known and known.id not in self.doomed:
                self.promise_topic(name, known.id, partitions)
                return True
        return False

    def note_producer_id(self, producer_id: int) -> None:
        if producer_id in self.producer_ids:
            raise Broken(Property.METADATA_STAYS, f"producer id {producer_id} was given out twice")
        self.producer_ids.add(producer_id)

    def gave_up(self, process: Process, problem: str) -> None:
        raise Broken(Property.COMES_UP, f"{process} gives up: {problem}")

    def run_for(self, duration_ms: float) -> None:
        self.events.run(self.clock.now + duration_ms)

    def newest_quorum(self) -> Any:
        """Return the controller that has seen most of the quorum's epochs."""
        found = [getattr(host.process.node.quorum, "raft", None) for host in self.hosts.values() if host.process]
        return max((raft for raft in found if raft), key=lambda raft: (raft.epoch, raft.is_leader), default=None)

    def newest_image(self) -> Process | None:
        """Return the process that has seen most of the metadata."""
        up = [host.process for host in self.hosts.values() if host.process is not None]
        return max(up, key=lambda process: process.node.metadata.applied, default=None)
