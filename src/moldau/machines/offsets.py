"""Committed offsets of all groups of a partition, and those that wait for the end of a transaction.

Offsets change only by `replay`. What a transaction commits is set aside under its producer until the marker comes
(KIP-447); of several commits to one partition that which was written last wins, whenever its marker comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.machines.classic.group import ClassicGroup, State
from moldau.machines.classic.rebalance import touch
from moldau.machines.effects import Change
from moldau.machines.group import CheckPartition, Expiry, Group, refuse
from moldau.machines.offset_records import (
    NO_EXPIRY,
    NO_TOPIC_ID,
    Offset,
    OffsetKey,
    Packed,
    TopicCommit,
    tombstone,
)
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

NO_OFFSET = -1
NO_PRODUCER = -1
MOST_PACKED = 1024  # commits
EXPIRING_METADATA = 10_000  # characters that fit into a record with an expiry, whatever they are
MISSING_GROUP = 9  # from this version of OffsetCommit on a missing group has an error of its own


class Row(NamedTuple):
    """One partition of a request to commit."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


AnyRow = Row | tuple[str, bytes, int, int, int, str | None]
Key = tuple[str, str, int]  # group, topic, partition


@dataclass(slots=True)
class Commit:
    """Changes to make, and an error code for each row of the request, in its order."""

    changes: list[Change] = field(default_factory=list[Change])
    errors: list[Error] = field(default_factory=list[Error])


class Offsets:
    """What is committed, by group, topic and partition; and what is pending, by producer."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, dict[int, Offset]]] = {}
        self.packed: dict[tuple[str, str, tuple[int, ...]], Packed] = {}  # later than what is known, in their order
        self.pending: dict[Key, dict[int, Offset | None]] = {}  # None: overtaken by a later commit
        self.by_producer: dict[int, dict[Key, None]] = {}
        self.topic_names: dict[str, str] = {}  # one string for each name, however many groups use it

    @property
    def committed(self) -> dict[str, dict[str, dict[int, Offset]]]:
        if self.packed:
            self.unpack()
        return self.known

    def get(self, group: str, topic: str, partition: int) -> Offset | None:
        return self.committed.get(group, {}).get(topic, {}).get(partition)

    def is_pending(self, group: str, topic: str, partition: int) -> bool:
        return (group, topic, partition) in self.pending

    def pending_of(self, group: str) -> list[tuple[str, int]]:
        return [(topic, partition) for name, topic, partition in self.pending if name == group]

    def knows(self, group: str) -> bool:
        """Return whether anything is committed or pending for the group."""
        return group in self.committed or bool(self.pending and self.pending_of(group))

    def of_group(self, group: str) -> Iterator[tuple[str, int, Offset]]:
        for topic, partitions in self.committed.get(group, {}).items():
            for partition, offset in partitions.items():
                yield topic, partition, offset

    # Replay: the only writers.

    def replay(self, key: Any, value: Any, producer_id: int) -> None:
        """A commit, a tombstone, or a commit within a transaction."""
        if value is None:
            self.remove(key.group, key.topic, key.partition)
            return
        offset = value if value.__class__ is Offset else read(value)
        if producer_id >= 0:
            self.set_aside((key.group, key.topic, key.partition), producer_id, offset)
        else:
            self.put(key.group, key.topic, key.partition, offset)
            if self.pending:
                waiting = self.pending.get((key.group, key.topic, key.partition), {})
                waiting.update(dict.fromkeys(waiting))

    def put(self, group: str, topic: str, partition: int, offset: Offset) -> None:
        topics = self.committed.get(group)
        if topics is None:
            topics = self.committed[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[self.topic_names.setdefault(topic, topic)] = {}
        partitions[partition] = offset

    def replay_packed(self, group: str, topic: str, partitions: tuple[int, ...], commit: Packed) -> None:
        """Commits to one topic, outside of transactions, as they stood in a request.

        Most are overtaken by the next before anybody asks for them: they are taken apart when somebody does.
        """
        if self.pending:
            for partition, offset in zip(partitions, commit.offsets(), strict=True):
                self.replay(OffsetKey(group, topic, partition), offset, NO_PRODUCER)
            return
        key = group, topic, partitions
        self.packed.pop(key, None)  # the latest stands last
        self.packed[key] = commit
        if len(self.packed) > MOST_PACKED:
            self.unpack()

    def unpack(self) -> None:
        """Take apart what was committed."""
        packed, self.packed = self.packed, {}
        for (group, topic, partitions), commit in packed.items():
            for partition, offset in zip(partitions, commit.offsets(), strict=True):
                self.put(group, topic, partition, offset)

    def set_aside(self, key: Key, producer_id: int, offset: Offset) -> None:
        waiting = self.pending.setdefault(key, {})
        waiting.pop(producer_id, None)  # the latest stands last
        waiting[producer_id] = offset
        self.by_producer.setdefault(producer_id, {})[key] = None

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Forget an offset, and all that is pending for it."""
        topics = self.committed.get(group)
        partitions = topics.get(topic) if topics else None
        if topics and partitions and partitions.pop(partition, None) is not None and not partitions:
            del topics[topic]
            if not topics:
                del self.committed[group]
        key = group, topic, partition
        for producer_id in list(self.pending.get(key, {})):
            self.drop_pending(key, producer_id)

    def replay_marker(self, producer_id: int, commit: bool) -> None:
        """A transaction ended: its offsets count, unless a later commit overtook them, or are forgotten."""
        for key in list(self.by_producer.get(producer_id, ())):
            waiting = self.pending[key]
            offset = waiting[producer_id]
            if commit and offset is not None:
                for earlier in takewhile(lambda other: other != producer_id, waiting):
                    waiting[earlier] = None
                self.put(*key, offset)
            self.drop_pending(key, producer_id)

    def drop_pending(self, key: Key, producer_id: int) -> None:
        waiting = self.pending[key]
        del waiting[producer_id]
        if not waiting:
            del self.pending[key]
        keys = self.by_producer[producer_id]
        del keys[key]
        if not keys:
            del self.by_producer[producer_id]


