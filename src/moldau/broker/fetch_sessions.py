"""Incremental fetch sessions (KIP-227): clients name only what changed, and are told only what changed.

A session remembers, per partition, what the client asks for and what it was last told. The cache is bounded; a
client that gets no session, or whose session was evicted, simply names everything again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from moldau.cluster.following import next_epoch
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

# A partition as the client names it: topic id or topic name, and number.
Key = tuple[bytes | str, int]


@dataclass(slots=True, eq=False)
class Wanted:
    """What a client wants of one partition, and what its session last told it."""

    topic: bytes | str
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    strange: bool = False  # it says that it is a replica, and is none
    told: tuple[int, int, int] | None = None  # high watermark, last stable offset, log start offset


@dataclass(slots=True, eq=False)
class Session:
    """One client's partitions, in the order in which they are served."""

    id: int
    epoch: int
    created_ms: float
    used_ms: float
    by_id: bool
    partitions: OrderedDict[Key, Wanted] = field(default_factory=OrderedDict[Key, Wanted])


@dataclass(slots=True)
class Context:
    """One fetch: what to read, and whether the answer is a difference."""

    session: Session | None
    incremental: bool
    wanted: list[Wanted]
    denied: Collection[bytes | str] = ()  # topics that the client may not read

    @property
    def session_id(self) -> int:
        return self.session.id if self.session else NO_SESSION


class FetchSessions:
    """The cache of sessions."""

    def __init__(self, slots: int, random: Random, idle_ms: float = 120_000) -> None:
        self.slots = slots
        self.random = random
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
            self.sessions.pop(session_id, None)
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
            key = item.topic, item.index
            before = session.partitions.get(key)
            if before is not None:
                item.told = before.told
            session.partitions[key] = item
        for key in forgotten:
            session.partitions.pop(key, None)
        if not session.partitions:
            del self.sessions[session.id]
            return Context(None, False, [])
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now
        self.sessions.move_to_end(session.id)
        return Context(session, True, list(session.partitions.values()))

    def admit(self, wanted: list[Wanted], by_id: bool, now: float) -> Session | None:
        """Make a session if there is room, or if the one that was idle longest may go."""
        if len(self.sessions) >= self.slots and not self.evict(len(wanted), now):
            return None
        new_id = self.random.randrange(1, 2**31)
        session = Session(new_id, 1, now, now, by_id, OrderedDict(((w.topic, w.index), w) for w in wanted))
        self.sessions[new_id] = session
        return session

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
        del self.sessions[victim.id]
        self.evicted += 1
        return True
