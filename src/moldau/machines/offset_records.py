"""Records of committed offsets, written without the way through messages: they are most of what groups write.

The bytes are those that the codec makes of OffsetCommitKey and OffsetCommitValue; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from moldau.machines.effects import Change
from moldau.wire.codec_write import uvarint
from moldau.wire.records import zigzag

NO_EXPIRY = -1
NO_TOPIC_ID = bytes(16)
KEY = b"\0\1"  # the number of OffsetCommitKey
PLAIN, EXPIRING = 4, 1  # versions of the value: only the older one has room for an expiry
PLAIN_VALUE = b"\0\4"
SHORT = 128  # lengths below it take one byte

PLACES = [bytes((place << 1,)) for place in range(64)]
TAGGED_ID = b"\1\0\x10"  # one tagged field, number 0, of 16 bytes

_length = Struct(">h").pack
_partition = Struct(">i").pack
_place = Struct(">hqi").pack  # version, offset, leader epoch
_expiring = Struct(">hqh").pack
_time = Struct(">q").pack
_times = Struct(">qq").pack
_value = Struct(">hqiB").unpack_from  # version, offset, leader epoch, length of the metadata
_committed = Struct(">q").unpack_from
_record = Struct(">iBhqi").pack  # partition, length of the value, version, offset, leader epoch
# Half of what the constructors of named tuples cost.
_new: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


class OffsetKey(NamedTuple):
    """Whose offset it is: the fields of OffsetCommitKey."""

    group: str
    topic: str
    partition: int


class Offset(NamedTuple):
    """A committed offset: the fields of OffsetCommitValue. Old clients said themselves when it expires."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NO_EXPIRY
    topic_id: bytes = NO_TOPIC_ID


def text(string: str) -> bytes:
    data = string.encode()
    return _length(len(data)) + data


def key_head(group: str, topic: str) -> bytes:
    """What the keys of all partitions of a topic have in common."""
    return KEY + text(group) + text(topic)


@dataclass(slots=True)
class TopicCommit:
    """Commits of one group to one topic at one time: what they have in common is encoded once."""

    group: str
    topic: str
    topic_id: bytes
    now_ms: int
    expires_ms: int
    head: bytes = field(init=False)
    tail: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.head = key_head(self.group, self.topic)
        if self.expires_ms != NO_EXPIRY:
            self.tail = _times(self.now_ms, self.expires_ms)
            self.topic_id = NO_TOPIC_ID
        else:
            self.tail = _time(self.now_ms) + (b"\0" if self.topic_id == NO_TOPIC_ID else TAGGED_ID + self.topic_id)

    def change(self, partition: int, at: int, leader_epoch: int, metadata: str) -> Change:
        """The commit of one partition."""
        if self.expires_ms != NO_EXPIRY:
            # Such a record has no room for the rest, so it is not kept in memory either.
            data, leader_epoch = metadata.encode(), -1
            value = _expiring(EXPIRING, at, len(data)) + data + self.tail
        elif metadata:
            data = metadata.encode()
            value = _place(PLAIN, at, leader_epoch) + uvarint(len(data) + 1) + data + self.tail
        else:
            value = _place(PLAIN, at, leader_epoch) + b"\1" + self.tail
        key = _new(OffsetKey, (self.group, self.topic, partition))
        offset = _new(Offset, (at, leader_epoch, metadata, self.now_ms, self.expires_ms, self.topic_id))
        return _new(Change, (key, offset, None, (self.head + _partition(partition), value)))


def records_of(topic: TopicCommit, parts: Sequence[tuple[int, int, int]]) -> tuple[bytes, dict[int, Offset]]:
    """Records of a batch for commits (partition, offset, leader epoch) without metadata or expiry, and the offsets.

    Such records of one topic differ in three numbers and their place, which for at most 64 of them takes one byte.
    """
    key_size, value_size = zigzag(len(topic.head) + 4), len(topic.tail) + 15
    suffix = b"\1" + topic.tail + b"\0"
    prefix = key_size + topic.head
    opening = zigzag(3 + len(prefix) + 19 + len(suffix)) + b"\0\0"
    common = topic.now_ms, NO_EXPIRY, topic.topic_id
    told = value_size << 1
    body: list[bytes] = []
    offsets: dict[int, Offset] = {}
    for place, (partition, at, leader_epoch) in enumerate(parts):
        body += opening, PLACES[place], prefix, _record(partition, told, PLAIN, at, leader_epoch), suffix
        offsets[partition] = _new(Offset, (at, leader_epoch, "", *common))
    return b"".join(body), offsets


def read_record(key: bytes, value: bytes | None) -> tuple[OffsetKey, Offset | None] | None:
    """Key and value of a commit as this release writes it; None for any other record, which the codec reads."""
    try:
        return read_plain(key, value)
    except (IndexError, StructError, UnicodeDecodeError):
        return None


def read_plain(key: bytes, value: bytes | None) -> tuple[OffsetKey, Offset | None] | None:
    middle = 4 + (key[2] << 8 | key[3])
    end = middle + 2 + (key[middle] << 8 | key[middle + 1])
    if key[:2] != KEY or end + 4 != len(key):
        return None
    group, topic = str(key[4:middle], "utf-8"), str(key[middle + 2 : end], "utf-8")
    place = _new(OffsetKey, (group, topic, int.from_bytes(key[end:], signed=True)))
    if value is None:
        return place, None
    if value[:2] != PLAIN_VALUE:
        return None
    _, at, epoch, size = _value(value)
    tail = 14 + size
    if not 0 < size < SHORT or len(value) - tail not in (9, 27):
        return None
    topic_id = value[tail + 11 :] if len(value) - tail == 27 else NO_TOPIC_ID
    tags = value[tail + 8 : tail + 11] if topic_id is not NO_TOPIC_ID else value[tail + 8 :]
    if tags not in (b"\0", TAGGED_ID):
        return None
    said = str(value[15:tail], "utf-8") if size > 1 else ""
    return place, _new(Offset, (at, epoch, said, *_committed(value, tail), NO_EXPIRY, topic_id))


def tombstone(group: str, topic: str, partition: int) -> Change:
    head = key_head(group, topic)
    return Change(OffsetKey(group, topic, partition), None, None, (head + _partition(partition), None))
