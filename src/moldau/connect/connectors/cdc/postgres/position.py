"""How far a connector has read, and what it has to do when it starts. All of it is pure.

Transactions come in the order of their commits, and those that the slot was not told of come again, whole. So a
position is the end of the last transaction that is finished, and the place within the one after it: the position of
a change in the log, and how many changes at that position were sent, for one record of the log may insert many rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.connect.connectors.cdc.postgres.server import Slot, lsn_text
from moldau.connect.errors import ConnectError

SNAPSHOT, COMPLETED, SYSTEM = "snapshot", "snapshot_completed", "system"
NEEDS_OFFSETS = "Reset the offsets of the connector for a new snapshot, or set snapshot.mode=when_needed."


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the log; the offset has Debezium's names for its parts."""

    finished: int = 0  # the end of the last finished transaction
    xid: int | None = None  # of the transaction that was begun
    lsn: int = 0
    count: int = 0

    @staticmethod
    def of(offset: Mapping[str, Any] | None) -> Position:
        given = offset or {}
        lsn = given.get("lsn") or 0
        finished = given.get("lsn_commit") or given.get("lsn_proc") or 0
        if given.get(SNAPSHOT):
            return Position(finished)
        return Position(finished, given.get("txId"), lsn, given.get("lsn_events_processed") or 1)

    def offset(self, time_us: int, system: str) -> dict[str, Any]:
        found: dict[str, Any] = {"ts_usec": time_us, "lsn": self.lsn, "lsn_commit": self.finished, SYSTEM: system}
        if self.xid is not None:
            found |= {"txId": self.xid, "lsn_events_processed": self.count}
        return found

    def at(self, xid: int, lsn: int) -> Position:
        """Return the position of the next change of a transaction."""
        if (self.xid, self.lsn) == (xid, lsn):
            return replace(self, count=self.count + 1)
        return Position(self.finished, xid, lsn, 1)

    def has(self, other: Position) -> bool:
        """Tell whether a change of the transaction that was begun was sent before."""
        return self.xid == other.xid and (other.lsn, other.count) <= (self.lsn, self.count)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do at the start."""

    snapshot: bool
    stream: bool
    new_slot: bool
    keeps_position: bool = True


def plan(mode: str, offset: Mapping[str, Any] | None, slot: Slot | None, *, now: int, system: str, name: str) -> Plan:
    """Decide what a start needs; ConnectError if changes were lost and the mode does not allow for a new snapshot."""
    given = offset or {}
    interrupted = bool(given.get(SNAPSHOT)) and not given.get(COMPLETED)
    if mode == "initial_only":
        return Plan(not offset or interrupted, False, False)
    if offset and not interrupted:
        lost = lost_why(given, slot, now=now, system=system, name=name)
        if lost is None:
            return Plan(mode == "always", True, False)
        if mode != "when_needed":
            raise ConnectError(f"{lost} {NEEDS_OFFSETS}")
        return Plan(True, True, slot is None or slot.status == "lost", keeps_position=False)
    usable = slot is not None and slot.status != "lost"
    return Plan(mode not in ("never", "no_data"), True, not usable, keeps_position=False)


def lost_why(given: Mapping[str, Any], slot: Slot | None, *, now: int, system: str, name: str) -> str | None:
    """Say why changes after an offset cannot be read any more; None if they can."""
    lsn = max(given.get("lsn") or 0, given.get("lsn_commit") or 0)
    if given.get(SYSTEM) not in (None, system):
        return (
            "This is another database server than the one that was read, so its changes cannot be told from old ones."
        )
    if slot is None:
        return f"The replication slot {name} is gone, so changes since {lsn_text(lsn)} may be lost."
    if slot.status == "lost":
        return f"PostgreSQL has removed the log that the replication slot {name} needs: changes were lost."
    if now < lsn:
        return (
            f"The database is at {lsn_text(now)}, before {lsn_text(lsn)}, up to which it was read: it was restored "
            "from an older backup."
        )
    return None


@dataclass(frozen=True, slots=True)
class Visible:
    """Which transactions a snapshot of the database sees: `pg_current_snapshot`."""

    xmax: int
    running: frozenset[int]

    @staticmethod
    def of(text: str) -> Visible:
        _, xmax, running = text.split(":")
        return Visible(int(xmax), frozenset(int(one) for one in running.split(",") if one))

    def sees(self, xid: int) -> bool:
        """Tell whether a transaction, whose number in the log has 32 bits, was visible."""
        behind = (self.xmax - xid) & 0xFFFFFFFF
        whole = self.xmax - (behind if behind < 1 << 31 else behind - (1 << 32))
        return whole < self.xmax and whole not in self.running
