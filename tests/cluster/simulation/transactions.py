"""A transactional producer that writes to two partitions, and what came of each of its transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from tests.cluster.simulation.callers import Caller
from tests.cluster.simulation.groups import NOT_NOW, TRANSACTION, Coordinated
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.producers import ALL, TRY_AGAIN
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

# What befalls a producer whose transaction has ended in the meantime, or whose epoch has: it begins anew.
ENDED = frozenset(
    {
        Error.CONCURRENT_TRANSACTIONS,
        Error.INVALID_TXN_STATE,
        Error.INVALID_PRODUCER_EPOCH,
        Error.PRODUCER_FENCED,
        Error.INVALID_PRODUCER_ID_MAPPING,
        Error.OPERATION_NOT_ATTEMPTED,
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Error.NOT_LEADER_OR_FOLLOWER,
    }
)


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction, and what was told of its end: True if it was committed, None if that is not known."""

    number: int
    producer_id: int
    records: list[tuple[Ledger, bytes]] = field(default_factory=list)
    is_added: bool = False
    unwritten: int = 0
    outcome: bool | None = None


class Transactor(Coordinated):
    """A producer under a transactional id. Whenever something goes wrong it begins anew, which aborts what was open."""

    kind = TRANSACTION

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.producer = (-1, -1)  # id and epoch
        self.sequences: dict[Ledger, int] = {}
        self.current: Transaction | None = None
        self.all: list[Transaction] = []

    def proceed(self, coordinator: Caller) -> None:
        if self.producer[0] < 0:
            self.current = None
            self.say(coordinator, m.InitProducerIdRequest(self.name, 3000), 4, self.initialized)
        elif self.current is None:
            if not self.world.is_draining:
                self.begin(coordinator)
        elif self.current.unwritten:
            return
        else:
            self.end(coordinator, self.current)

    def start_over(self) -> None:
        self.producer, self.current, self.coordinator = (-1, -1), None, None

    def lost(self) -> None:
        super().lost()
        self.start_over()

    def initialized(self, answer: Any) -> None:
        if not self.refused(Error(answer.error_code), NOT_NOW | ENDED):
            self.producer, self.sequences = (answer.producer_id, answer.producer_epoch), {}

    def begin(self, coordinator: Caller) -> None:
        """Add some partitions to a transaction."""
        random, ledgers = self.world.random, self.world.ledgers(lasting=True)
        chosen = random.sample(ledgers, min(2, len(ledgers)))
        self.current = Transaction(len(self.all), self.producer[0])
        self.all.append(self.current)
        topics: dict[str, list[int]] = {}
        for ledger in chosen:
            topics.setdefault(ledger.topic, []).append(ledger.index)
        rows = [m.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic(*row) for row in topics.items()]
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer[0],
            v3_and_below_producer_epoch=self.producer[1],
            v3_and_below_topics=rows,
        )
        self.say(coordinator, request, 3, lambda answer: self.added(chosen, answer))

    def added(self, chosen: list[Ledger], answer: Any) -> None:
        rows = [row for topic in answer.results_by_topic_v3_and_below for row in topic.results_by_partition]
        if any(self.refused(Error(row.partition_error_code), NOT_NOW | ENDED) for row in rows):
            self.start_over()
            return
        for ledger in chosen:
            self.write(ledger)

    def write(self, ledger: Ledger) -> None:
        current, caller = self.current, self.leader(ledger.topic, ledger.index)
        if current is None:  # the leader of another partition is not known
            return
        current.unwritten += 1
        if caller is None:
            self.refresh()
            self.start_over()
            return
        name = b"%s-%d-%s" % (self.name.encode(), current.number, str(ledger).encode())
        current.records.append((ledger, name))
        sequence = self.sequences.get(ledger, 0)
        self.sequences[ledger] = sequence + 1
        data = build(
            [Record(0, self.world.clock.wall_ms(), None, name + b"|")],
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        part = m.ProduceRequest_PartitionProduceData(ledger.index, bytes(data))
        topic = m.ProduceRequest_TopicProduceData(name=ledger.topic, partition_data=[part])
        request = m.ProduceRequest(self.name, ALL, 1500, [topic])
        caller.call(request, 11, lambda answer: self.written(current, answer), lambda: self.unwritten(current))

    def unwritten(self, current: Transaction) -> None:
        self.refresh()
        if self.current is current:
            self.start_over()

    def written(self, current: Transaction, answer: Any) -> None:
        error = Error(answer.responses[0].partition_responses[0].error_code)
        if self.refused(error, NOT_NOW | ENDED | TRY_AGAIN):
            self.unwritten(current)
            return
        current.unwritten -= 1

    def end(self, coordinator: Caller, current: Transaction) -> None:
        commits = self.world.random.random() < 0.7
        request = m.EndTxnRequest(self.name, *self.producer, commits)
        self.say(coordinator, request, 3, lambda answer: self.ended(current, commits, answer))

    def ended(self, current: Transaction, commits: bool, answer: Any) -> None:
        error = Error(answer.error_code)
        self.world.note(f"{self.name} ends transaction {current.number}, {commits}: {error.name}")
        if self.refused(error, NOT_NOW | ENDED):
            self.start_over()
            return
        self.world.counts["transactions ended"] += 1
        current.outcome, self.current = commits, None

    def whole(self) -> list[Transaction]:
        """Return the transactions to which no unclean election has happened."""
        if self.world.checker.is_torn("__transaction_state"):
            return []
        return [one for one in self.all if not any(ledger.is_torn for ledger, _ in one.records)]

    def open_ends(self) -> list[str]:
        """Say which records wait for a marker."""
        return [
            f"{name!r} of {ledger} belongs to a transaction that has not ended"
            for transaction in self.whole()
            for ledger, name in transaction.records
            if name in ledger.places
            and ledger.outcome_of(name, transaction.producer_id) is None
            and ledger.rotten_on is None  # which may be led by nobody
        ]

    def check(self) -> None:
        """Look at the markers: all partitions of a transaction have the same one, that which was promised."""
        for transaction in self.whole():
            ends = {ledger.outcome_of(name, transaction.producer_id) for ledger, name in transaction.records}
            ends.discard(None)  # it was never written, which is well unless it was committed
            wanted = {transaction.outcome} if transaction.outcome is not None else ends
            if len(ends) > 1 or not ends <= wanted:
                text = f"transaction {transaction.number} of {self.name} ended with {ends}, told was {wanted}"
                raise Broken(Property.ATOMIC, text)
            if transaction.outcome and any(name not in ledger.places for ledger, name in transaction.records):
                raise Broken(Property.ATOMIC, f"transaction {transaction.number} of {self.name} lacks a record")
