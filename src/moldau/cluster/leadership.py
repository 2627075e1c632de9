"""One epoch of the quorum from its leader's side: how far the others are, what is committed, who still listens.

A record is committed when a majority of the voters has it on disk, and so has a record of this epoch: one that an
earlier leader left half-way may still be replaced by another leader otherwise. The leader counts itself like any other
voter, as far as its disk is synced, and not at all once it has been removed from them.

A leader that has not been asked for records by a majority within one and a half fetch time-outs cannot commit anything
and may have been replaced: it resigns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from moldau.cluster.leading import Follower
from moldau.cluster.observing import Limits
from moldau.cluster.voters import ANY_DIRECTORY, Key, Voter, Voters
from moldau.wire import messages as m
from moldau.wire.errors import Error

CHECK_QUORUM_FACTOR = 1.5
OBSERVER_SESSION_MS = 300_000.0
CAUGHT_UP_MS = 3_600_000.0  # an observer that was level within this time may become a voter
UNKNOWN = -1


@dataclass(slots=True, eq=False)
class Change:
    """A change of the voters that somebody has asked for."""

    voter: Voter  # that comes or goes
    deadline_ms: float
    waits: bool = True  # to be committed, before there is an outcome
    offset: int = UNKNOWN  # of its record, once that is written
    outcome: tuple[Error, str | None] | None = None  # None while it is under way


class Leadership:
    """What a leader knows of its epoch."""

    def __init__(self, mine: Key, epoch_start: int, voters: Voters, limits: Limits, now_ms: float) -> None:
        self.mine = mine
        self.epoch_start = epoch_start
        self.limits = limits
        self.voters = voters
        self.followers: dict[Key, Follower] = {}
        self.is_established = False  # something of this epoch is committed
        self.fetched: set[int] = set()  # voters that have asked since the last majority
        self.check_ms = inf
        self.begin_ms = now_ms
        self.unaware: set[int] = set()  # voters to be told that this epoch has begun
        self.change: Change | None = None
        self.described: dict[int, Voter] = {}  # what voters say of themselves while kraft.version is 0
        self.change_voters(voters, now_ms)

    @property
    def is_alone(self) -> bool:
        return len(self.voters.members) == 1 and self.voters.has(self.mine)

    def change_voters(self, voters: Voters, now_ms: float) -> None:
        """Count these voters from now on."""
        self.voters = voters
        for voter in voters.members:
            nameless = voter.id, ANY_DIRECTORY  # how it was known under kraft.version 0
            if voter.directory != ANY_DIRECTORY and nameless in self.followers:
                self.followers.setdefault(voter.key, self.followers.pop(nameless))
        if self.is_alone:
            self.check_ms = inf
        elif self.check_ms == inf:
            self.check_ms = now_ms + self.check_timeout_ms

    @property
    def check_timeout_ms(self) -> float:
        return self.limits.fetch_timeout_ms * CHECK_QUORUM_FACTOR

    # Followers.

    def name(self, key: Key) -> Key:
        """Return under which key a replica is known: that of the voter that it is, or its own."""
        voter = self.voters.get(key[0])
        return voter.key if voter is not None and voter.matches(key) else key

    def note_fetch(self, key: Key, offset: int, leader_end: int, now_ms: float) -> None:
        """Note that a replica has everything before `offset` on its disk."""
        known = self.followers.setdefault(self.name(key), Follower(-inf))
        known.fetched(offset, UNKNOWN, leader_end, now_ms)
        self.note_contact(key, now_ms)

    def note_contact(self, key: Key, now_ms: float) -> None:
        """Note that a replica follows this leader: with a majority of the voters the leader stays for another while."""
        if not self.voters.has(key):
            return
        self.fetched.add(key[0])
        needed = self.voters.majority - self.voters.has(self.mine)
        if len(self.fetched & {one.id for one in self.voters.members}) >= needed:
            self.fetched.clear()
            if not self.is_alone:
                self.check_ms = now_ms + self.check_timeout_ms

    def follower(self, voter: Voter) -> Follower | None:
        return self.followers.get(voter.key)

    def committed(self, own_end: int) -> int | None:
        """Return up to where a majority has the log, `own_end` being synced here; None if it is too little."""
        ends = sorted((self.end_of(voter, own_end) for voter in self.voters.members), reverse=True)
        end = ends[self.voters.majority - 1] if ends else UNKNOWN
        return end if end > self.epoch_start else None

    def end_of(self, voter: Voter, own_end: int) -> int:
        if voter.matches(self.mine):
            return own_end
        known = self.follower(voter)
        return UNKNOWN if known is None else known.end_offset

    def is_caught_up(self, key: Key, now_ms: float) -> bool:
        """Return whether an observer may become a voter."""
        known = self.followers.get(key)
        return known is not None and known.caught_up_ms > -inf and known.fetched_ms > now_ms - CAUGHT_UP_MS

    def successors(self) -> list[Key]:
        """Return the other voters, those with the longest log first."""
        others = self.voters.others(self.mine)
        return [one.key for one in sorted(others, key=lambda one: (-self.end_of(one, UNKNOWN), one.id))]

    # Time.

    def next_ms(self) -> float:
        change_ms = inf if self.change is None else self.change.deadline_ms
        return min(change_ms, self.check_ms, inf if self.is_alone else self.begin_ms)

    def pass_time(self, now_ms: float) -> None:
        """Note who must be told that this epoch has begun: voters that have not fetched for a while."""
        if now_ms < self.begin_ms:
            return
        period = self.limits.fetch_timeout_ms / 2
        self.begin_ms = now_ms + period
        for voter in self.voters.others(self.mine):
            known = self.follower(voter)
            if known is None or now_ms - known.fetched_ms >= period:
                self.unaware.add(voter.id)

    # DescribeQuorum.

    def describe(self, own_end: int, now_ms: float, wall_ms: int) -> tuple[list[Any], list[Any]]:
        """Return the rows of voters and of observers. Times are told as the wall clock has them."""
        row = m.DescribeQuorumResponse_ReplicaState
        voters = [
            row(*one.key, own_end, wall_ms, wall_ms)
            if one.matches(self.mine)
            else row(*one.key, *self.state(self.follower(one), now_ms, wall_ms))
            for one in self.voters.members
        ]
        voting = {one.key for one in self.voters.members}
        self.followers = {
            key: known
            for key, known in self.followers.items()
            if key in voting or now_ms - known.fetched_ms < OBSERVER_SESSION_MS
        }
        observers = [
            row(*key, *self.state(known, now_ms, wall_ms)) for key, known in self.followers.items() if key not in voting
        ]
        if not self.voters.has(self.mine):
            observers.append(row(*self.mine, own_end, wall_ms, wall_ms))
        return voters, observers

    def state(self, known: Follower | None, now_ms: float, wall_ms: int) -> tuple[int, int, int]:
        if known is None:
            return UNKNOWN, UNKNOWN, UNKNOWN
        times = [
            UNKNOWN if at == -inf else int(wall_ms - (now_ms - at)) for at in (known.fetched_ms, known.caught_up_ms)
        ]
        return known.end_offset, times[0], times[1]
