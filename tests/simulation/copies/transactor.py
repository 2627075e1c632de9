"""A transactional producer: its requests, in transactions version 1 or 2, and what their answers mean for it.

In version 1 partitions and groups are added before they are written to, and an epoch lasts for many transactions: a
request that comes late may get into the next one, so the producer waits until a lost one can no longer arrive. In
version 2 (KIP-890) the first write adds a partition, and each transaction has an epoch of its own, which shuts out all
that is late.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from tests.simulation.copies.book import Fate, Identity, Transaction
from tests.simulation.ledger import Ledger
from tests.simulation.network import Peer
from tests.simulation.office import AWAY, TRANSACTION, Office
from tests.simulation.properties import Broken, Property
from tests.simulation.script import Call, Steps

if TYPE_CHECKING:
    from tests.simulation.copies.copier import Copier
    from tests.simulation.world import World

NOBODY = Identity(-1, -1)
TRIES = 6
SAYS_WHO = 3  # from this version of InitProducerId on


class Outcome(Enum):
    """What came of a step."""

    DONE = "done"
    ABORT = "the transaction must be aborted"
    FENCED = "somebody else has taken over the transactional id"
    UNKNOWN = "there was no answer that says so"


FENCED = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_ID_MAPPING)
LATE = (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)
ABORTABLE = (Error.TRANSACTION_ABORTABLE, Error.INVALID_TXN_STATE, *LATE)
AGAIN = {Error.CONCURRENT_TRANSACTIONS, *AWAY}
# What else may be asked again, by request: a partition may be offline, or a producer id not be written down.
OFFLINE = {
    m.ProduceRequest: {Error.NOT_ENOUGH_REPLICAS, Error.KAFKA_STORAGE_ERROR, Error.REQUEST_TIMED_OUT},
    m.InitProducerIdRequest: {Error.KAFKA_STORAGE_ERROR},
}


class Transactor:
    """A producer with a transactional id; `version` is that of its transactions."""

    def __init__(self, world: World, copier: Copier, transactional_id: str, version: int) -> None:
        self.world = world
        self.copier = copier
        self.id = transactional_id
        self.version = version
        self.office = Office(world, copier.name, transactional_id, TRANSACTION)
        self.peer = Peer(world, f"{copier.name}.produce")
        self.identity = NOBODY
        self.sequences: dict[int, int] = {}
        self.attempts = 0  # of the last request
        self.failed = False  # something went wrong since the last end
        self.timeout_ms = world.random.choice((150, 400, 2000))

    # Asking.

    def ask(self, office: Office | None, request: Any, version: int, error_of: Callable[[Any], int]) -> Steps[Outcome]:
        """Ask until there is an answer that decides, within bounds."""
        for attempt in range(TRIES):
            self.attempts = attempt + 1
            sent_ms = self.world.clock.now
            if office is not None:
                answer = yield from office.ask(request, version, patient=self.version == 1)
            else:
                answer = yield Call(self.peer, request, version)
                if answer is None and self.version == 1:
                    yield self.world.ghost_ms()
            if answer is not None:
                error = Error(error_of(answer))
                outcome = self.judge(office, request, error)
                if outcome is Outcome.DONE:
                    self.learn(answer, sent_ms)
                if outcome is not None:
                    return outcome
            yield self.world.delay() + self.world.plan.pause_ms * attempt / 2
        self.failed = True
        return Outcome.UNKNOWN

    def judge(self, office: Office | None, request: Any, error: Error) -> Outcome | None:
        """What an error means; None to ask again."""
        self.failed = self.failed or error is not Error.NONE
        if error is not Error.NONE:
            name = type(request).__name__.removesuffix("Request")
            self.world.events.note(f"{self.copier.name} {name} {error.name}")
            self.world.counts[f"{name}: {error.name}"] += 1
        if error in (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER):
            return Outcome.DONE
        if error in FENCED:
            return Outcome.FENCED
        if error in ABORTABLE:
            return Outcome.ABORT
        if error in AGAIN | OFFLINE.get(type(request), set()):
            if office is not None:
                office.is_away(error)
            return None
        if error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and self.world.lost_power:
            return Outcome.FENCED
        raise Broken(Property.ANSWERS, f"{self.copier.name} {type(request).__name__}: {error.name}")

    def learn(self, answer: Any, sent_ms: float) -> None:
        """Answers of InitProducerId, and of EndTxn in version 2, say who the producer is from now on."""
        if self.identity != NOBODY and not self.world.lost_power:
            self.world.book.check_fencing(self.id, self.identity, sent_ms)
        if getattr(answer, "producer_id", -1) >= 0:
            self.identity = Identity(answer.producer_id, answer.producer_epoch)
            self.sequences.clear()
            if self.world.book.owns(self.id, self.identity, self.world.clock.now):
                self.world.note_producer_id(answer.producer_id)

    # Steps.

    def begin(self) -> Steps[Outcome]:
        """Take over the transactional id; or go on with it after a failure, if nobody else has (KIP-360)."""
        request = m.InitProducerIdRequest(self.id, self.timeout_ms)
        version = self.world.random.randrange(6)
        if version >= SAYS_WHO and self.world.random.random() < 0.5:
            request.producer_id, request.producer_epoch = self.identity
        self.identity = NOBODY
        self.failed = False
        return (yield from self.ask(self.office, request, version, lambda a: a.error_code))

    def add(self, indexes: list[int], topic: str) -> Steps[Outcome]:
        """Version 1 alone."""
        rows = [m.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic(topic, indexes)]
        request = m.AddPartitionsToTxnRequest([], self.id, *self.identity, rows)

        def worst(answer: Any) -> int:
            (one,) = answer.results_by_topic_v3_and_below
            return max(row.partition_error_code for row in one.results_by_partition)

        return (yield from self.ask(self.office, request, self.world.random.randrange(4), worst))

    def write(self, one: Transaction, topic: str, index: int, offsets: list[int]) -> Steps[Outcome]:
        """Send the copies of some records of the input."""
        one.written.setdefault(index, []).extend(offsets)
        now, sequence = self.world.clock.wall_ms(), self.sequences.get(index, 0)
        items = [Record(0, now, None, b"%d:%d" % (one.number, offset)) for offset in offsets]
        producer = {"producer_id": self.identity.producer_id, "producer_epoch": self.identity.epoch}
        batch = bytes(build(items, base_sequence=sequence, transactional=True, **producer))
        data = m.ProduceRequest_TopicProduceData(
            topic, partition_data=[m.ProduceRequest_PartitionProduceData(index, batch)]
        )
        version = 12 if self.version == 2 else self.world.random.randrange(9, 12)
        self.sequences[index] = sequence + len(items)
        request = m.ProduceRequest(self.id, -1, 30_000, [data])
        return (yield from self.ask(None, request, version, lambda a: a.responses[0].partition_responses[0].error_code))

    def add_group(self, group: str) -> Steps[Outcome]:
        """Version 1 alone."""
        request = m.AddOffsetsToTxnRequest(self.id, *self.identity, group)
        return (yield from self.ask(self.office, request, self.world.random.randrange(5), lambda a: a.error_code))

    def commit_offsets(self, offsets: dict[Ledger, int]) -> Steps[Outcome]:
        """With the member that read them, so that a member that is late is refused (KIP-447)."""
        member = self.copier.member
        member_id, instance, generation = member.identity
        topics: dict[str, list[Any]] = {}
        for ledger, offset in offsets.items():
            row = m.TxnOffsetCommitRequest_TxnOffsetCommitRequestPartition(ledger.index, offset, -1, "")
            topics.setdefault(ledger.topic.name, []).append(row)
        rows = [m.TxnOffsetCommitRequest_TxnOffsetCommitRequestTopic(*row) for row in topics.items()]
        group = self.copier.roster.name
        request = m.TxnOffsetCommitRequest(self.id, group, *self.identity, generation, member_id, instance, rows)
        version = 5 if self.version == 2 else self.world.random.randrange(3, 5)

        def worst(answer: Any) -> int:
            return max(part.error_code for topic in answer.topics for part in topic.partitions)

        return (yield from self.ask(member.office, request, version, worst))

    def end(self, one: Transaction, commit: bool) -> Steps[Outcome]:
        """Commit or abort; whatever is asked, only an answer makes it sure."""
        if commit:
            one.fate = Fate.DOUBT
        version = 5 if self.version == 2 else self.world.random.randrange(5)
        request = m.EndTxnRequest(self.id, *self.identity, commit)
        outcome = yield from self.ask(self.office, request, version, lambda a: a.error_code)
        self.failed = False
        if commit and outcome is Outcome.DONE:
            one.fate = Fate.COMMITTED
        elif commit and outcome is not Outcome.UNKNOWN and self.attempts == 1:
            one.fate = Fate.NEVER  # the only request was refused
        return outcome
