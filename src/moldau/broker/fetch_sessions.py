"""Incremental fetch sessions (KIP-227): clients name only what changed, and are told only what changed.

A session remembers, per partition, what the client asks for and what it was last told. The cache is bounded; a
client that gets no session, or whose session was evicted, simply names everything again.

The work of a fetch grows with what has changed, not with the session. A partition rests when the client has all of it
and knows all about it; the session watches it, and looks at it again when it is signalled or named. What changes
without a signal (retention moves the start of a log, a disk fails) is looked for once a second.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from moldau.broker.wait import Wait, Waits
from moldau.cluster.following import next_epoch
from moldau.log.answers import Isolation
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.partition import Partition

LOOK_MS = 1000.0  # how often partitions that rest are searched for changes that nobody signals
NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

# A partition as the client names it: topic id or topic name, and number.
Key = tuple[bytes | str, int]
Replica = tuple[int, int]  # id and epoch of a broker that fetches as a follower


@dataclass(slots=True, eq=False)
class Wanted:
    """What a client wants of one partition, and what its session last told it."""

    topic: bytes | str
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    start_offset: int = -1  # of a replica's log
    strange: bool = False  # it says that it is a replica, and is none
    anywhere: bool = False  # a follower may serve it (KIP-392)
    held: bool = False  # a replica that is throttled
    preferred: int = -1  # the follower that is to serve it
    told: tuple[int, int, int] | None = None  # high watermark, last stable offset, log start offset
    partition: Partition | None = None  # that is watched for it

    @property
    def key(self) -> Key:
        return self.topic, self.index

    def is_level(self, isolation: Isolation, replica: Replica | None) -> bool:
        """Tell whether the client has all that it can get; a follower must be in sync, too."""
        home = self.partition
        if home is None or self.offset < home.log.upper_bound(isolation):
            return False
        led = home.led
        return replica is None or (led is not None and led.epoch == self.leader_epoch and replica[0] in led.isr)

    def has_changed(self, replica: Replica | None) -> bool:
        """Tell whether a partition that rests has changed; quick, for it is asked of all."""
        home, told = self.partition, self.told
        if home is None or told is None:
            return False
        log = home.log
        if log.high_watermark != told[0] or log.start_offset != told[2] or log.offline is not None:
            return True
        return replica is not None and (
            log.end_offset != self.offset or home.led is None or replica[0] not in home.led.isr
        )


@dataclass(slots=True, eq=False)
class Session:
    """One client's partitions, and those of them that do not rest, in the order in which they are served."""

    id: int
    epoch: int
    created_ms: float
    used_ms: float
    by_id: bool
    waits: Waits
    partitions: dict[Key, Wanted] = field(default_factory=dict[Key, Wanted])
    changed: OrderedDict[Key, Wanted] = field(default_factory=OrderedDict[Key, Wanted])
    topics: Counter[bytes | str] = field(default_factory=Counter[bytes | str])
    denied: Collection[bytes | str] = frozenset()
    isolation: Isolation = Isolation.HIGH_WATERMARK
    replica: Replica | None = None
    looked_ms: float = 0.0  # when all partitions were looked at last
    wait: Wait | None = None  # the fetch that waits, and what has changed since it was tried
    fresh: dict[Key, Wanted] = field(default_factory=dict[Key, Wanted])
    sizes: dict[Key, int] = field(default_factory=dict[Key, int])  # of what there was to read then

    def want(self, item: Wanted) -> None:
        """Take over what the client says of a partition."""
        key = item.key
        before = self.partitions.get(key)
        if before is None:
            self.topics[item.topic] += 1
        else:
            self.report(before)
            item.partition = before.partition
            if item.leader_epoch == before.leader_epoch:  # else the answer may have come too late for its epoch
                item.told = before.told
        self.partitions[key] = self.changed[key] = item

    def forget(self, key: Key) -> None:
        item = self.partitions.pop(key, None)
        if item is not None:
            self.report(item)
            self.changed.pop(key, None)
            if item.partition is not None:
                self.waits.unwatch(self, item.partition)
            self.topics[item.topic] -= 1
            if not self.topics[item.topic]:
                del self.topics[item.topic]

    def end(self) -> None:
        for key in tuple(self.partitions):
            self.forget(key)

    def watch(self, item: Wanted, partition: Partition | None) -> None:
        """Watch the partition that is meant now: a topic may have been deleted and made again."""
        if item.partition is not partition and self.partitions.get(item.key) is item:
            if item.partition is not None:
                self.waits.unwatch(self, item.partition)
            if partition is not None:
                self.waits.watch(self, partition)
            item.partition = partition

    def note(self, watch: Any) -> Wait | None:
        """Look at a partition that was signalled, now if a fetch waits."""
        key = watch.topic_id if self.by_id else watch.topic, watch.index
        item = self.partitions.get(key)
        if item is None:  # the session has just ended
            return None
        if key not in self.changed:
            self.report(item)
            self.changed[key] = item
        wait = self.wait
        if wait is None or wait.done:
            return None
        self.fresh[key] = item
        return wait

    def report(self, item: Wanted) -> None:
        """Let the leader know, when a partition rests no longer, that the follower had all of it at the last fetch."""
        if self.replica is not None and item.partition is not None and item.key not in self.changed:
            led = item.partition.led
            if led is not None and led.epoch == item.leader_epoch and self.replica[0] in led.isr:
                led.fetched(*self.replica, item.offset, item.offset, self.used_ms, item.start_offset)

    def rest(self, item: Wanted) -> None:
        """Leave a partition alone until it changes."""
        if self.changed.get(item.key) is item:
            del self.changed[item.key]

    def begin(self, isolation: Isolation, replica: Replica | None, now: float) -> None:
        """Begin a fetch: find what has changed without a signal. Who reads in another way looks at everything."""
        self.fresh.clear()
        if (isolation, replica) != (self.isolation, self.replica):
            self.isolation, self.replica = isolation, replica
            self.changed.update(self.partitions)
        elif now - self.looked_ms >= LOOK_MS:
            self.looked_ms = now
            for key, item in self.partitions.items():
                if item.has_changed(replica):
                    self.changed.setdefault(key, item)

    def deny(self, denied: Collection[bytes | str]) -> None:
        """Look again at topics that the client may not read any more, or may again."""
        if denied != self.denied:
            differing = set(denied) ^ set(self.denied)
            self.denied = denied
            self.changed.update((key, item) for key, item in self.partitions.items() if item.topic in differing)


