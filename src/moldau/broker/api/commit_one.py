"""OffsetCommit to one topic without metadata: most commits are that, and its bytes are few beside its messages.

As in produce_one.py the request is read where it lies and the answer is packed directly. Whatever is unusual returns
None before anything is changed, and goes the way of offset_commit.py. A test compares answers and logs of both ways
byte for byte.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.machines.classic import ClassicGroup
from moldau.machines.offset_records import NO_EXPIRY, PLACES, TopicCommit, records_of
from moldau.machines.offsets import keep_session
from moldau.wire.records import assemble
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node
    from moldau.machines.cluster import Topic

FLEXIBLE = 8
BY_ID = 10
SHORT = 127  # strings of up to this length, counted with one, have a length of one byte
ONE = 2  # the count of an array with one element

GENERATION = Struct(">i").unpack_from
PARTITION = Struct(">iqiBB")  # index, offset, leader epoch, metadata (null or empty), tags
ANSWER = Struct(">iixiB")  # length, correlation id, tags, throttle time, topics


class Asked(NamedTuple):
    """A commit as it stands in the request; `name` is the topic's name or id."""

    group: str
    generation: int
    member: str
    instance: str | None
    name: bytes
    parts: list[tuple[int, int, int]]


def commit_one(node: Node, frame: memoryview, position: int, version: int, correlation_id: int) -> bytes | None:
    """Commit and answer, or None."""
    if version < FLEXIBLE:
        return None
    try:
        asked = parse(frame, position, version)
        topic = None if asked is None else topic_of(node, asked, version)
        if asked is None or topic is None:
            return None
        index, machine = node.groups.of(asked.group)
        group, now = machine.groups.get(asked.group), node.clock.wall_ms()
        if not isinstance(group, ClassicGroup):
            return None
        group.check_commit(asked.member, asked.instance, asked.generation, transactional=False, version=version)
        keep_session(machine, group, asked.member, now)
        body, found = records_of(TopicCommit(group.id, topic.name, topic.id, now, NO_EXPIRY), asked.parts)
        count = len(asked.parts)
        node.groups.append(index, assemble(0, -1, 0, count - 1, now, now, -1, -1, -1, count, body), now)
    except (Refused, StructError, IndexError, UnicodeDecodeError):
        return None
    machine.offsets.replay_all(group.id, topic.name, found)
    return answer(asked, version, correlation_id)


def parse(frame: memoryview, at: int, version: int) -> Asked | None:
    """The fields of a request that has one topic and nothing unusual."""
    group, at = string(frame, at)
    (generation,) = GENERATION(frame, at)
    member, at = string(frame, at + 4)
    instance, at = string(frame, at)
    if group is None or member is None or frame[at] != ONE:
        return None
    start = at + 1 if version >= BY_ID else at + 2
    stop = start + (16 if version >= BY_ID else frame[at + 1] - 1)
    count = frame[stop] - 1
    end = stop + 1 + count * PARTITION.size
    if not 0 < count <= len(PLACES) or not start < stop < start + SHORT or frame[end:] != b"\0\0":
        return None
    parts: list[tuple[int, int, int]] = []
    for index, offset, epoch, metadata, tags in PARTITION.iter_unpack(frame[stop + 1 : end]):
        if metadata > 1 or tags:
            return None
        parts.append((index, offset, epoch))
    return Asked(group, generation, member, instance, bytes(frame[start:stop]), parts)


def string(frame: memoryview, at: int) -> tuple[str | None, int]:
    """A short compact string, or null, and where it ends; raises IndexError for a longer one."""
    size = frame[at]
    if size == 0:
        return None, at + 1
    if size > SHORT:
        raise IndexError
    end = at + size
    return str(frame[at + 1 : end], "utf-8"), end


def topic_of(node: Node, asked: Asked, version: int) -> Topic | None:
    """The topic, if it has all the partitions."""
    topics: Any = node.cluster.topics_by_id if version >= BY_ID else node.cluster.topics
    topic = topics.get(asked.name if version >= BY_ID else str(asked.name, "utf-8"))
    if topic is None or not all(part[0] in topic.partitions for part in asked.parts):
        return None
    return topic


def answer(asked: Asked, version: int, correlation_id: int) -> bytes:
    name = asked.name if version >= BY_ID else bytes((len(asked.name) + 1,)) + asked.name
    parts = rows(len(asked.parts))(len(asked.parts) + 1, *[part[0] for part in asked.parts])
    size = ANSWER.size - 4 + len(name) + len(parts)
    return ANSWER.pack(size, correlation_id, 0, ONE) + name + parts


@cache
def rows(count: int) -> Any:
    """Packs the partitions of an answer, each without an error and tags, and the tags of topic and response."""
    return Struct(">B" + "i3x" * count + "2x").pack
