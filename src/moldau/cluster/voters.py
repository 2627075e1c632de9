"""Who votes in the quorum of the metadata log, and how that stands in the log and in snapshots of it.

With kraft.version 0 the voters are fixed by `controller.quorum.voters` and are known by their ids alone. With 1 they
stand in control records (KIP-853): a voter is an id and the directory that its log lies in, so that a disk that was
replaced does not vote for the one that was lost. A change counts as soon as it is in the log, committed or not, and
goes when the log is truncated; `VoterHistory` therefore knows which voters each part of the log has.

Kafka reads every control record in version 0, whatever the record says: they are written in no other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from moldau.log.checkpoints import Damaged
from moldau.log.log import Log
from moldau.machines.metadata.checkpoints import control
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.records import Batch, ControlType, Record, build, control_record, control_type, records, starts

STATIC, DYNAMIC = 0, 1  # levels of kraft.version
ANY_DIRECTORY = bytes(16)
LAST = 2**63 - 1
CHUNK = 1 << 20  # how much of a log or snapshot is read at a time

Address = tuple[str, int]
Key = tuple[int, bytes]  # id and directory of a replica
SnapshotId = tuple[int, int]  # end offset and epoch


class Endpoint(NamedTuple):
    """Where one listener of a voter is."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A controller that votes. Its directory is ANY_DIRECTORY where only ids are known (kraft.version 0)."""

    id: int
    directory: bytes = ANY_DIRECTORY
    endpoints: tuple[Endpoint, ...] = ()
    low: int = STATIC  # the levels of kraft.version that it supports
    high: int = DYNAMIC

    @property
    def key(self) -> Key:
        return self.id, self.directory

    def matches(self, key: Key) -> bool:
        """Return whether a replica is this voter."""
        return self.id == key[0] and self.directory in (ANY_DIRECTORY, key[1])

    def address(self, listener: str) -> Address | None:
        return next(((one.host, one.port) for one in self.endpoints if one.name == listener), None)


class Voters(NamedTuple):
    """A set of voters in the order of their ids, with the kraft.version under which they vote."""

    members: tuple[Voter, ...] = ()
    version: int = STATIC

    @property
    def is_dynamic(self) -> bool:
        return self.version >= DYNAMIC

    @property
    def majority(self) -> int:
        return len(self.members) // 2 + 1

    def get(self, voter_id: int) -> Voter | None:
        return next((one for one in self.members if one.id == voter_id), None)

    def has(self, key: Key) -> bool:
        """Return whether a replica votes."""
        voter = self.get(key[0])
        return voter is not None and voter.matches(key)

    def others(self, key: Key) -> list[Voter]:
        return [one for one in self.members if not one.matches(key)]

    def add(self, voter: Voter) -> Voters:
        """Return the set with a voter more, or with another description of one that is in it."""
        kept = [one for one in self.members if one.id != voter.id]
        return Voters(tuple(sorted([*kept, voter])), self.version)

    def remove(self, voter_id: int) -> Voters:
        return Voters(tuple(one for one in self.members if one.id != voter_id), self.version)


def fixed_voters(addresses: Iterable[tuple[int, Address]], listener: str) -> Voters:
    """Return the voters that `controller.quorum.voters` names."""
    members = [Voter(number, endpoints=(Endpoint(listener, *address),)) for number, address in addresses]
    return Voters(tuple(sorted(members)))


# Records.


def voter_records(voters: Voters, wall_ms: int) -> list[Record]:
    """Return the control records from which a reader learns the voters; none while they are fixed."""
    if not voters.is_dynamic:
        return []
    return [control(m.KRaftVersionRecord(0, voters.version), wall_ms), voters_record(voters, wall_ms)]


def voters_record(voters: Voters, wall_ms: int) -> Record:
    rows = [
        m.VotersRecord_Voter(
            voter_id=one.id,
            voter_directory_id=one.directory,
            endpoints=[m.VotersRecord_Endpoint(*endpoint) for endpoint in one.endpoints],
            k_raft_version_feature=m.VotersRecord_KRaftVersionFeature(one.low, one.high),
        )
        for one in voters.members
    ]
    return control(m.VotersRecord(0, rows), wall_ms)


def leader_change(leader_id: int, voters: Iterable[int], granting: Iterable[int], wall_ms: int) -> Record:
    """Return the record with which an epoch begins."""
    row = m.LeaderChangeMessage_Voter
    change = m.LeaderChangeMessage(0, leader_id, [row(one) for one in voters], [row(one) for one in granting])
    return control_record(ControlType.LEADER_CHANGE, codec.encode(change, 0), wall_ms)


def control_batch(items: Sequence[Record]) -> memoryview:
    return memoryview(build(items, control=True))


