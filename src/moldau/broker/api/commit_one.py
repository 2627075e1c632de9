"""OffsetCommit to one topic without metadata: most commits are that, and its bytes are few beside its messages.

What stands before the partitions (client id, group, member, generation, topic) is the head, see learned_requests.py.
The records of one commit differ from those of the next in offsets, leader epochs and the time alone, so for each set of
partitions all the rest of them is kept; so is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any

from moldau.broker.learned_requests import Ask, keep
from moldau.machines.classic.group import ClassicGroup
from moldau.machines.effects import Effects, Promise
from moldau.machines.metadata.acls import GROUP, READ, TOPIC
from moldau.machines.offset_records import Packed, Stencil
from moldau.machines.offsets import keep_session
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.connection import Connection
    from moldau.broker.node import Node
    from moldau.broker.wait import Wait
    from moldau.machines.metadata.cluster import Topic

OFFSET_COMMIT = 8
FLEXIBLE = 8
BY_ID = 10
MOST = 64  # partitions of a request, and sets of them that are kept for a head

PARTITION = "i12s2s"  # index, offset and leader epoch, metadata and tags
SIZE = 18
NO_METADATA = frozenset((b"\0\0", b"\1\0"))  # null or empty, and no tags
TAGS = b"\0\0"  # of the topic and the request

_start = Struct(">ii").pack  # length, correlation id


@dataclass(frozen=True, slots=True)
class Known:
    """What is kept for a set of partitions: the records but for what changes, the answer but for its number."""

    stencil: Stencil
    answer: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Commits:
    """Requests of one member, or of nobody, with so many partitions of one topic."""

    client_id: str | None
    version: int
    index: int  # of the coordinator
    group: str
    member: str
    instance: str | None
    generation: int
    topic: Topic
    size: int  # of what follows the head
    unpack: Any
    asks: tuple[Ask, ...]
    known: dict[tuple[int, ...], Known] = field(default_factory=dict[tuple[int, ...], Known], init=False)
    key: int = field(default=OFFSET_COMMIT, init=False)

    def measure(self, frame: memoryview, end: int) -> int:
        return 0

    def serve(self, node: Node, frame: memoryview, end: int, correlation_id: int) -> bytes | Wait | None:
        """Commit and answer, at once or when that is committed, or None."""
        groups = node.groups
        machine = groups.machines.get(self.index)
        if machine is None or (group := machine.groups.get(self.group)) is None or end + self.size != len(frame):
            return None
        fields = self.unpack(frame, end)
        indexes = fields[:-1:3]
        known = self.known.get(indexes) or self.learn(indexes)
        if known is None or not NO_METADATA.issuperset(fields[2::3]) or fields[-1] != TAGS:
            return None
        now = node.clock.wall_ms()
        try:
            if group.check_commit(
                self.member, self.instance, self.generation, transactional=False, version=self.version
            ):
                return None
            if isinstance(group, ClassicGroup):
                keep_session(machine, group, self.member, now)
            places = fields[1::3]
            log = groups.append(self.index, known.stencil.batch(places, now), now).log
        except Refused:
            return None
        machine.offsets.replay_packed(self.group, self.topic.name, indexes, Packed(places, now, self.topic.id))
        answer = framed(correlation_id, known.answer)
        if log.high_watermark == log.end_offset and self.index not in groups.uncommitted:
            return answer
        promise = Promise(lambda error: framed(correlation_id, self.answer(indexes, error)))
        return groups.ask(self.index, promise, Effects(answers=[(promise, answer)]))

    def learn(self, indexes: tuple[int, ...]) -> Known | None:
        """Return what to keep for these partitions; None if one of them does not exist."""
        if not all(index in self.topic.partitions for index in indexes):
            return None
        if len(self.known) >= MOST:
            self.known.clear()
        known = Known(Stencil(self.group, self.topic.name, self.topic.id, indexes), self.answer(indexes))
        self.known[indexes] = known
        return known

    def answer(self, indexes: tuple[int, ...], error: Error = Error.NONE) -> bytes:
        """Make a response without its length and correlation id."""
        named = ("", self.topic.id) if self.version >= BY_ID else (self.topic.name, bytes(16))
        rows = [m.OffsetCommitResponse_OffsetCommitResponsePartition(index, error) for index in indexes]
        response = m.OffsetCommitResponse(topics=[m.OffsetCommitResponse_OffsetCommitResponseTopic(*named, rows)])
        return b"".join(frames.response_frame(OFFSET_COMMIT, self.version, 0, response))[8:]


def framed(correlation_id: int, answer: bytes) -> bytes:
    return _start(len(answer) + 4, correlation_id) + answer


def learn(
    node: Node,
    connection: Connection,
    frame: memoryview,
    version: int,
    request: m.OffsetCommitRequest,
    response: m.OffsetCommitResponse,
) -> None:
    """Keep the head of a request that was served, if more like it can be served by it."""
    if version < FLEXIBLE or len(request.topics) != 1 or node.groups.codec:
        return
    (asked,) = request.topics
    parts = asked.partitions
    plain = 0 < len(parts) <= MOST and not any(part.committed_metadata for part in parts)
    if not plain or any(part.error_code for part in response.topics[0].partitions):
        return
    # What the codec makes of the message has no tagged fields: so the partitions stand where they are expected.
    if frame[frames.request_header(frame)[4] :] != codec.encode(request, version):
        return
    end = len(frame) - len(TAGS) - len(parts) * SIZE
    keep(node, connection, frame, end, lambda: commits(node, connection.client_id, version, request))


def commits(node: Node, client_id: str | None, version: int, request: m.OffsetCommitRequest) -> Commits:
    (asked,) = request.topics
    topic = node.cluster.topic(None if version >= BY_ID else asked.name, asked.topic_id)
    assert topic is not None, "it was served"
    count = len(asked.partitions)
    unpack = Struct(f">{PARTITION * count}2s")
    index = node.groups.partition_for(request.group_id)
    member = request.group_id, request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    asks = (READ, GROUP, request.group_id), (READ, TOPIC, topic.name)
    return Commits(client_id, version, index, *member, topic, unpack.size, unpack.unpack_from, asks)
