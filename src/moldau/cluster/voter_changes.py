"""How voters come and go (KIP-853): one at a time, in force as soon as the change is in the leader's log.

Because two sets that differ by one voter always share a majority's member, no two leaders can be elected by them. For
the same reason a new leader first commits something of its own epoch: an earlier change that it does not know of is
then void. A new voter must have caught up as an observer, so that it does not stop the others. One that is removed
stands for election until that is committed, though its own vote does not count: of two voters the one that stays may
lack the record, and then nobody else can be elected.

A follower tells the leader what it is now called (UpdateRaftVoter), and with `controller.quorum.auto.join.enable` it
asks to become a voter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.cluster import quorum_messages as messages
from moldau.cluster.leadership import Change, Leadership
from moldau.cluster.serving import leader_error
from moldau.cluster.voters import ANY_DIRECTORY, DYNAMIC, Endpoint, Voter, Voters, voter_records, voters_record
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.cluster.lines import Send
    from moldau.cluster.raft import Raft

FEATURE = "kraft.version"

# Asked of the leader.


def add_voter(raft: Raft, request: Any, now_ms: float) -> Change:
    """Begin to add a voter: it is asked which versions it supports."""
    voter = voter_of(request)
    change = Change(voter, now_ms + raft.limits.request_timeout_ms, waits=request.ack_when_committed)
    change.outcome = refuse_request(raft, request, voter) or refuse_endpoints(raft, voter) or refuse_now(raft)
    if change.outcome is None and raft.voters.get(voter.id) is not None:
        change.outcome = Error.DUPLICATE_VOTER, f"The voter id for {voter.id} is already part of the set of voters."
    if change.outcome is None and raft.led is not None:
        raft.led.change = change
    return change


def remove_voter(raft: Raft, request: Any, now_ms: float, wall_ms: int) -> Change:
    """Remove a voter; one that is the leader resigns when that is committed."""
    voter = Voter(request.voter_id, bytes(request.voter_directory_id))
    change = Change(voter, now_ms + raft.limits.request_timeout_ms)
    change.outcome = refuse_request(raft, request, voter) or refuse_now(raft)
    known = raft.voters.get(voter.id)
    if change.outcome is None and (known is None or known.key != voter.key or len(raft.voters.members) == 1):
        change.outcome = Error.VOTER_NOT_FOUND, f"Cannot remove voter {voter.id} from the set of voters."
    if change.outcome is None and raft.led is not None:
        raft.led.change = change
        write(raft, change, raft.voters.remove(voter.id), now_ms, wall_ms)
    return change


def update_voter(raft: Raft, request: Any, now_ms: float, wall_ms: int) -> Any:
    """Take over what a voter says of its endpoints and versions; under kraft.version 0 it is kept for the upgrade."""
    levels = request.k_raft_version_feature
    voter = voter_of(request)._replace(low=levels.min_supported_version, high=levels.max_supported_version)
    error = update_error(raft, request, voter)
    if not error and raft.led is not None:
        if not raft.voters.is_dynamic:
            raft.led.described[voter.id] = voter
        elif raft.voters.get(voter.id) != voter:
            try:
                raft.append_controls([voters_record(raft.voters.add(voter), wall_ms)], now_ms, wall_ms)
            except Refused as refused:
                error = refused.error
    return messages.update_voter_response(error, raft.view)


def update_error(raft: Raft, request: Any, voter: Voter) -> Error:
    if request.cluster_id is not None and request.cluster_id != raft.cluster_id:
        return Error.INCONSISTENT_CLUSTER_ID
    if error := leader_error(raft, request.current_leader_epoch):
        return error
    is_whole = voter.id >= 0 and voter.directory != ANY_DIRECTORY and voter.address(raft.listener) is not None
    if not is_whole or not 0 <= voter.low <= voter.high:
        return Error.INVALID_REQUEST
    if refused := refuse_now(raft):
        if refused[0] is not Error.UNSUPPORTED_VERSION:
            return refused[0]
    elif not voter.low <= raft.voters.version <= voter.high:
        return Error.INVALID_REQUEST
    return Error.NONE if raft.voters.has(voter.key) else Error.VOTER_NOT_FOUND


def upgrade(raft: Raft, now_ms: float, wall_ms: int) -> Error:
    """Begin kraft.version 1, once every voter has said what it is called and that it can."""
    led = raft.led
    if led is None or not led.is_established:
        return Error.NOT_CONTROLLER if led is None else Error.REQUEST_TIMED_OUT
    if raft.voters.is_dynamic:
        return Error.NONE
    described = led.described | {raft.me: raft.self_description}
    members = [described[one.id] for one in raft.voters.members if one.id in described]
    if len(members) < len(raft.voters.members) or any(one.high < DYNAMIC for one in members):
        return Error.INVALID_UPDATE_VERSION
    try:
        raft.append_controls(voter_records(Voters(tuple(members), DYNAMIC), wall_ms), now_ms, wall_ms)
    except Refused as refused:
        return refused.error
    return Error.NONE


def voter_of(request: Any) -> Voter:
    endpoints = tuple(Endpoint(one.name, one.host, one.port) for one in request.listeners)
    return Voter(request.voter_id, bytes(request.voter_directory_id), endpoints)


# Why not.

Outcome = tuple[Error, str | None]


def refuse_request(raft: Raft, request: Any, voter: Voter) -> Outcome | None:
    if request.cluster_id is not None and request.cluster_id != raft.cluster_id:
        text = f'The given id "{request.cluster_id}" does not match the cluster id "{raft.cluster_id}".'
        return Error.INCONSISTENT_CLUSTER_ID, text
    if error := leader_error(raft, raft.epoch):
        return error, None
    if voter.id < 0 or voter.directory == ANY_DIRECTORY:
        return Error.INVALID_REQUEST, "The request does not include a valid voter."
    return None


def refuse_endpoints(raft: Raft, voter: Voter) -> Outcome | None:
    if voter.address(raft.listener) is None:
        return Error.INVALID_REQUEST, f"The request has no endpoint for the listener {raft.listener}."
    return None


def refuse_now(raft: Raft) -> Outcome | None:
    """Return why the voters cannot be changed at the moment."""
    led = raft.led
    if led is None or led.change is not None:
        return Error.REQUEST_TIMED_OUT, "The previous change of the voters is still under way."
    if not led.is_established:
        return Error.REQUEST_TIMED_OUT, "The leader has not yet committed anything of its epoch."
    if not raft.voters.is_dynamic:
        text = f"The voters cannot be changed while {FEATURE} is {raft.voters.version}."
        return Error.UNSUPPORTED_VERSION, text
    if raft.history.offset >= raft.log.high_watermark:
        return Error.REQUEST_TIMED_OUT, "The latest change of the voters is not committed yet."
    return None


# A change on its way.


def wants_versions(raft: Raft, led: Leadership) -> Any:
    """Return where the new voter is that must be asked for its versions; None if there is none."""
    change = led.change
    is_new = change is not None and change.offset < 0
    return change.voter.address(raft.listener) if is_new and change is not None else None


def heard_versions(raft: Raft, sent: Send, response: Any, now_ms: float, wall_ms: int) -> None:
    """The new voter has said which versions it supports: make it a voter, if it has all that it needs."""
    led = raft.led
    change = None if led is None else led.change
    if led is None or change is None or change.offset >= 0 or sent.to != change.voter.address(raft.listener):
        return
    key, level = change.voter.key, raft.voters.version
    low, high = next(((f.min_version, f.max_version) for f in response.supported_features if f.name == FEATURE), (0, 0))
    if response.error_code:
        end(led, Error.REQUEST_TIMED_OUT, f"The new voter answers with {Error(response.error_code).name}.")
    elif not low <= level <= high:
        end(led, Error.INVALID_REQUEST, f"The new voter supports {FEATURE} {low} to {high}, not {level}.")
    elif not led.is_caught_up(key, now_ms):
        end(led, Error.REQUEST_TIMED_OUT, "The new voter has not caught up with the log.")
    else:
        change.voter = change.voter._replace(low=low, high=high)
        write(raft, change, raft.voters.add(change.voter), now_ms, wall_ms)


def ignore(raft: Raft, sent: Send, response: Any, now_ms: float, wall_ms: int) -> None:
    """Whoever asks to join sees in the log what came of it."""


def write(raft: Raft, change: Change, voters: Voters, now_ms: float, wall_ms: int) -> None:
    """Put a change into the log, from where on it counts."""
    try:
        change.offset = raft.append_controls([voters_record(voters, wall_ms)], now_ms, wall_ms)
    except Refused as refused:
        if raft.led is not None:
            end(raft.led, refused.error, refused.message)
        return
    if not change.waits:
        change.outcome = Error.NONE, None
    raft.advance(now_ms)


def note_commit(led: Leadership, high_watermark: int) -> None:
    if led.change is not None and 0 <= led.change.offset < high_watermark:
        end(led, Error.NONE, None)


def pass_time(led: Leadership, now_ms: float) -> None:
    if led.change is not None and led.change.deadline_ms <= now_ms:
        end(led, Error.REQUEST_TIMED_OUT, None)


def end(led: Leadership, error: Error, message: str | None) -> None:
    """Nothing more comes of the change that is under way."""
    if led.change is not None:
        led.change.outcome = led.change.outcome or (error, message)
        led.change = None


# Asked by a follower.


def report(raft: Raft) -> Any:
    """Return what a follower has to ask of its leader: to be described correctly, or to become a voter."""
    described, own = raft.voters.get(raft.me), raft.self_description
    if raft.is_voter:
        is_wrong = described != own if raft.voters.is_dynamic else not raft.has_updated
        return messages.update_voter_request(raft.cluster_id, raft.epoch, own) if is_wrong else None
    if not (raft.auto_join and raft.voters.is_dynamic):
        return None
    if described is not None:  # with a directory that is gone
        return m.RemoveRaftVoterRequest(raft.cluster_id, raft.me, described.directory)
    return messages.add_voter_request(raft.cluster_id, own, raft.limits.request_timeout_ms)
