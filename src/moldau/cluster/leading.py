"""A partition that this broker leads: how far its followers are, who is in sync, and what is committed.

The leader proposes who is in sync (the ISR) and the controller agrees (KIP-497). Until it does, the leader counts whom
it has proposed as well as whom the controller knows: a record is committed only when all of them have it. A follower
joins when it has everything that is committed, of this leader's epoch too, and the controller would take it: it is
alive, not shutting down, and the very process that has fetched (KIP-841, KIP-903). It leaves when it has not had all
that the leader has for `replica.lag.time.max.ms`.

With fewer replicas in sync than `min.insync.replicas` asks for, nothing more is committed (KIP-966).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf

UNKNOWN = -1
ANY_EPOCH = -1
STUCK = 3  # fetches of the same records, after which the leader looks whether they are damaged

Ids = tuple[int, ...]
EpochOf = Callable[[int], int | None]
"""The epoch of a broker that may be in sync; None of one that is fenced, shuts down or is not registered."""


@dataclass(slots=True)
class Follower:
    """What the leader knows of another replica, by its fetches."""

    caught_up_ms: float  # when it last had all that the leader had
    end_offset: int = UNKNOWN
    start_offset: int = UNKNOWN
    broker_epoch: int = ANY_EPOCH
    fetched_ms: float = -inf
    leader_end: int = 0  # the end of the leader's log when it last fetched
    repeats: int = 0  # how often it has asked for records again that it was sent

    def fetched(self, offset: int, broker_epoch: int, leader_end: int, now_ms: float) -> None:
        """Note that it asked for records from `offset` on: it has all those before."""
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end:  # it has what there was when it asked last
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.repeats = self.repeats + 1 if offset == self.end_offset < self.leader_end else 0
        self.end_offset, self.broker_epoch = offset, broker_epoch
        self.fetched_ms, self.leader_end = now_ms, leader_end

    def is_stuck(self) -> bool:
        """Tell, now and then, whether it may not be able to take what it is sent."""
        return self.repeats % STUCK == STUCK - 1

    def is_caught_up(self, leader_end: int, now_ms: float, lag_ms: float) -> bool:
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_ms


@dataclass(frozen=True, slots=True)
class Proposal:
    """An ISR that the controller is asked for, with the epoch of the partition that it was decided on."""

    isr: Ids
    partition_epoch: int


class Leading:
    """One leader's epoch of a partition. It begins at `epoch_start`, the end of the log when it was elected."""

    __slots__ = ("epoch", "epoch_start", "followers", "isr", "me", "partition_epoch", "proposal", "replicas")

    def __init__(self, me: int, epoch: int, epoch_start: int) -> None:
        self.me = me
        self.epoch = epoch
        self.epoch_start = epoch_start
        self.partition_epoch = UNKNOWN
        self.replicas: Ids = ()
        self.isr: Ids = ()
        self.followers: dict[int, Follower] = {}
        self.proposal: Proposal | None = None

    def place(self, replicas: Iterable[int], isr: Iterable[int], partition_epoch: int, now_ms: float) -> None:
        """Take over what the controller has decided, unless that is older than what is known.

        A follower that has left the ISR has to show anew how far it is: its log may be damaged, and begin anew.
        """
        if partition_epoch <= self.partition_epoch:
            return
        isr = tuple(isr)
        before = {
            other: Follower(-inf, broker_epoch=known.broker_epoch) if other in self.isr and other not in isr else known
            for other, known in self.followers.items()
        }
        self.replicas, self.isr, self.partition_epoch = tuple(replicas), isr, partition_epoch
        self.proposal = None
        self.followers = {
            other: before.get(other) or Follower(now_ms if other in self.isr else -inf)
            for other in self.replicas
            if other != self.me
        }

    def fetched(
        self, follower: int, broker_epoch: int, offset: int, leader_end: int, now_ms: float, start_offset: int = UNKNOWN
    ) -> bool:
        """Note a follower's fetch. False: it is no replica, or a process of it that has been replaced since."""
        known = self.followers.get(follower)
        if known is None or (broker_epoch != ANY_EPOCH and broker_epoch < known.broker_epoch):
            return False
        known.fetched(offset, broker_epoch, leader_end, now_ms)
        known.start_offset = start_offset
        return True

    def nearest(self, rack: str, racks: Mapping[int, str | None], offset: int) -> int | None:
        """Return the follower in a reader's rack that is to serve it (KIP-392); None where the leader is to.

        `racks` are those of the live brokers. Of several followers that have the offset, the one with the most.
        """
        if racks.get(self.me) == rack:
            return None
        found = [
            (follower.end_offset, follower.caught_up_ms, other)
            for other, follower in self.followers.items()
            if other in self.isr and racks.get(other) == rack and follower.start_offset <= offset <= follower.end_offset
        ]
        return max(found)[2] if found else None

    @property
    def counted(self) -> Ids:
        """Replicas whose logs decide what is committed: those in sync, and those proposed to be."""
        return self.isr if self.proposal is None else tuple({*self.isr, *self.proposal.isr})

    def high_watermark(
        self, leader_end: int, min_insync: int, lag_ms: float, epoch_of: EpochOf, now_ms: float
    ) -> int | None:
        """Return up to where all replicas that count have the log; None while too few are in sync.

        Those that are about to join are waited for, or they would never be level with a busy leader.
        """
        if len(self.isr) < min(min_insync, len(self.replicas)):
            return None
        end, counted = leader_end, self.counted
        for other, follower in self.followers.items():
            if other in counted or (follower.is_caught_up(leader_end, now_ms, lag_ms) and epoch_of(other) is not None):
                end = min(end, follower.end_offset)
        return end if end >= 0 else None

    def low_watermark(self, start_offset: int, live: Iterable[int]) -> int:
        """Return where the logs of all live replicas begin, at least; -1 while one has not said it."""
        return min([start_offset, *(self.followers[one].start_offset for one in live if one in self.followers)])

    def is_settled(self, leader_end: int, high_watermark: int) -> bool:
        """Tell whether nothing is left to decide: all replicas are in sync and have all; quick, for many are idle."""
        if high_watermark != leader_end or self.proposal is not None or len(self.isr) != len(self.replicas):
            return False
        for follower in self.followers.values():  # noqa: SIM110 - a generator takes three times as long
            if follower.end_offset != leader_end:
                return False
        return True

    def propose(self, high_watermark: int, leader_end: int, lag_ms: float, epoch_of: EpochOf, now_ms: float) -> bool:
        """Decide whether the controller is to be asked for another ISR; one question at a time."""
        if self.proposal is not None:
            return False
        isr = [other for other in self.isr if not self._lags(other, leader_end, lag_ms, now_ms)]
        others = [other for other in self.followers if other not in self.isr]
        isr += [other for other in others if self._may_join(other, high_watermark, epoch_of)]
        if set(isr) == set(self.isr):
            return False
        self.proposal = Proposal(tuple(isr), self.partition_epoch)
        return True

    def _lags(self, other: int, leader_end: int, lag_ms: float, now_ms: float) -> bool:
        return other != self.me and not self.followers[other].is_caught_up(leader_end, now_ms, lag_ms)

    def _may_join(self, other: int, high_watermark: int, epoch_of: EpochOf) -> bool:
        follower, epoch = self.followers[other], epoch_of(other)
        is_level = follower.end_offset >= max(high_watermark, self.epoch_start)
        return is_level and epoch is not None and follower.broker_epoch in (epoch, ANY_EPOCH)

    def withdraw(self) -> None:
        """The controller has refused the proposal: what it decides next comes with the metadata."""
        self.proposal = None
