"""The messages of the quorum: requests, responses, and what every response says of the leader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from moldau.cluster.observing import NOBODY, only_row
from moldau.cluster.voters import ANY_DIRECTORY, Address, Endpoint, Key, Voter
from moldau.machines.metadata.records import TOPIC, TOPIC_ID
from moldau.wire import messages as m
from moldau.wire.errors import Error

UNKNOWN = -1

# Requests.


def vote_request(cluster_id: str, mine: Key, voter: Voter, epoch: int, last: tuple[int, int], pre_vote: bool) -> Any:
    """Return the request for a voter's vote in `epoch`; `last` is the epoch of our last record and our end offset."""
    part = m.VoteRequest_PartitionData(0, epoch, *mine, voter.directory, *last, pre_vote)
    return m.VoteRequest(cluster_id, voter.id, [m.VoteRequest_TopicData(TOPIC, [part])])


def begin_request(cluster_id: str, me: int, voter: Voter, epoch: int, endpoints: Iterable[Endpoint]) -> Any:
    part = m.BeginQuorumEpochRequest_PartitionData(0, voter.directory, me, epoch)
    named = [m.BeginQuorumEpochRequest_LeaderEndpoint(*one) for one in endpoints]
    return m.BeginQuorumEpochRequest(cluster_id, voter.id, [m.BeginQuorumEpochRequest_TopicData(TOPIC, [part])], named)


def end_request(cluster_id: str, me: int, epoch: int, candidates: Sequence[Key], endpoints: Iterable[Endpoint]) -> Any:
    part = m.EndQuorumEpochRequest_PartitionData(
        partition_index=0,
        leader_id=me,
        leader_epoch=epoch,
        preferred_successors=[candidate for candidate, _ in candidates],
        preferred_candidates=[m.EndQuorumEpochRequest_ReplicaInfo(*candidate) for candidate in candidates],
    )
    named = [m.EndQuorumEpochRequest_LeaderEndpoint(*one) for one in endpoints]
    return m.EndQuorumEpochRequest(cluster_id, [m.EndQuorumEpochRequest_TopicData(TOPIC, [part])], named)


def update_voter_request(cluster_id: str, epoch: int, voter: Voter) -> Any:
    return m.UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=voter.id,
        voter_directory_id=voter.directory,
        listeners=[m.UpdateRaftVoterRequest_Listener(*one) for one in voter.endpoints],
        k_raft_version_feature=m.UpdateRaftVoterRequest_KRaftVersionFeature(voter.low, voter.high),
    )


def add_voter_request(cluster_id: str, voter: Voter, timeout_ms: int) -> Any:
    """Return the request of a controller that joins by itself: it does not wait until that is committed."""
    listeners = [m.AddRaftVoterRequest_Listener(*one) for one in voter.endpoints]
    return m.AddRaftVoterRequest(cluster_id, timeout_ms, voter.id, voter.directory, listeners, ack_when_committed=False)


def requested_row(request: Any) -> Any:
    """Return the only row of a request, if it is for the metadata log; None if it is not."""
    topics = request.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, row = topics[0], topics[0].partitions[0]
    index = row.partition if hasattr(row, "partition") else row.partition_index
    return row if index == 0 and names_log(topic) else None


def names_log(topic: Any) -> bool:
    name = next((getattr(topic, field) for field in ("topic_name", "name", "topic") if hasattr(topic, field)), "")
    return name == TOPIC or bytes(getattr(topic, "topic_id", b"")) == TOPIC_ID


def fetching_replica(request: Any, row: Any) -> Key:
    """Return id and directory of whoever fetches; the id is negative if it is no replica."""
    state = request.replica_state
    replica = request.replica_id if state is None or state.replica_id < 0 else state.replica_id
    return replica, bytes(row.replica_directory_id or ANY_DIRECTORY)


# Responses.


class View(NamedTuple):
    """Who leads, as a response tells it: `address` is None where that is not known."""

    leader_id: int
    epoch: int
    address: Address | None


def nodes(row: Any, view: View) -> list[Any]:
    """Return where the leader is, for the response's `node_endpoints`."""
    return [] if view.address is None or view.leader_id < 0 else [row(view.leader_id, *view.address)]


