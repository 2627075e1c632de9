"""Members of streams groups that behave as clients do, on the coordinator in memory of consumers.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from moldau.machines.effects import Promise
from moldau.machines.group import Client
from moldau.machines.streams.configuring import InternalTopic
from moldau.machines.streams.group import StreamsGroup
from moldau.machines.streams.heartbeats import check_request, heartbeat, refusal
from moldau.machines.streams.tasks import FIELDS, Role, tasks_of
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.consumers import ASSIGNMENT_MS, REBALANCE_MS, SESSION_MS, Coordinator, through_bytes

SETTINGS = {
    "group.streams.session.timeout.ms": SESSION_MS,
    "group.streams.heartbeat.interval.ms": 5000,
    "group.streams.assignment.interval.ms": ASSIGNMENT_MS,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.num.standby.replicas": 0,
    "group.streams.max.size": 100,
}
TOLD = m.StreamsGroupHeartbeatRequest_TopicInfo

Slots = frozenset[tuple[Role, str, int]]


class StreamsCoordinator(Coordinator):
    """Creates internal topics that are missing, as the broker does, unless it is told not to."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings |= SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
        self.creates = True
        self.missing: tuple[InternalTopic, ...] = ()

    def beat(self, request: Any, version: int = 0) -> Any:
        promise = Promise(lambda error: refusal(error, None))
        request = through_bytes(request, None)
        try:
            check_request(request)
        except Refused as refused:
            return through_bytes(refusal(refused.error, refused.message).response, None)
        self.run(heartbeat(self.machine, promise, request, Client("c", "/h"), version, self.now_ms))
        self.missing = promise.answer.missing
        for topic in self.missing if self.creates else ():
            self.create(topic.name, topic.partitions)
        return through_bytes(promise.answer.response, None)

    def streams(self, group_id: str = "g") -> StreamsGroup:
        group = self.machine.groups[group_id]
        assert isinstance(group, StreamsGroup)
        return group


def part(
    name: str,
    *sources: str,
    sinks: Iterable[str] = (),
    reads: Iterable[Any] = (),
    changelogs: Iterable[Any] = (),
    together: Iterable[tuple[list[int], list[int]]] = (),
) -> Any:
    """A subtopology. Topics of the application are names, or names with their partitions."""
    return m.StreamsGroupHeartbeatRequest_Subtopology(
        subtopology_id=name,
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[*map(internal, reads)],
        state_changelog_topics=[*map(internal, changelogs)],
        copartition_groups=[m.StreamsGroupHeartbeatRequest_CopartitionGroup(one, [], two) for one, two in together],
    )


def internal(topic: Any) -> Any:
    return TOLD(topic, 0, 0) if isinstance(topic, str) else TOLD(*topic, 0)


def topology(*parts: Any, epoch: int = 0) -> Any:
    return m.StreamsGroupHeartbeatRequest_Topology(epoch, list(parts))


WORDS = topology(
    part("0", "lines", sinks=["words"]),
    part("1", reads=["words"], changelogs=["counts"]),
)


OUT = (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND)


@dataclass
class Streamer:
    """A client. It gives up tasks in `settle`, which a test calls when it likes."""

    coordinator: StreamsCoordinator
    id: str
    process_id: str = ""
    topology: Any = field(default_factory=lambda: WORDS, repr=False)
    endpoint: tuple[str, int] | None = None
    endpoint_epoch: int = 0
    epoch: int = 0
    owned: Slots = frozenset()
    target: Slots = frozenset()
    status: dict[int, str] = field(default_factory=dict[int, str])
    error: int = 0
    unsure: bool = False  # an answer was lost
    answer: Any = field(default=None, repr=False)
    last: Any = field(default=None, repr=False)

    def request(self, **fields: Any) -> Any:
        known = {"group_id": "g", "member_id": self.id, "member_epoch": self.epoch}
        known |= {"endpoint_information_epoch": self.endpoint_epoch}
        return m.StreamsGroupHeartbeatRequest(**(known | fields))

    def join(self) -> Streamer:
        self.owned = self.target = frozenset()
        return self.send(self.full(0, topology=self.topology))

    def full(self, epoch: int, **fields: Any) -> Any:
        endpoint = self.endpoint and m.StreamsGroupHeartbeatRequest_Endpoint(*self.endpoint)
        known = {"rebalance_timeout_ms": REBALANCE_MS, "process_id": self.process_id or f"p-{self.id}"}
        return self.request(
            member_epoch=epoch, user_endpoint=endpoint, client_tags=[], **known, **rows(self.owned), **fields
        )

    def beat(self) -> Streamer:
        """Say what is owned, as clients do when it has changed; and everything, if an answer was lost."""
        return self.send(self.full(self.epoch) if self.unsure else self.request(**rows(self.owned)))

    def send(self, request: Any, lost: bool = False) -> Streamer:
        self.last = request
        answer = self.coordinator.beat(request)
        self.unsure = lost
        if not lost:
            self.take(answer)
        return self

    def take(self, answer: Any) -> None:
        self.answer, self.error = answer, answer.error_code
        if self.error:
            # It joins again, or, told of tasks that there are no more (a topic came back smaller), is started again.
            if self.error in (*OUT, Error.INVALID_REQUEST):
                self.epoch, self.owned, self.target = 0, frozenset(), frozenset()
            return
        self.epoch, self.endpoint_epoch = answer.member_epoch, answer.endpoint_information_epoch
        self.status = {row.status_code: row.status_detail for row in answer.status}
        if answer.active_tasks is not None:
            self.target = slots(answer)
            if self.target >= self.owned:
                self.owned = self.target

    def settle(self) -> None:
        """Give up what must be given up, and take what was given."""
        self.owned = self.target

    def leave(self) -> Streamer:
        self.send(self.request(member_epoch=-1))
        self.owned = self.target = frozenset()
        return self

    def tasks(self, role: Role = Role.ACTIVE) -> list[str]:
        """As people write them: 0_1 is the task of subtopology 0 for partition 1."""
        return sorted(f"{name}_{index}" for mine, name, index in self.owned if mine == role)


def rows(owned: Slots) -> dict[str, list[Any]]:
    fields: dict[str, list[Any]] = {}
    for role, name in FIELDS.items():
        mine = sorted({(one, index) for of, one, index in owned if of == role})
        parts: dict[str, list[int]] = {}
        for subtopology, index in mine:
            parts.setdefault(subtopology, []).append(index)
        fields[name] = [m.StreamsGroupHeartbeatRequest_TaskIds(*one) for one in parts.items()]
    return fields


def slots(answer: Any) -> Slots:
    return frozenset((role, name, index) for (role, name), indexes in tasks_of(answer).items() for index in indexes)


def converge(coordinator: StreamsCoordinator, members: Iterable[Streamer], rounds: int = 14) -> None:
    """Let everybody answer until nothing moves any more."""
    for _ in range(rounds):
        coordinator.advance(ASSIGNMENT_MS)
        for member in members:
            member.beat() if member.epoch > 0 else member.join()
            member.settle()
