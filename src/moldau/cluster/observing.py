"""The metadata log of a quorum, followed without a vote: what every broker does that is no controller.

The observer asks one controller at a time. Any of them names the leader and its epoch; from then on the leader is
asked. It answers with what follows, with the place where the two logs part, or with a snapshot that stands for the
beginning of the log, which is then fetched in pieces. Records count once the high watermark has passed them: the leader
tells it in the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from moldau.cluster.following import fork, whole_batches
from moldau.cluster.voters import VoterHistory
from moldau.log.answers import Origin
from moldau.log.log import Log
from moldau.machines.metadata.records import TOPIC, TOPIC_ID
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NOBODY = -1
NO_SESSION = -1
FETCH = 1  # the key of its messages

Address = tuple[str, int]


class Limits(NamedTuple):
    """The settings of the quorum, under `controller.quorum.` in Kafka's names."""

    retry_backoff_ms: int
    fetch_max_bytes: int
    snapshot_max_bytes: int
    max_wait_ms: int = 500  # how long the leader may hold a fetch
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000


@dataclass(slots=True)
class Snapshot:
    """A snapshot that is being fetched, or is complete."""

    end_offset: int
    epoch: int
    data: bytearray = field(default_factory=bytearray)
    size: int = -1

    @property
    def is_complete(self) -> bool:
        return len(self.data) == self.size

    def add(self, row: Any) -> bool:
        """Add the next piece; false if it does not fit."""
        if row.position != len(self.data):
            return False
        piece = bytes(row.unaligned_records or b"")
        self.data += piece
        self.size = row.size
        return self.is_complete or (bool(piece) and len(self.data) < self.size)


class Inconsistent(Exception):
    """The controllers belong to another cluster. The text is a sentence."""


class Observer:
    """One follower of the quorum's log."""

    def __init__(
        self,
        me: int,
        cluster_id: str,
        directory: bytes,
        log: Log,
        servers: Sequence[Address],
        voters: Mapping[int, Address],
        limits: Limits,
        history: VoterHistory,
        newest: tuple[int, int] | None = None,
    ) -> None:
        """`servers` are asked first, in turn; of `voters` with fixed addresses the leader is found by its id.

        `history` has the voters that stand in the log: whoever starts with a snapshot of it must know them. `newest`
        are end offset and epoch of the newest snapshot on disk, for the host to keep up to date.
        """
        self.me = me
        self.cluster_id = cluster_id
        self.directory = directory
        self.log = log
        self.servers = list(servers)
        self.limits = limits
        self.history = history
        self.newest = newest
        self.epoch = last_epoch(log, newest)
        self.leader_id = NOBODY
        self.addresses = dict(voters)
        self.snapshot: Snapshot | None = None
        self.ready_ms = 0.0
        self.is_busy = False
        self.turn = 0  # which of the servers was asked last

    @property
    def leader(self) -> Address | None:
        """Return where the active controller is, if that is known."""
        return self.addresses.get(self.leader_id)

    # What to ask.

    def next_ms(self) -> float:
        return inf if self.is_busy else self.ready_ms

    def request(self, now_ms: float) -> tuple[Address, Any] | None:
        """Return whom to ask what, if it is time."""
        if self.is_busy or now_ms < self.ready_ms:
            return None
        self.is_busy = True
        whom = self.leader
        if whom is None:
            self.turn += 1
            whom = self.servers[self.turn % len(self.servers)]
        return whom, self._fetch() if self.snapshot is None else self._fetch_snapshot(self.snapshot)

    def _fetch(self) -> Any:
        epochs = self.epoch, last_epoch(self.log, self.newest)
        return fetch_request(self.cluster_id, (self.me, self.directory), self.log, *epochs, self.limits)

    def _fetch_snapshot(self, snapshot: Snapshot) -> Any:
        return snapshot_request(self.cluster_id, (self.me, self.directory), snapshot, self.epoch, self.limits)

    # What comes of it.

    def fail(self, now_ms: float) -> None:
        """There was no answer: ask the next one, after a pause."""
        self.is_busy, self.leader_id = False, NOBODY
        self.ready_ms = now_ms + self.limits.retry_backoff_ms

    def heard(self, response: Any, now_ms: float, wall_ms: int) -> Snapshot | None:
        """Take over an answer; returns a snapshot that is complete now, to begin anew with. Raises Inconsistent."""
        self.is_busy = False
        error = Error(response.error_code)
        if error is Error.INCONSISTENT_CLUSTER_ID:
            raise Inconsistent(f"The controllers do not belong to cluster {self.cluster_id}: see meta.properties.")
        row = only_row(response)
        self.addresses |= {one.node_id: (one.host, one.port) for one in response.node_endpoints}
        if error or row is None:
            self._pause(now_ms)
            return None
        followed, error = self._follow(row.current_leader), Error(row.error_code)
        if error or not followed:
            if error is Error.SNAPSHOT_NOT_FOUND or error is Error.POSITION_OUT_OF_RANGE:
                self.snapshot = None  # the leader has a newer one by now
            self._pause(now_ms)
            return None
        try:
            return self._take_piece(row) if self.snapshot is not None else self._take_records(row, wall_ms)
        except Refused:  # bytes that are damaged, or a disk that is full
            if self.log.offline is not None:
                raise
            self._pause(now_ms)
            return None

    def _follow(self, named: Any) -> bool:
        """Note who leads; false if that is news, so that the answer came from somebody else, or from nobody."""
        if named is None or named.leader_epoch < self.epoch:
            return False
        same = (named.leader_epoch, named.leader_id) == (self.epoch, self.leader_id)
        self.epoch, self.leader_id = named.leader_epoch, named.leader_id
        return same

    def _pause(self, now_ms: float) -> None:
        self.ready_ms = now_ms + self.limits.retry_backoff_ms

    def _take_records(self, row: Any, wall_ms: int) -> Snapshot | None:
        if (end := fork_of(self.log, row)) is not None:
            self.log.truncate_to(end, wall_ms)
            self.history.truncate(self.log.end_offset)
            return None
        before = self.log.end_offset
        self.snapshot = take_records(self.log, row, self.epoch, wall_ms)
        if self.log.end_offset > before:
            self.history.replay_all(row.records, self.log.end_offset)
        return None

    def _take_piece(self, row: Any) -> Snapshot | None:
        snapshot = self.snapshot
        if snapshot is None or not snapshot.add(row):
            self.snapshot = None
            return None
        if not snapshot.is_complete:
            return None
        self.snapshot = None
        self.history.begin(snapshot.data, snapshot.end_offset)
        return snapshot


