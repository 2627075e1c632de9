"""A controller in the quorum of the metadata log, exactly as Apache Kafka 4.3 speaks it. It has no I/O of its own.

An epoch has at most one leader, which a majority of the voters has elected. Everybody else fetches the log from it
(KIP-595), as `cluster/observing.py` does. A voter whose leader is silent first asks the others whether they would vote
for it (prospective, KIP-996), so that one that is merely cut off disturbs nobody; with a majority of these pre-votes it
begins the next epoch, votes for itself and asks for real votes (candidate). Nobody votes twice in an epoch, and nobody
votes for a log that is behind its own: whoever wins has everything that is committed.

What has to be on disk before somebody hears of it: the epoch and the vote (`save`, before a vote is given or asked
for), and records. A follower asks for more only when it has synced what it has, because to ask is to say that it is
there; a leader counts itself as far as it has synced (`log.recovery_point`).

The host drives this: it sends what `tick` returns and hands in one `heard` or `lost` for each; it hands in requests,
says when the log has been synced, and looks at role, epoch and high watermark after every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from math import inf
from typing import Any, Protocol

from moldau.cluster import quorum_messages as messages
from moldau.cluster import serving, voter_changes
from moldau.cluster.catching_up import Diverged, take_answer, want_fetch
from moldau.cluster.elections import NOBODY, Ballot, Election
from moldau.cluster.leadership import Leadership
from moldau.cluster.lines import METADATA, REPORT, Lines, Send, Want
from moldau.cluster.observing import Limits, Snapshot, last_epoch
from moldau.cluster.quorum_messages import Told, View, read_response
from moldau.cluster.voter_changes import Change
from moldau.cluster.voters import (
    CHUNK,
    Address,
    Endpoint,
    Key,
    SnapshotId,
    Voter,
    Voters,
    control_batch,
    leader_change,
    load_history,
    voter_records,
)
from moldau.log.answers import Origin
from moldau.log.log import Log
from moldau.wire.errors import Error
from moldau.wire.records import Record
from moldau.wire.refusal import Refused

__all__ = ["Address", "Change", "Diverged", "Election", "Endpoint", "Limits", "Raft", "Role", "Send", "Voter", "Voters"]

SUSPICION_MS = 100.0  # at most, before a voter whose leader is gone, or who knows none, stands for election

ReadSnapshot = Callable[[int, int, int, int], tuple[bytes, int] | None]
"""(end offset, epoch, position, bytes at most) -> a piece and the size of all; None if there is no such snapshot."""


class Random(Protocol):
    """The dice of the host."""

    def random(self) -> float: ...


class Role(Enum):
    """What a controller is in its epoch."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


