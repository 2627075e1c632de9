"""Membership of a share group: heartbeats, and the partitions that a member is told to fetch from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.ledger import Ledger
from tests.simulation.office import GROUP, Office
from tests.simulation.properties import Property
from tests.simulation.script import Steps
from tests.simulation.shares.pool import Pool

if TYPE_CHECKING:
    from tests.simulation.world import World

JOIN, LEAVE = 0, -1
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH)


class ShareMembership:
    """One member; nobody waits for it, so it takes what it is told at once."""

    def __init__(self, world: World, pool: Pool, name: str) -> None:
        self.world = world
        self.pool = pool
        self.name = name
        self.office = Office(world, name, pool.name, GROUP)
        self.id = f"{name}-{world.random.getrandbits(64):016x}"
        self.epoch = JOIN
        self.parts: list[tuple[bytes, int]] = []
        self.unsure = True
        self.beat_ms = world.plan.session_ms / world.random.choice((4, 8))
        self.due_ms = 0.0

    @property
    def assigned(self) -> list[Ledger]:
        """Of a partition that was just added nobody may know yet."""
        topics = {topic.id: topic.ledgers for topic in self.pool.topics}
        return [topics[topic_id][index] for topic_id, index in self.parts if index < len(topics[topic_id])]

    def keep(self) -> Steps[None]:
        if self.world.clock.now >= self.due_ms or self.unsure:
            yield from self.beat()

    def beat(self) -> Steps[None]:
        topics = [topic.name for topic in self.pool.topics] if self.unsure or self.epoch == JOIN else None
        request = m.ShareGroupHeartbeatRequest(self.pool.name, self.id, self.epoch, None, topics)
        answer = yield from self.office.ask(request, 1)
        self.unsure = answer is None
        if answer is None:
            return
        error = Error(answer.error_code)
        if error is Error.NONE:
            self.take(answer)
        else:
            self.refused(error)
            yield self.world.delay()

    def take(self, answer: Any) -> None:
        if answer.member_epoch < self.epoch and not self.world.lost_power:
            seen = f"{self.name} was in epoch {self.epoch}, and is in {answer.member_epoch}"
            raise self.pool.broken(Property.EPOCHS, seen)
        self.epoch = answer.member_epoch
        self.due_ms = self.world.clock.now + self.beat_ms
        if answer.assignment is not None:
            rows = answer.assignment.topic_partitions
            self.parts = [(bytes(row.topic_id), index) for row in rows for index in row.partitions]
            self.world.events.note(f"{self.name} shares {[str(ledger) for ledger in self.assigned]}")
        self.pool.shared(self.assigned)

    def refused(self, error: Error) -> None:
        self.world.events.note(f"{self.name} heartbeat {error.name}")
        forgotten = error is Error.GROUP_ID_NOT_FOUND and self.world.lost_power
        if error in OUT or forgotten:
            self.epoch, self.unsure = JOIN, True
        elif not self.office.is_away(error):
            raise self.pool.broken(Property.ANSWERS, f"{self.name} in {self.epoch}: {error.name}")

    def leave(self) -> Steps[None]:
        yield from self.office.ask(m.ShareGroupHeartbeatRequest(self.pool.name, self.id, LEAVE), 1)
