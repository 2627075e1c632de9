"""The rules of the quorum, one by one; raft_model.py tries them all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.elections import Ballot, Election, UnreadableElection, election_text, read_election
from moldau.cluster.lines import METADATA, VOTE
from moldau.cluster.raft import Diverged, Role, Send, Voters
from moldau.cluster.serving import succession_ms
from moldau.cluster.voters import control_batch, fixed_voters, voter_records
from moldau.log.answers import Origin
from moldau.machines.metadata.records import TOPIC
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import ControlType, Record, batches, build, control_type, records
from moldau.wire.refusal import Refused
from tests.cluster.controllers import (
    CLUSTER,
    LISTENER,
    WALL,
    Controller,
    ask_vote,
    begin,
    directory,
    fetch,
    fetch_answer,
    fetch_request,
    filled,
    led,
    vote_answer,
    vote_row,
    voters,
)
from tests.cluster.memory_log import MemoryLog
from tests.log.logs import batch, contents, create

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
    asked = [sent.request for sent in one.tick(0.0)]
    assert [request.SCHEMA.name for request in asked] == ["EndQuorumEpochRequest"] * 2
    row = asked[0].topics[0].partitions[0]
    assert [candidate.candidate_id for candidate in row.preferred_candidates] == [2, 3], "one of them begins at once"
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


def test_a_full_disk_is_tried_again_and_a_log_that_has_failed_is_not():
    one, sent = follower(filled(1, 2))
    answer = fetch_answer(3, 2, diverging_epoch=m.FetchResponse_EpochEndOffset(1, 1))

    def refuse(end_offset: int, now_ms: int) -> None:
        raise Refused(Error.KAFKA_STORAGE_ERROR, "It cannot be truncated.")

    one.log.truncate_to = refuse
    one.hear(sent, answer)
    (sent,) = one.tick(20.0)
    one.log.offline = "It cannot be read."
    with pytest.raises(Refused, match="truncated"):
        one.hear(sent, answer, 20.0)


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


def test_a_follower_of_an_epoch_that_the_leader_has_forgotten_gets_a_snapshot():
    """After a crash the log may begin before its epochs: their file was written, and the log's new start was not."""
    log = filled(1, 1, 2, 2)
    log.leader_epochs.truncate_start(3)
    one = Controller(1, voters(1), log, snapshots={(3, 2): snapshot_of(voters(1, 2, 3))}, election=Election(2))
    one.elect()
    row = fetch(one.raft, 2, 2, 3, 1, is_last=False)
    assert (row.snapshot_id.end_offset, row.snapshot_id.epoch) == (3, 2)
    row = fetch(one.raft, 2, 2, 3, 2, is_last=False)
    assert row.snapshot_id is None and len(row.records) > 0, "in one epoch there is one history"


def test_a_follower_that_has_the_snapshot_is_not_sent_it_again():
    """Where a crash has left more of the log than its start says, it got the snapshot for ever (seed 6130)."""
    log = filled(1, 1, 1, 4, 4)
    log.leader_epochs.truncate_start(3)
    one = Controller(1, voters(1), log, snapshots={(3, 1): snapshot_of(voters(1, 2, 3))}, election=Election(4))
    one.elect()
    row = fetch(one.raft, 2, 3, 5, 1, is_last=False)
    assert row.snapshot_id is None and row.diverging_epoch is None and len(row.records) > 0


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


# On disk.


def replicate(leader: Controller, other: Controller, now: float) -> None:
    """Let a follower fetch all that there is, as bytes, and install a snapshot if it gets one."""
    for _ in range(20):
        for sent in other.tick(now):
            is_fetch = sent.request.SCHEMA.name == "FetchRequest"
            key, answer = (1, leader.raft.fetch) if is_fetch else (59, leader.raft.fetch_snapshot)
            response = answer(sent.request, now, **({"is_new": True, "is_last": True} if is_fetch else {}))
            for topic in response.responses if is_fetch else ():
                topic.partitions[0].records = bytes(topic.partitions[0].records and topic.partitions[0].records.read())
            version = {1: 18, 59: 1}[key]
            got = other.hear(sent, codec.decode(type(response), version, codec.encode(response, version)), now)
            if got is not None:
                other.log.truncate_fully(got.end_offset, WALL)
                other.log.leader_epochs.assign(got.epoch, got.end_offset)
                other.raft.snapshot = got.end_offset, got.epoch
            other.sync()
        now += 20.0


def test_a_log_on_disk_is_followed_truncated_and_begun_anew(tmp_path: Path):
    theirs = create(tmp_path / "other")
    for value in (b"lost", b"too"):
        theirs.append(batch(value, partition_leader_epoch=1), 1, WALL, Origin.COORDINATOR)
    ours = create(tmp_path / "one")
    ours.append(batch(b"a", partition_leader_epoch=0), 0, WALL, Origin.COORDINATOR)
    ours.append(batch(b"b", partition_leader_epoch=2), 2, WALL, Origin.COORDINATOR)
    one, other = Controller(1, voters(1), ours), Controller(2, voters(1), theirs)
    for controller in (one, other):
        controller.sync()
    one.raft.append(bytes(build([Record(0, WALL, None, b"c")])), WALL)
    one.sync()
    replicate(one, other, 0.0)
    assert contents(ours) == contents(theirs) and theirs.high_watermark == ours.end_offset == 6
    assert other.raft.epoch == one.raft.epoch == 3 and other.raft.leader == ("host", 1)
    data = bytes(control_batch(one.raft.snapshot_records(6, WALL))) + bytes(build([Record(0, 0, None, b"image")]))
    one.snapshots[6, 3] = data
    one.raft.snapshot = 6, 3
    ours.roll(WALL)
    ours.delete_records(6)
    one.raft.append(bytes(build([Record(0, WALL, None, b"d")])), WALL)
    one.sync()
    late = Controller(3, voters(1), create(tmp_path / "late"))
    for controller in (other, late):
        replicate(one, controller, 1000.0)
        assert contents(controller.log)[-1] == (6, b"d") and controller.log.high_watermark == 7
    assert late.log.start_offset == 6 and late.raft.voters == one.raft.voters


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
