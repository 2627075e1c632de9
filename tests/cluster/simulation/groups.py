"""A group that commits offsets, and looks where it is: each commit that was acknowledged is there, or a later one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.simulation.callers import Caller, Client
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

GROUP, TRANSACTION = 0, 1
NOT_NOW = frozenset(
    {
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.NOT_COORDINATOR,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.REQUEST_TIMED_OUT,
        Error.NOT_ENOUGH_REPLICAS,
        Error.KAFKA_STORAGE_ERROR,
    }
)


class Coordinated(Client):
    """A client of a coordinator, which it looks for again whenever that does not answer as it should."""

    kind = GROUP

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.coordinator: Caller | None = None
        self.is_busy = False
        self.later()

    def later(self) -> None:
        self.world.events.after(self.world.random.uniform(0.1, 1.9) * self.world.plan.pace_ms * 2, self.act)

    def act(self) -> None:
        if self.world.is_over:
            return
        self.later()
        if self.is_busy or not self.world.ledgers(lasting=True):
            return
        if self.coordinator is None:
            self.say(self.any_caller(), m.FindCoordinatorRequest(self.name, self.kind), 3, self.found)
        else:
            self.proceed(self.coordinator)

    def proceed(self, coordinator: Caller) -> None:
        raise NotImplementedError

    def say(self, caller: Caller, request: Any, version: int, done: Any) -> None:
        self.is_busy = True

        def answered(answer: Any) -> None:
            self.is_busy = False
            done(answer)

        caller.call(request, version, answered, self.lost)

    def lost(self) -> None:
        self.is_busy = False
        self.coordinator = None

    def found(self, answer: Any) -> None:
        if not answer.error_code:
            self.coordinator = self.callers[answer.node_id]

    def refused(self, error: Error, allowed: frozenset[Error] = NOT_NOW) -> bool:
        """Tell whether there was an error; only some of them can be."""
        if error is Error.NONE:
            return False
        if error not in allowed:
            raise Broken(Property.ANSWERS, f"{self.name}: {error.name}")
        self.world.counts[f"coordinator: {error.name}"] += 1
        self.coordinator = None
        return True


class Group(Coordinated):
    """A group without members, whose offsets somebody commits."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.next = 0
        self.committed = -1
        self.is_settled = False  # it was looked at after the last fault

    def proceed(self, coordinator: Caller) -> None:
        topic = self.world.ledgers(lasting=True)[0].topic
        if self.world.is_draining or self.world.random.random() < 0.4:
            row = m.OffsetFetchRequest_OffsetFetchRequestTopic(topic, [0])
            self.say(coordinator, m.OffsetFetchRequest(self.name, [row]), 7, self.seen(self.committed))
            return
        self.next += 1
        offset = self.next
        part = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, offset, committed_metadata=None)
        row = m.OffsetCommitRequest_OffsetCommitRequestTopic(topic, partitions=[part])
        self.say(coordinator, m.OffsetCommitRequest(self.name, topics=[row]), 8, self.was_committed(offset))

    def was_committed(self, offset: int) -> Any:
        def done(answer: Any) -> None:
            error = Error(answer.topics[0].partitions[0].error_code)
            self.world.note(f"{self.name} commits {offset}: {error.name}")
            if not self.refused(error):
                self.world.counts["offsets committed"] += 1
                self.committed = max(self.committed, offset)

        return done

    def seen(self, committed: int) -> Any:
        """Compare with what was acknowledged before the question."""
        was_draining = self.world.is_draining

        def done(answer: Any) -> None:
            part = answer.topics[0].partitions[0] if answer.topics else None
            if self.refused(Error(answer.error_code)) or part is None or self.refused(Error(part.error_code)):
                return
            self.is_settled |= was_draining
            if part.committed_offset < committed and not self.world.checker.is_torn("__consumer_offsets"):
                seen = f"{self.name} is at {part.committed_offset}, and {committed} was acknowledged"
                raise Broken(Property.COMMIT_STAYS, seen)

        return done
