"""A consumer of a share group. What it was told to be accepted is not delivered again; all else is, until it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.machines.share.partition import ACCEPT, RELEASE
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.simulation.callers import Caller
from tests.cluster.simulation.groups import NOT_NOW, Coordinated
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

GROUP_RESOURCE, SET = 32, 0
RESET = "share.auto.offset.reset"
VERSION = 1
FIRST = 0  # epoch of a member or of a session
DELIVERIES = 10  # group.share.delivery.count.limit, at its most
BEAT_MS = 300.0
STATE = "__share_group_state"
STATE_TOPICS = (STATE, "__consumer_offsets")
MANY = 500  # records: when the world ends, a fetch asks for all that is left
FORGOTTEN = Error.UNKNOWN_SERVER_ERROR  # as in Kafka: the state of a partition is lost that the group has initialized
OUT = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.GROUP_ID_NOT_FOUND})
SESSION_LOST = frozenset({Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH})
# What befalls a partition whose leader or whose state has moved, or whose lock is over.
ELSEWHERE = NOT_NOW | {
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_LEADER_EPOCH,
    Error.FENCED_STATE_EPOCH,
    Error.UNKNOWN_TOPIC_ID,
    Error.LEADER_NOT_AVAILABLE,
    Error.INVALID_RECORD_STATE,
    Error.INVALID_REQUEST,
}

Place = tuple[Ledger, int]


@dataclass(slots=True)
class Session:
    """What one leader knows of this consumer's fetches."""

    epoch: int = FIRST
    ledgers: list[Ledger] = field(default_factory=list)
    held: set[Place] = field(default_factory=set)


