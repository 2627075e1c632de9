"""Share sessions (KIP-932): members of share groups name only what changed, and hold records only while they last.

A session belongs to a connection. When that closes, or the member says so, it ends: the caller then releases what the
member holds. They are bounded by `group.share.max.share.sessions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.broker.fetch_sessions import next_epoch
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

Part = tuple[bytes, int]  # topic id and number of a partition


@dataclass(slots=True, eq=False)
class ShareSession:
    """The partitions that a member fetches from."""

    group: str
    member: str
    connection_id: int
    epoch: int = 1
    parts: dict[Part, None] = field(default_factory=dict[Part, None])


class ShareSessions:
    """All sessions, by group and member."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.sessions: dict[tuple[str, str], ShareSession] = {}

    def open(self, group: str, member: str, connection_id: int, parts: Iterable[Part]) -> ShareSession:
        """Return a new session, in the place of one that the member may have; raises Refused if there is no room."""
        self.sessions.pop((group, member), None)
        if len(self.sessions) >= self.slots:
            raise Refused(Error.SHARE_SESSION_LIMIT_REACHED, "There are as many share sessions as there may be.")
        session = ShareSession(group, member, connection_id, parts=dict.fromkeys(parts))
        self.sessions[group, member] = session
        return session

    def find(self, group: str, member: str) -> ShareSession:
        session = self.sessions.get((group, member))
        if session is None:
            raise Refused(Error.SHARE_SESSION_NOT_FOUND, f"{member} of {group} has no share session.")
        return session

    def proceed(self, group: str, member: str, epoch: int) -> ShareSession:
        """Return the session for its next request; raises Refused where the member is at another epoch."""
        session = self.find(group, member)
        if session.epoch != epoch:
            raise Refused(Error.INVALID_SHARE_SESSION_EPOCH, f"expected epoch {session.epoch}, got {epoch}")
        session.epoch = next_epoch(epoch)
        return session

    def close(self, session: ShareSession) -> None:
        self.sessions.pop((session.group, session.member), None)

    def of_connection(self, connection_id: int) -> list[ShareSession]:
        return [session for session in self.sessions.values() if session.connection_id == connection_id]

    def is_anybody_in(self, group: str) -> bool:
        return any(session.group == group for session in self.sessions.values())
