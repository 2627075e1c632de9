"""The share coordinator (KIP-932): what became of the records of each share partition, on one partition of its topic.

The records are Kafka's: a snapshot says all of a share partition, an update what has changed since. Old records are
worth nothing once every share partition has a newer snapshot, so the topic is not compacted: its head is cut off
(`needed_from`), and share partitions that nobody uses get a new snapshot now and then, lest they hold it up.

Two epochs fence writers: that of the share partition's leader, and that of the state itself, which an administrator
who sets offsets raises.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple

from moldau.machines.effects import Change, Effects
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.share.batches import StateBatch, combine, read_batches
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

UPDATES_PER_SNAPSHOT = "share.coordinator.snapshot.update.records.per.snapshot"
COLD_AFTER = "share.coordinator.cold.partition.snapshot.interval.ms"
SAME = -1  # in a write: as it was
UNKNOWN = -1

Setting = Callable[[str], Any]


class Key(NamedTuple):
    """A share partition: a partition as one group sees it."""

    group: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        """By which Kafka chooses the partition of the topic, and clients ask for the coordinator."""
        return f"{self.group}:{urlsafe_b64encode(self.topic_id).rstrip(b'=').decode()}:{self.partition}"


@dataclass(slots=True)
class State:
    """What is known of one share partition. `updates` came since the snapshot, which lies at `offset`."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    created_ms: int
    written_ms: int
    batches: list[StateBatch] = field(default_factory=list[StateBatch])
    updates: int = 0
    offset: int = 0


