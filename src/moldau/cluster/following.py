"""Partitions that this broker follows: one fetcher for each broker that leads some of them.

A fetcher has one request under way, over a fetch session (KIP-227): it names only the partitions whose position has
changed since the last one. Each says how far the log goes and of which epoch its last record is. The leader answers
with what follows, or says where the two histories part (KIP-595): then what the leader does not have is dropped. High
watermark and start of the log are the leader's, as far as the records are here.

What an answer says is done to the logs at once. A partition that cannot go on now is left alone for
`replica.fetch.backoff.ms`; one whose place in the log the leader does not have is `lost` until the leader's bounds are
known (`resume`); one that the leader fences waits for the metadata that names the next leader.

The work of a request grows with what has changed, not with the partitions: `fresh` are those that have to be looked at
before the next one, by what an answer said of them, or because somebody has called `touch`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from moldau.cluster.throttling import Throttle
from moldau.log.answers import Origin
from moldau.log.log import Log
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from moldau.wire.records import Batch, starts
from moldau.wire.refusal import Refused

NO_SESSION, FIRST_EPOCH, LAST_EPOCH = 0, 0, 2**31 - 1

Key = tuple[bytes, int]  # topic id and number


class Limits(NamedTuple):
    """The settings of fetchers, under the names that Kafka gives them."""

    max_wait_ms: int  # replica.fetch.wait.max.ms
    min_bytes: int  # replica.fetch.min.bytes
    max_bytes: int  # replica.fetch.response.max.bytes
    partition_bytes: int  # replica.fetch.max.bytes
    backoff_ms: int  # replica.fetch.backoff.ms


class Position(NamedTuple):
    """Where a follower is; what a fetch session remembers of a partition."""

    leader_epoch: int
    offset: int
    last_epoch: int
    start_offset: int


@dataclass(slots=True, eq=False)
class Followed:
    """A partition under one leader's epoch."""

    topic_id: bytes
    index: int
    log: Log
    leader_epoch: int
    directory: bytes = bytes(16)
    ready_ms: float = 0.0  # it is not asked for before
    lost: bool = False  # the leader has no such offset
    failed: str | None = None  # why it cannot be followed any more
    lag: int = 0  # records behind the leader's high watermark when it last answered
    in_sync: bool = False  # it had all that was committed when the leader last answered
    received: int = 0  # bytes that the last answer brought

    @property
    def key(self) -> Key:
        return self.topic_id, self.index

    @property
    def position(self) -> Position:
        log = self.log
        return Position(self.leader_epoch, log.end_offset, log.leader_epochs.latest, log.start_offset)


@dataclass(slots=True)
class Session:
    """What the leader remembers of the partitions that it was told."""

    id: int = NO_SESSION
    epoch: int = FIRST_EPOCH
    told: dict[Key, Position] = field(default_factory=dict[Key, Position])
    left: set[Key] = field(default_factory=set[Key])  # of those, the ones that are not asked for any more