def replay_controls(batch: Batch, voters: Voters) -> Voters | None:
    """Return the voters after a batch; None if it says nothing of them, as most."""
    if not batch.is_control:
        return None
    is_told = False
    for record in records(batch):
        kind = control_type(record.key)
        is_told |= kind in (ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS)
        if kind == ControlType.KRAFT_VERSION:
            level = codec.decode(m.KRaftVersionRecord, 0, record.value or b"").k_raft_version
            voters = Voters(voters.members, level)
        elif kind == ControlType.KRAFT_VOTERS:
            found = codec.decode(m.VotersRecord, 0, record.value or b"").voters
            voters = Voters(tuple(sorted(voter_of(row) for row in found)), voters.version)
    return voters if is_told else None


def voter_of(row: Any) -> Voter:
    endpoints = tuple(Endpoint(one.name, one.host, one.port) for one in row.endpoints)
    levels = row.k_raft_version_feature
    directory = bytes(row.voter_directory_id)
    return Voter(row.voter_id, directory, endpoints, levels.min_supported_version, levels.max_supported_version)


def whole_batches(data: Any) -> Iterator[Batch]:
    """Yield the batches that are there whole; the last one may be cut off."""
    view = memoryview(data)
    for at in starts(view):
        yield Batch(view, at)


class VoterHistory:
    """The voters at each place of the log where they change, and those that stood before all of it."""

    def __init__(self, initial: Voters) -> None:
        self.initial = initial
        self.start = -1  # the offset of the record of the initial ones: in a snapshot, or nowhere
        self.changes: list[tuple[int, Voters]] = []  # offset of the batch, what holds from there on

    @property
    def current(self) -> Voters:
        return self.changes[-1][1] if self.changes else self.initial

    @property
    def offset(self) -> int:
        """Return where the current voters were written; -1 if that is before the log."""
        return self.changes[-1][0] if self.changes else self.start

    def at(self, offset: int) -> Voters:
        """Return the voters of the log before `offset`, as a snapshot of it must tell them."""
        index = bisect_left(self.changes, offset, key=place_of)
        return self.changes[index - 1][1] if index else self.initial

    def may_stand(self, key: Key, committed: int) -> bool:
        """Tell whether a controller stands for election.

        One that was removed does so until that is committed, though its own vote does not count: of two voters the one
        that stays may lack the record, and then nobody else can be elected.
        """
        return self.current.has(key) or (self.offset >= committed and self.at(committed).has(key))

    def replay(self, batch: Batch) -> None:
        """Note what a batch that was appended says of the voters."""
        if (after := replay_controls(batch, self.current)) is not None:
            self.changes.append((batch.base_offset, after))

    def replay_all(self, data: Any, end_offset: int = LAST) -> int:
        """Replay whole batches before `end_offset`; returns the offset after them, or -1 if there are none."""
        end = -1
        for batch in whole_batches(data):
            if batch.next_offset > end_offset:
                break
            self.replay(batch)
            end = batch.next_offset
        return end

    def truncate(self, end_offset: int) -> None:
        """Forget what was written at `end_offset` or later."""
        self.changes = [change for change in self.changes if change[0] < end_offset]

    def begin(self, data: Any, end_offset: int) -> None:
        """Begin anew with a snapshot: its first batches say who votes. Without that, who was initial remains."""
        self.changes = []
        for batch in whole_batches(data):
            if not batch.is_control:
                break
            if (voters := replay_controls(batch, self.initial)) is not None:
                self.initial, self.start = voters, end_offset - 1

    def trim(self, start_offset: int) -> None:
        """Let go of what a snapshot that ends at `start_offset` tells as well."""
        if any(offset < start_offset for offset, _ in self.changes):
            self.initial = self.at(start_offset)
            self.start = start_offset - 1
            self.changes = [change for change in self.changes if change[0] >= start_offset]


def load_history(log: Log, voters: Voters, snapshot: SnapshotId | None, header: bytes | None) -> VoterHistory:
    """Return the voters of a log: `voters` unless the beginning of its newest snapshot, or the log itself, names some.

    Raises Damaged if the log has a hole.
    """
    history, offset = VoterHistory(voters), log.start_offset
    if snapshot is not None:
        history.begin(header or b"", snapshot[0])
        offset = max(offset, snapshot[0])
    while offset < log.end_offset:
        span = log.read(offset, CHUNK).span
        after = -1 if span is None else history.replay_all(span.read())
        if after < 0:
            raise Damaged(f"{log.path} has no whole batch at offset {offset}")
        offset = after
    return history


def place_of(change: tuple[int, Voters]) -> int:
    return change[0]
