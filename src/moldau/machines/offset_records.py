"""Records of committed offsets, written without the way through messages: they are most of what groups write.

The bytes are those that the codec makes of OffsetCommitKey and OffsetCommitValue; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from moldau.machines.effects import Change
from moldau.wire.numbers import uvarint, zigzag
from moldau.wire.records import HEADER, HEADER_SIZE, LENGTH_START, MAGIC, seal

NO_EXPIRY = -1
NO_TOPIC_ID = bytes(16)
KEY = b"\0\1"  # the number of OffsetCommitKey
PLAIN, EXPIRING = 4, 1  # versions of the value: only the older one has room for an expiry
PLAIN_VALUE = b"\0\4"
SHORT = 128  # lengths below it take one byte

PLACE_SIZE = 12  # offset and leader epoch
TAGGED_ID = b"\1\0\x10"  # one tagged field, number 0, of 16 bytes

_length = Struct(">h").pack
_partition = Struct(">i").pack
_place = Struct(">hqi").pack  # version, offset, leader epoch
_unpack_place = Struct(">qi").unpack  # offset, leader epoch
_expiring = Struct(">hqh").pack
_time = Struct(">q").pack
_times = Struct(">qq").pack
_value = Struct(">hqiB").unpack_from  # version, offset, leader epoch, length of the metadata
_committed = Struct(">q").unpack_from
_told = Struct(">Bh").pack  # length of the value, version
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


class Packed(NamedTuple):
    """Commits of one time to one topic, without metadata; offsets and leader epochs as they stand in a request."""

    places: Sequence[bytes]
    commit_timestamp: int
    topic_id: bytes

    def offsets(self) -> Iterator[Offset]:
        for offset, leader_epoch in map(_unpack_place, self.places):
            yield Offset(offset, leader_epoch, "", self.commit_timestamp, NO_EXPIRY, self.topic_id)


def text(string: str) -> bytes:
    data = string.encode()
    return _length(len(data)) + data


def key_head(group: str, topic: str) -> bytes:
    """Return what the keys of all partitions of a topic have in common."""
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
        """Return the commit of one partition."""
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


class Stencil:
    """Batches of commits without metadata or expiry, by one group to the same partitions of one topic.

    One such batch differs from another in offsets and leader epochs, which are written as they stand in a request, and
    in its time.
    """

    __slots__ = ("count", "length", "parts", "tail")

    def __init__(self, group: str, topic: str, topic_id: bytes, partitions: Sequence[int]) -> None:
        self.count = len(partitions)
        self.tail = (b"\0" if topic_id == NO_TOPIC_ID else TAGGED_ID + topic_id) + b"\0"
        key, value_size = key_head(group, topic), 23 + len(self.tail) - 1
        before, after = zigzag(len(key) + 4) + key, _told(value_size << 1, PLAIN)
        size = 3 + len(before) + 4 + len(after) + PLACE_SIZE + 9 + len(self.tail)
        self.parts: list[bytes] = [
            b""
        ]  # the header; then for each record what is before its place, its place, the rest
        for at, partition in enumerate(partitions):
            opening = zigzag(size) + b"\0\0" + zigzag(at)
            self.parts += opening + before + _partition(partition) + after, b"", b""
        self.length = HEADER_SIZE - LENGTH_START + sum(map(len, self.parts))
        self.length += self.count * (PLACE_SIZE + 9 + len(self.tail))

    def batch(self, places: Sequence[bytes], now_ms: int) -> bytearray:
        """Return a batch with these offsets and leader epochs, in the order of the partitions."""
        parts, count = self.parts, self.count
        parts[0] = HEADER.pack(0, self.length, -1, MAGIC, 0, 0, count - 1, now_ms, now_ms, -1, -1, -1, count)
        parts[2::3] = places
        parts[3::3] = (b"\1" + _time(now_ms) + self.tail,) * count
        batch = bytearray().join(parts)
        seal(memoryview(batch))
        return batch


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