def read(value: Any) -> Offset:
    """Return the offset of a record that was read from the log."""
    said = value.offset, value.leader_epoch, value.metadata
    return Offset(*said, value.commit_timestamp, value.expire_timestamp, value.topic_id)


# Commands. They read the state and return changes.


def commit(
    groups: Groups,
    group_id: str,
    member: tuple[str, str | None, int],
    rows: Iterable[AnyRow],
    now_ms: int,
    *,
    version: int,
    retention_ms: int = -1,
) -> Commit:
    """Commit offsets for a member (id, instance, generation or epoch) or, without one, for anybody; raises Refused."""
    group = groups.groups.get(group_id)
    if group is None:
        missing = Error.GROUP_ID_NOT_FOUND if version >= MISSING_GROUP else Error.ILLEGAL_GENERATION
        check_new(groups, group_id, member[2], missing)
    check = group.check_commit(*member, transactional=False, version=version) if group else None
    if isinstance(group, ClassicGroup):
        keep_session(groups, group, member[0], now_ms)
    expires_ms = NO_EXPIRY if retention_ms < 0 else now_ms + retention_ms
    return plan(groups, group_id, rows, now_ms, expires_ms, check)


def check_new(groups: Groups, group_id: str, generation: int, missing: Error) -> None:
    """Refuse offsets for a new group if they name a generation, or if there is no room for the group."""
    if generation >= 0:
        refuse(missing, f"There is no group '{group_id}'.")
    groups.check_room_for(group_id)


def keep_session(groups: Groups, group: ClassicGroup, member_id: str, now_ms: int) -> None:
    """Take a commit of a classic member for a sign of life."""
    member = group.members.get(member_id)
    if member is not None and group.state in (State.STABLE, State.PREPARING):
        touch(groups, group, member, now_ms)


def commit_transactional(
    groups: Groups,
    group_id: str,
    member: tuple[str, str | None, int],
    rows: Iterable[Row],
    now_ms: int,
    *,
    version: int,
) -> Commit:
    """Do the same within a transaction: the caller puts its producer into the effects; raises Refused."""
    group = groups.groups.get(group_id)
    if group is None:
        check_new(groups, group_id, member[2], Error.ILLEGAL_GENERATION)
    try:
        check = group.check_commit(*member, transactional=True, version=version) if group else None
        return plan(groups, group_id, rows, now_ms, NO_EXPIRY, check and by_name(groups, check))
    except Refused as refused:
        # TxnOffsetCommit has no code for a stale epoch.
        stale = refused.error == Error.STALE_MEMBER_EPOCH
        raise Refused(Error.ILLEGAL_GENERATION if stale else refused.error, refused.message) from None