class Sharer(Coordinated):
    """The only member of its group."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.member = f"{name}-{world.random.getrandbits(64):016x}"
        self.epoch = FIRST
        self.is_configured = False
        self.is_unsure = True  # whether the group and this member know of each other what they should
        self.beat_ms = 0.0
        self.given: set[tuple[bytes, int]] = set()  # the partitions that it is assigned
        self.sessions: dict[int, Session] = {}
        self.delivered: set[Place] = set()
        self.settled: dict[Place, float] = {}  # when it was told
        self.unheard: Counter[Ledger] = Counter()  # fetches that were not answered: each may have delivered anything

    def topics(self) -> list[str]:
        """Return what it subscribes to, whether that is there yet or not."""
        return sorted(name for name in self.world.plan.topics if name != self.world.plan.fleeting)

    def ledgers(self) -> list[Ledger]:
        return [one for one in self.world.ledgers(lasting=True) if one.topic in self.world.plan.topics]

    def proceed(self, coordinator: Caller) -> None:
        if not self.is_configured:
            entry = m.IncrementalAlterConfigsRequest_AlterableConfig(RESET, SET, "earliest")
            resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(GROUP_RESOURCE, self.name, [entry])
            self.say(self.any_caller(), m.IncrementalAlterConfigsRequest([resource]), 1, self.configured)
        elif self.world.clock.now >= self.beat_ms:
            topics = self.topics() if self.is_unsure or self.epoch == FIRST else None
            request = m.ShareGroupHeartbeatRequest(self.name, self.member, self.epoch, None, topics)
            self.say(coordinator, request, VERSION, self.beaten)
        elif not self.leaders:
            self.refresh()
        elif self.assigned:
            self.share(self.world.random.choice(self.assigned))

    def lost(self) -> None:
        """Nobody knows what became of the last word: begin anew."""
        super().lost()
        self.is_unsure = True
        self.refresh()

    def configured(self, answer: Any) -> None:
        self.is_configured = not answer.responses[0].error_code

    def beaten(self, answer: Any) -> None:
        error = Error(answer.error_code)
        self.is_unsure = bool(error)
        if error in OUT:
            self.epoch, self.given = FIRST, set()
        elif not self.refused(error):
            self.epoch, self.beat_ms = answer.member_epoch, self.world.clock.now + BEAT_MS
            if answer.assignment is not None:
                rows = answer.assignment.topic_partitions
                self.given = {(bytes(row.topic_id), index) for row in rows for index in row.partitions}

    @property
    def assigned(self) -> list[Ledger]:
        return [one for one in self.ledgers() if (one.topic_id, one.index) in self.given]

    # Fetches and acknowledgements, each over the session with a leader.

    def share(self, ledger: Ledger) -> None:
        """Fetch from the leader of a partition, or tell it what was done with records."""
        caller, random = self.leader(ledger.topic, ledger.index), self.world.random
        if caller is None:
            self.refresh()
            return
        session = self.sessions.setdefault(caller.place, Session())
        chosen = [place for place in sorted(session.held, key=str) if random.random() < 0.9]
        kind = RELEASE if random.random() < 0.2 and not self.world.is_draining else ACCEPT
        if chosen and session.epoch != FIRST and random.random() < 0.7:
            self.acknowledge(caller, session, chosen, kind)
        else:
            self.fetch(caller, session, chosen if session.epoch != FIRST else [], kind)

    def acknowledge(self, caller: Caller, session: Session, chosen: list[Place], kind: int) -> None:
        row, batch = m.ShareAcknowledgeRequest_AcknowledgePartition, m.ShareAcknowledgeRequest_AcknowledgementBatch
        words = spoken(chosen, lambda offset: batch(offset, offset, [kind]))
        topics = by_topic({ledger: row(ledger.index, some) for ledger, some in words.items()})
        rows = [m.ShareAcknowledgeRequest_AcknowledgeTopic(*topic) for topic in topics.items()]
        request = m.ShareAcknowledgeRequest(self.name, self.member, session.epoch, topics=rows)
        done = lambda answer: self.told(caller, session, answer, chosen, kind, "error_code")  # noqa: E731
        self.ask(caller, session, request, chosen, done)

    def fetch(self, caller: Caller, session: Session, chosen: list[Place], kind: int) -> None:
        random, asked_ms = self.world.random, self.world.clock.now
        wanted = [one for one in self.assigned if self.leader(one.topic, one.index) is caller]
        new = [one for one in wanted if one not in session.ledgers or session.epoch == FIRST]
        gone = [one for one in session.ledgers if one not in wanted and session.epoch != FIRST]
        row, batch = m.ShareFetchRequest_FetchPartition, m.ShareFetchRequest_AcknowledgementBatch
        words = spoken(chosen, lambda offset: batch(offset, offset, [kind]))
        rows = {one: row(one.index, words.get(one, [])) for one in dict.fromkeys([*new, *words])}
        request = m.ShareFetchRequest(
            group_id=self.name,
            member_id=self.member,
            share_session_epoch=session.epoch,
            max_wait_ms=random.choice((0, 30)),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=MANY if self.world.is_draining else random.choice((1, 20, MANY)),
            batch_size=random.choice((1, 500)),
            topics=[m.ShareFetchRequest_FetchTopic(*topic) for topic in by_topic(rows).items()],
            forgotten_topics_data=[
                m.ShareFetchRequest_ForgottenTopic(topic_id, indexes)
                for topic_id, indexes in by_topic({one: one.index for one in gone}).items()
            ],
        )
        session.ledgers = list(dict.fromkeys([*wanted, *words]))
        asked = session.ledgers
        self.unheard.update(asked)

        def done(answer: Any) -> None:
            self.unheard.subtract(asked)
            if self.told(caller, session, answer, chosen, kind, "acknowledge_error_code"):
                for ledger, row in self.rows(answer):
                    self.take(session, ledger, row, asked_ms)

        self.ask(caller, session, request, chosen, done)

    def ask(self, caller: Caller, session: Session, request: Any, chosen: list[Place], done: Any) -> None:
        """Say something over a session, which is over if there is no answer."""
        session.held -= set(chosen)
        self.is_busy = True

        def answered(answer: Any) -> None:
            self.is_busy = False
            done(answer)

        def lost() -> None:
            self.sessions.pop(caller.place, None)
            self.lost()

        caller.call(request, VERSION, answered, lost)

    def rows(self, answer: Any) -> list[tuple[Ledger, Any]]:
        known = {(one.topic_id, one.index): one for one in self.ledgers()}
        return [
            (known[bytes(topic.topic_id), row.partition_index], row)
            for topic in answer.responses
            for row in topic.partitions
        ]

    def told(self, caller: Caller, session: Session, answer: Any, chosen: list[Place], kind: int, name: str) -> bool:
        """Note what came of acknowledgements; false if the session is over."""
        error = Error(answer.error_code)
        if error:
            self.sessions.pop(caller.place, None)
            if error not in SESSION_LOST:
                self.refused(error, ELSEWHERE)
            self.refresh()
            return False
        session.epoch += 1
        rows, now = dict(self.rows(answer)), self.world.clock.now
        for place in chosen:
            error = Error(getattr(rows[place[0]], name)) if place[0] in rows else Error.UNKNOWN_TOPIC_OR_PARTITION
            if not self.elsewhere(error) and kind == ACCEPT:
                self.world.counts["records accepted"] += 1
                self.settled.setdefault(place, now)
        return True

    def elsewhere(self, error: Error) -> bool:
        if error and error not in ELSEWHERE and not (error is FORGOTTEN and self.world.checker.is_torn(STATE)):
            raise Broken(Property.ANSWERS, f"{self.name}: {error.name}")
        if error:
            self.world.counts[f"share: {error.name}"] += 1
            self.refresh()
        return bool(error)

    def take(self, session: Session, ledger: Ledger, row: Any, asked_ms: float) -> None:
        """Look at records that were acquired."""
        if self.elsewhere(Error(row.error_code)):
            return
        for run in row.acquired_records:
            for offset in range(run.first_offset, run.last_offset + 1):
                place = ledger, offset
                if self.settled.get(place, asked_ms) < asked_ms and not self.is_torn():
                    raise Broken(Property.SETTLED, f"{ledger} at {offset} was accepted, and is delivered again")
                self.world.counts["records shared"] += 1
                session.held.add(place)
                self.delivered.add(place)

    # The end.

    def is_torn(self) -> bool:
        names = (*STATE_TOPICS, *self.topics())
        return any(self.world.checker.is_torn(name) for name in names)

    def unread(self) -> list[str]:
        """Say what was never delivered, and cannot have been given up."""
        if self.is_torn():
            return []
        return [
            f"{self.name} never got {ledger} at {offset}"
            for ledger in self.ledgers()
            if self.unheard[ledger] < DELIVERIES and ledger.rotten_on is None
            for offset, name in ledger.known.items()
            if (ledger, offset) not in self.delivered and not name.startswith(b"control ")
        ]


def spoken(chosen: Iterable[Place], word: Callable[[int], Any]) -> dict[Ledger, list[Any]]:
    """Return what is said of each partition, in the order of the offsets."""
    words: dict[Ledger, list[Any]] = {}
    for ledger, offset in sorted(chosen, key=lambda place: place[1]):
        words.setdefault(ledger, []).append(word(offset))
    return words


def by_topic(rows: dict[Ledger, Any]) -> dict[bytes, list[Any]]:
    found: dict[bytes, list[Any]] = {}
    for ledger, row in rows.items():
        found.setdefault(ledger.topic_id, []).append(row)
    return found
