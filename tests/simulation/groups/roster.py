"""What is known of one group: who owns what, what was committed, what was delivered.

Like a ledger it believes what it is told first, and holds the node to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.ledger import Ledger
from tests.simulation.properties import Broken, Property
from tests.simulation.topics import Topic

if TYPE_CHECKING:
    from tests.simulation.world import World

NOTHING = -1
FUTURE = 1 << 31
CLOCK_MS = 1
BY_EPOCH = ("consumer", "streams")  # groups in which each member has its own epoch


@dataclass(slots=True, eq=False)
class Holder:
    """A member as the roster knows it: what it owns, and until when the coordinator must count on it.

    `heard_ms` is when it sent the last request that was answered well, `settled_ms` the same of the last one that said
    that nothing is to be given up. From them on run the session and the rebalance.
    """

    name: str
    session_ms: int
    rebalance_ms: int
    heard_ms: float = -1e9
    settled_ms: float = -1e9
    owns: dict[Ledger, int] = field(default_factory=dict)  # with the generation, or epoch, in which it was given
    lost: dict[Ledger, bool] = field(default_factory=dict)  # it was given to another, which this one does not know yet

    def safe_until(self) -> float:
        """The coordinator's clock has whole milliseconds: it may be up to one early."""
        return min(self.heard_ms + self.session_ms, self.settled_ms + self.rebalance_ms) - CLOCK_MS


@dataclass(slots=True)
class Claim:
    """The newest generation in which somebody took a partition."""

    generation: int
    holder: Holder
    at_ms: float


class Roster:
    """One group."""

    def __init__(self, world: World, name: str, kind: str, topics: list[Topic]) -> None:
        self.world = world
        self.name = name
        self.kind = kind
        self.topics = topics
        self.holders: list[Holder] = []
        self.generations: dict[tuple[int, Ledger], str] = {}
        self.claims: dict[Ledger, Claim] = {}
        self.sent: dict[Ledger, set[int]] = {}
        self.floors: dict[Ledger, int] = {}  # committed, and acknowledged
        self.lowered_ms: dict[Ledger, float] = {}
        self.at: dict[Ledger, int] = {}  # as it was last found
        self.delivered: dict[Ledger, set[bytes]] = {}

    def ledgers(self) -> list[Ledger]:
        return [ledger for topic in self.topics for ledger in topic.ledgers]

    def broken(self, which: Property, seen: str) -> Broken:
        return Broken(which, f"group {self.name} ({self.kind}): {seen}")

    # Who owns what.

    def claim(self, holder: Holder, member_id: str, generation: int, ledgers: Iterable[Ledger]) -> None:
        """A member was given partitions."""
        for ledger in ledgers:
            if self.kind not in BY_EPOCH:
                self.check_generation(ledger, member_id, generation)
            self.check_others(holder, ledger, generation)
            for other in self.holders:
                other.lost[ledger] = other is not holder and ledger in other.owns
            holder.owns[ledger] = generation
            known = self.claims.get(ledger)
            if known is None or generation >= known.generation:
                self.claims[ledger] = Claim(generation, holder, self.world.clock.now)

    def check_generation(self, ledger: Ledger, member_id: str, generation: int) -> None:
        owner = self.generations.setdefault((generation, ledger), member_id)
        if owner != member_id and not self.world.lost_power:
            seen = f"{ledger} belongs to {owner} and to {member_id} in generation {generation}"
            raise self.broken(Property.ONE_OWNER, seen)

    def check_others(self, holder: Holder, ledger: Ledger, generation: int) -> None:
        """Nobody who must still be counted on owns it. (Whoever owns it since later was given it; we are late.)"""
        now = self.world.clock.now
        for other in self.holders if not self.world.lost_power else ():
            mine = other.owns.get(ledger, FUTURE) <= generation and not other.lost.get(ledger)
            if other is not holder and mine and now < other.safe_until():
                seen = f"{holder.name} was given {ledger} in {generation}, which {other.name} has not given up"
                raise self.broken(Property.ONE_OWNER, seen)

    def enter(self, holder: Holder) -> None:
        self.holders.append(holder)

    def leave(self, holder: Holder) -> None:
        """A client is gone, or gave up everything."""
        holder.owns.clear()
        self.holders = [other for other in self.holders if other is not holder]

    # What is committed.

    def sends(self, ledger: Ledger, offset: int, goes_back: bool = False) -> None:
        """A commit is under way; only one that is meant to go back may do so, or one after records were lost.

        It may go back behind a commit that was done and never answered, which is not in the floors.
        """
        sent = self.sent.setdefault(ledger, {NOTHING})
        if (goes_back or self.world.lost_power) and offset < max(sent):
            self.floors[ledger] = min(self.floors.get(ledger, NOTHING), offset)
            self.lowered_ms[ledger] = self.world.clock.now
        sent.add(offset)

    def committed(self, ledger: Ledger, offset: int, sent_ms: float) -> None:
        """A commit that was sent then was acknowledged, and counts."""
        if sent_ms >= self.lowered_ms.get(ledger, -1):
            self.floors[ledger] = max(self.floors.get(ledger, NOTHING), offset)

    def check_fencing(self, holder: Holder, ledger: Ledger, generation: int, sent_ms: float) -> None:
        """A commit was taken. A classic group knows only in which generation its members are, not what they own."""
        claim = self.claims.get(ledger)
        mine = holder.owns.get(ledger) if self.kind in BY_EPOCH else generation
        if claim is None or mine is None or claim.holder is holder or self.world.lost_power:
            return
        if claim.generation > mine and claim.at_ms < sent_ms:
            seen = f"{holder.name} committed {ledger} of {mine}, which {claim.holder.name} got in {claim.generation}"
            raise self.broken(Property.FENCED, seen)

    def found(self, ledger: Ledger, offset: int, floor: int, asked_ms: float) -> None:
        """The group's offset was asked for then, when `floor` was acknowledged. What is told must stay as well."""
        self.at[ledger] = offset
        if offset < min(floor, self.floors.get(ledger, NOTHING)):
            raise self.broken(Property.COMMIT_STAYS, f"{ledger} is at {offset}, {floor} was acknowledged")
        if offset not in self.sent.get(ledger, {NOTHING}):
            raise self.broken(Property.COMMIT_STAYS, f"{ledger} is at {offset}, which nobody has committed")
        if ledger not in self.lowered_ms:  # its owner may think that it went back
            self.committed(ledger, offset, asked_ms)

    def power_lost(self) -> None:
        """Nothing of a group is synced: its acknowledged offsets may be gone."""
        self.floors.clear()

    # What is delivered.

    def deliver(self, ledger: Ledger, names: Iterable[bytes]) -> None:
        self.delivered.setdefault(ledger, set()).update(names)

    def unread(self) -> list[str]:
        """Partitions whose end the group has not committed yet."""
        return [
            f"{ledger} at {self.at.get(ledger, NOTHING)} of {ledger.high}"
            for ledger in self.ledgers()
            if max(self.at.get(ledger, NOTHING), 0) < ledger.high
        ]

    def check_delivered(self) -> None:
        """All that stands in the log was given to somebody."""
        for ledger in self.ledgers():
            seen = self.delivered.get(ledger, set())
            missing = [offset for offset, name in sorted(ledger.known.items()) if name not in seen]
            if missing:
                raise self.broken(Property.AT_LEAST_ONCE, f"{ledger}: nobody was given {missing}")