def by_name(groups: Groups, check: CheckPartition) -> CheckPartition:
    """Return a check for rows that have no topic ids: they mean the topics that have the names now."""
    topics = groups.cluster().topics

    def check_named(topic: str, topic_id: bytes, partition: int) -> None:
        check(topic, topics[topic].id if topic in topics else topic_id, partition)

    return check_named


def plan(
    groups: Groups,
    group_id: str,
    rows: Iterable[AnyRow],
    now_ms: int,
    expires_ms: int,
    check: CheckPartition | None,
) -> Commit:
    """Make a change for each partition that may be committed, an error for others; raises Refused if `check` does."""
    result = Commit()
    changes, errors, none = result.changes, result.errors, Error.NONE
    limit: int = groups.setting("offset.metadata.max.bytes")
    if expires_ms != NO_EXPIRY:
        limit = min(limit, EXPIRING_METADATA)
    last: TopicCommit | None = None
    last_id = NO_TOPIC_ID
    for topic, topic_id, partition, offset, leader_epoch, metadata in rows:
        error = none
        if metadata and len(metadata) > limit:
            error = Error.OFFSET_METADATA_TOO_LARGE
        elif check is not None:
            check(topic, topic_id, partition)
        if error is none:
            if last is None or topic != last.topic or topic_id != last_id:
                last_id = topic_id
                last = TopicCommit(group_id, topic, topic_id, now_ms, expires_ms)
            changes.append(last.change(partition, offset, leader_epoch, metadata or ""))
        errors.append(error)
    return result


def delete(groups: Groups, group_id: str, partitions: Iterable[tuple[str, int]]) -> Commit:
    """Tombstones for offsets of topics that nobody in the group reads; raises Refused."""
    group = groups.groups.get(group_id)
    if group is None:
        refuse(Error.GROUP_ID_NOT_FOUND, f"There is no group '{group_id}'.")
    group.check_offset_delete()
    result = Commit()
    for topic, partition in partitions:
        subscribed = group.subscribes(topic)
        result.errors.append(Error.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else Error.NONE)
        known = groups.offsets.get(group_id, topic, partition) or groups.offsets.is_pending(group_id, topic, partition)
        if known and not subscribed:
            result.changes.append(tombstone(group_id, topic, partition))
    return result


def of_namesake(offset: Offset, topic_id: bytes) -> bool:
    """Return whether an offset was committed for an earlier topic of the same name."""
    return NO_TOPIC_ID not in (offset.topic_id, topic_id) and offset.topic_id != topic_id


def delete_all(groups: Groups, group_id: str) -> list[Change]:
    """Tombstones for all offsets of a group, also for pending ones."""
    keys = {(topic, partition): None for topic, partition, _ in groups.offsets.of_group(group_id)}
    keys |= dict.fromkeys(groups.offsets.pending_of(group_id))
    return [tombstone(group_id, topic, partition) for topic, partition in keys]


def of_deleted_topic(groups: Groups, name: str, topic_id: bytes) -> list[Change]:
    """Tombstones for the offsets of a topic that is gone; those of an earlier or later namesake stay."""
    known = groups.offsets
    keys = [
        (group, partition)
        for group, topics in known.committed.items()
        for partition, offset in topics.get(name, {}).items()
        if not of_namesake(offset, topic_id)
    ]
    keys += [(group, partition) for group, topic, partition in known.pending if topic == name]
    return [tombstone(group, name, partition) for group, partition in dict.fromkeys(keys)]


def expire(groups: Groups, group: Group, now_ms: int) -> tuple[list[Change], bool]:
    """Tombstones for offsets whose retention is over, and whether none is left then."""
    rule = group.offset_expiry()
    if rule is None:
        return [], False
    changes: list[Change] = []
    left = bool(groups.offsets.pending) and bool(groups.offsets.pending_of(group.id))
    for topic, partition, offset in groups.offsets.of_group(group.id):
        pending = groups.offsets.is_pending(group.id, topic, partition)
        if pending or group.subscribes(topic) or not is_over(groups, rule, offset, now_ms):
            left = True
        else:
            changes.append(tombstone(group.id, topic, partition))
    return changes, not left


def is_over(groups: Groups, rule: Expiry, offset: Offset, now_ms: int) -> bool:
    if offset.expire_timestamp != NO_EXPIRY:
        return now_ms >= offset.expire_timestamp
    since = offset.commit_timestamp if rule.since_ms is None else rule.since_ms
    return now_ms - since >= groups.setting("offsets.retention.minutes") * 60_000
