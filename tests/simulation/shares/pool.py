"""What is known of one share group: who surely holds which record, what was settled, how often records were delivered.

A client that was given a record holds it from then on until its lock ends, counted from when it asked, as long as its
connection lasts: in that time nobody else may be given it. What a client was told to be accepted or rejected is never
delivered again. All else comes again, until it is settled or was delivered as often as it may be.

Two things are as in Kafka, and no promise is broken by them. Who says something of records before which nothing is open
is told that all is well, whoever has settled them. And with the power a group may be lost, while the state of its
partitions is not: who was a member goes on, for fetches do not ask for members, until the group is made anew; then its
partitions begin anew, and what was done in between is void. So a partition is firm, after a loss of power, from when a
member was told to fetch from it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.machines.share.runs import FINAL
from tests.simulation.ledger import Ledger
from tests.simulation.network import Link
from tests.simulation.properties import Broken, Property
from tests.simulation.topics import Topic

if TYPE_CHECKING:
    from tests.simulation.world import World

LOCK_MS = 1000  # no setting allows less
NEVER = float("inf")

Place = tuple[Ledger, int]  # a record: a partition and an offset


@dataclass(slots=True, eq=False)
class Hold:
    """A record that a client was given over a link."""

    by: str
    link: Link
    until_ms: float
    firm: bool

    def is_sure(self, now_ms: float) -> bool:
        return self.firm and now_ms < self.until_ms and self.link.open and self.link.served


class Pool:
    """One share group."""

    def __init__(self, world: World, name: str, topics: list[Topic], deliveries: int) -> None:
        self.world = world
        self.name = name
        self.topics = topics
        self.most = deliveries
        self.holds: dict[Place, list[Hold]] = {}
        self.settled: dict[Place, float] = {}  # when its client was told
        self.maybe_settled: set[Place] = set()  # it was, and a loss of power came between or has taken the group
        self.doubtful: dict[Place, set[Hold]] = {}  # a client said that it is done with it, and has heard nothing
        self.deliveries: dict[Place, int] = {}  # as clients were told
        self.unheard: Counter[Ledger] = Counter()  # fetches that were not answered: each may have delivered anything
        self.firm_since: dict[Ledger, float] = {}

    def broken(self, which: Property, seen: str) -> Broken:
        return Broken(which, f"share group {self.name}: {seen}")

    def ledgers(self) -> list[Ledger]:
        return [ledger for topic in self.topics for ledger in topic.ledgers]

    # Whether what happens is for good.

    def power_lost(self) -> None:
        """What was told is not synced."""
        self.maybe_settled.update(self.settled, self.doubtful)
        self.settled.clear()
        self.doubtful.clear()
        self.firm_since = dict.fromkeys(self.ledgers(), NEVER)

    def shared(self, ledgers: list[Ledger]) -> None:
        """A member was told to fetch from these: the group knows them, and will not begin them anew."""
        for ledger in ledgers:
            if self.firm_since.get(ledger) == NEVER:
                self.firm_since[ledger] = self.world.clock.now

    def is_firm(self, ledger: Ledger, asked_ms: float) -> bool:
        return self.firm_since.get(ledger, 0.0) <= asked_ms

    # Deliveries.

    def deliver(self, place: Place, hold: Hold, count: int) -> None:
        """A record was given to a client."""
        asked_ms, where = hold.until_ms - LOCK_MS, f"{place[0]} at {place[1]}"
        if not 1 <= count <= self.most:
            raise self.broken(Property.DELIVERIES, f"{where} is delivered for the {count}th time to {hold.by}")
        if self.settled.get(place, NEVER) < asked_ms:
            raise self.broken(Property.SETTLED, f"{where} is given to {hold.by}, although it was settled")
        now = self.world.clock.now
        sure = [other for other in self.holds.get(place, ()) if other.is_sure(now)]
        if sure and hold.is_sure(now):
            raise self.broken(Property.ONE_LOCK, f"{where} is given to {hold.by}, and {sure[0].by} holds it")
        self.holds[place] = [*sure, hold]
        self.deliveries[place] = max(count, self.deliveries.get(place, 0))

    def let_go(self, place: Place, hold: Hold) -> None:
        """Its client does not count on it any more."""
        self.holds[place] = [other for other in self.holds.get(place, ()) if other is not hold]

    # What becomes of records.

    def settles(self, place: Place, hold: Hold) -> None:
        """A client is about to say that it is done with a record, for good or bad."""
        self.doubtful.setdefault(place, set()).add(hold)

    def refused(self, place: Place, hold: Hold) -> None:
        """Nothing came of it. Others may have said so too."""
        self.doubtful.get(place, set()).discard(hold)

    def settle(self, place: Place, hold: Hold) -> None:
        """It was told that this is so."""
        self.refused(place, hold)
        if not hold.firm:
            self.maybe_settled.add(place)
        elif place not in self.settled:
            self.settled[place] = self.world.clock.now
        elif not self.is_behind(place):
            raise self.broken(Property.SETTLED, f"{place[0]} at {place[1]} was settled twice")

    def is_behind(self, place: Place) -> bool:
        """Whether the group may be done with all records up to this one."""
        ledger, last = place
        places = [(ledger, offset) for offset in ledger.known if offset <= last]
        return all(self.has_an_end(one) or one in self.maybe_settled for one in places)

    # The end.

    def unread(self) -> list[str]:
        """Partitions with records that the share coordinator does not know to be done with."""
        return [
            f"{ledger} has {len(left)} open, {left[:5]} ..."
            for ledger in self.ledgers()
            if (left := open_offsets(self.world.auditor.share_state(self.name, ledger), ledger.high))
        ]

    def check_delivered(self) -> None:
        """All that is done with was settled by a client, or was delivered as often as it may be."""
        for ledger in self.ledgers():
            lost = [offset for offset in sorted(ledger.known) if not self.has_an_end((ledger, offset))]
            if lost:
                raise self.broken(Property.SHARED_ONCE, f"{ledger}: nobody has settled {lost}")

    def has_an_end(self, place: Place) -> bool:
        worn_out = self.deliveries.get(place, 0) + self.unheard[place[0]] >= self.most
        return place in self.settled or bool(self.doubtful.get(place)) or worn_out


def open_offsets(state: Any, end: int) -> list[int]:
    """Offsets that are not settled, by what is written down; None stands for no state at all."""
    if state is None:
        return [*range(end)]
    done = {
        offset
        for batch in state.state_batches
        if batch.delivery_state in FINAL
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    return [offset for offset in range(max(state.start_offset, 0), end) if offset not in done]
