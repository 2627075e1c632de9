"""A copier: reads its partitions of the input, and writes the copies and its offsets in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.copies.book import Transaction
from tests.simulation.copies.transactor import Outcome, Transactor
from tests.simulation.groups.progress import MEMBERS, Progress, names_from
from tests.simulation.groups.roster import Roster
from tests.simulation.ledger import Ledger
from tests.simulation.plan import OUTPUT
from tests.simulation.script import Script, Steps

if TYPE_CHECKING:
    from tests.simulation.world import World

MOST = 20  # records of a partition in one transaction: a segment of the output is small
Work = dict[Ledger, list[int]]  # offsets of the input, by partition


class Copier:
    """One life of a copier. When it does not know how things stand, it asks where its group is and goes on there."""

    def __init__(self, world: World, roster: Roster, name: str, transactional_id: str) -> None:
        self.world = world
        self.roster = roster
        self.name = name
        self.member = MEMBERS[roster.kind](world, roster, name, None, self)
        self.progress = Progress(world, name, self.member, committed=True)
        self.transactor = Transactor(world, self, transactional_id, world.plan.transactions)
        self.script = Script(world, self.live())

    def die(self) -> None:
        self.script.end()
        for peer in (self.member.office.peer, self.progress.peer, self.transactor.office.peer, self.transactor.peer):
            peer.hang_up()
        self.roster.leave(self.member.holder)

    def finish(self, ledgers: list[Ledger]) -> Steps[None]:
        """No transaction is open between two steps of `live`."""
        for ledger in ledgers:
            self.progress.positions.pop(ledger, None)
        return
        yield

    def lose_all(self) -> None:
        self.progress.positions.clear()

    # The life of it.

    def live(self) -> Steps[None]:
        outcome = yield from self.transactor.begin()
        while outcome is not Outcome.FENCED and self.script.goes_on:
            if outcome is not Outcome.DONE:
                self.lose_all()
                outcome = yield from self.transactor.begin()
                continue
            yield from self.stall_if_asked()
            yield from self.member.keep()
            yield from self.progress.look_up()
            work = yield from self.poll()
            if work:
                outcome = yield from self.copy(work)
            yield self.script.pause()
        if outcome is Outcome.FENCED:
            self.world.counts["copiers fenced"] += 1
        if outcome is not Outcome.FENCED or self.world.random.random() < 0.3:
            yield from self.member.leave()
        self.roster.leave(self.member.holder)

    def stall_if_asked(self) -> Steps[None]:
        if self.script.is_to_stall(False, 0.4):
            self.world.events.note(f"{self.name} stalls")
            yield self.world.random.uniform(0.3, 2) * self.world.plan.session_ms

    def poll(self) -> Steps[Work]:
        before = dict(self.progress.positions)
        found = yield from self.progress.fetch()
        work = {ledger: [at for at, _ in names_from(seen, before[ledger])][:MOST] for ledger, seen in found.items()}
        self.progress.positions |= {ledger: offsets[-1] + 1 for ledger, offsets in work.items()}
        return work

    def copy(self, work: Work) -> Steps[Outcome]:
        """One transaction. It ends well, is aborted, or its end remains unknown."""
        one = self.world.book.begin(self.name)
        self.world.counts["transactions"] += 1
        outcome = yield from self.fill(one, work)
        commit, failed = outcome is Outcome.DONE, self.transactor.failed
        self.world.events.note(f"{self.name} ends {one.number}: {outcome.name}, {one.written}")
        if outcome in (Outcome.DONE, Outcome.ABORT):
            yield from self.stall_if_asked()
            self.world.tempt_fate()
            outcome = yield from self.end(one, work, commit)
            if failed and self.transactor.version == 1:
                outcome = Outcome.UNKNOWN  # a sequence may have a gap now: begin anew
        if not (commit and outcome is Outcome.DONE):
            self.world.counts["transactions that did not commit"] += 1
            self.lose_all()
        return outcome

    def fill(self, one: Transaction, work: Work) -> Steps[Outcome]:
        """All that belongs to the transaction; now and then it is aborted for no reason."""
        random, transactor, topic = self.world.random, self.transactor, OUTPUT
        outcome = Outcome.DONE
        if transactor.version == 1:
            outcome = yield from transactor.add([ledger.index for ledger in work], topic)
        for ledger, offsets in work.items():
            if outcome is Outcome.DONE:
                outcome = yield from transactor.write(one, topic, ledger.index, offsets)
                self.world.tempt_fate()
        if outcome is Outcome.DONE and random.random() < 0.1 and not self.world.draining:
            return Outcome.ABORT
        yield from self.stall_if_asked()
        if outcome is Outcome.DONE and transactor.version == 1:
            outcome = yield from transactor.add_group(self.roster.name)
        if outcome is Outcome.DONE:
            outcome = yield from self.commit_offsets({ledger: offsets[-1] + 1 for ledger, offsets in work.items()})
        return outcome

    def commit_offsets(self, offsets: dict[Ledger, int]) -> Steps[Outcome]:
        for ledger, offset in offsets.items():
            self.roster.sends(ledger, offset)
        sent_ms, generation = self.world.clock.now, self.member.identity[2]
        outcome = yield from self.transactor.commit_offsets(offsets)
        if outcome is Outcome.DONE:
            for ledger in offsets:
                self.roster.check_fencing(self.member.holder, ledger, generation, sent_ms)
        return outcome

    def end(self, one: Transaction, work: Work, commit: bool) -> Steps[Outcome]:
        """End it, and learn what counts from now on."""
        sent_ms = self.world.clock.now
        outcome = yield from self.transactor.end(one, commit)
        if commit and outcome is Outcome.DONE:
            self.world.counts["transactions committed"] += 1
            for ledger, offsets in work.items():
                if not self.world.lost_power:  # else it may be an earlier transaction of which the answer speaks
                    self.roster.committed(ledger, offsets[-1] + 1, sent_ms)
        return outcome