@dataclass(slots=True)
class Write:
    """What a share partition's leader has to say."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: list[StateBatch] = field(default_factory=list[StateBatch])


class ShareStates:
    """The share partitions of one partition of `__share_group_state`."""

    def __init__(self, setting: Setting, cluster: Callable[[], Cluster], next_offset: int = 0) -> None:
        """`next_offset` is where the log begins: its records are counted, for none is ever missing."""
        self.setting = setting
        self.cluster = cluster
        self.next_offset = next_offset
        self.states: dict[Key, State] = {}

    # Commands.

    def initialize(self, key: Key, state_epoch: int, start_offset: int, now_ms: int) -> list[Change]:
        """Begin anew at an offset, or wherever the leader will decide (-1); what was known is gone."""
        self.check_key(key)
        known = self.states.get(key)
        if known is not None:
            fence(state_epoch, known.state_epoch, Error.FENCED_STATE_EPOCH)
        self.check_topic(key)
        epoch = 0 if known is None else known.snapshot_epoch + 1
        complete = UNKNOWN if start_offset == UNKNOWN else 0
        return [snapshot(key, State(epoch, state_epoch, 0, start_offset, complete, now_ms, now_ms))]

    def read(self, key: Key, leader_epoch: int, now_ms: int) -> list[Change]:
        """Let a leader take over the state as it is; from now on older leaders are fenced."""
        self.check_key(key)
        known = self.known(key)
        fence(leader_epoch, known.leader_epoch, Error.FENCED_LEADER_EPOCH)
        self.check_topic(key)
        if leader_epoch in (SAME, known.leader_epoch):
            return []
        write = Write(known.state_epoch, leader_epoch, known.start_offset, known.complete_count)
        return [self.change(key, known, write, leader_epoch, now_ms)]

    def write(self, key: Key, write: Write, now_ms: int) -> list[Change]:
        self.check_key(key)
        known = self.known(key)
        fence(write.leader_epoch, known.leader_epoch, Error.FENCED_LEADER_EPOCH)
        fence(write.state_epoch, known.state_epoch, Error.FENCED_STATE_EPOCH)
        self.check_topic(key)
        return [self.change(key, known, write, known.leader_epoch, now_ms)]

    def delete(self, key: Key) -> list[Change]:
        self.check_key(key)
        self.check_topic(key)
        return [tombstone(key)] if key in self.states else []

    def summary(self, key: Key) -> State | None:
        """Return the state for those who only look; None if there is none."""
        self.check_key(key)
        self.check_topic(key)
        return self.states.get(key)

    def of_deleted_topic(self, topic_id: bytes) -> list[Change]:
        return [tombstone(key) for key in self.states if key.topic_id == topic_id]

    def refresh_cold(self, now_ms: int) -> list[Change]:
        """New snapshots of what nobody has written for long. If that is everything, nothing would be gained."""
        if all(state.created_ms != state.written_ms for state in self.states.values()):
            return []
        cold = now_ms - self.setting(COLD_AFTER)
        return [snapshot(key, renew(state, now_ms)) for key, state in self.states.items() if state.written_ms <= cold]

    def needed_from(self) -> int:
        """Records before this offset say nothing that a later one does not say."""
        return min((state.offset for state in self.states.values()), default=self.next_offset)

    # What commands have in common.

    def known(self, key: Key) -> State:
        if key not in self.states:
            raise Refused(Error.INVALID_REQUEST, "The share partition is not initialized.")
        return self.states[key]

    def check_key(self, key: Key) -> None:
        if key.partition < 0:
            raise Refused(Error.INVALID_REQUEST, "A partition has no negative number.")

    def check_topic(self, key: Key) -> None:
        topic = self.cluster().topics_by_id.get(key.topic_id)
        if topic is None or key.partition not in topic.partitions:
            raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_OR_PARTITION.message)

    def change(self, key: Key, known: State, write: Write, leader_epoch: int, now_ms: int) -> Change:
        """Make an update or, after many of them, a snapshot. Only a read makes a new leader, no write does."""
        if known.updates < self.setting(UPDATES_PER_SNAPSHOT):
            return update(key, known.snapshot_epoch, leader_epoch, write)
        start_offset = known.start_offset if write.start_offset == SAME else write.start_offset
        state = replace(
            renew(known, now_ms),
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            complete_count=write.complete_count,
            created_ms=now_ms,
            batches=combine(known.batches, write.batches, start_offset),
        )
        return snapshot(key, state)

    # Replay.

    def replay(self, key: Any, value: Any, producer_id: int) -> None:
        where = Key(key.group_id, bytes(key.topic_id), key.partition)
        if value is None:
            self.states.pop(where, None)
        elif isinstance(value, m.ShareSnapshotValue):
            self.states[where] = self.read_snapshot(value)
        elif where in self.states:  # else the snapshot that it belongs to was cut off with the head of the log
            apply(self.states[where], value)
        self.next_offset += 1

    def read_snapshot(self, value: Any) -> State:
        return State(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            value.create_timestamp,
            value.write_timestamp,
            read_batches(value.state_batches),
            offset=self.next_offset,
        )

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """There are no transactions here."""

    def loaded(self, now_ms: int) -> Effects:
        """Topics may have gone while nobody looked."""
        topics = self.cluster().topics_by_id
        return Effects([tombstone(key) for key in self.states if key.topic_id not in topics])

    def tick(self, now_ms: int) -> Effects:
        return Effects()

    def next_deadline_ms(self) -> float:
        return inf


def fence(epoch: int, known: int, error: Error) -> None:
    if epoch != SAME and epoch < known:
        raise Refused(error, error.message)


def apply(state: State, value: Any) -> None:
    """What has changed, since an update says only that."""
    if value.start_offset != SAME:
        state.start_offset = value.start_offset
    state.leader_epoch = value.leader_epoch
    state.complete_count = value.delivery_complete_count
    state.batches = combine(state.batches, read_batches(value.state_batches), state.start_offset)
    state.updates += 1


def renew(state: State, now_ms: int) -> State:
    """Make the next snapshot of a state that has not changed; its later time of writing tells that it is cold."""
    return replace(state, snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms)


def snapshot(key: Key, state: State) -> Change:
    return Change(
        m.ShareSnapshotKey(*key),
        m.ShareSnapshotValue(
            state.snapshot_epoch,
            state.state_epoch,
            state.leader_epoch,
            state.start_offset,
            state.complete_count,
            state.created_ms,
            state.written_ms,
            rows(m.ShareSnapshotValue_StateBatch, state.batches),
        ),
    )


def update(key: Key, snapshot_epoch: int, leader_epoch: int, write: Write) -> Change:
    batches = rows(m.ShareUpdateValue_StateBatch, combine((), write.batches, write.start_offset))
    fields = snapshot_epoch, leader_epoch, write.start_offset, write.complete_count
    return Change(m.ShareUpdateKey(*key), m.ShareUpdateValue(*fields, batches))


def tombstone(key: Key) -> Change:
    return Change(m.ShareSnapshotKey(*key), None)


def rows(row: Callable[..., Any], batches: Iterable[StateBatch]) -> list[Any]:
    return [row(*batch) for batch in batches]
