"""A coordinator of share groups in memory, with a share coordinator that may refuse, and members as clients are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moldau.machines.effects import Effects, Promise
from moldau.machines.group import Client
from moldau.machines.groups import Groups
from moldau.machines.share import offsets as share_offsets
from moldau.machines.share.group import ShareGroup
from moldau.machines.share.heartbeats import check_request, heartbeat, refusal
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.consumers import ASSIGNMENT_MS, SETTINGS, Coordinator, Slots, slots

LOST = (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND)
SHARE_SETTINGS = SETTINGS | {
    "group.share.session.timeout.ms": 45_000,
    "group.share.heartbeat.interval.ms": 5000,
    "group.share.assignment.interval.ms": ASSIGNMENT_MS,
    "group.share.max.size": 100,
}


class Shares(Coordinator):
    """The machine of share groups. `offsets` is what the share coordinator has; `down` makes it refuse."""

    def __init__(self, **settings: Any) -> None:
        self.offsets: dict[tuple[str, bytes, int], int] = {}
        self.down = False
        super().__init__(**settings)

    def new_machine(self) -> Groups:
        return Groups((SHARE_SETTINGS | self.settings).__getitem__, self.random, lambda: self.cluster)

    def share_beat(self, request: Any, crash: bool = False) -> Any:
        """A heartbeat; with a crash the broker goes down before the share coordinator is asked."""
        promise = Promise(lambda error: refusal(error, error.message))
        try:
            check_request(request)
        except Refused as refused:
            return refusal(refused.error, refused.message).response
        self.run(heartbeat(self.machine, promise, request, Client("c", "/h"), self.now_ms))
        heard = promise.answer
        if crash:
            self.crash()
        elif request := share_offsets.begin_set_up(self.machine, request.group_id, heard.set_up):
            self.initialize(request)
        return heard.response

    def initialize(self, request: Any) -> None:
        partitions = {row.topic_id: frozenset(part.partition for part in row.partitions) for row in request.topics}
        if not self.down:
            for row in request.topics:
                self.offsets |= {
                    (request.group_id, row.topic_id, part.partition): part.start_offset for part in row.partitions
                }
        outcome = share_offsets.uninitialized if self.down else share_offsets.initialized
        self.run(Effects(outcome(self.machine, request.group_id, partitions)))

    def delete_states(self, request: Any) -> None:
        for row in request.topics:
            for part in row.partitions:
                self.offsets.pop((request.group_id, row.topic_id, part.partition), None)

    def drop_topic(self, name: str) -> None:
        """Delete a topic, and tell everybody."""
        topic = self.cluster.topics[name].id
        self.delete(name)
        self.offsets = {key: offset for key, offset in self.offsets.items() if key[1] != topic}
        self.run(Effects(list(share_offsets.of_deleted_topic(self.machine, topic))))

    def share_group(self, group_id: str = "g") -> ShareGroup:
        group = self.machine.groups[group_id]
        assert isinstance(group, ShareGroup)
        return group


@dataclass
class Sharer:
    """A client of a share group."""

    home: Shares
    id: str
    topics: list[str]
    group_id: str = "g"
    epoch: int = 0
    has: Slots = frozenset()
    error: int = 0
    answer: Any = field(default=None, repr=False)

    def send(self, epoch: int, *, lost: bool = False, crash: bool = False, **fields: Any) -> Sharer:
        request = m.ShareGroupHeartbeatRequest(self.group_id, self.id, epoch, **fields)
        answer = self.home.share_beat(request, crash)
        if not lost:
            self.take(answer)
        return self

    def take(self, answer: Any) -> None:
        self.answer, self.error = answer, answer.error_code
        if self.error in LOST:
            self.epoch, self.has = 0, frozenset()
        elif not self.error:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = slots(answer.assignment.topic_partitions)

    def join(self, **how: Any) -> Sharer:
        return self.send(0, subscribed_topic_names=self.topics, **how)

    def beat(self, **how: Any) -> Sharer:
        return self.send(self.epoch, **how) if self.epoch else self.join(**how)

    def leave(self) -> Sharer:
        self.send(-1)
        self.has = frozenset()
        return self


def settle(home: Shares, sharers: list[Sharer], rounds: int = 4) -> None:
    """Let everybody beat until the group has come to rest."""
    for _ in range(rounds):
        home.advance(ASSIGNMENT_MS)
        for sharer in sharers:
            sharer.beat()
