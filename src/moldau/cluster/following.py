"""Partitions that this broker follows: one fetcher for each broker that leads some of them.

A fetcher has one request under way, over a fetch session (KIP-227): it names only the partitions whose position has
changed since the last one. Each says how far the log goes and of which epoch its last record is. The leader answers
with what follows, or says where the two histories part (KIP-595): then what the leader does not have is dropped. High
watermark and start of the log are the leader's, as far as the records are here.

What an answer says is done to the logs at once. A partition that cannot go on now is left alone for
`replica.fetch.backoff.ms`; one whose place in the log the leader does not have is `lost` until the leader's bounds are
known (`resume`); one that the leader fences waits for the metadata that names the next leader.
"""

from __future__ import annotations

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
    in_sync: bool = False  # it had all that was committed when the leader last answered

    @property
    def key(self) -> Key:
        return self.topic_id, self.index

    @property
    def position(self) -> Position:
        log = self.log
        return Position(self.leader_epoch, log.end_offset, log.leader_epochs.latest, log.start_offset)


def positions_of(followed: dict[Key, Followed]) -> dict[Key, Position]:
    """Return where each partition is. One whose log cannot be opened has failed; the others go on."""
    positions: dict[Key, Position] = {}
    for key, one in followed.items():
        try:
            positions[key] = one.position
        except Refused as refused:
            one.failed = refused.message
    return positions


@dataclass(slots=True)
class Session:
    """What the leader remembers of the partitions that it was told."""

    id: int = NO_SESSION
    epoch: int = FIRST_EPOCH
    told: dict[Key, Position] = field(default_factory=dict[Key, Position])


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
        self.asked: dict[Key, Followed] = {}  # by the request that is under way
        self.is_busy = False

    def add(self, one: Followed) -> None:
        """Follow a partition, from now on under this epoch."""
        self.followed[one.key] = one

    def remove(self, key: Key) -> None:
        self.followed.pop(key, None)

    # What to ask.

    def next_ms(self) -> float:
        """Return when there is something to ask for; inf if there is nothing, or a request is under way."""
        if self.is_busy:
            return inf
        return min((one.ready_ms for one in self.followed.values() if is_wanted(one)), default=inf)

    def request(self, now_ms: float) -> Any:
        """Return the next fetch, or None if there is nothing to fetch now."""
        if self.is_busy:
            return None
        ready = {key: one for key, one in self.followed.items() if is_wanted(one) and one.ready_ms <= now_ms}
        positions = positions_of(ready)
        ready = {key: one for key, one in ready.items() if key in positions}
        if self.throttle is not None and self.throttle.is_on():
            ready = self.hold_back(ready, self.throttle, now_ms)
        if not ready:
            return None
        self.is_busy, self.asked = True, ready
        session, limits = self.session, self.limits
        positions = {key: positions[key] for key in ready}
        named = {key: at for key, at in positions.items() if session.told.get(key) != at}
        forgotten = [key for key in session.told if key not in ready]
        session.told = positions
        return m.FetchRequest(
            replica_state=m.FetchRequest_ReplicaState(self.me, self.broker_epoch()),
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=session.id,
            session_epoch=session.epoch,
            topics=[
                m.FetchRequest_FetchTopic(topic_id=topic, partitions=[self.row(ready[topic, i], at) for i, at in rows])
                for topic, rows in by_topic(named.items()).items()
            ],
            forgotten_topics_data=[
                m.FetchRequest_ForgottenTopic(topic_id=topic, partitions=[index for index, _ in rows])
                for topic, rows in by_topic((key, None) for key in forgotten).items()
            ],
        )

    def hold_back(self, ready: dict[Key, Followed], throttle: Throttle, now_ms: float) -> dict[Key, Followed]:
        """Return those that need not wait; the others are asked for later."""
        held = [one for key, one in ready.items() if not one.in_sync and throttle.holds(key, now_ms)]
        for one in held:
            one.ready_ms = throttle.free_ms(now_ms)
        return {key: one for key, one in ready.items() if one.ready_ms <= now_ms}

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
        self.forget_session()
        self.delay(self.end(), now_ms)

    def heard(self, response: Any, now_ms: float, wall_ms: int) -> list[Followed]:
        """Take over an answer; returns the partitions that have changed."""
        asked = self.end()
        if response.error_code:
            self.forget_session()
            self.delay(asked, now_ms)
            return []
        session = self.session
        if session.epoch == FIRST_EPOCH:
            session.id = response.session_id
        session.epoch = next_epoch(session.epoch) if session.id else FIRST_EPOCH
        if not session.id:
            session.told = {}
        changed: list[Followed] = []
        for topic in response.responses:
            for row in topic.partitions:
                key = bytes(topic.topic_id), row.partition_index
                one = asked.get(key)
                # Another leader, or none, may have taken its place meanwhile.
                if one is not None and self.followed.get(key) is one and self.take(one, row, now_ms, wall_ms):
                    changed.append(one)
        return changed

    def take(self, one: Followed, row: Any, now_ms: float, wall_ms: int) -> bool:
        """Take over the answer for one partition; tells whether its log has changed."""
        error = Error(row.error_code)
        if error is Error.OFFSET_OUT_OF_RANGE:
            one.lost = True
        elif error is Error.FENCED_LEADER_EPOCH:
            one.ready_ms = inf
        elif error:
            one.ready_ms = now_ms + self.limits.backoff_ms
        else:
            if self.throttle is not None:
                self.throttle.count(one.key, len(row.records or b""), now_ms)
            if row.diverging_epoch is not None:  # of the answer no more is used, but Kafka's leaders tell it only once
                self.forget_session()
            try:
                return take_records(one, row, wall_ms)
            except (Refused, WireError) as problem:
                self.stop(one, str(problem), now_ms)
        return False

    def stop(self, one: Followed, reason: str, now_ms: float) -> None:
        """A log that is broken is not followed any more; one that had no room, or bad bytes, is tried again."""
        one.ready_ms = now_ms + self.limits.backoff_ms
        one.failed = reason if one.log.offline is not None else None

    def resume(self, one: Followed, earliest: int, latest: int, wall_ms: int) -> None:
        """Go on where the leader has records: it lost its later ones, or its first ones are younger than ours."""
        one.lost = False
        if latest < one.log.end_offset:
            one.log.truncate_to(latest, wall_ms)
        elif earliest > one.log.end_offset:
            one.log.truncate_fully(earliest, wall_ms)

    def end(self) -> dict[Key, Followed]:
        asked, self.asked, self.is_busy = self.asked, {}, False
        return asked

    def forget_session(self) -> None:
        self.session = Session()

    def delay(self, some: dict[Key, Followed], now_ms: float) -> None:
        for one in some.values():
            one.ready_ms = max(one.ready_ms, now_ms + self.limits.backoff_ms)


def is_wanted(one: Followed) -> bool:
    return not one.lost and one.failed is None


def take_records(one: Followed, row: Any, wall_ms: int) -> bool:
    """Append what the leader has sent, or drop what it does not have; tells whether anything has changed."""
    log = one.log
    if row.diverging_epoch is not None and row.diverging_epoch.epoch >= 0:
        log.truncate_to(fork(log, row.diverging_epoch.epoch, row.diverging_epoch.end_offset), wall_ms)
        return True
    before = log.end_offset, log.high_watermark, log.start_offset
    if (batches := whole_batches(row.records, one.leader_epoch)) is not None:
        begin_with(log, Batch(batches), wall_ms)
        log.append(batches, one.leader_epoch, wall_ms, Origin.REPLICATION)
    one.in_sync = row.high_watermark <= log.end_offset
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