class Fetcher:
    """All partitions that one other broker leads, and the request that is under way for them."""

    def __init__(
        self, me: int, broker_epoch: Callable[[], int], limits: Limits, throttle: Throttle | None = None
    ) -> None:
        """`throttle` is shared by all fetchers of a broker."""
        self.me = me
        self.broker_epoch = broker_epoch
        self.limits = limits
        self.throttle = throttle
        self.followed: dict[Key, Followed] = {}
        self.session = Session()
        self.asked: dict[Key, Followed] = {}  # by the last request, and by the next one unless something changes
        self.fresh: dict[Key, None] = {}  # in order: to be looked at before the next request
        self.later: list[tuple[float, Key]] = []  # a heap: when to look at those that have to wait
        self.behind: dict[Key, Followed] = {}  # those that are not in sync
        self.troubled: list[Followed] = []  # those that have failed, or are lost, since they were last taken from here
        self.ready_ms = 0.0  # the leader is not asked before
        self.is_busy = False
        self.unsynced: set[Key] = set()  # whose promised sync is not done: to ask for more is to say that it is

    def add(self, one: Followed) -> None:
        """Follow a partition, from now on under this epoch."""
        self.followed[one.key] = self.behind[one.key] = one
        self.touch(one.key)
        self.ready_ms = 0.0  # the leader may be another process than the one that did not answer

    def remove(self, key: Key) -> None:
        self.unsynced.discard(key)
        if self.followed.pop(key, None) is not None:
            self.behind.pop(key, None)
            self.touch(key)

    def touch(self, key: Key) -> None:
        """Look at a partition before the next request: its log may have changed."""
        self.fresh[key] = None

    # What to ask.

    def next_ms(self) -> float:
        """Return when there is something to ask for; inf if there is nothing, or a request or a sync is under way."""
        if self.is_busy or self.unsynced:
            return inf
        if self.asked or self.fresh:
            return self.ready_ms
        return max(self.ready_ms, self.later[0][0]) if self.later else inf

    def request(self, now_ms: float) -> Any:
        """Return the next fetch, or None if there is nothing to fetch now."""
        if self.is_busy or self.unsynced or now_ms < self.ready_ms:
            return None
        positions = self.look(now_ms)
        if self.throttle is not None and self.throttle.is_on():
            self.hold_back(self.throttle, now_ms)
        if not self.asked:
            return None
        self.is_busy = True
        session, limits = self.session, self.limits
        named = {key: at for key, at in positions.items() if key in self.asked and session.told.get(key) != at}
        forgotten = [key for key in session.left if key not in self.asked and session.told.pop(key, None) is not None]
        session.told |= named
        session.left.clear()
        return m.FetchRequest(
            replica_state=m.FetchRequest_ReplicaState(self.me, self.broker_epoch()),
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=session.id,
            session_epoch=session.epoch,
            topics=[
                m.FetchRequest_FetchTopic(
                    topic_id=topic, partitions=[self.row(self.asked[topic, i], at) for i, at in rows]
                )
                for topic, rows in by_topic(named.items()).items()
            ],
            forgotten_topics_data=[
                m.FetchRequest_ForgottenTopic(topic_id=topic, partitions=[index for index, _ in rows])
                for topic, rows in by_topic((key, None) for key in forgotten).items()
            ],
        )

    def look(self, now_ms: float) -> dict[Key, Position]:
        """Decide what is asked for, of the partitions that may have changed; returns where those are."""
        while self.later and self.later[0][0] <= now_ms:
            self.touch(heapq.heappop(self.later)[1])
        fresh, self.fresh = self.fresh, {}
        positions: dict[Key, Position] = {}
        for key in fresh:
            one = self.followed.get(key)
            at = None
            if one is not None and is_wanted(one) and one.ready_ms <= now_ms:
                at = self.position_of(one, now_ms)
            if one is not None and at is not None:
                self.asked[key], positions[key] = one, at
            else:
                self.leave_out(key)
            if one is not None and one.failed is not None:
                self.troubled.append(one)
        return positions

    def position_of(self, one: Followed, now_ms: float) -> Position | None:
        """Return where a partition is; None if its log cannot be opened: others go on, and it too if it has no room."""
        try:
            return one.position
        except Refused as refused:
            self.stop(one, refused.message, now_ms)
            return None

    def leave_out(self, key: Key) -> None:
        if self.asked.pop(key, None) is not None:
            self.session.left.add(key)

    def hold_back(self, throttle: Throttle, now_ms: float) -> None:
        """Leave out those that are not in sync while too much was copied; they are asked for later."""
        for key, one in self.behind.items():
            if key in self.asked and throttle.holds(key, now_ms):
                self.wait(one, throttle.free_ms(now_ms))
                self.leave_out(key)

    def wait(self, one: Followed, until_ms: float) -> None:
        one.ready_ms = until_ms
        if until_ms < inf:
            heapq.heappush(self.later, (until_ms, one.key))

    def row(self, one: Followed, at: Position) -> Any:
        return m.FetchRequest_FetchPartition(
            partition=one.index,
            current_leader_epoch=at.leader_epoch,
            fetch_offset=at.offset,
            last_fetched_epoch=at.last_epoch,
            log_start_offset=at.start_offset,
            partition_max_bytes=self.limits.partition_bytes,
            replica_directory_id=one.directory,
        )

    # What comes of it.

    def fail(self, now_ms: float) -> None:
        """There was no answer: begin with a new session, after a pause."""
        self.is_busy = False
        self.forget_session()
        self.pause(now_ms)

    def heard(self, response: Any, now_ms: float, wall_ms: int) -> list[Followed]:
        """Take over an answer; returns the partitions that have changed."""
        if response.error_code:
            self.fail(now_ms)
            return []
        self.is_busy, session, asked = False, self.session, self.asked
        if session.epoch == FIRST_EPOCH:
            session.id = response.session_id
        session.epoch = next_epoch(session.epoch) if session.id else FIRST_EPOCH
        if not session.id:
            self.forget_session()
        changed: list[Followed] = []
        for topic in response.responses:
            for row in topic.partitions:
                key = bytes(topic.topic_id), row.partition_index
                one = asked.get(key)
                # Another leader, or none, may have taken its place meanwhile.
                if one is not None and self.followed.get(key) is one:
                    if self.take(one, row, now_ms, wall_ms):
                        changed.append(one)
                    self.touch(key)
        return changed

    def take(self, one: Followed, row: Any, now_ms: float, wall_ms: int) -> bool:
        """Take over the answer for one partition; tells whether its log has changed."""
        error = Error(row.error_code)
        if error is Error.OFFSET_OUT_OF_RANGE:
            one.lost = True
            self.troubled.append(one)
        elif error is Error.FENCED_LEADER_EPOCH:
            one.ready_ms = inf
        elif error:
            self.delay(one, now_ms)
        else:
            if self.throttle is not None:
                self.throttle.count(one.key, len(row.records or b""), now_ms)
            if row.diverging_epoch is not None:  # of the answer no more is used, but Kafka's leaders tell it only once
                self.forget_session()
            try:
                return self.take_over(one, row, wall_ms)
            except (Refused, WireError) as problem:
                self.stop(one, str(problem), now_ms)
        return False

    def take_over(self, one: Followed, row: Any, wall_ms: int) -> bool:
        has_changed = take_records(one, row, wall_ms)
        if one.in_sync:
            self.behind.pop(one.key, None)
        else:
            self.behind[one.key] = one
        return has_changed

    def stop(self, one: Followed, reason: str, now_ms: float) -> None:
        """A log that is broken is not followed any more; one that had no room, or bad bytes, is tried again."""
        self.delay(one, now_ms)
        if one.log.offline is not None:
            one.failed = reason

    def take_troubled(self) -> list[Followed]:
        """Return those that have failed or are lost, once."""
        troubled, self.troubled = self.troubled, []
        return troubled

    def resume(self, one: Followed, earliest: int, latest: int, wall_ms: int) -> None:
        """Go on where the leader has records: it lost its later ones, or its first ones are younger than ours."""
        one.lost = False
        self.touch(one.key)
        if latest < one.log.end_offset:
            one.log.truncate_to(latest, wall_ms)
        elif earliest > one.log.end_offset:
            one.log.truncate_fully(earliest, wall_ms)

    def forget_session(self) -> None:
        """Name everything with the next request."""
        self.session, self.asked = Session(), {}
        self.fresh = dict.fromkeys(self.followed)

    def pause(self, now_ms: float) -> None:
        self.ready_ms = now_ms + self.limits.backoff_ms

    def delay(self, one: Followed, now_ms: float) -> None:
        self.wait(one, now_ms + self.limits.backoff_ms)


