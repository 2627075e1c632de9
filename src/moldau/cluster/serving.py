"""What a controller answers to the others of its quorum. Checks come in Kafka's order.

Every answer names the leader and its epoch as far as they are known here; whoever hears of a newer one follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moldau.cluster import quorum_messages as messages
from moldau.cluster.elections import NOBODY
from moldau.cluster.voters import ANY_DIRECTORY, Key, SnapshotId
from moldau.log.answers import Isolation
from moldau.log.log import Log
from moldau.machines.metadata.records import TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.cluster.raft import Raft

UNKNOWN = -1
BOOTSTRAP = (0, 0)  # the snapshot that formatting writes: it has nothing that the log does not have


def unfit(raft: Raft, request: Any) -> Error:
    """Return why a request cannot be for this log of this cluster."""
    if request.cluster_id is not None and request.cluster_id != raft.cluster_id:
        return Error.INCONSISTENT_CLUSTER_ID
    return Error.INVALID_REQUEST if messages.requested_row(request) is None else Error.NONE


def voter_error(raft: Raft, sender: int, epoch: int) -> Error:
    """Return what is wrong with a request that a voter may send to any other."""
    if epoch < raft.epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.INVALID_REQUEST if sender < 0 else Error.NONE


def leader_error(raft: Raft, epoch: int) -> Error:
    """Return what is wrong with a request that only the leader of `epoch` answers."""
    if epoch != raft.epoch:
        return Error.FENCED_LEADER_EPOCH if epoch < raft.epoch else Error.UNKNOWN_LEADER_EPOCH
    return Error.NONE if raft.is_leader else Error.NOT_LEADER_OR_FOLLOWER


def is_addressee(raft: Raft, voter_id: int, directory: bytes) -> bool:
    """Return whether a request was meant for this voter; older ones do not say."""
    return voter_id in (NOBODY, raft.me) and directory in (ANY_DIRECTORY, raft.mine[1])


# Votes.


def answer_vote(raft: Raft, request: Any, now_ms: float) -> Any:
    """Answer a request for a vote or a pre-vote; a vote is on disk before it is given."""
    if error := unfit(raft, request):
        return m.VoteResponse(error)
    row = messages.requested_row(request)
    last, pre_vote = (row.last_offset_epoch, row.last_offset), row.pre_vote
    too_new = last[0] > row.replica_epoch if pre_vote else last[0] >= row.replica_epoch
    if min(last) < 0 or too_new:
        return messages.vote_response(Error.INVALID_REQUEST, raft.view)
    if error := voter_error(raft, row.replica_id, row.replica_epoch):
        return messages.vote_response(error, raft.view)
    raft.meet(row.replica_epoch, NOBODY, None, now_ms)
    if not is_addressee(raft, request.voter_id, bytes(row.voter_directory_id)):
        return messages.vote_response(Error.INVALID_VOTER_KEY, raft.view)
    candidate = row.replica_id, bytes(row.replica_directory_id)
    granted = may_vote(raft, candidate, last, pre_vote)
    if granted and not pre_vote and raft.voted is None:
        raft.grant(candidate, now_ms)
    return messages.vote_response(Error.NONE, raft.view, granted)


def may_vote(raft: Raft, candidate: Key, last: tuple[int, int], pre_vote: bool) -> bool:
    """Return whether a candidate of this epoch, whose log ends at `last`, gets the vote, or would get it.

    A pre-vote is not a promise; a follower refuses it once its leader has shown that it is there.
    """
    is_current = last >= (raft.last_epoch, raft.log.end_offset)
    if pre_vote:
        return is_current and not raft.is_leader and not (raft.is_follower and raft.has_fetched)
    if raft.is_committed_to_leader:
        return False
    if raft.voted is not None:
        return raft.voted[0] == candidate[0] and raft.voted[1] in (ANY_DIRECTORY, candidate[1])
    return raft.leader_id == NOBODY and is_current


def answer_begin(raft: Raft, request: Any, now_ms: float) -> Any:
    """Answer a leader that says that its epoch has begun."""
    if error := unfit(raft, request):
        return m.BeginQuorumEpochResponse(error)
    row = messages.requested_row(request)
    error = voter_error(raft, row.leader_id, row.leader_epoch)
    if not error:
        meet_leader(raft, request, row, now_ms)
        if not is_addressee(raft, request.voter_id, bytes(row.voter_directory_id)):
            error = Error.INVALID_VOTER_KEY
    return messages.begin_response(error, raft.view)


def answer_end(raft: Raft, request: Any, now_ms: float) -> Any:
    """Answer a leader that resigns: its best successor stands at once, the others later one by one."""
    if error := unfit(raft, request):
        return m.EndQuorumEpochResponse(error)
    row = messages.requested_row(request)
    error = voter_error(raft, row.leader_id, row.leader_epoch)
    if not error:
        meet_leader(raft, request, row, now_ms)
        if raft.is_follower and raft.leader_id == row.leader_id:
            named = [(one.candidate_id, bytes(one.candidate_directory_id)) for one in row.preferred_candidates]
            named = named or [(one, ANY_DIRECTORY) for one in row.preferred_successors]
            raft.deadline_ms = now_ms + succession_ms(raft.mine, named, raft.limits.election_backoff_max_ms)
    return messages.end_response(error, raft.view)


def meet_leader(raft: Raft, request: Any, row: Any, now_ms: float) -> None:
    places = {one.name: (one.host, one.port) for one in request.leader_endpoints}
    raft.meet(row.leader_epoch, row.leader_id, places.get(raft.listener), now_ms)


def succession_ms(mine: Key, candidates: Sequence[Key], longest_ms: int) -> float:
    """Return how long a voter waits after its leader has resigned: the best not at all, each next one twice as long."""
    places = [at for at, one in enumerate(candidates) if one[0] == mine[0] and one[1] in (ANY_DIRECTORY, mine[1])]
    if not places:
        return float(longest_ms)
    if places[0] == 0:
        return 0.0
    return float(min(longest_ms, (longest_ms >> (len(candidates) - 1)) << (places[0] - 1)))


# The log.


def answer_fetch(raft: Raft, request: Any, now_ms: float, is_new: bool, is_last: bool) -> Any:
    """Answer a fetch of the log, or return None: there is nothing to tell before the log grows or time is up."""
    if error := unfit(raft, request):
        return m.FetchResponse(error_code=error)
    asked = messages.requested_row(request)
    error = fetch_error(raft, request, asked)
    row = messages.fetch_row(error, raft.view)
    if not error:
        try:
            fill(raft, request, asked, row, now_ms, is_new)
        except Refused as refused:
            row = messages.fetch_row(refused.error, raft.view)
    row.log_start_offset = raft.log.start_offset
    if not (is_last or row.error_code or is_news(asked, row)):
        return None
    return messages.fetch_response(row, raft.view)


def fetch_error(raft: Raft, request: Any, asked: Any) -> Error:
    possible = min(request.max_wait_ms, asked.fetch_offset, asked.last_fetched_epoch) >= 0
    if not possible or asked.last_fetched_epoch > asked.current_leader_epoch:
        return Error.INVALID_REQUEST
    if error := leader_error(raft, asked.current_leader_epoch):
        return error
    is_own = messages.fetching_replica(request, asked)[0] == raft.me
    return Error.UNKNOWN_SERVER_ERROR if is_own else Error.NONE


def is_news(asked: Any, row: Any) -> bool:
    """Return whether a follower wants to know at once; the high watermark too, if it has told its own (KIP-1166)."""
    parts = row.diverging_epoch is not None or row.snapshot_id is not None
    return parts or len(row.records) > 0 or asked.high_watermark < row.high_watermark


def fill(raft: Raft, request: Any, asked: Any, row: Any, now_ms: float, is_new: bool) -> None:
    """Read the log into a row, or say from where on the follower's log is another one. Raises Refused."""
    led, log = raft.led, raft.log
    assert led is not None, "only a leader answers fetches"
    place = find_place(log, raft.snapshot, asked.fetch_offset, asked.last_fetched_epoch)
    if isinstance(place, m.FetchResponse_SnapshotId):
        row.snapshot_id = place
    elif place is not None:
        row.diverging_epoch = place
    else:
        replica = messages.fetching_replica(request, asked)
        if is_new and replica[0] >= 0:
            led.note_fetch(replica, asked.fetch_offset, log.end_offset, now_ms)
            raft.advance(now_ms)
        limit = min(request.max_bytes, asked.partition_max_bytes)
        row.records = log.read(asked.fetch_offset, limit, isolation=Isolation.LOG_END).span or b""
    if led.is_established:
        row.high_watermark = log.high_watermark


