"""Membership by the classic protocol: join, sync, heartbeat, leave; eager or cooperative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.groups.assigning import (
    ASSIGNORS,
    Slot,
    assignment,
    read_assignment,
    read_subscription,
    subscription,
)
from tests.simulation.groups.roster import Holder, Roster
from tests.simulation.ledger import Ledger
from tests.simulation.office import GROUP, Office
from tests.simulation.properties import Property
from tests.simulation.script import Steps

if TYPE_CHECKING:
    from tests.simulation.world import World

NO_GENERATION = -1
OUT = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)


class Partitions(Protocol):
    """What a client does with its partitions: it finishes with those that it gives up, and forgets lost ones."""

    def finish(self, ledgers: list[Ledger]) -> Steps[None]: ...

    def lose_all(self) -> None: ...


class ClassicMember:
    """One member of a group, for a client that reads its partitions."""

    def __init__(self, world: World, roster: Roster, name: str, instance: str | None, client: Partitions) -> None:
        random = world.random
        self.world = world
        self.roster = roster
        self.name = name
        self.instance = instance
        self.client = client
        self.office = Office(world, name, roster.name, GROUP)
        self.cooperative = roster.kind == "cooperative"
        self.id = ""
        self.generation = NO_GENERATION
        self.joined = False
        self.led: int | None = None  # as the leader: how many partitions it has shared out
        self.beat_ms = world.plan.session_ms / random.choice((4, 8))
        self.due_ms = 0.0
        # A static leader that comes back in an older version is not told that it leads, so nobody finds new partitions.
        self.join_version = random.randrange(5, 10) if instance is None else 9
        self.holder = Holder(name, world.plan.session_ms, world.plan.rebalance_ms)
        roster.enter(self.holder)

    @property
    def owned(self) -> dict[Ledger, int]:
        return self.holder.owns

    @property
    def identity(self) -> tuple[str, str | None, int]:
        """As commits tell it."""
        return self.id, self.instance, self.generation

    @property
    def has_place(self) -> bool:
        return self.joined

    def keep(self) -> Steps[None]:
        """One step towards being a member, or a sign of life when one is due."""
        if self.led not in (None, len(self.roster.ledgers())):
            self.joined = False  # a leader that finds more partitions has them shared out anew
        if not self.joined:
            yield from self.join()
        elif self.world.clock.now >= self.due_ms:
            yield from self.beat()

    def heed(self, error: Error) -> None:
        """What any answer but a good one means for the membership."""
        if error in OUT or error is Error.FENCED_INSTANCE_ID:
            self.owned.clear()  # somebody else may own it by now
            self.client.lose_all()
            self.id = self.id if error is Error.ILLEGAL_GENERATION else ""
            self.generation = NO_GENERATION
        if not self.office.is_away(error):
            self.joined = False

    # Joining.

    def join(self) -> Steps[None]:
        if not self.cooperative and self.owned:
            yield from self.client.finish(list(self.owned))
            self.owned.clear()
        answer = yield from self.office.ask(self.join_request(), self.join_version)
        if answer is None:
            return
        error = Error(answer.error_code)
        self.note(f"join {error.name} {answer.generation_id}")
        if error is Error.NONE:
            self.id = answer.member_id
            yield from self.sync(answer)
        elif error is Error.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
        elif error in (*OUT, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID) or self.office.is_away(error):
            self.heed(error)
            yield self.world.delay()
        else:
            raise self.roster.broken(Property.ANSWERS, f"{self.name} joins: {error.name}")

    def join_request(self) -> Any:
        names = [topic.name for topic in self.roster.topics]
        slots: list[Slot] = [(ledger.topic.name, ledger.index) for ledger in self.owned]
        version = self.world.random.choice((2, 3)) if self.cooperative else self.world.random.randrange(4)
        said = subscription(names, slots, self.generation, version)
        return m.JoinGroupRequest(
            self.roster.name,
            self.world.plan.session_ms,
            self.world.plan.rebalance_ms,
            self.id,
            self.instance,
            "consumer",
            [m.JoinGroupRequest_JoinGroupRequestProtocol(self.roster.kind, said)],
        )

    def sync(self, joined: Any) -> Steps[None]:
        """Ask for the assignment, or bring it. Who joins a generation again does not renew its session by that."""
        plans: dict[str, list[Slot]] = {}
        self.led = None
        if joined.leader == self.id and not joined.skip_assignment:
            members = [read_subscription(row.member_id, row.metadata) for row in joined.members]
            slots = [(ledger.topic.name, ledger.index) for ledger in self.roster.ledgers()]
            plans = ASSIGNORS[self.roster.kind](members, slots, self.world.random)
            self.led = len(slots)
            self.world.counts["assignments by leaders"] += 1
        elif joined.leader == self.id:
            self.led = 0
        rows = [m.SyncGroupRequest_SyncGroupRequestAssignment(who, assignment(what)) for who, what in plans.items()]
        names = {"protocol_type": "consumer", "protocol_name": self.roster.kind}
        where = (self.roster.name, joined.generation_id, self.id, self.instance)
        answer = yield from self.office.ask(
            m.SyncGroupRequest(*where, **names, assignments=rows), self.world.random.randrange(3, 6)
        )
        if answer is None:
            return
        error = Error(answer.error_code)
        if error is Error.NONE:
            self.generation = joined.generation_id
            self.joined = True
            self.due_ms = 0
            yield from self.take([self.ledger(slot) for slot in read_assignment(answer.assignment)])
        elif error in (*OUT, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID) or self.office.is_away(error):
            self.heed(error)
        else:
            raise self.roster.broken(Property.ANSWERS, f"{self.name} syncs: {error.name}")

    def ledger(self, slot: Slot) -> Ledger:
        return next(topic for topic in self.roster.topics if topic.name == slot[0]).ledgers[slot[1]]

    def take(self, given: list[Ledger]) -> Steps[None]:
        """Give up what was not given again, and take the rest; who gives up something joins again to say so."""
        self.note(f"has {[str(ledger) for ledger in given]} in generation {self.generation}")
        lost = [ledger for ledger in self.owned if ledger not in given]
        kept = [ledger for ledger in given if ledger in self.owned]
        new = [ledger for ledger in given if ledger not in self.owned]
        self.roster.claim(self.holder, self.instance or self.id, self.generation, [*kept, *new])
        if lost:
            self.world.counts["partitions given up"] += len(lost)
            yield from self.client.finish(lost)
            for ledger in lost:
                self.owned.pop(ledger, None)
            self.joined = False

    # Staying and going.

    def beat(self) -> Steps[None]:
        sent_ms = self.world.clock.now
        request = m.HeartbeatRequest(self.roster.name, self.generation, self.id, self.instance)
        answer = yield from self.office.ask(request, self.world.random.randrange(3, 5))
        if answer is None:
            return
        error = Error(answer.error_code)
        if error is Error.NONE:
            self.holder.settled_ms = sent_ms
        if error in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
            self.holder.heard_ms = sent_ms
            self.due_ms = self.world.clock.now + self.beat_ms
        if error is not Error.NONE:
            self.note(f"heartbeat {error.name}")
            known = (*OUT, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID)
            if error not in known and not self.office.is_away(error):
                raise self.roster.broken(Property.ANSWERS, f"{self.name} is alive: {error.name}")
            self.heed(error)

    def leave(self) -> Steps[None]:
        yield from self.client.finish(list(self.owned))
        self.owned.clear()
        row = m.LeaveGroupRequest_MemberIdentity(self.id, self.instance)
        yield from self.office.ask(m.LeaveGroupRequest(self.roster.name, "", [row]), self.world.random.randrange(3, 6))

    def note(self, text: str) -> None:
        self.world.events.note(f"{self.name} {text}")
