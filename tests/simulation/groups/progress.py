"""How far a member has read: it asks where its group is, fetches from there, and keeps the positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.consumers import check_run
from tests.simulation.groups.classic import ClassicMember
from tests.simulation.groups.consumer import ConsumerMember
from tests.simulation.groups.roster import NOTHING
from tests.simulation.groups.streams import streams_member
from tests.simulation.ledger import Ledger, Seen
from tests.simulation.network import Peer
from tests.simulation.properties import Property
from tests.simulation.script import Call, Steps

if TYPE_CHECKING:
    from tests.simulation.world import World

Member = ClassicMember | ConsumerMember
MEMBERS = {"eager": ClassicMember, "cooperative": ClassicMember, "consumer": ConsumerMember, "streams": streams_member}
FETCH, FETCH_BY_ID = 12, 13
BY_EPOCH, BY_ID = 9, 10
STABLE = 7
NOT_YET = (Error.UNSTABLE_OFFSET_COMMIT, Error.STALE_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID)


class Progress:
    """The positions of one member, in what it owns."""

    def __init__(self, world: World, name: str, member: Member, committed: bool) -> None:
        self.world = world
        self.member = member
        self.roster = member.roster
        self.peer = Peer(world, f"{name}.fetch")
        self.committed = committed  # reads and starts from what is decided alone
        self.positions: dict[Ledger, int] = {}
        self.asked_ms = 0.0  # when the offsets were last asked for

    # Where to begin.

    def look_up(self) -> Steps[None]:
        """Ask for the group's offsets of what is newly owned."""
        owned = self.member.owned
        self.positions = {ledger: at for ledger, at in self.positions.items() if ledger in owned}
        missing = [ledger for ledger in owned if ledger not in self.positions]
        if not missing:
            return
        version = self.world.random.randrange(STABLE, BY_ID + 1)
        floors = {ledger: self.roster.floors.get(ledger, NOTHING) for ledger in missing}
        self.asked_ms = self.world.clock.now
        answer = yield from self.member.office.ask(self.look_up_request(missing, version), version)
        if answer is not None:
            self.found(answer if version < 8 else answer.groups[0], floors)

    def look_up_request(self, ledgers: list[Ledger], version: int) -> Any:
        topics: dict[Any, list[int]] = {}
        for ledger in ledgers:
            topics.setdefault(ledger.topic, []).append(ledger.index)
        group = self.roster.name
        if version < 8:
            old = [m.OffsetFetchRequest_OffsetFetchRequestTopic(topic.name, at) for topic, at in topics.items()]
            return m.OffsetFetchRequest(group, old, require_stable=self.committed)
        rows = [m.OffsetFetchRequest_OffsetFetchRequestTopics(t.name, t.id, at) for t, at in topics.items()]
        asked = m.OffsetFetchRequest_OffsetFetchRequestGroup(group, topics=rows)
        if version >= BY_EPOCH and isinstance(self.member, ConsumerMember):
            asked.member_id, asked.member_epoch = self.member.id, self.member.epoch
        return m.OffsetFetchRequest(groups=[asked], require_stable=self.committed)

    def found(self, answer: Any, floors: dict[Ledger, int]) -> None:
        if answer.error_code:
            error = Error(answer.error_code)
            if error not in NOT_YET and not self.member.office.is_away(error):
                raise self.roster.broken(Property.ANSWERS, f"its offsets were asked for: {error.name}")
            self.member.heed(error) if error is Error.UNKNOWN_MEMBER_ID else None
            return
        by_index = {(ledger.topic.name, ledger.index): ledger for ledger in floors}
        by_index |= {(ledger.topic.id, ledger.index): ledger for ledger in floors}
        for topic in answer.topics:
            for part in topic.partitions:
                name, topic_id = topic.name, getattr(topic, "topic_id", None)
                ledger = by_index.get((name, part.partition_index)) or by_index[topic_id, part.partition_index]
                self.begin(ledger, Error(part.error_code), part.committed_offset, floors[ledger])

    def begin(self, ledger: Ledger, error: Error, offset: int, floor: int) -> None:
        if error in NOT_YET or self.member.office.is_away(error):
            self.world.counts["offsets that were not stable"] += 1
            return
        if error is not Error.NONE:
            raise self.roster.broken(Property.ANSWERS, f"the offset of {ledger} was asked for: {error.name}")
        self.roster.found(ledger, offset, floor, self.asked_ms)
        if ledger in self.member.owned:
            self.positions[ledger] = max(offset, 0)
            self.world.events.note(f"{self.member.name} begins {ledger} at {offset}")

    # Reading.

    def fetch(self) -> Steps[dict[Ledger, list[Seen]]]:
        """What there is to read; positions move past it."""
        asked = dict(self.positions)
        if not asked:
            return {}
        version = self.world.random.randrange(FETCH, FETCH_BY_ID + 5)
        answer = yield Call(self.peer, self.fetch_request(asked, version), version)
        if answer is None:
            yield self.world.delay()
            return {}
        found: dict[Ledger, list[Seen]] = {}
        by_index = {(x.topic.id if version >= FETCH_BY_ID else x.topic.name, x.index): x for x in asked}
        for topic in answer.responses:
            for part in topic.partitions:
                named = topic.topic_id if version >= FETCH_BY_ID else topic.topic
                ledger = by_index[named, part.partition_index]
                seen = self.take(ledger, asked[ledger], part)
                if seen and self.positions.get(ledger) == asked[ledger]:
                    self.positions[ledger] = seen[-1].last_offset + 1
                    found[ledger] = seen
        return found

    def fetch_request(self, asked: dict[Ledger, int], version: int) -> Any:
        random, topics = self.world.random, {}
        for ledger, offset in asked.items():
            part = m.FetchRequest_FetchPartition(
                partition=ledger.index, fetch_offset=offset, partition_max_bytes=random.choice((1, 300, 1 << 20))
            )
            topics.setdefault(ledger.topic, []).append(part)
        rows = [
            m.FetchRequest_FetchTopic(
                **({"topic_id": t.id} if version >= FETCH_BY_ID else {"topic": t.name}), partitions=p
            )
            for t, p in topics.items()
        ]
        return m.FetchRequest(
            max_wait_ms=random.choice((0, 10, 30)),
            min_bytes=1,
            max_bytes=random.choice((1, 1 << 20)),
            isolation_level=int(self.committed),
            session_epoch=-1,
            topics=rows,
        )

    def take(self, ledger: Ledger, offset: int, part: Any) -> list[Seen]:
        error = Error(part.error_code)
        if error is Error.OFFSET_OUT_OF_RANGE:
            if not self.world.lost_power:
                raise ledger.broken(Property.READABLE, f"{self.roster.name} cannot go on at {offset}")
            self.positions[ledger] = ledger.start  # auto.offset.reset=earliest
            return []
        if error is not Error.NONE:
            self.world.check_refusal(ledger, error)
            return []
        found = ledger.read(part.records, self.world.clock.wall_ms())
        if found:
            check_run(ledger, offset, found)
        return found


def names_from(seen: list[Seen], offset: int) -> list[tuple[int, bytes]]:
    """Records from an offset on: a batch may begin before it."""
    return [(at, name) for batch in seen for at, name in zip(batch.offsets, batch.names, strict=True) if at >= offset]