def find_place(log: Log, snapshot: SnapshotId | None, offset: int, epoch: int) -> Any:
    """Return None if a log that ends at `offset` with a record of `epoch` is the beginning of ours.

    If not, return the snapshot that the follower begins anew with, or where our records of that epoch end.
    """
    start = log.start_offset
    if (offset, epoch) == snapshot and offset > 0:
        return None  # it has begun with our snapshot, of whose epoch this log may know nothing any more
    if snapshot is not None and snapshot != BOOTSTRAP:
        is_before = offset < start or epoch < first_epoch(log, snapshot)
        if offset in (0, start) or is_before:
            return m.FetchResponse_SnapshotId(*snapshot)
    if offset == start == 0:
        return None
    known, end = log.end_offset_for_epoch(epoch)
    if known < 0:
        known, end = max(0, log.leader_epochs.latest), log.end_offset
    return None if known == epoch and end >= offset else m.FetchResponse_EpochEndOffset(known, end)


def first_epoch(log: Log, snapshot: SnapshotId) -> int:
    """Return the oldest epoch of which this log knows where it ended."""
    entries = log.leader_epochs.entries
    if log.start_offset == 0 and not (entries and entries[0][1]):
        return 0
    first = entries[0][0] if entries else snapshot[1]
    return min(first, snapshot[1]) if log.start_offset == snapshot[0] else first


