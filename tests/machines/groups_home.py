"""A partition of groups without a broker: effects are carried out as broker/coordinators.py does, in memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moldau.broker import coordinators
from moldau.broker.groups import TOPIC
from moldau.machines.effects import Change, Effects, Promise
from moldau.machines.group import Client
from moldau.machines.groups import Groups, Kind
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record

SETTINGS = {
    "group.initial.rebalance.delay.ms": 3000,
    "group.max.size": 5,
    "moldau.group.max.count": 100,
    "offset.metadata.max.bytes": 16,
    "offsets.retention.minutes": 10,
    "offsets.retention.check.interval.ms": 60_000,
}
REFUSALS = {
    "join": lambda error: m.JoinGroupResponse(error_code=error),
    "sync": lambda error: m.SyncGroupResponse(error_code=error),
    "heartbeat": lambda error: m.HeartbeatResponse(error_code=error),
    "leave": lambda error: m.LeaveGroupResponse(error_code=error),
}
COMMANDS: dict[str, Callable[[Kind], Any]] = {
    "join": lambda kind: kind.join,
    "sync": lambda kind: kind.sync,
    "heartbeat": lambda kind: kind.heartbeat,
    "leave": lambda kind: kind.leave,
}


@dataclass
class Home:
    """The machine, its log, and the time."""

    settings: dict[str, Any] = field(default_factory=lambda: dict(SETTINGS))
    now_ms: int = 1_000_000
    log: list[tuple[Any, Any, int]] = field(default_factory=list)
    answered: set[Promise] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(7)
        self.machine = self.load()

    def load(self) -> Groups:
        """A new machine from the log."""
        machine = Groups(self.settings.__getitem__, self.random, Cluster)
        for key, value, producer in self.log:
            if key is None:
                machine.replay_marker(producer, 0, value)
            else:
                machine.replay(key, value, producer)
        return machine

    def crash(self) -> None:
        """All that is soft is lost, with everybody who waits."""
        self.machine = self.load()
        self.run(self.machine.loaded(self.now_ms))

    def run(self, effects: Effects) -> None:
        producer = effects.producer.id if effects.producer else -1
        for change in effects.changes:
            self.log.append((*written(change), producer))
            self.machine.replay(change.key, change.value, producer)
        for promise, answer in effects.answers:
            assert promise not in self.answered, "a request is answered once"
            self.answered.add(promise)
            promise.answer = answer

    def end_transaction(self, producer: int, commit: bool) -> None:
        self.log.append((None, commit, producer))
        self.machine.replay_marker(producer, 0, commit)

    def ask(self, what: str, request: Any, version: int = 9, client: str = "client") -> Promise:
        """Hand a request over; its answer may come later."""
        promise = Promise(REFUSALS[what])
        command = COMMANDS[what](self.machine.kind_of(request.group_id))
        self.run(command(self.machine, promise, request, Client(client, "/host"), version, self.now_ms))
        return promise

    def advance(self, ms: int) -> None:
        """Let time pass, from one deadline to the next."""
        end = self.now_ms + ms
        while self.machine.next_deadline_ms() <= end:
            self.now_ms = max(self.now_ms, int(self.machine.next_deadline_ms()))
            self.run(self.machine.tick(self.now_ms))
        self.now_ms = end

    # Requests.

    def join(self, group: str = "g", member: str = "", version: int = 9, **fields: Any) -> Promise:
        names = fields.pop("protocols", ("range",))
        request = m.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=fields.pop("session_timeout_ms", 10_000),
            rebalance_timeout_ms=fields.pop("rebalance_timeout_ms", 30_000),
            member_id=member,
            protocol_type="consumer",
            protocols=[m.JoinGroupRequest_JoinGroupRequestProtocol(name, subscription("t")) for name in names],
            **fields,
        )
        return self.ask("join", request, version)

    def enter(self, group: str = "g", **fields: Any) -> tuple[str, Promise]:
        """Get a member id, and join with it."""
        asked = self.join(group, **fields)
        assert asked.answer.error_code == Error.MEMBER_ID_REQUIRED
        return asked.answer.member_id, self.join(group, asked.answer.member_id, **fields)

    def sync(self, member: str, generation: int, assignments: dict[str, bytes] | None = None, **fields: Any) -> Promise:
        rows = [m.SyncGroupRequest_SyncGroupRequestAssignment(*row) for row in (assignments or {}).items()]
        group = fields.pop("group", "g")
        return self.ask("sync", m.SyncGroupRequest(group, generation, member, assignments=rows, **fields), 5)

    def heartbeat(self, member: str, generation: int, group: str = "g", instance: str | None = None) -> Error:
        request = m.HeartbeatRequest(group, generation, member, instance)
        return Error(self.ask("heartbeat", request, 4).answer.error_code)

    def leave(self, *members: tuple[str, str | None], group: str = "g") -> list[Error]:
        rows = [m.LeaveGroupRequest_MemberIdentity(*row) for row in members]
        answer = self.ask("leave", m.LeaveGroupRequest(group, members=rows), 5).answer
        return [Error(row.error_code) for row in answer.members]


def written(change: Change) -> tuple[Any, Any]:
    """Key and value as a later reader of the log finds them."""
    return coordinators.decode(TOPIC, Record(0, 0, *(change.encoded or coordinators.encode(change))))


def subscription(*topics: str) -> bytes:
    return bytes(2) + codec.encode(m.ConsumerProtocolSubscription(topics=list(topics)), 0)