def vote_response(error: Error, view: View, granted: bool = False) -> Any:
    part = m.VoteResponse_PartitionData(0, error, view.leader_id, view.epoch, granted)
    return m.VoteResponse(
        Error.NONE, [m.VoteResponse_TopicData(TOPIC, [part])], nodes(m.VoteResponse_NodeEndpoint, view)
    )


def begin_response(error: Error, view: View) -> Any:
    part = m.BeginQuorumEpochResponse_PartitionData(0, error, view.leader_id, view.epoch)
    topics = [m.BeginQuorumEpochResponse_TopicData(TOPIC, [part])]
    return m.BeginQuorumEpochResponse(Error.NONE, topics, nodes(m.BeginQuorumEpochResponse_NodeEndpoint, view))


def end_response(error: Error, view: View) -> Any:
    part = m.EndQuorumEpochResponse_PartitionData(0, error, view.leader_id, view.epoch)
    topics = [m.EndQuorumEpochResponse_TopicData(TOPIC, [part])]
    return m.EndQuorumEpochResponse(Error.NONE, topics, nodes(m.EndQuorumEpochResponse_NodeEndpoint, view))


def fetch_row(error: Error, view: View) -> Any:
    """Return an empty row. It names the leader also without an error: Kafka drops one that does not."""
    return m.FetchResponse_PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=UNKNOWN,
        current_leader=m.FetchResponse_LeaderIdAndEpoch(view.leader_id, view.epoch),
        records=b"",
    )


def fetch_response(row: Any, view: View) -> Any:
    topics = [m.FetchResponse_FetchableTopicResponse(TOPIC, TOPIC_ID, [row])]
    return m.FetchResponse(responses=topics, node_endpoints=nodes(m.FetchResponse_NodeEndpoint, view))


def snapshot_row(error: Error, view: View) -> Any:
    """Return an empty row; the records are empty rather than null, with which Kafka fails."""
    return m.FetchSnapshotResponse_PartitionSnapshot(
        index=0,
        error_code=error,
        snapshot_id=m.FetchSnapshotResponse_SnapshotId(UNKNOWN, UNKNOWN),
        current_leader=m.FetchSnapshotResponse_LeaderIdAndEpoch(view.leader_id, view.epoch),
        unaligned_records=b"",
    )


def snapshot_response(row: Any, view: View) -> Any:
    topics = [m.FetchSnapshotResponse_TopicSnapshot(TOPIC, [row])]
    return m.FetchSnapshotResponse(topics=topics, node_endpoints=nodes(m.FetchSnapshotResponse_NodeEndpoint, view))


def update_voter_response(error: Error, view: View) -> Any:
    host, port = view.address or ("", 0)
    leader = m.UpdateRaftVoterResponse_CurrentLeader(view.leader_id, view.epoch, host, port)
    return m.UpdateRaftVoterResponse(0, error, leader)


# What a response says.


class Told(NamedTuple):
    """A response's error and the leader that it names; `row` is None of one that has nothing else."""

    error: Error
    leader_id: int
    epoch: int
    address: Address | None
    row: Any = None


def read_response(response: Any, request: Any) -> Told | None:
    """Return what a response says; None if it is none of this log, or an error that tells nothing of the leader.

    A voter that does not know of pre-votes has nothing against them (KIP-996).
    """
    if response.error_code == Error.UNSUPPORTED_VERSION and request.SCHEMA.name == "VoteRequest":
        asked = requested_row(request)
        row = m.VoteResponse_PartitionData(0, Error.NONE, NOBODY, asked.replica_epoch, vote_granted=asked.pre_vote)
        return Told(Error.NONE, NOBODY, asked.replica_epoch, None, row)
    if response.SCHEMA.name == "UpdateRaftVoterResponse":
        leader = response.current_leader
        address = (leader.host, leader.port) if leader.host else None
        return Told(Error(response.error_code), leader.leader_id, leader.leader_epoch, address)
    row = None if response.error_code else only_row(response)
    if row is None:
        return None
    named = getattr(row, "current_leader", row)
    if named is None:
        return None
    places = {one.node_id: (one.host, one.port) for one in response.node_endpoints}
    leader_id = max(named.leader_id, NOBODY)
    return Told(Error(row.error_code), leader_id, named.leader_epoch, places.get(leader_id), row)


def versions_request() -> Any:
    """Return the question which versions a new voter supports; nobody answers one that does not say who asks."""
    return m.ApiVersionsRequest("moldau", "1")