def is_wanted(one: Followed) -> bool:
    return not one.lost and one.failed is None


def take_records(one: Followed, row: Any, wall_ms: int) -> bool:
    """Append what the leader has sent, or drop what it does not have; tells whether anything has changed."""
    log = one.log
    if row.diverging_epoch is not None and row.diverging_epoch.epoch >= 0:
        log.truncate_to(fork(log, row.diverging_epoch.epoch, row.diverging_epoch.end_offset), wall_ms)
        return True
    before = log.end_offset, log.high_watermark, log.start_offset
    one.received = 0
    if (batches := whole_batches(row.records, one.leader_epoch)) is not None:
        begin_with(log, Batch(batches), wall_ms)
        log.append(batches, one.leader_epoch, wall_ms, Origin.REPLICATION)
        one.received = len(batches)
    one.lag = max(0, row.high_watermark - log.end_offset)
    one.in_sync = not one.lag
    log.advance_high_watermark(min(row.high_watermark, log.end_offset))
    if row.log_start_offset > log.start_offset:
        log.delete_records(min(row.log_start_offset, log.high_watermark))
    return before != (log.end_offset, log.high_watermark, log.start_offset)


def begin_with(log: Log, first: Batch, wall_ms: int) -> None:
    """Let an empty log begin where the leader's first batch does: DeleteRecords may have cut that one in two."""
    if log.start_offset == log.end_offset and first.base_offset < log.end_offset <= first.last_offset:
        log.truncate_fully(first.base_offset, wall_ms)


def fork(log: Log, epoch: int, end_offset: int) -> int:
    """Return where our log leaves the leader's, which has records of `epoch` up to `end_offset` (KIP-279).

    If our newest epoch up to that one is an older one, ours ends there; the next fetch shows whether that was enough.
    """
    known, ours = log.end_offset_for_epoch(epoch)
    if known < 0:
        return min(end_offset, log.end_offset)
    return min(ours if known < epoch else min(ours, end_offset), log.end_offset)


def whole_batches(records: Any, leader_epoch: int) -> memoryview | None:
    """Return the batches that arrived whole, of this leader's time: a later epoch's belong to the next answer."""
    view, end = memoryview(records or b""), 0
    for at in starts(view):
        batch = Batch(view, at)
        if batch.partition_leader_epoch > leader_epoch:
            break
        end = at + batch.size
    return view[:end] if end else None


def by_topic(items: Iterable[tuple[Key, Any]]) -> dict[bytes, list[tuple[int, Any]]]:
    rows: dict[bytes, list[tuple[int, Any]]] = {}
    for (topic, index), item in items:
        rows.setdefault(topic, []).append((index, item))
    return rows


def next_epoch(epoch: int) -> int:
    return 1 if epoch == LAST_EPOCH else epoch + 1
