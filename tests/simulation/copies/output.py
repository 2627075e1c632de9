"""The copies as a reader of committed records sees them: each record of the input once, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from moldau.wire.records import HEADER_SIZE, Batch, records
from tests.simulation.copies.book import Fate
from tests.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.simulation.world import World


class Side:
    """One partition of the output: how far it was read, and what was seen there, in the input's offsets."""

    def __init__(self, world: World, topic: str, index: int) -> None:
        self.world = world
        self.topic = topic
        self.index = index
        self.position = 0
        self.values: list[bytes] = []
        self.high = self.stable = 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def read(self, part: Any) -> None:
        """What a fetch for committed records from our position brought."""
        self.high, self.stable = part.high_watermark, part.last_stable_offset
        self.position, values = decided(str(self), self.position, part)
        for value in values:
            self.see(value)

    def read_again(self, values: list[bytes], position: int) -> None:
        """All from the beginning: it must begin with what was seen before."""
        if values[: len(self.values)] != self.values:
            raise Broken(Property.COMMITTED_ONLY, f"{self} held {self.values}, and now holds {values}")
        self.position = position
        for value in values[len(self.values) :]:
            self.see(value)

    def see(self, value: bytes) -> None:
        """The next record that counts."""
        number, _, at = value.partition(b":")
        one, input_offset, due = self.world.book.transactions[int(number)], int(at), len(self.values)
        self.values.append(value)
        self.world.counts["copies seen"] += 1
        if self.world.lost_power:
            return
        if one.fate is Fate.NEVER:
            raise Broken(Property.COMMITTED_ONLY, f"{self}: the copy of {input_offset} by {one}")
        if input_offset not in one.written.get(self.index, ()):
            raise Broken(Property.NEVER_INVENTED, f"{self}: {value!r}")
        if input_offset != due:
            raise Broken(Property.EXACTLY_ONCE, f"{self}: the copy of {input_offset} by {one}, {due} was due")
        one.seen.setdefault(self.index, []).append(input_offset)

    def forget(self) -> None:
        """Power was lost: anything may be gone."""
        self.position = 0
        self.values.clear()


def decided(where: str, offset: int, part: Any) -> tuple[int, list[bytes]]:
    """Where to go on, and the values of committed records from an offset on, as a consumer finds them in an answer."""
    aborted = sorted((one.first_offset, one.producer_id) for one in part.aborted_transactions or ())
    dropped: set[int] = set()
    values: list[bytes] = []
    for batch in whole_batches(bytes(part.records or b"")):
        if batch.last_offset >= part.last_stable_offset:
            raise Broken(Property.COMMITTED_ONLY, f"{where}: {batch.last_offset} is read, which is not decided")
        while aborted and aborted[0][0] <= batch.last_offset:
            dropped.add(aborted.pop(0)[1])
        if batch.is_control:
            dropped.discard(batch.producer_id)
        elif batch.producer_id not in dropped:
            values += [record.value or b"" for record in records(batch) if record.offset >= offset]
        offset = max(offset, batch.next_offset)
    return offset, values


def whole_batches(data: bytes) -> Iterator[Batch]:
    """The last one may be cut off."""
    position = 0
    while len(data) - position >= HEADER_SIZE and (batch := Batch(data, position)).is_whole:
        batch.verify()
        yield batch
        position += batch.size
