"""Idempotent producers with acks=all and several batches in flight, which keep to the rules of Kafka's own clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from tests.cluster.simulation.callers import Client
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

BY_NAME, BY_ID = 12, 13  # versions
ALL = -1
TIMEOUTS_MS = (400, 1500)
# After these the batch is sent again, most of them to another leader.
TRY_AGAIN = frozenset(
    {
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.REQUEST_TIMED_OUT,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.KAFKA_STORAGE_ERROR,
    }
)


@dataclass(slots=True, eq=False)
class Sent:
    """A batch as its producer made it."""

    number: int
    names: list[bytes]
    data: bytes


class Session:
    """One producer's writing to one partition, under one producer id."""

    def __init__(self, name: str, ledger: Ledger, producer_id: int) -> None:
        self.name = name
        self.ledger = ledger
        self.producer_id = producer_id
        self.made = 0
        self.unacked: list[Sent] = []
        self.flying = 0
        self.again = False  # send all that is unacknowledged again, as soon as nothing is in flight
        self.has_begun = False
        self.is_hazy = False  # a node restarted while an earlier batch was in flight: a snapshot knows only the last

    def next_batch(self, world: World) -> Sent:
        count, now = world.random.choice((1, 1, 2, 5)), world.clock.wall_ms()
        names = [b"%s:%d" % (self.name.encode(), self.made + at) for at in range(count)]
        padding = b"|" + b"x" * world.random.choice((0, 0, 20, 300))
        items = [Record(0, now, None, name + padding) for name in names]
        data = build(items, producer_id=self.producer_id, producer_epoch=0, base_sequence=self.made)
        batch = Sent(self.made, names, bytes(data))
        self.made += count
        self.unacked.append(batch)
        return batch


class Producer(Client):
    """A client that writes to all partitions until the world ends."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.in_flight = world.random.choice((1, 3, 5))
        self.pace_ms = world.plan.pace_ms
        self.version = world.random.choice((BY_NAME, BY_ID))
        self.sessions: dict[Ledger, Session] = {}
        self.serial = 0
        self.producer_id = -1
        self.is_initializing = False
        self.later()

    def later(self) -> None:
        self.world.events.after(self.world.random.uniform(0.1, 1.9) * self.pace_ms, self.act)

    def act(self) -> None:
        """Send something, if the rules allow it."""
        if self.world.is_over:
            return
        self.later()
        ledgers = self.world.ledgers()
        self.sessions = {one: session for one, session in self.sessions.items() if not self.world.is_doomed(one)}
        if not self.leaders:
            self.refresh()
        elif self.producer_id < 0:
            self.initialize()
        elif ledgers:
            # Partitions do not wait for one another: one that is damaged may have no leader any more.
            for session in [one for one in self.sessions.values() if one.again]:
                self.proceed(session)
            self.proceed(self.session(self.world.random.choice(ledgers)))

    def session(self, ledger: Ledger) -> Session:
        if ledger not in self.sessions:
            self.serial += 1
            self.sessions[ledger] = Session(f"{self.name}.{self.serial}", ledger, self.producer_id)
        return self.sessions[ledger]

    def initialize(self) -> None:
        if not self.is_initializing:
            self.is_initializing = True
            request = m.InitProducerIdRequest(None, 60_000)
            self.any_caller().call(request, 4, self.initialized, self.not_initialized)

    def initialized(self, answer: Any) -> None:
        self.is_initializing = False
        if not answer.error_code:
            self.producer_id = answer.producer_id
            self.world.note_producer_id(answer.producer_id)

    def not_initialized(self) -> None:
        self.is_initializing = False

    def proceed(self, session: Session) -> None:
        if session.again:
            if not session.flying:
                session.again = False
                for batch in list(session.unacked):
                    self.send(session, batch)
        elif not self.world.is_draining and len(session.unacked) < (self.in_flight if session.has_begun else 1):
            self.send(session, session.next_batch(self.world))

    def send(self, session: Session, batch: Sent) -> None:
        ledger = session.ledger
        caller = self.leader(ledger.topic, ledger.index)
        if caller is None:
            session.again = True
            self.refresh()
            return
        session.flying += 1
        part = m.ProduceRequest_PartitionProduceData(ledger.index, batch.data)
        topic = m.ProduceRequest_TopicProduceData(ledger.topic, ledger.topic_id, [part])
        version = BY_ID if ledger.topic == self.world.plan.fleeting else self.version
        request = m.ProduceRequest(None, ALL, self.world.random.choice(TIMEOUTS_MS), [topic])
        self.world.counts["batches sent"] += 1
        caller.call(request, version, lambda answer: self.answered(session, batch, answer), lambda: self.lost(session))

    def lost(self, session: Session) -> None:
        session.flying -= 1
        session.again = bool(session.unacked)
        self.refresh()

    def answered(self, session: Session, batch: Sent, answer: Any) -> None:
        session.flying -= 1
        part = answer.responses[0].partition_responses[0]
        error = Error(part.error_code)
        self.world.note(f"{session.name} {batch.number} {session.ledger} {error.name} at {part.base_offset}")
        if error is Error.NONE:
            self.acknowledged(session, batch, part.base_offset)
        elif error in TRY_AGAIN:
            self.world.counts[f"produce: {error.name}"] += 1
            session.again = bool(session.unacked)
            self.refresh()
        elif error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.out_of_order(session, batch)
        else:
            raise Broken(Property.ANSWERS, f"{session.name}: {error.name} {part.error_message}")

    def acknowledged(self, session: Session, batch: Sent, base_offset: int) -> None:
        self.world.counts["batches acknowledged"] += 1
        session.has_begun = True
        if batch in session.unacked:
            session.unacked.remove(batch)
        if base_offset >= 0:
            for at, name in enumerate(batch.names):
                session.ledger.acknowledge(base_offset + at, name)

    def out_of_order(self, session: Session, batch: Sent) -> None:
        """Fine while an earlier batch is on its way."""
        if session.unacked and session.unacked[0] is not batch:
            session.again = True
        elif batch not in session.unacked:
            return
        elif session.is_hazy or session.ledger.is_torn or session.ledger.rotten_on is not None:
            self.world.counts["sessions given up"] += 1
            del self.sessions[session.ledger]
            self.producer_id = -1
        else:
            seen = f"{session.name} sent {batch.number} as its next batch to {session.ledger} and was refused"
            raise Broken(Property.SEQUENCE, seen)

    def node_restarted(self) -> None:
        for session in self.sessions.values():
            first = session.unacked[0] if session.unacked else None
            session.is_hazy |= first is not None and first.number + len(first.names) < session.made

    @property
    def is_done(self) -> bool:
        """Whether nothing waits for an answer, apart from what cannot get one where a leader is damaged."""
        return not any(one.unacked for one in self.sessions.values() if one.ledger.rotten_on is None)
