"""The rules of the quorum, one by one; raft_model.py tries them all at once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moldau.cluster.elections import Ballot, Election, UnreadableElection, election_text, read_election
from moldau.cluster.lines import METADATA, VOTE
from moldau.cluster.observing import Limits
from moldau.cluster.raft import Diverged, Endpoint, Raft, Role, Send, Voter, Voters
from moldau.cluster.serving import succession_ms
from moldau.cluster.voters import VoterHistory, control_batch, fixed_voters, replay_controls, voter_records
from moldau.machines.metadata.records import TOPIC, TOPIC_ID
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import ControlType, Record, batches, build, control_type, patch, records
from moldau.wire.refusal import Refused
from tests.cluster.memory_log import MemoryLog, as_log

LISTENER = "CONTROLLER"
CLUSTER = "a-cluster"
LIMITS = Limits(20, 1 << 20, 4)
WALL = 1_700_000_000_000


def directory(number: int) -> bytes:
    return bytes([number]) * 16


def voter(number: int) -> Voter:
    return Voter(number, directory(number), (Endpoint(LISTENER, "host", number),))


def voters(*numbers: int) -> Voters:
    return Voters(tuple(voter(number) for number in numbers), 1)


class Controller:
    """A controller, its disk, and what it has asked."""

    def __init__(self, number: int, of: Voters, log: MemoryLog | None = None, **more: Any) -> None:
        self.log = log or MemoryLog()
        self.saved: list[Election] = []
        self.snapshots: dict[tuple[int, int], bytes] = more.pop("snapshots", {})
        more = {"election": Election(), "save": self.saved.append, "random": Random(1), **more}
        self.raft = Raft(
            number,
            directory(number),
            CLUSTER,
            as_log(self.log),
            voters=of,
            servers=[],
            listeners=[Endpoint(LISTENER, "host", number)],
            controller_listener=LISTENER,
            limits=LIMITS,
            snapshot=max(self.snapshots, default=None),
            read_snapshot=self.read_snapshot,
            **more,
        )
        self.raft.start(0.0, WALL)

    def read_snapshot(self, end_offset: int, epoch: int, position: int, most: int) -> tuple[bytes, int] | None:
        data = self.snapshots.get((end_offset, epoch))
        return None if data is None else (data[position : position + most], len(data))

    def sync(self) -> None:
        self.log.sync(self.log.end_offset, self.log.cuts)
        self.raft.synced(0.0)

    def tick(self, now: float) -> list[Send]:
        return self.raft.tick(now, WALL)

    def hear(self, sent: Send, response: Any, now: float = 0.0) -> Any:
        return self.raft.heard(sent, response, now, WALL)

    def elect(self, now: float = 10_000.0) -> None:
        """Let it win an election with the votes of all others."""
        for _ in range(2):
            for sent in self.tick(now):
                if sent.request.SCHEMA.name == "VoteRequest":
                    self.hear(sent, vote_answer(sent.request.topics[0].partitions[0].replica_epoch), now)
        assert self.raft.is_leader


def filled(*epochs: int) -> MemoryLog:
    """Return a synced log with a record of each of these epochs."""
    log = MemoryLog()
    for epoch in epochs:
        view = memoryview(build([Record(0, 0, None, b"x")], partition_leader_epoch=epoch))
        patch(view, base_offset=log.end_offset, leader_epoch=epoch)
        log.add(next(iter(batches(view))))
    log.sync(log.end_offset, 0)
    return log


def vote_answer(epoch: int, granted: bool = True, leader: int = -1, error: Error = Error.NONE) -> Any:
    part = m.VoteResponse_PartitionData(0, error, leader, epoch, granted)
    return m.VoteResponse(0, [m.VoteResponse_TopicData(TOPIC, [part])])


def ask_vote(raft: Raft, who: int, epoch: int, last: tuple[int, int] = (0, 0), pre: bool = False, **more: Any) -> Any:
    part = m.VoteRequest_PartitionData(0, epoch, who, directory(who), more.pop("key", raft.mine[1]), *last, pre)
    request = m.VoteRequest(CLUSTER, raft.me, [m.VoteRequest_TopicData(TOPIC, [part])])
    for name, value in more.items():
        setattr(request, name, value)
    response = raft.vote(codec.decode(m.VoteRequest, 2, codec.encode(request, 2)), 0.0)
    codec.encode(response, 2)
    return response


def vote_row(response: Any) -> tuple[Error, bool]:
    row = response.topics[0].partitions[0]
    return row.error_code, row.vote_granted


def fetch_request(who: int, offset: int, epoch: int, last_epoch: int = 0, **more: Any) -> Any:
    part = m.FetchRequest_FetchPartition(
        0, epoch, offset, last_epoch, 0, 1 << 20, directory(who), more.pop("hw", 10**6)
    )
    topics = [m.FetchRequest_FetchTopic("", TOPIC_ID, [part])]
    state = m.FetchRequest_ReplicaState(who, -1)
    return m.FetchRequest(CLUSTER, -1, state, 500, 1, 1 << 20, topics=topics, session_epoch=-1, **more)


def fetch(raft: Raft, who: int, offset: int, epoch: int, last_epoch: int = 0, is_last: bool = True, **more: Any) -> Any:
    request = fetch_request(who, offset, epoch, last_epoch, **more)
    response = raft.fetch(request, more.get("now", 0.0), is_new=True, is_last=is_last)
    return None if response is None else response.responses[0].partitions[0]


def fetch_answer(epoch: int, leader: int, high_watermark: int = -1, records: bytes = b"", **more: Any) -> Any:
    named = m.FetchResponse_LeaderIdAndEpoch(leader, epoch)
    row = m.FetchResponse_PartitionData(0, 0, high_watermark, current_leader=named, records=bytearray(records), **more)
    return m.FetchResponse(responses=[m.FetchResponse_FetchableTopicResponse("", TOPIC_ID, [row])])


def begin(raft: Raft, leader: int, epoch: int, now: float = 0.0) -> Error:
    part = m.BeginQuorumEpochRequest_PartitionData(0, raft.mine[1], leader, epoch)
    places = [m.BeginQuorumEpochRequest_LeaderEndpoint(LISTENER, "host", leader)]
    topics = [m.BeginQuorumEpochRequest_TopicData(TOPIC, [part])]
    response = raft.begin_quorum_epoch(m.BeginQuorumEpochRequest(CLUSTER, raft.me, topics, places), now)
    return response.topics[0].partitions[0].error_code


# Elections.


def test_a_single_voter_leads_at_once_and_without_a_message():
    one = Controller(1, voters(1))
    assert (one.raft.role, one.raft.epoch, one.raft.epoch_start) == (Role.LEADER, 1, 0)
    assert one.tick(0.0) == []
    kinds = [control_type(record.key) for record in records(next(iter(batches(memoryview(one.log.entries[0].data)))))]
    assert kinds == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    assert one.log.high_watermark == 0, "nothing is synced yet"
    one.sync()
    assert one.log.high_watermark == 3


def test_fixed_voters_are_not_written():
    one = Controller(1, fixed_voters([(1, ("host", 1))], LISTENER))
    assert one.raft.is_leader and one.log.end_offset == 1


def test_pre_votes_come_first_then_the_vote_is_saved_before_it_is_asked_for():
    one = Controller(1, voters(1, 2, 3))
    asked = [sent for sent in one.tick(2000.0) if sent.purpose == VOTE]
    assert one.raft.role is Role.PROSPECTIVE and not one.saved
    assert all(sent.request.topics[0].partitions[0].pre_vote for sent in asked) and len(asked) == 2
    one.hear(asked[0], vote_answer(0), 2000.0)
    assert one.raft.role is Role.CANDIDATE and one.saved[-1] == Election(1, -1, 1, directory(1))
    asked = one.tick(2000.0)
    one.hear(asked[0], vote_answer(1), 2000.0)
    assert one.raft.is_leader and one.saved[-1].leader_id == 1


def test_a_voter_that_does_not_know_pre_votes_has_nothing_against_them():
    one = Controller(1, voters(1, 2, 3))
    sent = next(sent for sent in one.tick(2000.0) if sent.purpose == VOTE)
    one.hear(sent, m.VoteResponse(Error.UNSUPPORTED_VERSION), 2000.0)
    assert one.raft.role is Role.CANDIDATE


def test_pre_votes_of_an_earlier_round_do_not_count():
    one = Controller(1, voters(1, 2, 3))
    early = [sent for sent in one.tick(2000.0) if sent.purpose == VOTE]
    one.hear(early[0], vote_answer(0), 2000.0)
    one.hear(early[1], vote_answer(1), 2000.0)
    assert one.raft.role is Role.CANDIDATE, "it has only its own vote"


def test_refused_pre_votes_change_no_epoch():
    one = Controller(1, voters(1, 2, 3))
    for sent in one.tick(2000.0):
        if sent.purpose == VOTE:
            one.hear(sent, vote_answer(0, granted=False), 2000.0)
    assert (one.raft.role, one.raft.epoch) == (Role.UNATTACHED, 0)


def test_a_vote_is_saved_and_given_once_an_epoch():
    one = Controller(1, voters(1, 2, 3))
    assert vote_row(ask_vote(one.raft, 2, 5)) == (Error.NONE, True)
    assert one.saved[-1] == Election(5, -1, 2, directory(2))
    assert vote_row(ask_vote(one.raft, 2, 5)) == (Error.NONE, True)
    assert vote_row(ask_vote(one.raft, 3, 5)) == (Error.NONE, False)
    again = Controller(1, voters(1, 2, 3), election=one.saved[-1])
    assert vote_row(ask_vote(again.raft, 3, 5)) == (Error.NONE, False), "a restart does not forget"


def test_nobody_votes_for_a_log_that_is_behind():
    one = Controller(1, voters(1, 2, 3), filled(1, 1, 2))
    assert vote_row(ask_vote(one.raft, 2, 5, (2, 2))) == (Error.NONE, False)
    assert vote_row(ask_vote(one.raft, 2, 5, (1, 9))) == (Error.NONE, False)
    assert vote_row(ask_vote(one.raft, 2, 5, (2, 3))) == (Error.NONE, True)


def test_a_follower_refuses_pre_votes_once_its_leader_has_answered():
    one = Controller(1, voters(1, 2, 3))
    assert not begin(one.raft, 2, 1)
    assert vote_row(ask_vote(one.raft, 3, 1, pre=True)) == (Error.NONE, True)
    (sent,) = one.tick(0.0)
    one.hear(sent, fetch_answer(1, 2))
    assert vote_row(ask_vote(one.raft, 3, 1, pre=True)) == (Error.NONE, False)
    assert vote_row(ask_vote(one.raft, 3, 1)) == (Error.NONE, False)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "another"}, Error.INCONSISTENT_CLUSTER_ID),
        ({"topics": []}, Error.INVALID_REQUEST),
    ],
)
def test_requests_for_another_cluster_or_log_are_refused(changes: dict[str, Any], error: Error):
    one = Controller(1, voters(1, 2, 3))
    assert ask_vote(one.raft, 2, 5, **changes).error_code == error


def test_a_vote_is_checked_as_kafka_does():
    one = Controller(1, voters(1, 2, 3), election=Election(4))
    assert vote_row(ask_vote(one.raft, 2, 3)) == (Error.FENCED_LEADER_EPOCH, False)
    assert vote_row(ask_vote(one.raft, 2, 5, (5, 1))) == (Error.INVALID_REQUEST, False)
    assert vote_row(ask_vote(one.raft, 2, 5, (5, 1), pre=True)) == (Error.NONE, True)
    assert vote_row(ask_vote(one.raft, 2, 6, key=directory(7))) == (Error.INVALID_VOTER_KEY, False)
    assert vote_row(ask_vote(one.raft, 2, 6, voter_id=3)) == (Error.INVALID_VOTER_KEY, False)


def test_a_candidate_does_not_go_on_after_a_restart():
    one = Controller(1, voters(1, 2, 3), election=Election(3, -1, 1, directory(1)))
    assert one.raft.role is Role.UNATTACHED
    assert vote_row(ask_vote(one.raft, 2, 3)) == (Error.NONE, False)


def test_a_leader_that_comes_back_has_resigned_and_goes_to_the_next_epoch():
    one = Controller(1, voters(1, 2, 3), election=Election(3, 1))
    assert one.raft.role is Role.RESIGNED and one.raft.leader is None
    assert {sent.request.SCHEMA.name for sent in one.tick(0.0)} == {"EndQuorumEpochRequest"}
    one.tick(2000.0)
    assert (one.raft.role, one.raft.epoch) == (Role.PROSPECTIVE, 4)


def test_a_log_that_is_newer_than_the_saved_epoch_decides():
    one = Controller(1, voters(1, 2, 3), filled(7), election=Election(3, 2))
    assert (one.raft.epoch, one.raft.leader_id) == (7, -1)


def test_two_leaders_of_one_epoch_cannot_be_true():
    one = Controller(1, voters(1, 2, 3))
    begin(one.raft, 2, 1)
    begin(one.raft, 3, 1)
    assert one.raft.leader_id == 2
    assert begin(one.raft, 3, 0) == Error.FENCED_LEADER_EPOCH


# Leading.


def test_a_leader_counts_itself_as_far_as_it_has_synced():
    one = Controller(1, voters(1, 2, 3))
    one.elect()
    end = one.log.end_offset
    fetch(one.raft, 2, end, 1, 1)
    assert one.log.high_watermark == 0
    one.sync()
    assert one.log.high_watermark == end


def test_records_of_earlier_epochs_are_committed_by_one_of_this_epoch():
    one = Controller(1, voters(1, 2, 3), filled(1, 1))
    one.elect()
    one.sync()
    row = fetch(one.raft, 2, 2, 2, 1)
    assert one.log.high_watermark == 0 and row.high_watermark == -1
    row = fetch(one.raft, 2, one.log.end_offset, 2, 2)
    assert one.log.high_watermark == row.high_watermark == one.log.end_offset


def test_observers_and_lost_disks_do_not_count():
    one = Controller(1, voters(1, 2, 3))
    one.elect()
    one.sync()
    request = fetch_request(2, one.log.end_offset, 1, 1)
    request.topics[0].partitions[0].replica_directory_id = directory(8)
    one.raft.fetch(request, 0.0, is_new=True, is_last=True)
    fetch(one.raft, 9, one.log.end_offset, 1, 1)
    assert one.log.high_watermark == 0


def test_every_row_names_the_leader():
    one = Controller(1, voters(1, 2, 3), election=Election(1))
    one.elect()
    cases = [
        ((2, 0, 1), Error.FENCED_LEADER_EPOCH),
        ((2, 0, 3), Error.UNKNOWN_LEADER_EPOCH),
        ((2, 0, -1), Error.INVALID_REQUEST),
        ((2, 0, 2, 3), Error.INVALID_REQUEST),
        ((1, 0, 2), Error.UNKNOWN_SERVER_ERROR),
        ((2, 0, 2), Error.NONE),
    ]
    for place, error in cases:
        row = fetch(one.raft, *place)
        assert row.error_code == error
        assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (1, 2)
    begin(one.raft, 2, 3)
    response = one.raft.fetch(fetch_request(3, 0, 3), 0.0, is_new=True, is_last=False)
    assert response.responses[0].partitions[0].error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert [(one.node_id, one.port) for one in response.node_endpoints] == [(2, 2)]


def test_a_fetch_waits_unless_there_are_records_or_a_newer_high_watermark():
    one = Controller(1, voters(1, 2, 3))
    one.elect()
    one.sync()
    end = one.log.end_offset
    assert fetch(one.raft, 2, end, 1, 1, is_last=False, hw=0).high_watermark == end
    assert fetch(one.raft, 3, end, 1, 1, is_last=False, hw=end) is None
    one.raft.append(build([Record(0, 0, None, b"x")]), WALL)
    assert len(fetch(one.raft, 3, end, 1, 1, is_last=False, hw=end).records) > 0


def test_a_follower_that_went_another_way_is_told_where():
    one = Controller(1, voters(1, 2, 3), filled(1, 1, 3))
    one.elect()
    part = fetch(one.raft, 2, 4, 4, 2, is_last=False).diverging_epoch
    assert (part.epoch, part.end_offset) == (1, 2)
    part = fetch(one.raft, 2, 4, 4, 3, is_last=False).diverging_epoch
    assert (part.epoch, part.end_offset) == (3, 3)


def test_a_leader_without_a_majority_of_fetches_resigns():
    one = Controller(1, voters(1, 2, 3))
    one.elect(10_000.0)
    request = fetch_request(2, 0, 1)
    one.raft.fetch(request, 12_000.0, is_new=True, is_last=True)
    one.tick(14_900.0)
    assert one.raft.is_leader
    assert one.raft.led is not None and one.raft.led.check_ms == 15_000.0
    one.tick(15_000.0)
    assert one.raft.role is Role.RESIGNED
    with pytest.raises(Refused, match="NOT_CONTROLLER"):
        one.raft.append(build([Record(0, 0, None, b"x")]), WALL)


def test_voters_that_do_not_fetch_are_told_again_that_the_epoch_has_begun():
    one = Controller(1, voters(1, 2, 3))
    one.elect(10_000.0)
    told = one.tick(10_000.0)
    assert [sent.request.SCHEMA.name for sent in told] == ["BeginQuorumEpochRequest"] * 2
    for sent in told:
        one.raft.lost(sent, 10_100.0)
    one.raft.fetch(fetch_request(2, 0, 1), 10_900.0, is_new=True, is_last=True)
    assert [sent.to[1] for sent in one.tick(11_000.0)] == [3]


def test_who_resigns_names_the_best_log_first():
    one = Controller(1, voters(1, 2, 3))
    one.elect()
    fetch(one.raft, 3, one.log.end_offset, 1, 1)
    fetch(one.raft, 2, 0, 1)
    one.raft.resign(0.0)
    asked = one.tick(0.0)
    row = asked[0].request.topics[0].partitions[0]
    assert [candidate.candidate_id for candidate in row.preferred_candidates] == [3, 2]
    assert not one.raft.has_left
    for sent in asked:
        part = m.EndQuorumEpochResponse_PartitionData(0, 0, 1, 1)
        one.hear(sent, m.EndQuorumEpochResponse(0, [m.EndQuorumEpochResponse_TopicData(TOPIC, [part])]))
    assert one.raft.has_left and one.raft.next_ms() == float("inf")


def test_successors_stand_one_after_the_other():
    candidates = [(number, directory(number)) for number in (3, 2, 4)]
    waits = [succession_ms((number, directory(number)), candidates, 1000) for number in (3, 2, 4, 5)]
    assert waits == [0.0, 250.0, 500.0, 1000.0]
    one = Controller(3, voters(1, 2, 3))
    begin(one.raft, 1, 1)
    part = m.EndQuorumEpochRequest_PartitionData(0, 1, 1, [], [m.EndQuorumEpochRequest_ReplicaInfo(*candidates[0])])
    one.raft.end_quorum_epoch(m.EndQuorumEpochRequest(CLUSTER, [m.EndQuorumEpochRequest_TopicData(TOPIC, [part])]), 5.0)
    one.tick(5.0)
    assert one.raft.role is Role.PROSPECTIVE


# Following.


def follower(log: MemoryLog | None = None) -> tuple[Controller, Send]:
    one = Controller(1, voters(1, 2, 3), log)
    assert not begin(one.raft, 2, 3)
    (sent,) = one.tick(0.0)
    assert (sent.to, sent.purpose) == (("host", 2), METADATA)
    return one, sent


def test_a_follower_fetches_on_when_it_has_synced():
    one, sent = follower()
    one.hear(sent, fetch_answer(3, 2, 1, filled(3).entries[0].data))
    assert (one.log.end_offset, one.log.high_watermark) == (1, 1)
    assert one.tick(1.0) == []
    one.sync()
    (sent,) = one.tick(1.0)
    row = sent.request.topics[0].partitions[0]
    assert (row.fetch_offset, row.last_fetched_epoch, row.high_watermark) == (1, 3, 1)


def test_what_the_leader_does_not_have_is_dropped_but_never_what_is_committed():
    one, sent = follower(filled(1, 2))
    one.hear(sent, fetch_answer(3, 2, diverging_epoch=m.FetchResponse_EpochEndOffset(1, 1)))
    assert one.log.end_offset == 1
    one.log.advance_high_watermark(1)
    (sent,) = one.tick(0.0)
    with pytest.raises(Diverged, match="committed"):
        one.hear(sent, fetch_answer(3, 2, diverging_epoch=m.FetchResponse_EpochEndOffset(0, 0)))


def test_an_answer_to_an_earlier_fetch_changes_no_log():
    one, sent = follower(filled(1, 2))
    begin(one.raft, 3, 4)
    one.hear(sent, fetch_answer(4, 3, diverging_epoch=m.FetchResponse_EpochEndOffset(1, 1)))
    assert one.log.end_offset == 2


def test_who_gets_no_answer_asks_the_others_who_leads():
    one, sent = follower()
    one.raft.lost(sent, 0.0)
    assert one.tick(10.0) == [], "after a pause"
    (second,) = one.tick(20.0)
    named = fetch_answer(4, 3)
    named.responses[0].partitions[0].error_code = Error.NOT_LEADER_OR_FOLLOWER
    one.hear(second, named, 20.0)
    assert (one.raft.role, one.raft.epoch, one.raft.leader) == (Role.FOLLOWER, 4, ("host", 3))


def test_a_silent_leader_is_given_up_after_the_fetch_timeout():
    one, _ = follower()
    one.tick(1999.0)
    assert one.raft.role is Role.FOLLOWER
    one.tick(2000.0)
    assert (one.raft.role, one.raft.leader_id, one.raft.epoch) == (Role.PROSPECTIVE, 2, 3)


def test_an_observer_never_stands():
    one = Controller(9, voters(1, 2, 3))
    one.tick(100_000.0)
    assert one.raft.role is Role.UNATTACHED
    begin(one.raft, 2, 3)
    one.tick(200_000.0)
    assert one.raft.role is Role.FOLLOWER


# Snapshots.


def snapshot_of(of: Voters) -> bytes:
    return bytes(control_batch(voter_records(of, WALL))) + bytes(build([Record(0, 0, None, b"image")]))


def snapshot_request(end_offset: int, epoch: int, position: int) -> Any:
    name = m.FetchSnapshotRequest_SnapshotId(end_offset, epoch)
    part = m.FetchSnapshotRequest_PartitionSnapshot(0, 3, name, position, directory(2))
    return m.FetchSnapshotRequest(CLUSTER, 2, 50, [m.FetchSnapshotRequest_TopicSnapshot(TOPIC, [part])])


def leader_with_snapshot() -> Controller:
    log = filled(1, 1, 2, 2)
    log.delete_before(3)
    one = Controller(1, voters(1), log, snapshots={(3, 2): snapshot_of(voters(1, 2, 3))}, election=Election(2))
    one.elect()
    return one


def test_a_follower_before_the_log_gets_a_snapshot():
    one = leader_with_snapshot()
    assert len(one.raft.voters.members) == 3, "the snapshot says who votes"
    for place in ((0, 0), (2, 1), (3, 1)):
        row = fetch(one.raft, 2, place[0], 3, place[1], is_last=False)
        assert (row.snapshot_id.end_offset, row.snapshot_id.epoch) == (3, 2)
    row = fetch(one.raft, 2, 3, 3, 2, is_last=False)
    assert row.snapshot_id is None and len(row.records) > 0


def test_snapshots_are_served_in_pieces():
    raft = leader_with_snapshot().raft
    cases = [
        ((3, 2, 0), Error.NONE),
        ((4, 2, 0), Error.SNAPSHOT_NOT_FOUND),
        ((3, 2, 9999), Error.POSITION_OUT_OF_RANGE),
    ]
    for place, error in cases:
        response = raft.fetch_snapshot(snapshot_request(*place), 0.0)
        row = codec.decode(m.FetchSnapshotResponse, 1, codec.encode(response, 1)).topics[0].partitions[0]
        assert row.error_code == error
        assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (1, 3)
        assert len(row.unaligned_records) == (0 if error else 50)


def test_a_snapshot_is_fetched_whole_and_changes_the_voters():
    one, sent = follower()
    one.hear(sent, fetch_answer(3, 2, snapshot_id=m.FetchResponse_SnapshotId(7, 2)))
    data, got = snapshot_of(voters(1, 2)), None
    while got is None:
        (sent,) = one.tick(0.0)
        at = sent.request.topics[0].partitions[0].position
        part = m.FetchSnapshotResponse_PartitionSnapshot(
            snapshot_id=m.FetchSnapshotResponse_SnapshotId(7, 2),
            current_leader=m.FetchSnapshotResponse_LeaderIdAndEpoch(2, 3),
            size=len(data),
            position=at,
            unaligned_records=data[at : at + 100],
        )
        response = m.FetchSnapshotResponse(topics=[m.FetchSnapshotResponse_TopicSnapshot(TOPIC, [part])])
        got = one.hear(sent, response)
    assert (got.end_offset, got.epoch, bytes(got.data)) == (7, 2, data)
    assert one.raft.voters == voters(1, 2)


# Voters.


def led(*numbers: int) -> Controller:
    """Return a leader that has committed something of its epoch."""
    one = Controller(1, voters(*numbers))
    if len(numbers) > 1:
        one.elect()
    one.sync()
    follow(one, *numbers)
    return one


def follow(one: Controller, *numbers: int) -> None:
    one.sync()
    for number in numbers:
        if number != 1:
            fetch(one.raft, number, one.log.end_offset, one.raft.epoch, one.raft.epoch)


def add(one: Controller, number: int, **more: Any) -> Any:
    listeners = [m.AddRaftVoterRequest_Listener(*endpoint) for endpoint in voter(number).endpoints]
    return one.raft.add_voter(
        m.AddRaftVoterRequest(CLUSTER, 1000, number, directory(number), listeners, **more), 0.0, WALL
    )


def remove(one: Controller, number: int) -> Any:
    return one.raft.remove_voter(m.RemoveRaftVoterRequest(CLUSTER, number, directory(number)), 0.0, WALL)


def tell_versions(one: Controller, low: int = 0, high: int = 1) -> None:
    (sent,) = [sent for sent in one.tick(0.0) if sent.request.SCHEMA.name == "ApiVersionsRequest"]
    features = [m.ApiVersionsResponse_SupportedFeatureKey("kraft.version", low, high)]
    one.hear(sent, m.ApiVersionsResponse(supported_features=features))


def test_a_new_voter_counts_when_it_is_written_and_is_told_when_it_is_committed():
    one = led(1)
    follow(one, 2)
    change = add(one, 2)
    assert change.outcome is None and one.raft.pending_change is change
    tell_versions(one)
    assert one.raft.voters == voters(1, 2)
    one.sync()
    assert change.outcome is None, "it must have it too"
    follow(one, 2)
    assert change.outcome == (Error.NONE, None) and one.raft.pending_change is None


def test_without_waiting_the_outcome_is_there_when_it_is_written():
    one = led(1)
    follow(one, 2)
    change = add(one, 2, ack_when_committed=False)
    tell_versions(one)
    assert change.outcome == (Error.NONE, None) and one.raft.pending_change is change


def test_who_cannot_become_a_voter_is_told_why():
    one = led(1)
    late = add(one, 2)
    tell_versions(one)
    assert late.outcome[0] is Error.REQUEST_TIMED_OUT, "it has not caught up"
    old = add(one, 2)
    tell_versions(one, 0, 0)
    assert old.outcome[0] is Error.INVALID_REQUEST
    assert add(one, 1).outcome[0] is Error.DUPLICATE_VOTER
    pending = add(one, 2)
    assert add(one, 3).outcome[0] is remove(one, 1).outcome[0] is Error.REQUEST_TIMED_OUT
    one.tick(LIMITS.request_timeout_ms)
    assert pending.outcome[0] is Error.REQUEST_TIMED_OUT
    assert remove(one, 1).outcome[0] is Error.VOTER_NOT_FOUND, "it is the last one"
    strange = one.raft.add_voter(m.AddRaftVoterRequest("another", 1000, 2, directory(2)), 0.0, WALL)
    assert strange.outcome[0] is Error.INCONSISTENT_CLUSTER_ID


def test_voters_change_only_after_something_of_the_epoch_is_committed():
    one = Controller(1, voters(1, 2, 3))
    assert remove(one, 3).outcome[0] is Error.NOT_LEADER_OR_FOLLOWER
    one.elect()
    assert remove(one, 3).outcome[0] is Error.REQUEST_TIMED_OUT


def test_a_leader_that_is_removed_stays_until_that_is_committed():
    one = led(1, 2, 3)
    change = remove(one, 1)
    assert change.outcome is None and one.raft.is_leader and not one.raft.is_voter
    follow(one, 2)
    assert one.raft.is_leader, "the majority is one of the other two voters and the other"
    follow(one, 3)
    assert change.outcome == (Error.NONE, None) and one.raft.role is Role.RESIGNED


def test_fixed_voters_cannot_be_changed_before_the_upgrade():
    fixed = fixed_voters([(1, ("host", 1)), (2, ("host", 2))], LISTENER)
    one = Controller(1, fixed)
    one.elect()
    follow(one, 2)
    assert add(one, 3).outcome[0] is Error.UNSUPPORTED_VERSION
    assert one.raft.upgrade(0.0, WALL) is Error.INVALID_UPDATE_VERSION, "the other has not said its directory"
    assert update(one, voter(2)) is Error.NONE
    assert one.raft.upgrade(0.0, WALL) is Error.NONE
    assert one.raft.voters == voters(1, 2)
    follow(one, 2)
    assert one.log.high_watermark == one.log.end_offset


def update(one: Controller, told: Voter, epoch: int | None = None) -> Error:
    listeners = [m.UpdateRaftVoterRequest_Listener(*endpoint) for endpoint in told.endpoints]
    levels = m.UpdateRaftVoterRequest_KRaftVersionFeature(told.low, told.high)
    epoch = one.raft.epoch if epoch is None else epoch
    request = m.UpdateRaftVoterRequest(CLUSTER, epoch, told.id, told.directory, listeners, levels)
    response = one.raft.update_voter(request, 0.0, WALL)
    codec.encode(response, 0)
    return response.error_code


def test_a_voter_may_move():
    one = led(1, 2, 3)
    moved = voter(2)._replace(endpoints=(Endpoint(LISTENER, "elsewhere", 2),))
    assert update(one, moved, 0) is Error.FENCED_LEADER_EPOCH
    assert update(one, moved._replace(endpoints=())) is Error.INVALID_REQUEST
    assert update(one, voter(7)) is Error.VOTER_NOT_FOUND
    assert update(one, moved) is Error.NONE
    assert one.raft.voters.get(2) == moved


def test_a_follower_that_has_moved_tells_its_leader():
    old = Voters((voter(1)._replace(endpoints=(Endpoint(LISTENER, "elsewhere", 1),)), voter(2), voter(3)), 1)
    one = Controller(1, old)
    begin(one.raft, 2, 3)
    one.hear(one.tick(0.0)[0], fetch_answer(3, 2), 1900.0)
    names = [sent.request.SCHEMA.name for sent in one.tick(2000.0)]
    assert names == ["FetchRequest", "UpdateRaftVoterRequest"]


def test_who_joins_by_itself_removes_its_lost_disk_first():
    for of, name in ((voters(2, 3), "AddRaftVoterRequest"), (voters(1, 2, 3), "RemoveRaftVoterRequest")):
        one = Controller(1, of, auto_join=True)
        one.raft.mine = 1, directory(8)
        begin(one.raft, 2, 3)
        assert name in [sent.request.SCHEMA.name for sent in one.tick(2100.0) + one.tick(2200.0)]


def test_voters_go_with_the_records_that_named_them():
    history = VoterHistory(voters(1))
    for offset, of in ((5, voters(1, 2)), (9, voters(1, 2, 3))):
        view = control_batch(voter_records(of, WALL))
        patch(view, base_offset=offset, leader_epoch=1)
        history.replay_all(view)
    assert (history.at(5), history.at(6), history.current) == (voters(1), voters(1, 2), voters(1, 2, 3))
    history.truncate(9)
    assert (history.current, history.offset) == (voters(1, 2), 5)
    history.trim(7)
    assert (history.current, history.offset, history.changes) == (voters(1, 2), 6, [])


def test_control_records_are_of_version_0():
    batch = next(iter(batches(control_batch(voter_records(voters(1, 2), WALL)))))
    assert batch.is_control and replay_controls(batch, Voters()) == voters(1, 2)
    for record in records(batch):
        assert (record.value or b"")[:2] == b"\0\0", "the version that the record says"


# What is told, and what is kept.


def test_describe_quorum():
    one = led(1, 2, 3)
    fetch(one.raft, 9, 0, 1)
    response = one.raft.describe(500.0, WALL)
    row = codec.decode(m.DescribeQuorumResponse, 2, codec.encode(response, 2)).topics[0].partitions[0]
    assert (row.leader_id, row.leader_epoch, row.high_watermark) == (1, 1, one.log.end_offset)
    assert [(one.replica_id, one.last_caught_up_timestamp) for one in row.current_voters] == [
        (1, WALL),
        (2, WALL - 500),
        (3, WALL - 500),
    ]
    assert [(one.replica_id, one.last_fetch_timestamp, one.last_caught_up_timestamp) for one in row.observers] == [
        (9, WALL - 500, -1)
    ]
    other = Controller(1, voters(1, 2, 3)).raft.describe(0.0, WALL)
    assert other.topics[0].partitions[0].error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_quorum_state_is_kafkas():
    text = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    assert election_text(Election(1, 1), voters(1)) == text
    fixed = fixed_voters([(2, ("host", 2)), (1, ("host", 1))], LISTENER)
    old = '{"clusterId":"","leaderId":-1,"leaderEpoch":4,"votedId":2,"appliedOffset":0,'
    old += '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    assert election_text(Election(4, -1, 2), fixed) == old
    assert read_election(old) == Election(4, -1, 2)
    full = Election(7, 3, 2, directory(2))
    assert read_election(election_text(full, voters(1))) == full
    for broken in ("", "[]", "{}", text.replace("AAAAAAAAAAAAAAAAAAAAAA", "AA"), text.replace('Epoch":1', 'Epoch":-1')):
        with pytest.raises(UnreadableElection):
            read_election(broken)


def test_a_ballot_is_lost_when_too_few_are_left():
    ballot = Ballot(voters(1, 2, 3, 4, 5), (1, directory(1)))
    for number, granted in ((2, False), (3, False), (2, True)):
        ballot.count(number, granted)
    assert not ballot.is_lost and not ballot.is_won
    ballot.count(4, False)
    assert ballot.is_lost
