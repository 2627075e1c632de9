"""Membership by heartbeats alone, each member at its own pace: consumer groups (KIP-848) and streams groups (KIP-1071).

The two differ in what a heartbeat looks like, which is the dialect of a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.groups.classic import Partitions
from tests.simulation.groups.roster import Holder, Roster
from tests.simulation.ledger import Ledger
from tests.simulation.office import GROUP, Office
from tests.simulation.properties import Property
from tests.simulation.script import Steps

if TYPE_CHECKING:
    from tests.simulation.world import World

JOIN, LEAVE, AWAY_FOR_A_WHILE = 0, -1, -2
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.FENCED_INSTANCE_ID)


Slot = tuple[bytes, int]  # a topic and a number


class Dialect(Protocol):
    """How a member of a kind of group says what it wants, and is told what it gets."""

    version: int

    def request(self, member: ConsumerMember, owned: list[Ledger]) -> Any: ...

    def assigned(self, member: ConsumerMember, answer: Any) -> list[Slot] | None:
        """What the member is to own; None if that has not changed."""
        ...

    def farewell(self, member: ConsumerMember) -> Any: ...


class ConsumerMember:
    """One member; its id is its own choice, and new with each life."""

    def __init__(
        self,
        world: World,
        roster: Roster,
        name: str,
        instance: str | None,
        client: Partitions,
        dialect: Dialect | None = None,
    ) -> None:
        random = world.random
        self.world = world
        self.roster = roster
        self.name = name
        self.instance = instance
        self.dialect = dialect or Consumer(world)
        self.client = client
        self.office = Office(world, name, roster.name, GROUP)
        self.id = f"{name}-{random.getrandbits(64):016x}"
        self.epoch = JOIN
        self.wanted: list[Slot] = []
        self.unsure = True  # what was said last may not have been heard: say everything
        self.said: list[Ledger] | None = None  # what the coordinator knows to be owned
        self.beat_ms = world.plan.session_ms / random.choice((4, 8))
        self.due_ms = 0.0
        self.holder = Holder(name, world.plan.session_ms, world.plan.rebalance_ms)
        roster.enter(self.holder)

    @property
    def owned(self) -> dict[Ledger, int]:
        return self.holder.owns

    @property
    def identity(self) -> tuple[str, str | None, int]:
        return self.id, self.instance, self.epoch

    @property
    def has_place(self) -> bool:
        return self.epoch > 0

    @property
    def target(self) -> list[Ledger]:
        """What it is to own; of a partition that was just added nobody may know yet."""
        topics = {topic.id: topic.ledgers for topic in self.roster.topics}
        return [topics[topic_id][index] for topic_id, index in self.wanted if index < len(topics[topic_id])]

    def keep(self) -> Steps[None]:
        """Move towards the target, now or in a while; say so, or that one is alive, when it is due."""
        if self.epoch > 0 and list(self.owned) != self.target and self.world.random.random() < 0.7:
            yield from self.move()
        if self.world.clock.now >= self.due_ms or self.unsure or self.said != list(self.owned):
            yield from self.beat()

    def forgotten(self, error: Error) -> bool:
        """A group is gone only with the power."""
        return error is Error.GROUP_ID_NOT_FOUND and self.world.lost_power

    def heed(self, error: Error) -> None:
        if error in OUT or self.forgotten(error):
            self.owned.clear()
            self.client.lose_all()
            self.wanted = []
            self.epoch, self.unsure = JOIN, True
        elif error is not Error.STALE_MEMBER_EPOCH:
            self.office.is_away(error)

    def move(self) -> Steps[None]:
        target = self.target
        lost = [ledger for ledger in self.owned if ledger not in target]
        if lost:
            self.world.counts["partitions given up"] += len(lost)
            yield from self.client.finish(lost)
            for ledger in lost:
                self.owned.pop(ledger, None)
        if self.epoch > 0 and self.target == target:
            self.roster.claim(self.holder, self.id, self.epoch, [x for x in target if x not in self.owned])
            self.holder.owns = {ledger: self.owned[ledger] for ledger in target}

    def beat(self) -> Steps[None]:
        sent_ms, owned = self.world.clock.now, list(self.owned)
        answer = yield from self.office.ask(self.dialect.request(self, owned), self.dialect.version)
        if answer is None:
            self.unsure = True
            return
        error = Error(answer.error_code)
        if error is not Error.NONE:
            self.note(f"heartbeat {error.name}")
            if not (
                error in (*OUT, Error.UNRELEASED_INSTANCE_ID) or self.office.is_away(error) or self.forgotten(error)
            ):
                raise self.roster.broken(Property.ANSWERS, f"{self.name} in {self.epoch}: {error.name}")
            self.heed(error)
            yield self.world.delay()
            return
        self.unsure, self.said = False, owned
        self.holder.heard_ms = sent_ms
        self.due_ms = self.world.clock.now + self.beat_ms
        if not self.take(answer) and all(ledger in self.target for ledger in owned):
            self.holder.settled_ms = sent_ms

    def take(self, answer: Any) -> bool:
        """Whether it brings something new; then what is owned is said again, be it the same."""
        if answer.member_epoch < self.epoch and not self.world.lost_power:
            seen = f"{self.name} was in epoch {self.epoch}, and is in {answer.member_epoch}"
            raise self.roster.broken(Property.EPOCHS, seen)
        self.epoch = answer.member_epoch
        before = self.wanted
        wanted = self.dialect.assigned(self, answer)
        self.wanted = before if wanted is None else wanted
        if self.wanted != before:
            self.said = None
            self.note(f"is to have {[str(ledger) for ledger in self.target]} in epoch {self.epoch}")
        return self.wanted != before

    def leave(self) -> Steps[None]:
        yield from self.client.finish(list(self.owned))
        self.owned.clear()
        yield from self.office.ask(self.dialect.farewell(self), self.dialect.version)

    def note(self, text: str) -> None:
        self.world.events.note(f"{self.name} {text}")


class Consumer:
    """A member of a consumer group: it subscribes to names or to a pattern."""

    version = 1

    def __init__(self, world: World) -> None:
        self.by_pattern = world.random.random() < 0.3
        self.assignor = world.random.choice((None, "uniform", "range"))

    def request(self, member: ConsumerMember, owned: list[Ledger]) -> Any:
        known = m.ConsumerGroupHeartbeatRequest(member.roster.name, member.id, member.epoch, member.instance)
        if member.unsure or member.epoch == JOIN:
            known.rebalance_timeout_ms = member.world.plan.rebalance_ms
            names = [topic.name for topic in member.roster.topics]
            known.subscribed_topic_names = [] if self.by_pattern else names
            known.subscribed_topic_regex = "|".join(names) if self.by_pattern else None
            known.server_assignor = self.assignor
        known.topic_partitions = rows(owned) if member.unsure or member.said != owned else None
        return known

    def assigned(self, member: ConsumerMember, answer: Any) -> list[Slot] | None:
        if answer.assignment is None:
            return None
        return [(bytes(row.topic_id), index) for row in answer.assignment.topic_partitions for index in row.partitions]

    def farewell(self, member: ConsumerMember) -> Any:
        epoch = LEAVE if member.instance is None else AWAY_FOR_A_WHILE
        return m.ConsumerGroupHeartbeatRequest(member.roster.name, member.id, epoch, member.instance)


def rows(owned: list[Ledger]) -> list[Any]:
    topics: dict[bytes, list[int]] = {}
    for ledger in owned:
        topics.setdefault(ledger.topic.id, []).append(ledger.index)
    return [m.ConsumerGroupHeartbeatRequest_TopicPartitions(*row) for row in topics.items()]
