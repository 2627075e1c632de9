"""A consumer of a group: reads, delivers, commits; dies, stalls, leaves and comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.groups.consumer import ConsumerMember
from tests.simulation.groups.progress import BY_EPOCH, BY_ID, MEMBERS, Progress, names_from
from tests.simulation.groups.roster import Roster
from tests.simulation.ledger import Ledger
from tests.simulation.properties import Property
from tests.simulation.script import Script, Steps

if TYPE_CHECKING:
    from tests.simulation.world import World

# Why a commit may be refused to a member that is late.
LATE = (
    Error.ILLEGAL_GENERATION,
    Error.UNKNOWN_MEMBER_ID,
    Error.FENCED_INSTANCE_ID,
    Error.STALE_MEMBER_EPOCH,
    Error.FENCED_MEMBER_EPOCH,
    Error.REBALANCE_IN_PROGRESS,
    Error.GROUP_ID_NOT_FOUND,
)


class Reader:
    """One life of a consumer."""

    def __init__(self, world: World, roster: Roster, name: str, instance: str | None) -> None:
        self.world = world
        self.roster = roster
        self.name = name
        self.read: dict[Ledger, int] = {}  # delivered, and not committed
        self.member = MEMBERS[roster.kind](world, roster, name, instance, self)
        self.progress = Progress(world, name, self.member, world.random.random() < 0.5)
        low = BY_EPOCH if isinstance(self.member, ConsumerMember) else 7
        self.commit_version = world.random.randrange(low, BY_ID + 1)  # one for its life: its commits begin alike
        self.script = Script(world, self.live())

    def live(self) -> Steps[None]:
        while self.script.goes_on:
            yield from self.member.keep()
            yield from self.progress.look_up()
            yield from self.poll()
            yield from self.stall_if_asked()
            if self.world.random.random() < 0.5 or self.world.draining:
                yield from self.commit(list(self.read))
            yield self.script.pause()
        yield from self.member.leave()
        self.gone()

    def stall_if_asked(self) -> Steps[None]:
        """With records that are delivered and not committed, if there are any."""
        if self.script.is_to_stall(bool(self.read), 0.1):
            yield self.world.random.uniform(0.3, 2) * self.world.plan.session_ms

    def die(self) -> None:
        """Without a word."""
        self.script.end()
        for peer in (self.member.office.peer, self.progress.peer):
            peer.hang_up()
        self.gone()

    def gone(self) -> None:
        self.roster.leave(self.member.holder)

    def poll(self) -> Steps[None]:
        before = dict(self.progress.positions)
        found = yield from self.progress.fetch()
        for ledger, seen in found.items():
            names = [name for _, name in names_from(seen, before[ledger])]
            self.roster.deliver(ledger, names)
            self.world.counts["records delivered to groups"] += len(names)
            self.read[ledger] = seen[-1].last_offset + 1

    def finish(self, ledgers: list[Ledger]) -> Steps[None]:
        """Before partitions are given up: commit, or leave it to the next owner to read again."""
        if self.world.random.random() < 0.7:
            yield from self.commit([ledger for ledger in ledgers if ledger in self.read])
        for ledger in ledgers:
            self.read.pop(ledger, None)
            self.progress.positions.pop(ledger, None)

    def lose_all(self) -> None:
        self.read.clear()
        self.progress.positions.clear()

    # Commits.

    def commit(self, ledgers: list[Ledger]) -> Steps[None]:
        if not self.member.has_place:
            return
        offsets = {ledger: self.read[ledger] for ledger in ledgers if ledger in self.member.owned}
        for ledger in ledgers:
            self.read.pop(ledger, None)
        if not offsets:
            return
        goes_back = self.world.random.random() < 0.03 and not self.world.draining
        if goes_back:
            self.go_back(offsets)
        version = self.commit_version
        for ledger, offset in offsets.items():
            self.roster.sends(ledger, offset, goes_back)
        sent_ms, generation = self.world.clock.now, self.member.identity[2]
        answer = yield from self.member.office.ask(self.commit_request(offsets), version)
        if answer is None:
            self.again(offsets)
            return
        by_name = {(x.topic.id if version >= BY_ID else x.topic.name, x.index): x for x in offsets}
        for topic in answer.topics:
            for part in topic.partitions:
                ledger = by_name[topic.topic_id if version >= BY_ID else topic.name, part.partition_index]
                error = Error(part.error_code)
                self.told(ledger, offsets[ledger], error)
                if error is Error.NONE:
                    self.roster.check_fencing(self.member.holder, ledger, generation, sent_ms)
                    self.roster.committed(ledger, offsets[ledger], sent_ms)

    def go_back(self, offsets: dict[Ledger, int]) -> None:
        """Somebody wants records again: a lower offset is committed, and read from."""
        for ledger in offsets:
            offsets[ledger] = self.progress.positions[ledger] = self.world.random.randint(0, offsets[ledger])
        self.world.counts["offsets set back"] += len(offsets)

    def commit_request(self, offsets: dict[Ledger, int]) -> Any:
        topics: dict[Any, list[Any]] = {}
        for ledger, offset in offsets.items():
            row = m.OffsetCommitRequest_OffsetCommitRequestPartition(ledger.index, offset, -1, None)
            topics.setdefault(ledger.topic, []).append(row)
        rows = [m.OffsetCommitRequest_OffsetCommitRequestTopic(t.name, t.id, parts) for t, parts in topics.items()]
        member_id, instance, generation = self.member.identity
        return m.OffsetCommitRequest(self.roster.name, generation, member_id, instance, -1, rows)

    def told(self, ledger: Ledger, offset: int, error: Error) -> None:
        self.world.events.note(f"{self.name} commits {ledger} at {offset}: {error.name}")
        if error is Error.NONE:
            self.world.counts["offsets committed"] += 1
        elif error in LATE or self.member.office.is_away(error):
            self.world.counts["commits refused"] += 1
            self.member.heed(error)
            self.again({ledger: offset})
        else:
            raise self.roster.broken(Property.ANSWERS, f"{self.name} commits {ledger}: {error.name}")

    def again(self, offsets: dict[Ledger, int]) -> None:
        """What was not committed is committed later, if it is still owned then."""
        for ledger, offset in offsets.items():
            if ledger in self.member.owned and ledger in self.progress.positions:
                self.read.setdefault(ledger, offset)
