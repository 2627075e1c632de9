"""Producers: idempotent ones with several batches in flight, plain ones that send again what was not answered, and
some that want no answer. They keep to the rules of Kafka's own clients, and note every promise in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from tests.simulation.ledger import Ledger, Sent
from tests.simulation.network import Peer
from tests.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.simulation.world import World

BY_ID = 13
RUSH_MS, REST = 80, 4  # a rush, and how many times as long it takes to the next one
GONE = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)
TRY_AGAIN = (Error.KAFKA_STORAGE_ERROR, Error.REQUEST_TIMED_OUT, *GONE)


class Session:
    """One producer's writing to one partition, under one producer id."""

    def __init__(self, ledger: Ledger, name: str, idempotent: bool, answered: bool) -> None:
        self.ledger = ledger
        self.name = name
        self.idempotent = idempotent
        self.answered = answered  # without answers, what a cut connection still delivers may come after later records
        self.producer_id = -1
        self.made = 0
        self.unacked: list[Sent] = []
        self.flying = 0
        self.again = False  # send all that is unacknowledged again, as soon as nothing is in flight
        self.begun = False  # something was acknowledged: the partition knows this producer
        self.lossy = False  # acknowledged records were lost with the power: the sequence has a gap now
        self.many_at_restart = False  # the node restarted with several batches in flight; a snapshot knows only one

    def next_batch(self, world: World) -> Sent:
        random, topic = world.random, self.ledger.topic
        now = world.clock.wall_ms()
        count = random.choice((1, 1, 2, 3, 5))
        names = [b"%s:%d" % (self.name.encode(), self.made + at) for at in range(count)]
        items = [record(world, topic, name, now) for name in names]
        batch = Sent(self, self.made, items, names, now)
        codec = random.choice((0, 0, 0, 1, 2, 3, 4))
        sequence = {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": self.made}
        batch.data = bytes(build(items, compression=codec, **(sequence if self.idempotent else {})))
        self.made += count
        self.unacked.append(batch)
        return batch


def record(world: World, topic: Any, name: bytes, now_ms: int) -> Record:
    random = world.random
    key = b"k%d" % random.randrange(6) if topic.compacted or random.random() < 0.3 else None
    timestamp = now_ms + random.choice((0, 0, 0, -300, -2000, 100))
    if topic.compacted and random.random() < 0.2:
        return Record(0, timestamp, key, None, (("name", name),))
    return Record(0, timestamp, key, name + b"|" + b"x" * random.choice((0, 0, 10, 40)))


class Producer:
    """A client that writes to some partitions until the world ends."""

    def __init__(self, world: World, name: str) -> None:
        random = world.random
        self.world = world
        self.name = name
        self.peer = Peer(world, name)
        self.idempotent = random.random() < 0.6
        self.acks = random.choice(((-1,), (-1, 1), (1,)) if self.idempotent else ((-1,), (1,), (1,), (0,)))
        self.in_flight = random.choice((1, 2, 5)) if self.idempotent else 1
        self.pace_ms = world.plan.length_ms * world.plan.producers / world.plan.batches
        self.sessions: list[Session] = []
        self.serial = 0
        self.producer_id = -1
        self.asking = False
        world.producers.append(self)
        self.later()

    def later(self) -> None:
        delay = self.world.random.uniform(0.1, 1.9) * self.pace_ms
        if self.world.plan.rushes:
            delay = delay / REST if self.world.clock.now % (REST * RUSH_MS) < RUSH_MS else RUSH_MS / 2
        self.world.events.after(delay, self.act)

    def act(self) -> None:
        """Now and then: send something, if the rules allow it."""
        if self.world.ending:
            return
        self.later()
        if self.world.plan.rushes and self.world.clock.now % (REST * RUSH_MS) > RUSH_MS:
            return
        if self.idempotent and self.producer_id < 0:
            self.ask_for_id()
            return
        for _ in range(self.world.random.choice((1, 1, 2, 6)) if self.in_flight > 1 else 1):
            self.send([batch for session in self.choose() for batch in self.due(session)])

    def ask_for_id(self) -> None:
        if not self.asking:
            self.asking = True
            version = self.world.random.randrange(6)
            self.peer.call(m.InitProducerIdRequest(None, 60_000), version, self.got_id, self.no_id)

    def got_id(self, answer: Any) -> None:
        self.asking = False
        if answer.error_code == 0:
            self.producer_id = answer.producer_id
            self.world.note_producer_id(answer.producer_id)

    def no_id(self) -> None:
        self.asking = False

    def choose(self) -> list[Session]:
        """One partition, or two; a session begins with the first use."""
        random, ledgers = self.world.random, self.world.ledgers()
        chosen = random.sample(ledgers, min(len(ledgers), random.choice((1, 1, 1, 2))))
        sessions = [self.session(ledger) for ledger in chosen]
        waiting = [session for session in self.sessions if session.again and not session.flying][:1]
        return waiting or sessions

    def session(self, ledger: Ledger) -> Session:
        for session in self.sessions:
            if session.ledger is ledger:
                return session
        self.serial += 1
        session = Session(ledger, f"{self.name}.{self.serial}", self.idempotent, self.acks != (0,))
        session.producer_id = self.producer_id
        self.sessions.append(session)
        return session

    def due(self, session: Session) -> list[tuple[Session, Sent]]:
        """What this session sends now: all of the unacknowledged again, or one new batch if there is room."""
        if session.again:
            if session.flying:
                return []
            session.again = False
            return [(session, batch) for batch in session.unacked]
        limit = self.in_flight if session.begun else 1
        if session.answered and len(session.unacked) >= limit:
            return []
        return [(session, session.next_batch(self.world))]

    def send(self, batches: list[tuple[Session, Sent]]) -> None:
        """One request for each batch of a partition; different partitions share a request."""
        while batches:
            together: dict[int, tuple[Session, Sent]] = {}
            for pair in batches:
                together.setdefault(id(pair[0]), pair)
            row = list(together.values())
            batches = [pair for pair in batches if pair not in row]
            self.send_request(row)

    def send_request(self, row: list[tuple[Session, Sent]]) -> None:
        version = BY_ID if self.world.plan.reuse_names else self.world.random.randrange(7, 14)
        for session, batch in row:
            session.ledger.sends(batch)
            self.world.counts["records sent"] += len(batch.names)
        acks = self.world.random.choice(self.acks)
        request = produce_request(row, version, acks, self.world.random.choice((50, 1000, 30_000)))
        if acks == 0:
            self.peer.tell(request, version)
            for session, batch in row:
                session.unacked.remove(batch)
            return
        for session, _ in row:
            session.flying += 1
        self.peer.call(request, version, lambda answer: self.answered(row, answer, version), lambda: self.lost(row))

    def lost(self, row: list[tuple[Session, Sent]]) -> None:
        for session, _ in row:
            session.flying -= 1
            session.again = bool(session.unacked)

    def answered(self, row: list[tuple[Session, Sent]], answer: Any, version: int) -> None:
        parts = {
            (topic.topic_id if version >= BY_ID else topic.name, part.index): part
            for topic in answer.responses
            for part in topic.partition_responses
        }
        for session, batch in row:
            session.flying -= 1
            topic = session.ledger.topic
            part = parts[topic.id if version >= BY_ID else topic.name, session.ledger.index]
            self.take(session, batch, part)

    def take(self, session: Session, batch: Sent, part: Any) -> None:
        error, ledger = Error(part.error_code), session.ledger
        self.world.events.note(f"{session.name} {batch.number} {ledger} {error.name} at {part.base_offset}")
        if error is Error.NONE:
            self.world.counts["records acknowledged"] += len(batch.names)
            ledger.acknowledged(batch, part.base_offset, self.world.clock.now)
            session.begun = True
            if batch in session.unacked:
                session.unacked.remove(batch)
        elif error in TRY_AGAIN:
            self.world.check_refusal(ledger, error)
            session.again = bool(session.unacked)
        elif error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.out_of_order(session, batch)
        elif error is Error.INVALID_PRODUCER_EPOCH and ledger.rotten:  # the epoch in a header before the recovery point
            self.start_over(session)
        else:
            raise Broken(Property.ANSWERS, f"{session.name}: {error.name} {part.error_message}")

    def out_of_order(self, session: Session, batch: Sent) -> None:
        """Fine while an earlier batch is on its way; else only records that were lost explain it."""
        if session.unacked and session.unacked[0] is not batch:
            session.again = True
            return
        if not (session.lossy or session.many_at_restart or session.ledger.rotten or session.ledger.index_rotten):
            seen = f"{session.name} sent {batch.number} as its next batch to {session.ledger} and was refused"
            raise Broken(Property.SEQUENCE, seen)
        self.start_over(session)

    def start_over(self, session: Session) -> None:
        """Under a new producer id; whether the batches in flight are in the log remains unknown."""
        if session in self.sessions:
            self.sessions.remove(session)
            self.producer_id = -1

    def node_restarted(self) -> None:
        for session in self.sessions:
            first = session.unacked[:1]
            if any(batch.number + len(batch.names) < session.made for batch in first):
                session.many_at_restart = True

    def forget(self, ledger: Ledger) -> None:
        """The topic is gone."""
        self.sessions = [session for session in self.sessions if session.ledger is not ledger]


def produce_request(row: list[tuple[Session, Sent]], version: int, acks: int, timeout_ms: int) -> Any:
    topics: dict[int, Any] = {}
    for session, batch in row:
        topic = session.ledger.topic
        if id(topic) not in topics:
            topics[id(topic)] = m.ProduceRequest_TopicProduceData(
                name="" if version >= BY_ID else topic.name,
                topic_id=topic.id if version >= BY_ID else bytes(16),
                partition_data=[],
            )
        topics[id(topic)].partition_data.append(m.ProduceRequest_PartitionProduceData(session.ledger.index, batch.data))
    return m.ProduceRequest(None, acks, timeout_ms, list(topics.values()))
