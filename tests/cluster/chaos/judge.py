"""What clients were told, and what all replicas hold: one history for each partition, as in the simulator.

The judge believes what it hears first, and holds everybody to it. All its methods may be called from any thread.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from moldau.client import Client, ClientError
from moldau.wire import messages as m
from moldau.wire.records import Batch, starts
from tests.cluster.simulation.ledger import Ledger, Name, names_of
from tests.cluster.simulation.properties import Broken, Property

PIECE_BYTES = 1 << 20
AUDIT_S = 90.0
PAUSE_S = 0.1
NAMED_UNTIL = 12  # the last version of Fetch in which topics go by name; followers answer readers from 11 on

Place = tuple[str, int]  # topic and partition


@dataclass(slots=True, eq=False)
class Transaction:
    """What one transaction has sent, and how it ended as far as its producer knows."""

    producer: str
    number: int
    records: list[tuple[Place, Name]] = field(default_factory=list)
    outcome: bool | None = None  # None: nobody told

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.producer}"


class Judge:
    """The ledgers of all partitions of some topics, and what groups and transactions were promised."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.lock = RLock()
        self.ledgers = {
            (topic, index): Ledger(topic, b"", index) for topic, count in topics.items() for index in range(count)
        }
        self.counts: Counter[str] = Counter()
        self.unplaced: list[tuple[Place, Name]] = []  # acknowledged without an offset: a duplicate
        self.writers: dict[Name, int] = {}  # the producer id of each record of a transaction
        self.transactions: list[Transaction] = []
        self.highs: dict[tuple[str, Place], int] = {}  # the latest offset that anybody was told
        self.committed: dict[tuple[str, Place], int] = {}  # by group
        self.seen: defaultdict[str, dict[Place, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.cursors: dict[tuple[int, Place], int] = {}
        self.refusals: dict[tuple[int, Place], int] = {}  # the last error of a replica that was read, or 0

    # What clients are told.

    def acknowledge(self, place: Place, offset: int, name: Name) -> None:
        """A producer was told that a record is there, and where, unless it was a duplicate."""
        with self.lock:
            self.counts["records acknowledged"] += 1
            if offset < 0:
                self.unplaced.append((place, name))
            else:
                self.ledgers[place].acknowledge(offset, name)

    def read(self, who: str, place: Place, offset: int, name: Name) -> None:
        """A consumer has read a record."""
        with self.lock:
            self.counts["records read"] += 1
            self.ledgers[place].see(offset, name, who)
            self.seen[who][place].add(offset)

    def ends_at(self, kind: str, place: Place, offset: int, before: int) -> None:
        """A client was told the latest offset; `before` is what was known when it asked."""
        with self.lock:
            if offset < before:
                text = f"{place} ends at {offset} by {kind}, and somebody was told {before} before"
                raise Broken(Property.NEVER_BACK, text)
            self.highs[kind, place] = max(offset, self.highs.get((kind, place), 0))

    def commit(self, group: str, place: Place, offset: int) -> None:
        """A group was told that its position is kept."""
        with self.lock:
            self.counts["commits"] += 1
            self.committed[group, place] = max(offset, self.committed.get((group, place), 0))

    def starts_at(self, group: str, place: Place, offset: int, before: int, now: Callable[[], str]) -> None:
        """A group was told its position; `before` is what it had committed when it asked. `now` asks again."""
        if offset < before:
            text = f"{group} is at {offset} of {place}, and had committed {before}; asked again, it is at {now()}"
            raise Broken(Property.COMMIT_STAYS, text)

    # What the replicas hold.

    def audit(self, client: Client, nodes: Collection[int], *, anew: bool = False) -> None:
        """Read what every replica holds since the last audit, up to what was promised. `anew`: from the start."""
        with self.lock:
            if anew:
                self.cursors.clear()
            ends = {place: max(one.acked, default=-1) + 1 for place, one in self.ledgers.items()}
        deadline = time.monotonic() + AUDIT_S
        for node in nodes:
            while self._read_on(client, node) or self._late(node, ends):
                late = self._late(node, ends)
                if late and time.monotonic() > deadline:
                    raise Broken(Property.GOES_ON, f"node {node} has not got all that was acknowledged: {late[:3]}")
                time.sleep(PAUSE_S if late else 0)

    def _late(self, node: int, ends: dict[Place, int]) -> list[str]:
        at = {place: self.cursors.get((node, place), 0) for place in ends}
        errors = {place: self.refusals.get((node, place), 0) for place in ends}
        return [
            f"{place} is at {at[place]} of {end}, error {errors[place]}"
            for place, end in ends.items()
            if at[place] < end
        ]

    def _read_on(self, client: Client, node: int) -> bool:
        """Read a piece of each partition on a node; returns whether there was anything."""
        rows: defaultdict[str, list[Any]] = defaultdict(list)
        for topic, index in self.ledgers:
            at = self.cursors.get((node, (topic, index)), 0)
            row = m.FetchRequest_FetchPartition(index, fetch_offset=at, partition_max_bytes=PIECE_BYTES)
            rows[topic].append(row)
        topics = [m.FetchRequest_FetchTopic(topic, partitions=some) for topic, some in rows.items()]
        request = m.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 26, session_epoch=-1, topics=topics)
        try:
            answer = client.send(request, node, at_most=NAMED_UNTIL)
        except ClientError:
            return False
        found = False
        for topic in answer.responses:
            for part in topic.partitions:
                self.refusals[node, (topic.topic, part.partition_index)] = part.error_code
                if not part.error_code and part.records:
                    found |= self._take(node, (topic.topic, part.partition_index), part)
        return found

    def _take(self, node: int, place: Place, part: Any) -> bool:
        before = self.cursors.get((node, place), 0)
        with self.lock:
            ledger = self.ledgers[place]
            after = ledger.read(part.records, f"node {node}", part.high_watermark)
            view = memoryview(bytes(part.records))
            for batch in (Batch(view, position) for position in starts(view)):
                if batch.is_transactional and not batch.is_control:
                    self.writers.update((name, batch.producer_id) for _, name in names_of(batch))
        if after > before:
            self.cursors[node, place] = after
        return after > before

    # At the end.

    def check(self) -> None:
        """Check all that was promised."""
        with self.lock:
            for ledger in self.ledgers.values():
                ledger.check_kept()
                ledger.check_order()
            for place, name in self.unplaced:
                if name not in self.ledgers[place].places:
                    raise Broken(Property.ACKNOWLEDGED_STAYS, f"{place} lacks {name!r}, a duplicate of which was told")
            for transaction in self.transactions:
                self._check_transaction(transaction)

    def outcomes(self, transaction: Transaction) -> set[bool | None]:
        """Return how a transaction ended in each partition; None where there is no marker yet."""
        return {
            self.ledgers[place].outcome_of(name, self.writers[name])
            for place, name in transaction.records
            if name in self.ledgers[place].places
        }

    def _check_transaction(self, transaction: Transaction) -> None:
        ends, told = self.outcomes(transaction), transaction.outcome
        if len(ends) > 1 or None in ends or (told is not None and not ends <= {told}):
            raise Broken(Property.ATOMIC, f"{transaction} ended with {ends}, told was {told}")
        lacking = [name for place, name in transaction.records if name not in self.ledgers[place].places]
        if lacking and True in {*ends, told}:
            raise Broken(Property.ATOMIC, f"{transaction} was committed and lacks {lacking[:3]}")

    def check_readers(self, who: str, topics: Iterable[str]) -> list[str]:
        """Say which committed records a reader of committed ones lacks; what it must not have seen is raised."""
        with self.lock:
            wanted: dict[Place, set[int]] = defaultdict(set)
            for transaction in self.transactions:
                if self.outcomes(transaction) == {True}:
                    for place, name in transaction.records:
                        wanted[place].add(self.ledgers[place].places[name])
            lacking = []
            for place, ledger in self.ledgers.items():
                if place[0] in topics:
                    seen = self.seen[who][place]
                    if more := seen - wanted[place]:
                        names = [ledger.known[offset] for offset in sorted(more)[:3]]
                        raise Broken(Property.ATOMIC, f"{who} has read {names} of {place}, which were not committed")
                    if less := wanted[place] - seen:
                        lacking.append(f"{who} has not read {len(less)} of {place}, the first is {min(less)}")
            return lacking

    def lacks(self, who: str, topics: Iterable[str]) -> list[str]:
        """Say which acknowledged records a group has never read."""
        with self.lock:
            left = {
                place: ledger.acked.keys() - self.seen[who][place]
                for place, ledger in self.ledgers.items()
                if place[0] in topics
            }
        return [
            f"{who} has not read {len(less)} of {place}, the first is {min(less)}"
            for place, less in left.items()
            if less
        ]