@dataclass(slots=True)
class Context:
    """One fetch: what to read, and whether the answer is a difference."""

    session: Session | None
    incremental: bool
    named: Sequence[Wanted]
    denied: Collection[bytes | str] = frozenset()  # topics that the client may not read

    @property
    def session_id(self) -> int:
        return self.session.id if self.session else NO_SESSION

    @property
    def wanted(self) -> Sequence[Wanted]:
        """What has to be looked at before there is an answer."""
        return tuple(self.session.changed.values()) if self.incremental and self.session else self.named

    @property
    def topics(self) -> set[bytes | str]:
        return set(self.session.topics) if self.session else {one.topic for one in self.named}

    def fresh(self) -> list[Wanted]:
        """Return what has changed since the last attempt, if more than that is wanted."""
        if self.session is None or not self.session.fresh:
            return []
        fresh = list(self.session.fresh.values())
        self.session.fresh.clear()
        return fresh if len(fresh) < len(self.session.changed if self.incremental else self.named) else []


class FetchSessions:
    """The cache of sessions."""

    def __init__(self, slots: int, random: Random, waits: Waits, idle_ms: float = 120_000) -> None:
        self.slots = slots
        self.random = random
        self.waits = waits
        self.idle_ms = idle_ms
        self.sessions: OrderedDict[int, Session] = OrderedDict()
        self.evicted = 0

    def open(
        self,
        session_id: int,
        epoch: int,
        wanted: list[Wanted],
        forgotten: list[Key],
        *,
        by_id: bool,
        now: float,
    ) -> Context:
        """Return what one request asks for; raises Refused if its session does not exist or its epoch is old."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.end(session_id)
            session = self.admit(wanted, by_id, now) if epoch == INITIAL_EPOCH else None
            return Context(session, False, wanted)
        session = self.sessions.get(session_id)
        if session is None:
            raise Refused(Error.FETCH_SESSION_ID_NOT_FOUND, f"fetch session {session_id} is not known")
        if session.epoch != epoch:
            raise Refused(Error.INVALID_FETCH_SESSION_EPOCH, f"expected epoch {session.epoch}, got {epoch}")
        if session.by_id != by_id and (wanted or forgotten):
            raise Refused(Error.FETCH_SESSION_TOPIC_ID_ERROR, "the session names topics in another way")
        return self.advance(session, wanted, forgotten, now)

    def advance(self, session: Session, wanted: list[Wanted], forgotten: list[Key], now: float) -> Context:
        """Fold a request into its session; a session that is left without partitions ends."""
        for item in wanted:
            session.want(item)
        for key in forgotten:
            session.forget(key)
        if not session.partitions:
            self.end(session.id)
            return Context(None, False, ())
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now
        self.sessions.move_to_end(session.id)
        return Context(session, True, ())

    def admit(self, wanted: list[Wanted], by_id: bool, now: float) -> Session | None:
        """Make a session if there is room, or if the one that was idle longest may go."""
        if len(self.sessions) >= self.slots and not self.evict(len(wanted), now):
            return None
        new_id = self.random.randrange(1, 2**31)
        session = self.sessions[new_id] = Session(new_id, 1, now, now, by_id, self.waits)
        for item in wanted:
            session.want(item)
        return session

    def end(self, session_id: int) -> None:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            session.end()

    def evict(self, size: int, now: float) -> bool:
        """Drop a session that is stale, or that is settled and smaller than the new one."""
        oldest = next(iter(self.sessions.values()), None)
        if oldest is not None and now - oldest.used_ms > self.idle_ms:
            victim = oldest
        else:
            settled = [s for s in self.sessions.values() if now - s.created_ms > self.idle_ms]
            victim = min(settled, key=lambda s: len(s.partitions), default=None)
            if victim is None or len(victim.partitions) >= size:
                return False
        self.end(victim.id)
        self.evicted += 1
        return True
