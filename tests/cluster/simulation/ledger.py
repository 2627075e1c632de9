"""What is known of one partition: which records were seen where, and what its producers were promised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from moldau.wire.errors import WireError
from moldau.wire.records import Batch, records, starts
from tests.cluster.simulation.properties import Broken, Property

COMMIT = (1).to_bytes(2)  # the kind of a marker
Name = bytes  # of a record, unique in the world; control batches and other parts have names too


@dataclass(slots=True, eq=False)
class Ledger:
    """One partition. It believes what it is told first, and holds all nodes to it for ever."""

    topic: str
    topic_id: bytes
    index: int
    known: dict[int, Name] = field(default_factory=dict)  # seen below a high watermark
    places: dict[Name, int] = field(default_factory=dict)
    acked: dict[int, Name] = field(default_factory=dict)
    taken: int = 0  # records that were acknowledged
    rotten_on: int | None = None  # the place of the replica in which a bit has flipped
    is_torn: bool = False  # by an unclean election: what was committed may be lost, and nothing is promised any more

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def is_internal(self) -> bool:
        """Whether coordinators write it; their records may be alike."""
        return self.topic.startswith("__")

    def see(self, offset: int, name: Name, where: object) -> None:
        """A record was seen below a high watermark."""
        before = self.known.get(offset)
        if before == name or self.is_torn:
            return
        if before is not None:
            raise Broken(Property.ONE_HISTORY, f"{self} has {name!r} at {offset} on {where}, where {before!r} was")
        promised = self.acked.get(offset, name)
        if promised != name:
            seen = f"{self} has {name!r} at {offset} on {where}, and {promised!r} was acknowledged there"
            raise Broken(Property.ACKNOWLEDGED_STAYS, seen)
        if name in self.places and not self.is_internal:
            raise Broken(Property.ONCE, f"{self} has {name!r} at {offset} and at {self.places[name]}")
        self.known[offset], self.places[name] = name, offset

    def acknowledge(self, offset: int, name: Name) -> None:
        """A producer was told where its record stands."""
        self.taken += 1
        if self.is_torn:
            return
        seen = self.known.get(offset, name)
        if seen != name:
            raise Broken(Property.AS_PROMISED, f"{self} has {seen!r} at {offset}, and {name!r} was acknowledged there")
        if self.places.get(name, offset) != offset or self.acked.get(offset, name) != name:
            raise Broken(Property.AS_PROMISED, f"{name!r} was acknowledged at {offset} of {self}, and is elsewhere")
        self.acked[offset] = name

    def read(self, data: Any, where: object, end: int) -> int:
        """Take over batches that were read, up to an offset; returns where the next begins."""
        after, view = -1, memoryview(bytes(data))
        for batch in self.batches(view):
            if batch.next_offset > end:
                break
            after = batch.next_offset
            for offset, name in names_of(batch):
                self.see(offset, name, where)
        return after

    def batches(self, view: memoryview) -> Iterator[Batch]:
        """Yield the batches up to one that is damaged, which only rot can do."""
        try:
            for position in starts(view):
                batch = Batch(view, position)
                batch.verify()
                yield batch
        except WireError:
            if self.rotten_on is None:
                raise

    def outcome_of(self, name: Name, producer_id: int) -> bool | None:
        """Return how a record's transaction ended here, by the next marker; None if there is none yet."""
        at, start = self.places.get(name), b"control %d " % producer_id
        for offset in () if at is None else range(at, max(self.known) + 1):
            if self.known.get(offset, b"").startswith(start):
                return b" commit@" in self.known[offset]
        return None

    def tear(self) -> None:
        self.is_torn = True
        self.known.clear()
        self.places.clear()
        self.acked.clear()

    def check_order(self) -> None:
        """Each producer's records stand in its order."""
        last: dict[Name, int] = {}
        for offset in sorted(self.known):
            session, _, number = self.known[offset].partition(b":")
            if number.isdigit():
                if int(number) < last.get(session, -1):
                    raise Broken(Property.IN_ORDER, f"{self} has {self.known[offset]!r} after {last[session]}")
                last[session] = int(number)

    def check_kept(self) -> None:
        """Everything that was acknowledged is there."""
        lost = [offset for offset in self.acked if offset not in self.known]
        if lost and not self.is_torn:
            text = f"{self} lacks {len(lost)} records, the first is {self.acked[lost[0]]!r} at {lost[0]}"
            raise Broken(Property.ACKNOWLEDGED_STAYS, text)


def names_of(batch: Any) -> list[tuple[int, Name]]:
    """Return offset and name of each record of a batch; the name of a marker says which producer it is of."""
    if batch.is_control:
        kind = b"commit" if bytes(next(iter(records(batch))).key or b"")[2:4] == COMMIT else b"other"
        text = b"control %d %d %s@%d" % (batch.producer_id, batch.producer_epoch, kind, batch.base_offset)
        return [(batch.base_offset, text)]
    return [(record.offset, bytes(record.value or b"").partition(b"|")[0]) for record in records(batch)]