class Raft:
    """One controller. See the module's docstring."""

    def __init__(
        self,
        me: int,
        directory: bytes,
        cluster_id: str,
        log: Log,
        *,
        voters: Voters,
        servers: Sequence[Address],
        listeners: Sequence[Endpoint],
        controller_listener: str,
        election: Election,
        save: Callable[[Election], None],
        random: Random,
        limits: Limits,
        snapshot: SnapshotId | None,
        read_snapshot: ReadSnapshot,
        auto_join: bool = False,
    ) -> None:
        """`voters` count where neither log nor snapshot names any; `servers` are asked by who knows no leader."""
        self.mine: Key = (me, directory)
        self.cluster_id = cluster_id
        self.log = log
        self.servers = list(servers)
        self.listener = controller_listener
        self.self_description = Voter(me, directory, tuple(Endpoint(*one) for one in listeners))
        self.save = save
        self.random = random
        self.limits = limits
        self._snapshot = snapshot
        self.read_snapshot = read_snapshot
        self.auto_join = auto_join
        self.role = Role.UNATTACHED
        self.epoch = election.epoch
        self.leader_id = election.leader_id
        self.leader_address: Address | None = None
        self.voted = election.voted
        self.saved = election
        self.ballot = Ballot(voters, self.mine)
        self.led: Leadership | None = None
        self.fetching: Snapshot | None = None
        self.deadline_ms = inf  # of the election, or of the leader's next answer
        self.update_ms = inf  # when a follower next looks whether the leader describes it correctly
        self.report: Any = None  # what it has to tell it
        self.has_fetched = False  # from the leader that it follows
        self.has_updated = False  # the leader has our description (kraft.version 0)
        self.is_lost = False  # the leader did not answer: somebody else is asked once
        self.is_leaving = False
        self.successors: list[Key] = []
        self.unacknowledged: set[int] = set()  # who has not heard that this leader resigned
        self.lines = Lines()
        self.round = self.turn = 0  # of votes, and among the servers
        header = None if snapshot is None else read_snapshot(*snapshot, 0, CHUNK)
        self.history = load_history(log, voters, snapshot, None if header is None else header[0])

    @property
    def snapshot(self) -> SnapshotId | None:
        """The newest snapshot on disk, as the host says."""
        return self._snapshot

    @snapshot.setter
    def snapshot(self, snapshot: SnapshotId) -> None:
        self._snapshot = snapshot
        self.history.trim(snapshot[0])

    def snapshot_records(self, end_offset: int, wall_ms: int) -> list[Record]:
        """Return the control records that follow the header of a snapshot of the log before `end_offset`."""
        return voter_records(self.history.at(end_offset), wall_ms)

    # Who is who.

    @property
    def me(self) -> int:
        return self.mine[0]

    @property
    def voters(self) -> Voters:
        return self.history.current

    @property
    def is_voter(self) -> bool:
        return self.voters.has(self.mine)

    @property
    def may_stand(self) -> bool:
        return self.history.may_stand(self.mine, self.log.high_watermark)

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def is_follower(self) -> bool:
        return self.role is Role.FOLLOWER

    @property
    def is_committed_to_leader(self) -> bool:
        """Return whether this epoch has a leader, or this node wants to be it: no vote can be given."""
        return self.role not in (Role.UNATTACHED, Role.PROSPECTIVE)

    @property
    def epoch_start(self) -> int:
        """Return the offset of the record with which this leader's epoch began; -1 if this is no leader."""
        return -1 if self.led is None else self.led.epoch_start

    @property
    def leader(self) -> Address | None:
        """Return where the active controller is, if that is known."""
        if self.leader_id == self.me:
            return self.self_description.address(self.listener) if self.is_leader else None
        return self.leader_address if self.leader_id != NOBODY else None

    @property
    def view(self) -> View:
        """Return what is told to others of the leader."""
        if self.leader_id == self.me:
            return View(self.me, self.epoch, self.self_description.address(self.listener))
        return View(self.leader_id, self.epoch, self.leader_address)

    @property
    def last_epoch(self) -> int:
        return last_epoch(self.log, self.snapshot)

    @property
    def is_synced(self) -> bool:
        return self.log.recovery_point >= self.log.end_offset

    @property
    def pending_change(self) -> Change | None:
        """Return the change of the voters that is under way."""
        return None if self.led is None else self.led.change

    @property
    def has_left(self) -> bool:
        """Return whether nobody has to be told any more that this controller stops."""
        return self.is_leaving and not (self.role is Role.RESIGNED and self.unacknowledged)

    # From state to state.

    def start(self, now_ms: float, wall_ms: int) -> None:
        """Begin where the last process ended. Who is the only voter leads at once.

        A candidate does not go on: the votes that it got were for a log of which it may have lost the end.
        """
        known = self.voters.get(self.leader_id)
        if self.epoch < self.last_epoch:
            self._become_unattached(self.last_epoch, NOBODY, now_ms)
        elif self.leader_id == self.me:  # nobody knows by now who is caught up, but somebody has to begin
            self._become_resigned([one.key for one in self.voters.others(self.mine)], now_ms)
        elif known is not None and (address := known.address(self.listener)) is not None:
            self._follow(self.epoch, self.leader_id, address, now_ms)
        elif self.may_stand:  # a pre-vote disturbs nobody, so there is no need to wait
            self.deadline_ms = now_ms + self.random.random() * SUSPICION_MS
        self._keep()
        if self.is_voter and len(self.voters.members) == 1:
            self._become_prospective(now_ms, wall_ms)

    def _keep(self) -> None:
        """Save epoch, leader and vote; returns when they are on disk."""
        voted = (NOBODY, bytes(16)) if self.voted is None else self.voted
        election = Election(self.epoch, self.leader_id, *voted)
        if election != self.saved:
            self.save(election)
            self.saved = election

    def _election_deadline(self, now_ms: float) -> float:
        return now_ms + self._election_timeout() if self.may_stand else inf

    def _election_timeout(self) -> float:
        return self.limits.election_timeout_ms * (1 + self.random.random())

    def _enter(self, role: Role, epoch: int, leader_id: int, address: Address | None) -> None:
        """Change the state in memory; requests that are under way keep their answers from the new state's lines."""
        if self.led is not None:
            voter_changes.end(self.led, Error.NOT_LEADER_OR_FOLLOWER, None)
        if epoch > self.epoch:
            self.voted = None
        self.role, self.epoch, self.leader_id, self.leader_address = role, epoch, leader_id, address
        self.led = self.fetching = None
        self.lines.reset()
        self.is_lost = False
        self.update_ms, self.report = inf, None

    def _become_unattached(self, epoch: int, leader_id: int, now_ms: float) -> None:
        goes_on = self.role in (Role.CANDIDATE, Role.UNATTACHED, Role.RESIGNED)
        goes_on |= self.role is Role.PROSPECTIVE and not self.ballot.is_lost
        deadline = self.deadline_ms if goes_on and self.deadline_ms < inf else self._election_deadline(now_ms)
        self._enter(Role.UNATTACHED, epoch, leader_id, None)
        self.deadline_ms = deadline
        self._keep()

    def _follow(self, epoch: int, leader_id: int, address: Address, now_ms: float) -> None:
        """Follow a leader; nothing happens if it is followed already."""
        if self.role is Role.FOLLOWER and (epoch, leader_id) == (self.epoch, self.leader_id):
            self.leader_address = address
            return
        self._enter(Role.FOLLOWER, epoch, leader_id, address)
        self.deadline_ms = self.update_ms = now_ms + self.limits.fetch_timeout_ms
        self.has_fetched = self.has_updated = False
        self._keep()

    def _become_prospective(self, now_ms: float, wall_ms: int) -> None:
        self._enter(Role.PROSPECTIVE, self.epoch, self.leader_id, self.leader_address)
        self._ask_all(now_ms, wall_ms)

    def _become_candidate(self, now_ms: float, wall_ms: int) -> None:
        self._enter(Role.CANDIDATE, self.epoch + 1, NOBODY, None)
        self.voted = self.mine
        self._keep()
        self._ask_all(now_ms, wall_ms)

    def _ask_all(self, now_ms: float, wall_ms: int) -> None:
        self.round += 1
        self.ballot = Ballot(self.voters, self.mine)
        self.deadline_ms = self._election_deadline(now_ms)
        self._count(now_ms, wall_ms)

    def _count(self, now_ms: float, wall_ms: int) -> None:
        """See what the votes make of a prospective or a candidate. A candidate that has lost waits for its time-out."""
        if self.ballot.is_won:
            step = self._become_candidate if self.role is Role.PROSPECTIVE else self._become_leader
            step(now_ms, wall_ms)
        elif self.ballot.is_lost and self.role is Role.PROSPECTIVE:
            self._give_way(now_ms)

    def _give_way(self, now_ms: float) -> bool:
        """Too few would vote for us: go back to the leader, if one is known (true), or wait for one."""
        if self.leader_id not in (NOBODY, self.me) and self.leader_address is not None:
            self._follow(self.epoch, self.leader_id, self.leader_address, now_ms)
        else:
            self._become_unattached(self.epoch, self.leader_id, now_ms)
        return self.is_follower

    def _become_leader(self, now_ms: float, wall_ms: int) -> None:
        granting = sorted(self.ballot.granted)
        self._enter(Role.LEADER, self.epoch, self.me, None)
        self._keep()
        voters, start = self.voters, self.log.end_offset
        self.led = Leadership(self.mine, start, voters, self.limits, now_ms)
        items = [leader_change(self.me, [one.id for one in voters.members], granting, wall_ms)]
        described = voters.get(self.me)
        is_current = self.history.offset >= 0 and described == self.self_description
        if voters.is_dynamic and self.is_voter and not is_current:
            items += voter_records(voters.add(self.self_description), wall_ms)
        try:
            self.append_controls(items, now_ms, wall_ms)
        except Refused:  # without the record nothing of this epoch can be committed
            self._become_resigned([], now_ms)

    def _become_resigned(self, successors: Sequence[Key], now_ms: float) -> None:
        """Lead no longer, and let the voters know who should: nobody else can be elected in this epoch."""
        self._enter(Role.RESIGNED, self.epoch, self.me, None)
        self.successors = list(successors)
        self.unacknowledged = {one.id for one in self.voters.others(self.mine)}
        self.deadline_ms = now_ms + self._election_timeout()

    def resign(self, now_ms: float) -> None:
        """Begin a graceful stop: take part in no election any more; as the leader, name a successor."""
        self.is_leaving = True
        if self.led is not None:
            self._become_resigned(self.led.successors(), now_ms)

    # Time.

    def next_ms(self) -> float:
        """Return when `tick` has something to do."""
        led_ms = inf if self.led is None else self.led.next_ms()
        return min(self._time_out(), self.update_ms, led_ms, self.lines.next_ms(self._wants()))

    def _time_out(self) -> float:
        return inf if self.is_leader or self.is_leaving else self.deadline_ms

    def tick(self, now_ms: float, wall_ms: int) -> list[Send]:
        """Let time pass, and return what is to be sent now."""
        if self.led is not None:
            self._lead_on(self.led, now_ms)
        elif self._time_out() <= now_ms:
            self._run_out(now_ms, wall_ms)
        elif self.update_ms <= now_ms:
            self.update_ms = now_ms + self.limits.fetch_timeout_ms
            self.report = voter_changes.report(self)
        return [self._send(want) for want in list(self._wants()) if self.lines.is_free(want, now_ms)]

    def _lead_on(self, led: Leadership, now_ms: float) -> None:
        voter_changes.pass_time(led, now_ms)
        if led.check_ms <= now_ms:
            self._become_resigned(led.successors(), now_ms)
        else:
            led.pass_time(now_ms)

    def _run_out(self, now_ms: float, wall_ms: int) -> None:
        """The leader, the voters or the election took too long."""
        if self.role is Role.RESIGNED:
            self._become_unattached(self.epoch + 1, NOBODY, now_ms)
        if not self.may_stand:
            self.is_lost = True
            self.deadline_ms = now_ms + self.limits.fetch_timeout_ms if self.role is Role.FOLLOWER else inf
        elif self.role is Role.PROSPECTIVE:
            if not self._give_way(now_ms):
                self._become_prospective(now_ms, wall_ms)
        else:
            self._become_prospective(now_ms, wall_ms)

    def _send(self, want: Want) -> Send:
        sent = self.lines.send(want, self.round)
        if want.line == REPORT:
            self.report = None
        elif self.led is not None:
            self.led.unaware.discard(want.line)
        return sent

    # What to ask.

    def _wants(self) -> Iterator[Want]:
        """Yield what is to be asked in this state, whether it has been or not."""
        if self.role is Role.FOLLOWER or self.role is Role.UNATTACHED:
            yield from want_fetch(self)
            if self.report is not None and self.leader is not None:
                yield Want(REPORT, self.leader, lambda: self.report)
            return
        if self.led is not None and (address := voter_changes.wants_versions(self, self.led)) is not None:
            yield Want(REPORT, address, messages.versions_request)
        asked, request = self._question()
        for voter in self.voters.members:
            if voter.id in asked and (address := voter.address(self.listener)) is not None:
                yield Want(voter.id, address, lambda voter=voter: request(voter))

    def _question(self) -> tuple[set[int], Callable[[Voter], Any]]:
        """Return which voters are asked, and what."""
        endpoints = self.self_description.endpoints
        if self.led is not None:
            return self.led.unaware, lambda voter: messages.begin_request(
                self.cluster_id, self.me, voter, self.epoch, endpoints
            )
        if self.role is Role.RESIGNED:
            return self.unacknowledged, lambda _: messages.end_request(
                self.cluster_id, self.me, self.epoch, self.successors, endpoints
            )
        pre_vote, last = self.role is Role.PROSPECTIVE, (self.last_epoch, self.log.end_offset)
        asked: set[int] = set() if self.ballot.is_lost else self.ballot.open
        return asked, lambda voter: messages.vote_request(self.cluster_id, self.mine, voter, self.epoch, last, pre_vote)

    # What comes of it.

    def lost(self, sent: Send, now_ms: float) -> None:
        """There was no answer: try again after a pause, and ask somebody else who leads."""
        if self.lines.end(sent, now_ms + self.limits.retry_backoff_ms) and sent.token.line == METADATA:
            self.is_lost = True

    def suspect(self, now_ms: float) -> None:
        """The leader's process is gone, as far as one can see: soon stand for election, or let another one."""
        if self.is_follower and self.may_stand:
            self.has_fetched = False
            self.deadline_ms = min(self.deadline_ms, now_ms + self.random.random() * SUSPICION_MS)

    def heard(self, sent: Send, response: Any, now_ms: float, wall_ms: int) -> Snapshot | None:
        """Take over an answer; returns a snapshot that is complete, with which the host begins the log anew.

        Raises Diverged if the leader asks to drop what is committed.
        """
        is_current = self.lines.end(sent, now_ms)
        if (handle := ANSWERED.get(response.SCHEMA.name)) is not None:
            handle(self, sent, response, now_ms, wall_ms)
            return None
        told = read_response(response, sent.request)
        ready = told is not None and not self._learn(told, now_ms)
        if told is None or not ready or told.error:
            self.lines.delay(sent.token.line, now_ms + self.limits.retry_backoff_ms)
        if told is None or not ready:
            return None
        return self._take(sent, told, is_current, now_ms, wall_ms)

    def _take(self, sent: Send, told: Told, is_current: bool, now_ms: float, wall_ms: int) -> Snapshot | None:
        """Take over what a voter of this very epoch has said."""
        kind = sent.request.SCHEMA.name
        if kind == "VoteRequest":
            self._take_vote(sent, told, now_ms, wall_ms)
        elif kind == "EndQuorumEpochRequest" and not told.error:
            self.unacknowledged.discard(sent.token.line)
        elif kind == "UpdateRaftVoterRequest" and told.error in (Error.NONE, Error.UNSUPPORTED_VERSION):
            self.has_updated = True
        elif sent.token.line == METADATA and is_current and self.role is Role.FOLLOWER:
            return take_answer(self, told, now_ms, wall_ms)
        return None

    def _take_vote(self, sent: Send, told: Told, now_ms: float, wall_ms: int) -> None:
        """Count a vote, or a pre-vote, if it is of this round."""
        asks = self.role is Role.PROSPECTIVE or self.role is Role.CANDIDATE
        if asks and sent.token.round == self.round and not told.error:
            self.ballot.count(sent.token.line, told.row.vote_granted)
            self._count(now_ms, wall_ms)

    def _learn(self, told: Told, now_ms: float) -> bool:
        """Note who leads; true if that is all that the answer is good for."""
        if told.epoch < self.epoch or told.error is Error.UNKNOWN_LEADER_EPOCH:
            return True
        if told.epoch > self.epoch or told.error in (Error.FENCED_LEADER_EPOCH, Error.NOT_LEADER_OR_FOLLOWER):
            self.meet(told.epoch, told.leader_id, told.address, now_ms)
            return True
        if told.leader_id != NOBODY and self.leader_id == NOBODY:
            self.meet(told.epoch, told.leader_id, told.address, now_ms)
        return told.error in (Error.INVALID_VOTER_KEY, Error.INVALID_REQUEST, Error.BROKER_NOT_AVAILABLE)

    def meet(self, epoch: int, leader_id: int, address: Address | None, now_ms: float) -> None:
        """Somebody knows of a leader, or of an epoch, that may be news."""
        if epoch < self.epoch:
            return
        is_new = epoch > self.epoch
        if leader_id in (NOBODY, self.me):  # we know best what we lead
            if is_new:
                self._become_unattached(epoch, NOBODY, now_ms)
            return
        voter = self.voters.get(leader_id)
        address = address or (None if voter is None else voter.address(self.listener))
        if is_new and address is None:
            self._become_unattached(epoch, leader_id, now_ms)
        elif address is not None and (is_new or self._may_follow(leader_id)):
            self._follow(epoch, leader_id, address, now_ms)

    def _may_follow(self, leader_id: int) -> bool:
        """Return whether a leader of this epoch can be true: it is the first, or the one that is known."""
        known = self.role in (Role.UNATTACHED, Role.FOLLOWER) and self.leader_id == leader_id
        return known or self.leader_id == NOBODY

    # The log.

    def synced(self, now_ms: float) -> None:
        """`log.recovery_point` has moved."""
        self.advance(now_ms)

    def advance(self, now_ms: float) -> None:
        """As the leader, move the high watermark to where a majority is, and end a change that this commits."""
        led = self.led
        if led is None:
            return
        end = led.committed(min(self.log.recovery_point, self.log.end_offset))
        if end is None:
            return
        led.is_established = True
        self.log.advance_high_watermark(end)
        voter_changes.note_commit(led, self.log.high_watermark)
        if not self.is_voter and self.history.offset < self.log.high_watermark:
            self._become_resigned(led.successors(), now_ms)

    def append(self, batch: bytes | bytearray | memoryview, wall_ms: int) -> int:
        """As the leader, append to the log in this epoch and return its end; it is committed later. Raises Refused."""
        if not self.is_leader:
            raise Refused(Error.NOT_CONTROLLER, "This controller does not lead the quorum.")
        view = memoryview(batch)
        writable = memoryview(bytearray(view)) if view.readonly else view
        self.log.append(writable, self.epoch, wall_ms, Origin.COORDINATOR)
        return self.log.end_offset

    def append_controls(self, items: Sequence[Record], now_ms: float, wall_ms: int) -> int:
        """Append control records; if they change the voters, the new ones count at once. Returns their offset."""
        offset, batch = self.log.end_offset, control_batch(items)
        self.append(batch, wall_ms)
        self.history.replay_all(batch)
        if self.led is not None and self.led.voters != self.voters:
            self.led.change_voters(self.voters, now_ms)
        return offset

    # Requests of others.

    def vote(self, request: Any, now_ms: float) -> Any:
        """Answer a request for a vote or a pre-vote; a vote is on disk before it is given."""
        return serving.answer_vote(self, request, now_ms)

    def grant(self, candidate: Key, now_ms: float) -> None:
        """Vote for a candidate of this epoch."""
        self.voted = candidate
        self.deadline_ms = self._election_deadline(now_ms)
        self._keep()

    def begin_quorum_epoch(self, request: Any, now_ms: float) -> Any:
        """Answer a leader that says that its epoch has begun."""
        return serving.answer_begin(self, request, now_ms)

    def end_quorum_epoch(self, request: Any, now_ms: float) -> Any:
        """Answer a leader that resigns."""
        return serving.answer_end(self, request, now_ms)

    def fetch(self, request: Any, now_ms: float, *, is_new: bool, is_last: bool) -> Any:
        """Answer a fetch of the log, or return None: there is nothing to tell before the log grows or time is up."""
        return serving.answer_fetch(self, request, now_ms, is_new, is_last)

    def fetch_snapshot(self, request: Any, now_ms: float) -> Any:
        """Answer with a piece of a snapshot."""
        return serving.answer_fetch_snapshot(self, request, now_ms)

    # Voters.

    def add_voter(self, request: Any, now_ms: float, wall_ms: int) -> Change:
        """Begin to add a voter. The change has an outcome once it is refused, or committed."""
        return voter_changes.add_voter(self, request, now_ms)

    def remove_voter(self, request: Any, now_ms: float, wall_ms: int) -> Change:
        """Begin to remove a voter. The change has an outcome once it is refused, or committed."""
        return voter_changes.remove_voter(self, request, now_ms, wall_ms)

    def update_voter(self, request: Any, now_ms: float, wall_ms: int) -> Any:
        """Take over what a voter says of its endpoints and versions, and answer."""
        return voter_changes.update_voter(self, request, now_ms, wall_ms)

    def upgrade(self, now_ms: float, wall_ms: int) -> Error:
        """As the leader, begin kraft.version 1: from now on the voters stand in the log."""
        return voter_changes.upgrade(self, now_ms, wall_ms)

    def describe(self, now_ms: float, wall_ms: int) -> Any:
        """Return the answer to DescribeQuorum; only the leader knows it."""
        return serving.answer_describe(self, now_ms, wall_ms)


ANSWERED: dict[str, Callable[[Raft, Send, Any, float, int], None]] = {
    "ApiVersionsResponse": voter_changes.heard_versions,
    "AddRaftVoterResponse": voter_changes.ignore,
    "RemoveRaftVoterResponse": voter_changes.ignore,
}