def answer_fetch_snapshot(raft: Raft, request: Any, now_ms: float) -> Any:
    """Answer with a piece of a snapshot."""
    error = unfit(raft, request)
    if error is Error.INCONSISTENT_CLUSTER_ID:
        return m.FetchSnapshotResponse(error_code=error)
    asked = messages.requested_row(request)
    if asked is None:
        return messages.snapshot_response(messages.snapshot_row(Error.UNKNOWN_TOPIC_OR_PARTITION, raft.view), raft.view)
    row = messages.snapshot_row(leader_error(raft, asked.current_leader_epoch), raft.view)
    if not row.error_code:
        row.error_code = fill_piece(raft, request, asked, row)
    if not row.error_code and raft.led is not None:
        raft.led.note_contact((request.replica_id, bytes(asked.replica_directory_id)), now_ms)
    return messages.snapshot_response(row, raft.view)


def fill_piece(raft: Raft, request: Any, asked: Any, row: Any) -> Error:
    wanted = asked.snapshot_id.end_offset, asked.snapshot_id.epoch
    piece = None
    if wanted != BOOTSTRAP:
        piece = raft.read_snapshot(*wanted, max(0, asked.position), max(0, request.max_bytes))
    if piece is None:
        return Error.SNAPSHOT_NOT_FOUND
    data, size = piece
    if not 0 <= asked.position < size:
        return Error.POSITION_OUT_OF_RANGE
    row.snapshot_id.end_offset, row.snapshot_id.epoch = wanted
    row.size, row.position, row.unaligned_records = size, asked.position, data
    return Error.NONE


def answer_describe(raft: Raft, now_ms: float, wall_ms: int) -> Any:
    """Answer DescribeQuorum; only the leader can."""
    error = Error.NONE if raft.is_leader else Error.NOT_LEADER_OR_FOLLOWER
    part = m.DescribeQuorumResponse_PartitionData(0, error, error.message if error else "", *raft.view[:2], UNKNOWN)
    listed: list[Any] = []
    if raft.led is not None:
        part.high_watermark = raft.log.high_watermark if raft.led.is_established else UNKNOWN
        part.current_voters, part.observers = raft.led.describe(raft.log.end_offset, now_ms, wall_ms)
        row, place = m.DescribeQuorumResponse_Node, m.DescribeQuorumResponse_Listener
        listed = [row(one.id, [place(*endpoint) for endpoint in one.endpoints]) for one in raft.voters.members]
    topics = [m.DescribeQuorumResponse_TopicData(TOPIC, [part])]
    return m.DescribeQuorumResponse(topics=topics, nodes=listed)
