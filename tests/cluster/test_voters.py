"""Voters that come, go, move, and are read from the log."""

from __future__ import annotations

from typing import Any

from moldau.cluster.raft import Endpoint, Role, Voter, Voters
from moldau.cluster.voters import VoterHistory, control_batch, fixed_voters, replay_controls, voter_records
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import batches, patch, records
from tests.cluster.controllers import (
    CLUSTER,
    LIMITS,
    LISTENER,
    WALL,
    Controller,
    begin,
    directory,
    fetch_answer,
    follow,
    led,
    voter,
    voters,
)


def add(one: Controller, number: int, **more: Any) -> Any:
    listeners = [m.AddRaftVoterRequest_Listener(*endpoint) for endpoint in voter(number).endpoints]
    return one.raft.add_voter(
        m.AddRaftVoterRequest(CLUSTER, 1000, number, directory(number), listeners, **more), 0.0, WALL
    )


def remove(one: Controller, number: int) -> Any:
    return one.raft.remove_voter(m.RemoveRaftVoterRequest(CLUSTER, number, directory(number)), 0.0, WALL)


def tell_versions(one: Controller, low: int = 0, high: int = 1) -> None:
    (sent,) = [sent for sent in one.tick(0.0) if sent.request.SCHEMA.name == "ApiVersionsRequest"]
    assert sent.request.client_software_name and sent.request.client_software_version, "or it is not answered"
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


def test_who_is_removed_stands_for_election_until_that_is_committed():
    """Of two voters the other one may lack the record: then it cannot be elected, for its log is behind."""
    one = led(1, 2)
    remove(one, 1)
    assert not one.raft.is_voter and one.raft.may_stand
    one.raft.meet(one.raft.epoch + 1, -1, None, 0.0)
    sent = one.tick(one.raft.deadline_ms)
    assert [(s.request.SCHEMA.name, s.request.voter_id) for s in sent if s.request.SCHEMA.name == "VoteRequest"] == [
        ("VoteRequest", 2)
    ]
    one = led(1, 2)
    remove(one, 1)
    one.sync()
    follow(one, 2)
    assert one.raft.role is Role.RESIGNED and not one.raft.may_stand


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