# What observers and voters have in common.


def last_epoch(log: Log, snapshot: tuple[int, int] | None) -> int:
    """Return the epoch of the last record, which may be in the newest snapshot alone."""
    if snapshot is not None and log.end_offset == snapshot[0]:
        return snapshot[1]
    return max(0, log.leader_epochs.latest)


def fetch_request(
    cluster_id: str, mine: tuple[int, bytes], log: Log, epoch: int, last_epoch: int, limits: Limits
) -> Any:
    """Return the fetch of what follows the log, whose last record is of `last_epoch`; `mine` are id and directory."""
    part = m.FetchRequest_FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=log.start_offset,
        partition_max_bytes=limits.fetch_max_bytes,
        replica_directory_id=mine[1],
        high_watermark=log.high_watermark,
    )
    return m.FetchRequest(
        cluster_id=cluster_id,
        replica_state=m.FetchRequest_ReplicaState(mine[0], -1),
        max_wait_ms=limits.max_wait_ms,
        min_bytes=1,
        max_bytes=limits.fetch_max_bytes,
        session_epoch=NO_SESSION,
        topics=[m.FetchRequest_FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[part])],
    )


def snapshot_request(cluster_id: str, mine: tuple[int, bytes], snapshot: Snapshot, epoch: int, limits: Limits) -> Any:
    """Return the request for the next piece of a snapshot."""
    part = m.FetchSnapshotRequest_PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=m.FetchSnapshotRequest_SnapshotId(snapshot.end_offset, snapshot.epoch),
        position=len(snapshot.data),
        replica_directory_id=mine[1],
    )
    return m.FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=mine[0],
        max_bytes=limits.snapshot_max_bytes,
        topics=[m.FetchSnapshotRequest_TopicSnapshot(TOPIC, [part])],
    )


def only_row(response: Any) -> Any:
    """Return the row of the metadata log in a response of the quorum; None if there is not exactly one."""
    topics = response.responses if response.SCHEMA.key == FETCH else response.topics
    rows = [row for topic in topics for row in topic.partitions]
    return rows[0] if len(rows) == 1 else None


def fork_of(log: Log, row: Any) -> int | None:
    """Return to where the log must be truncated, if the leader says that it has other records."""
    part = row.diverging_epoch
    return None if part is None or part.epoch < 0 else fork(log, part.epoch, part.end_offset)


def take_records(log: Log, row: Any, epoch: int, wall_ms: int) -> Snapshot | None:
    """Append what the leader has sent; returns the snapshot that is to be fetched if it has sent none."""
    if row.snapshot_id is not None and row.snapshot_id.end_offset >= 0:
        return Snapshot(row.snapshot_id.end_offset, row.snapshot_id.epoch)
    if (batches := whole_batches(row.records, epoch)) is not None:
        log.append(batches, epoch, wall_ms, Origin.REPLICATION)
    log.advance_high_watermark(min(row.high_watermark, log.end_offset))
    return None
