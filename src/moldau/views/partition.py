"""One partition of a view: what the changelog says, taken in batch by batch."""

from __future__ import annotations

from moldau.client import Batch, Fetched, records
from moldau.operators.context import Shard
from moldau.operators.stores.restoring import opened, restorer
from moldau.operators.stores.spec import Opening, OrderedBytes, StoreSpec

from .content import Content
from .errors import ViewError


class Partition:
    """`position` is the offset up to which it was read, `end` the one up to which there was something to read when
    somebody last asked. It is loaded when it has reached the first end that it was told."""

    def __init__(self, spec: StoreSpec, topic: str, number: int, start: int, history: int) -> None:
        self.number = number
        self.position = start
        self.end: int | None = None
        self.content = Content(history)
        restore = restorer(spec, opened(spec, opening(topic, self.content)))
        if restore is None:
            raise ViewError(f"the store {spec.name} is of the kind {spec.kind}, which is not for look-ups")
        self._restore = restore
        self._goal: int | None = None
        self._compacted = start > 0  # whether records are missing before the position

    @property
    def loaded(self) -> bool:
        return self._goal is not None and self.position >= self._goal

    @property
    def lag(self) -> int:
        return 0 if self.end is None else max(0, self.end - self.position)

    def take(self, fetched: Fetched) -> None:
        if self._goal is None:
            self._goal = fetched.last_stable_offset
        was_loaded = self.loaded
        self._look_for_gaps(fetched)
        for batch in fetched.committed():
            self._take_batch(batch)
        self.position = fetched.next_offset(self.position)
        self.end = fetched.last_stable_offset
        if self._compacted and self.loaded:
            # What compaction took away was overtaken by something before the end that the log had then.
            self.content.forget_before(self.position if was_loaded else self._goal)
            self._compacted = False

    def skip_to(self, end: int) -> None:
        """Advance over offsets whose records compaction has removed."""
        if end > self.position:
            self.position = end
            self.content.forget_before(end)

    def _take_batch(self, batch: Batch) -> None:
        content, restore, first = self.content, self._restore, self.position
        for record in records(batch):
            if record.offset >= first and record.key is not None:
                content.offset = record.offset
                restore(record.key, record.value, record.timestamp)

    def _look_for_gaps(self, fetched: Fetched) -> None:
        expected = self.position
        for batch in fetched.batches():
            if batch.base_offset > expected or batch.count <= batch.last_offset_delta:
                self._compacted = True
            expected = batch.next_offset


NOWHERE = Shard()  # stores of views stand at no record: nothing reads or changes it


def opening(topic: str, content: OrderedBytes) -> Opening:
    """Open a store that reports no changes and holds nothing back."""
    return Opening(topic, content, None, NOWHERE)
