"""Consumers: they follow the log or jump about in it, with fetch sessions and without, wait for records, look up times.

What a consumer is told is compared with what was known when it asked: a later answer may say more, never less.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from tests.simulation.ledger import Ledger, Seen
from tests.simulation.network import Peer
from tests.simulation.properties import Property

if TYPE_CHECKING:
    from tests.simulation.world import World

BY_ID, SESSIONS = 13, 7
LATEST, EARLIEST, NEWEST = -1, -2, -3
SESSION_ERRORS = (
    Error.FETCH_SESSION_ID_NOT_FOUND,
    Error.INVALID_FETCH_SESSION_EPOCH,
    Error.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Asked:
    """A partition as it was known when a request for it left."""

    __slots__ = ("acked", "high", "ledger", "offset", "start")

    def __init__(self, ledger: Ledger, offset: int) -> None:
        self.ledger = ledger
        self.offset = offset
        self.high, self.start = ledger.high, ledger.start
        self.acked = ledger.acked


class Consumer:
    """A client that reads until the world ends. A position is dropped when its topic is gone."""

    def __init__(self, world: World, name: str) -> None:
        random = world.random
        self.world = world
        self.peer = Peer(world, name)
        self.version = random.randrange(BY_ID if world.plan.reuse_names else 4, 19)
        self.with_session = self.version >= SESSIONS and random.random() < 0.6
        self.pace_ms = world.plan.length_ms / random.choice((10, 25))
        self.positions: dict[Ledger, int] = {}
        self.session_id = 0
        self.epoch = 0
        self.told: dict[Ledger, int] = {}  # the session's partitions and offsets
        self.asking = False
        self.later()

    def later(self) -> None:
        self.world.events.after(self.world.random.uniform(0.1, 1.9) * self.pace_ms, self.act)

    def act(self) -> None:
        if self.world.ending:
            return
        self.later()
        if self.asking:
            return
        self.choose()
        if self.positions:
            self.asking = True
            self.look_up() if self.world.random.random() < 0.2 else self.fetch()

    def choose(self) -> None:
        """Take up a partition, or jump within one."""
        random, ledgers = self.world.random, self.world.ledgers()
        self.positions = {ledger: at for ledger, at in self.positions.items() if ledger in ledgers}
        if ledgers and random.random() < 0.3:
            ledger = random.choice(ledgers)
            self.positions[ledger] = random.randint(ledger.start, max(ledger.start, ledger.high))

    # Fetches.

    def fetch(self) -> None:
        random = self.world.random
        asked = {ledger: Asked(ledger, offset) for ledger, offset in self.positions.items()}
        sent, forgotten = self.session_rows(asked)
        request = m.FetchRequest(
            max_wait_ms=random.choice((0, 0, 20, 200)),
            min_bytes=random.choice((0, 1, 1, 2000)),
            max_bytes=random.choice((1, 400, 1 << 20)),
            isolation_level=random.choice((0, 1)),
            session_id=self.session_id if self.with_session else 0,
            session_epoch=self.epoch if self.with_session else -1,
            topics=self.rows(sent),
            forgotten_topics_data=self.forgotten_rows(forgotten),
        )
        self.peer.call(request, self.version, lambda answer: self.fetched(asked, answer), self.lost)

    def session_rows(self, asked: dict[Ledger, Asked]) -> tuple[dict[Ledger, Asked], list[Ledger]]:
        """In a session, what has changed since the last request."""
        if not self.with_session or self.epoch == 0:
            return asked, []
        sent = {ledger: one for ledger, one in asked.items() if self.told.get(ledger) != one.offset}
        return sent, [ledger for ledger in self.told if ledger not in asked]

    def rows(self, asked: dict[Ledger, Asked]) -> list[Any]:
        topics: dict[int, Any] = {}
        for ledger, one in asked.items():
            topic = ledger.topic
            if id(topic) not in topics:
                topics[id(topic)] = m.FetchRequest_FetchTopic(**self.named(topic), partitions=[])
            topics[id(topic)].partitions.append(
                m.FetchRequest_FetchPartition(
                    partition=ledger.index,
                    fetch_offset=one.offset,
                    partition_max_bytes=self.world.random.choice((1, 300, 1 << 20)),
                )
            )
        return list(topics.values())

    def named(self, topic: Any) -> dict[str, Any]:
        return {"topic_id": topic.id} if self.version >= BY_ID else {"topic": topic.name}

    def forgotten_rows(self, ledgers: list[Ledger]) -> list[Any]:
        return [
            m.FetchRequest_ForgottenTopic(**self.named(ledger.topic), partitions=[ledger.index]) for ledger in ledgers
        ]

    def lost(self) -> None:
        self.asking = False
        self.session_id = self.epoch = 0
        self.told = {}

    def fetched(self, asked: dict[Ledger, Asked], answer: Any) -> None:
        self.asking = False
        if answer.error_code:
            assert Error(answer.error_code) in SESSION_ERRORS, Error(answer.error_code).name
            self.session_id = self.epoch = 0
            self.told = {}
            return
        if self.with_session:
            self.session_id = answer.session_id
            self.epoch = self.epoch + 1 if answer.session_id else 0
            self.told = {ledger: one.offset for ledger, one in asked.items()} if answer.session_id else {}
        by_key = {(self.key(ledger.topic), ledger.index): one for ledger, one in asked.items()}
        for topic in answer.responses:
            for part in topic.partitions:
                one = by_key[topic.topic_id if self.version >= BY_ID else topic.topic, part.partition_index]
                self.take(one, part)

    def key(self, topic: Any) -> Any:
        return topic.id if self.version >= BY_ID else topic.name

    def take(self, one: Asked, part: Any) -> None:
        ledger, error = one.ledger, Error(part.error_code)
        if error is Error.OFFSET_OUT_OF_RANGE:
            self.out_of_range(one)
            return
        if error is not Error.NONE:
            self.world.check_refusal(ledger, error)
            return
        check_watermarks(one, part.high_watermark, part.log_start_offset)
        try:
            found = ledger.read(part.records, self.world.clock.wall_ms())
        except WireError:
            self.world.counts["rot noticed by the CRC"] += 1
            return
        if found:
            self.advance(one, found, part.high_watermark)
        self.world.events.note(f"{self.peer.name} {ledger} read {len(found)} batches at {one.offset}")

    def out_of_range(self, one: Asked) -> None:
        """Only what was deleted, or has not been written, is out of range."""
        ledger = one.ledger
        if one.offset >= max(ledger.start, ledger.cut_to) and one.offset <= one.acked and not ledger.expires:
            raise ledger.broken(Property.READABLE, f"offset {one.offset} is out of range, {one.acked} are acknowledged")
        self.positions.pop(ledger, None)

    def advance(self, one: Asked, found: list[Seen], high: int) -> None:
        ledger = one.ledger
        self.world.counts["records consumed"] += sum(len(batch.names) for batch in found)
        if not (ledger.topic.compacted or ledger.rotten):
            check_run(ledger, one.offset, found)
        if found[-1].last_offset >= high:
            raise ledger.broken(Property.READABLE, f"{found[-1].last_offset} was read, high watermark {high}")
        if ledger in self.positions:
            self.positions[ledger] = found[-1].last_offset + 1

    # Look-ups.

    def look_up(self) -> None:
        random = self.world.random
        ledger = random.choice(list(self.positions))
        now = self.world.clock.wall_ms()
        times = (LATEST, EARLIEST, NEWEST, now - 100, now - random.randrange(3000))
        asked, timestamp = Asked(ledger, 0), random.choice(times)
        part = m.ListOffsetsRequest_ListOffsetsPartition(partition_index=ledger.index, timestamp=timestamp)
        request = m.ListOffsetsRequest(-1, 0, [m.ListOffsetsRequest_ListOffsetsTopic(ledger.topic.name, [part])])
        self.peer.call(request, random.randrange(7, 10), lambda answer: self.found(asked, timestamp, answer), self.lost)

    def found(self, asked: Asked, timestamp: int, answer: Any) -> None:
        self.asking = False
        part = answer.topics[0].partitions[0]
        ledger = asked.ledger
        if part.error_code:
            self.world.check_refusal(ledger, Error(part.error_code))
            return
        self.world.events.note(f"{self.peer.name} {ledger} looked up {timestamp}: {part.offset}")
        if self.world.topics.get(ledger.topic.name) is not ledger.topic or ledger.rotten or ledger.index_rotten:
            return  # the name may stand for another topic by now
        if timestamp == LATEST and part.offset < asked.high:
            raise ledger.broken(Property.NEVER_BACK, f"latest is {part.offset} after {asked.high}")
        if timestamp == EARLIEST and part.offset < asked.start:
            raise ledger.broken(Property.NEVER_BACK, f"earliest is {part.offset} after {asked.start}")
        if timestamp >= 0 and not ledger.topic.append_time:
            check_look_up(asked, timestamp, part.offset, part.timestamp)


def check_watermarks(one: Asked, high: int, start: int) -> None:
    if high < one.high:
        raise one.ledger.broken(Property.NEVER_BACK, f"the high watermark is {high} after {one.high}")
    if 0 <= start < one.start:
        raise one.ledger.broken(Property.NEVER_BACK, f"the log start offset is {start} after {one.start}")
    one.ledger.start = max(one.ledger.start, start)


def check_run(ledger: Ledger, offset: int, found: list[Seen]) -> None:
    """From the batch that holds the offset on, one follows the other."""
    if found[0].base_offset > offset or found[0].last_offset < offset:
        seen = f"offset {offset} was asked for, {found[0].base_offset}..{found[0].last_offset} came"
        raise ledger.broken(Property.NO_GAP, seen)
    for before, after in pairwise(found):
        if after.base_offset != before.last_offset + 1:
            raise ledger.broken(Property.NO_GAP, f"{before.last_offset} is followed by {after.base_offset}")


def check_look_up(asked: Asked, wanted: int, offset: int, timestamp: int) -> None:
    """Nothing that was acknowledged before the question is passed over."""
    ledger = asked.ledger
    end = offset if offset >= 0 else asked.acked
    stable = not (ledger.expires or ledger.topic.compacted)
    for at in range(max(ledger.start, ledger.cut_to), min(end, asked.acked)) if stable else ():
        name = ledger.known.get(at)
        if name is not None and ledger.time_of(name) >= wanted:
            raise ledger.broken(Property.LOOK_UP, f"{wanted} was looked up: {offset}, but {name!r} stands at {at}")
    name = ledger.known.get(offset)
    if offset >= 0 and (timestamp < wanted or (name is not None and ledger.time_of(name) != timestamp)):
        raise ledger.broken(Property.LOOK_UP, f"{wanted} was looked up: {name!r} at {offset} with time {timestamp}")
