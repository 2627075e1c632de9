"""A consumer of a share group: fetches, settles what it was given in every way; dies, stalls, leaves and comes back."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.machines.share.partition import ACCEPT, REJECT, RELEASE, RENEW
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.ledger import Ledger
from tests.simulation.network import Link, Peer
from tests.simulation.office import AWAY
from tests.simulation.properties import Property
from tests.simulation.script import Call, Script, Steps
from tests.simulation.shares.membership import ShareMembership
from tests.simulation.shares.pool import LOCK_MS, Hold, Pool

if TYPE_CHECKING:
    from tests.simulation.world import World

INITIAL, FINAL = 0, -1
RENEWS_FROM = 2
SETTLING = (ACCEPT, REJECT)
# Of a partition that the group has begun anew: nobody has asked for records of it yet, or for none so far behind.
BEGUN_ANEW = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_REQUEST)
SESSION_LOST = (Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH)


class Word(NamedTuple):
    """What a client says of one record that it holds."""

    ledger: Ledger
    offset: int
    kind: int
    hold: Hold


class Sharer:
    """One life of a client."""

    def __init__(self, world: World, pool: Pool, name: str) -> None:
        self.world = world
        self.pool = pool
        self.name = name
        self.member = ShareMembership(world, pool, name)
        self.peer = Peer(world, f"{name}.share")
        self.epoch = INITIAL
        self.link: Link | None = None  # over which the session was opened
        self.fetched: list[Ledger] = []  # that the session knows
        self.held: dict[Ledger, dict[int, Hold]] = {}
        self.script = Script(world, self.live())

    def live(self) -> Steps[None]:
        while self.script.goes_on:
            yield from self.member.keep()
            yield from self.fetch()
            yield from self.stall_if_asked()
            if self.world.random.random() < 0.7 or self.world.draining:
                yield from self.acknowledge(self.epoch)
            yield self.script.pause()
        self.give_up()
        yield from self.acknowledge(FINAL)
        self.lose_session()
        yield from self.member.leave()

    def stall_if_asked(self) -> Steps[None]:
        """With records in its hands, perhaps for longer than their locks."""
        if self.script.is_to_stall(bool(self.held), 0.1):
            yield self.world.random.uniform(0.1, 1.5) * LOCK_MS

    def die(self) -> None:
        """Without a word."""
        self.script.end()
        for peer in (self.member.office.peer, self.peer):
            peer.hang_up()

    # Fetching.

    def fetch(self) -> Steps[None]:
        wanted = self.member.assigned
        if self.epoch == INITIAL and not wanted:
            return
        epoch, asked_ms = self.epoch, self.world.clock.now
        said = self.words() if epoch != INITIAL and self.world.random.random() < 0.3 else []
        request = self.fetch_request(wanted, said)
        self.fetched = list(dict.fromkeys([*wanted, *(word.ledger for word in said)]))
        asked = self.fetched
        self.say(said)
        self.pool.unheard.update(asked)
        answer = yield from self.ask(request, self.world.random.randrange(1, 3), epoch)
        if answer is None:
            return
        self.pool.unheard.subtract(asked)
        if self.check_session(answer, said):
            rows = rows_of(answer, self.pool.topics)
            self.told(said, {ledger: Error(row.acknowledge_error_code) for ledger, row in rows.items()})
            for ledger, row in rows.items():
                self.take(ledger, row, asked_ms)

    def fetch_request(self, wanted: list[Ledger], said: list[Word]) -> Any:
        """All partitions at first, and then what has changed; words may come along."""
        random = self.world.random
        new = wanted if self.epoch == INITIAL else [ledger for ledger in wanted if ledger not in self.fetched]
        gone = [] if self.epoch == INITIAL else [ledger for ledger in self.fetched if ledger not in wanted]
        spoken = batches(said, m.ShareFetchRequest_AcknowledgementBatch)
        row = m.ShareFetchRequest_FetchPartition
        rows = {ledger: row(ledger.index, spoken.get(ledger, [])) for ledger in dict.fromkeys([*new, *spoken])}
        return m.ShareFetchRequest(
            group_id=self.pool.name,
            member_id=self.member.id,
            share_session_epoch=self.epoch,
            max_wait_ms=random.choice((0, 10, 30)),
            min_bytes=1,
            max_bytes=random.choice((1, 1 << 20)),
            max_records=random.choice((1, 4, 500)),
            batch_size=random.choice((1, 500)),
            share_acquire_mode=random.randrange(2),
            topics=[m.ShareFetchRequest_FetchTopic(*topic) for topic in by_topic(rows).items()],
            forgotten_topics_data=[
                m.ShareFetchRequest_ForgottenTopic(topic_id, [ledger.index for ledger in ledgers])
                for topic_id, ledgers in by_topic({ledger: ledger for ledger in gone}).items()
            ],
        )

    def take(self, ledger: Ledger, row: Any, asked_ms: float) -> None:
        """Records that were acquired; those beside them in their batches are not ours."""
        if row.error_code:
            self.check_refusal(ledger, Error(row.error_code))
            return
        assert self.link is not None, "a session has a link"
        firm = self.pool.is_firm(ledger, asked_ms)
        found = {offset for batch in ledger.read(row.records, self.world.clock.wall_ms()) for offset in batch.offsets}
        for run in row.acquired_records:
            self.world.events.note(f"{self.name} has {ledger} {run.first_offset}..{run.last_offset}")
            for offset in range(run.first_offset, run.last_offset + 1):
                if offset not in found:
                    raise self.pool.broken(Property.READABLE, f"{ledger} at {offset} is acquired and did not come")
                hold = self.held.setdefault(ledger, {})[offset] = Hold(self.name, self.link, asked_ms + LOCK_MS, firm)
                self.pool.deliver((ledger, offset), hold, run.delivery_count)
                self.world.counts["records shared"] += 1

    # Acknowledging.

    def words(self) -> list[Word]:
        """Something about some of the records that it holds; when all is to end, that they are accepted."""
        random, said = self.world.random, []
        for ledger, held in self.held.items():
            for offset, hold in held.items():
                if self.world.draining:
                    said.append(Word(ledger, offset, ACCEPT, hold))
                elif random.random() < 0.7:
                    kind = random.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT))
                    said.append(Word(ledger, offset, kind, hold))
        return said

    def acknowledge(self, epoch: int) -> Steps[None]:
        said = self.words()
        version = self.world.random.randrange(1, 3)
        renews = version >= RENEWS_FROM and not self.world.draining and self.world.random.random() < 0.3
        if renews:
            said = [word._replace(kind=RENEW) if self.world.random.random() < 0.5 else word for word in said]
        if self.epoch == INITIAL or (not said and epoch != FINAL):
            return
        spoken = batches(said, m.ShareAcknowledgeRequest_AcknowledgementBatch)
        rows = {
            ledger: m.ShareAcknowledgeRequest_AcknowledgePartition(ledger.index, spoken[ledger]) for ledger in spoken
        }
        topics = [m.ShareAcknowledgeRequest_AcknowledgeTopic(*topic) for topic in by_topic(rows).items()]
        request = m.ShareAcknowledgeRequest(self.pool.name, self.member.id, epoch, topics=topics)
        if version >= RENEWS_FROM:
            request.is_renew_ack = renews
        asked_ms = self.world.clock.now
        self.say(said)
        answer = yield from self.ask(request, version, epoch)
        if answer is not None and self.check_session(answer, said):
            rows = rows_of(answer, self.pool.topics)
            self.told(said, {ledger: Error(row.error_code) for ledger, row in rows.items()}, asked_ms)

    def say(self, said: list[Word]) -> None:
        """From now on it may be so, or not."""
        for ledger, offset, kind, hold in said:
            if kind in SETTLING:
                self.pool.settles((ledger, offset), hold)
            if kind != RENEW:
                self.pool.let_go((ledger, offset), hold)

    def told(self, said: list[Word], errors: dict[Ledger, Error], asked_ms: float = 0.0) -> None:
        for ledger, words in groupby(said, key=lambda word: word.ledger):
            self.told_of(ledger, list(words), errors[ledger], asked_ms)

    def told_of(self, ledger: Ledger, words: list[Word], error: Error, asked_ms: float) -> None:
        """All that was said of a partition holds, or nothing."""
        self.world.events.note(f"{self.name} says {len(words)} words of {ledger}: {error.name}")
        if error is Error.NONE:
            for word in words:
                self.done(word, asked_ms)
            return
        self.world.counts["acknowledgements refused"] += 1
        if error is Error.INVALID_RECORD_STATE:
            now = self.world.clock.now
            if all(word.hold.is_sure(now) for word in words):
                seen = f"{self.name} holds {ledger} {words[0].offset} ..., and is refused"
                raise self.pool.broken(Property.ONE_LOCK, seen)
        elif error not in BEGUN_ANEW or all(word.hold.firm for word in words):
            self.check_refusal(ledger, error)
        for word in words:
            self.forget(word, in_doubt=error in AWAY)

    def done(self, word: Word, asked_ms: float) -> None:
        ledger, offset, kind, hold = word
        self.world.counts[f"records {NAMES[kind]}"] += 1
        if kind == RENEW:
            hold.until_ms = asked_ms + LOCK_MS
            return
        del self.held[ledger][offset]
        if kind in SETTLING:
            self.pool.settle((ledger, offset), hold)

    def forget(self, word: Word, in_doubt: bool = False) -> None:
        """Nothing came of it, or that is not known: a sync that failed may have reached the disk."""
        place = word.ledger, word.offset
        if not in_doubt:
            self.pool.refused(place, word.hold)
        self.pool.let_go(place, word.hold)
        self.held[word.ledger].pop(word.offset, None)

    # The session.

    def ask(self, request: Any, version: int, epoch: int) -> Steps[Any]:
        """The answer; None if it is lost, and the session with it. Goes on when what was lost can no longer arrive."""
        answer = yield Call(self.peer, request, version)
        if answer is None:
            self.lose_session()
            yield self.world.ghost_ms()
        elif epoch == INITIAL:
            self.link = self.peer.link
        return answer

    def check_session(self, answer: Any, said: list[Word]) -> bool:
        """Whether the session goes on. It ends with the connection, and with that alone."""
        error = Error(answer.error_code)
        if error is Error.NONE:
            self.epoch += 1
            return True
        self.world.events.note(f"{self.name} has no session: {error.name}")
        if error not in SESSION_LOST or self.link is self.peer.link:
            raise self.pool.broken(Property.ANSWERS, f"{self.name} in session epoch {self.epoch}: {error.name}")
        for word in said:
            self.forget(word)
        self.lose_session()
        return False

    def lose_session(self) -> None:
        self.epoch, self.link, self.fetched = INITIAL, None, []
        self.give_up()
        self.held.clear()

    def give_up(self) -> None:
        """It does not count on what it holds any more."""
        for ledger, held in self.held.items():
            for offset, hold in held.items():
                self.pool.let_go((ledger, offset), hold)

    def check_refusal(self, ledger: Ledger, error: Error) -> None:
        """A partition, or the coordinator of its state, has a reason to be away. With the power state may be lost."""
        if error is Error.UNKNOWN_SERVER_ERROR and self.world.lost_power:
            return
        if error not in AWAY:
            self.world.check_refusal(ledger, error)
        elif not self.world.coordinators_may_fail():
            raise self.pool.broken(Property.SOUND_STAYS_ONLINE, f"{ledger}: {error.name}")


NAMES = {ACCEPT: "accepted", RELEASE: "released", REJECT: "rejected", RENEW: "renewed"}


def batches(said: list[Word], row: Any) -> dict[Ledger, list[Any]]:
    """Words as batches of neighbours, each with its type, or with one for all of them."""
    result: dict[Ledger, list[Any]] = {}
    for word in sorted(said, key=lambda word: (word.ledger.topic.id, word.ledger.index, word.offset)):
        rows = result.setdefault(word.ledger, [])
        if rows and rows[-1].last_offset == word.offset - 1:
            rows[-1].last_offset = word.offset
            rows[-1].acknowledge_types.append(word.kind)
        else:
            rows.append(row(word.offset, word.offset, [word.kind]))
    for one in (one for rows in result.values() for one in rows if len(set(one.acknowledge_types)) == 1):
        del one.acknowledge_types[1:]
    return result


def by_topic(rows: dict[Ledger, Any]) -> dict[bytes, list[Any]]:
    topics: dict[bytes, list[Any]] = {}
    for ledger, row in rows.items():
        topics.setdefault(ledger.topic.id, []).append(row)
    return topics


def rows_of(answer: Any, topics: list[Any]) -> dict[Ledger, Any]:
    known = {topic.id: topic.ledgers for topic in topics}
    return {
        known[bytes(topic.topic_id)][row.partition_index]: row for topic in answer.responses for row in topic.partitions
    }
