"""A reader: it follows all partitions by Fetch, looks up their ends, and holds the cluster to what it was told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.simulation.callers import Caller, Client
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

BY_NAME, BY_ID, LIST_VERSION = 12, 13, 8
LATEST = -1
NOT_NOW = frozenset(
    {
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.OFFSET_NOT_AVAILABLE,
        Error.LEADER_NOT_AVAILABLE,
    }
)


class Consumer(Client):
    """A client that reads until the world ends."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.pace_ms = world.plan.pace_ms
        self.positions: dict[Ledger, int] = {}
        self.told: dict[Ledger, int] = {}  # the highest end of each partition that this client was told
        self.asking: set[Ledger] = set()
        self.later()

    def later(self) -> None:
        self.world.events.after(self.world.random.uniform(0.1, 1.9) * self.pace_ms, self.act)

    def act(self) -> None:
        if self.world.is_over:
            return
        self.later()
        random, ledgers = self.world.random, self.world.ledgers()
        if not self.leaders or not ledgers:
            self.refresh()
            return
        ledger = random.choice(ledgers)
        caller = self.leader(ledger.topic, ledger.index)
        if caller is None:
            self.refresh()
        elif ledger not in self.asking:
            self.asking.add(ledger)
            looks_up = random.random() < 0.4 and ledger.topic != self.world.plan.fleeting  # which has no name alone
            self.look_up(ledger, caller) if looks_up else self.fetch(ledger, caller)

    def epoch(self, ledger: Ledger) -> int:
        """Return the leader's epoch: a leader that was replaced knows no later one, and says so."""
        return self.leaders[ledger.topic, ledger.index][1]

    def lost(self, ledger: Ledger) -> None:
        self.asking.discard(ledger)
        self.refresh()

    def refused(self, ledger: Ledger, error: Error) -> bool:
        """Tell whether there was an error; only some of them can be."""
        self.asking.discard(ledger)
        if error is Error.NONE:
            return False
        if ledger.is_torn and error is Error.OFFSET_OUT_OF_RANGE:
            self.positions[ledger] = 0
            return True
        is_damaged = ledger.rotten_on is not None or self.world.counts["damages"] > 0
        if error not in NOT_NOW and not (error is Error.KAFKA_STORAGE_ERROR and is_damaged):
            raise Broken(Property.READABLE, f"{self.name} {ledger}: {error.name}")
        self.world.counts[f"read: {error.name}"] += 1
        self.refresh()
        return True

    def fetch(self, ledger: Ledger, caller: Caller) -> None:
        random = self.world.random
        offset = self.positions.get(ledger, 0) if random.random() < 0.8 else random.randint(0, self.told.get(ledger, 0))
        part = m.FetchRequest_FetchPartition(
            partition=ledger.index,
            current_leader_epoch=self.epoch(ledger),
            fetch_offset=offset,
            partition_max_bytes=random.choice((300, 1 << 20)),
        )
        request = m.FetchRequest(
            max_wait_ms=random.choice((0, 50)),
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[m.FetchRequest_FetchTopic(ledger.topic, ledger.topic_id, [part])],
        )
        done = lambda answer: self.fetched(ledger, offset, caller, answer)  # noqa: E731
        version = BY_ID if ledger.topic == self.world.plan.fleeting else random.choice((BY_NAME, BY_ID))
        caller.call(request, version, done, lambda: self.lost(ledger))

    def fetched(self, ledger: Ledger, offset: int, caller: Caller, answer: Any) -> None:
        part = answer.responses[0].partitions[0]
        if self.refused(ledger, Error(part.error_code)):
            return
        after = ledger.read(part.records or b"", f"node {caller.place}, as {self.name} reads", part.high_watermark)
        if after > offset:
            self.world.counts["batches read"] += 1
            self.positions[ledger] = after

    def look_up(self, ledger: Ledger, caller: Caller) -> None:
        high = self.told.get(ledger, 0)
        part = m.ListOffsetsRequest_ListOffsetsPartition(ledger.index, self.epoch(ledger), LATEST)
        request = m.ListOffsetsRequest(-1, 0, [m.ListOffsetsRequest_ListOffsetsTopic(ledger.topic, [part])])
        done = lambda answer: self.found(ledger, high, caller, answer)  # noqa: E731
        caller.call(request, LIST_VERSION, done, lambda: self.lost(ledger))

    def found(self, ledger: Ledger, high: int, caller: Caller, answer: Any) -> None:
        part = answer.topics[0].partitions[0]
        if self.refused(ledger, Error(part.error_code)):
            return
        if part.offset < high and not ledger.is_torn:
            seen = f"{self.name} was told by node {caller.place} that {ledger} ends at {part.offset}, after {high}"
            raise Broken(Property.NEVER_BACK, seen)
        self.told[ledger] = max(self.told.get(ledger, 0), part.offset)
