"""Membership by the consumer protocol (KIP-848): heartbeats alone, each member at its own pace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


class ConsumerMember:
    """One member; its id is its own choice, and new with each life."""

    def __init__(self, world: World, roster: Roster, name: str, instance: str | None, client: Partitions) -> None:
        random = world.random
        self.world = world
        self.roster = roster
        self.name = name
        self.instance = instance
        self.client = client
        self.office = Office(world, name, roster.name, GROUP)
        self.id = f"{name}-{random.getrandbits(64):016x}"
        self.epoch = JOIN
        self.wanted: list[tuple[bytes, int]] = []
        self.unsure = True  # what was said last may not have been heard: say everything
        self.said: list[Ledger] | None = None  # what the coordinator knows to be owned
        self.by_pattern = random.random() < 0.3
        self.assignor = random.choice((None, "uniform", "range"))
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
        answer = yield from self.office.ask(self.request(owned), 1)
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

    def request(self, owned: list[Ledger]) -> Any:
        known = m.ConsumerGroupHeartbeatRequest(self.roster.name, self.id, self.epoch, self.instance)
        if self.unsure or self.epoch == JOIN:
            known.rebalance_timeout_ms = self.world.plan.rebalance_ms
            names = [topic.name for topic in self.roster.topics]
            known.subscribed_topic_names = [] if self.by_pattern else names
            known.subscribed_topic_regex = "|".join(names) if self.by_pattern else None
            known.server_assignor = self.assignor
        known.topic_partitions = rows(owned) if self.unsure or self.said != owned else None
        return known

    def take(self, answer: Any) -> bool:
        """Whether it brings something new; then what is owned is said again, be it the same."""
        if answer.member_epoch < self.epoch and not self.world.lost_power:
            seen = f"{self.name} was in epoch {self.epoch}, and is in {answer.member_epoch}"
            raise self.roster.broken(Property.EPOCHS, seen)
        self.epoch = answer.member_epoch
        before = self.wanted
        if answer.assignment is not None:
            rows = answer.assignment.topic_partitions
            self.wanted = [(bytes(row.topic_id), index) for row in rows for index in row.partitions]
        if self.wanted != before:
            self.said = None
            self.note(f"is to have {[str(ledger) for ledger in self.target]} in epoch {self.epoch}")
        return self.wanted != before

    def leave(self) -> Steps[None]:
        yield from self.client.finish(list(self.owned))
        self.owned.clear()
        epoch = LEAVE if self.instance is None else AWAY_FOR_A_WHILE
        yield from self.office.ask(m.ConsumerGroupHeartbeatRequest(self.roster.name, self.id, epoch, self.instance), 1)

    def note(self, text: str) -> None:
        self.world.events.note(f"{self.name} {text}")


def rows(owned: list[Ledger]) -> list[Any]:
    topics: dict[bytes, list[int]] = {}
    for ledger in owned:
        topics.setdefault(ledger.topic.id, []).append(ledger.index)
    return [m.ConsumerGroupHeartbeatRequest_TopicPartitions(*row) for row in topics.items()]
