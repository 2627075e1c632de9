"""One micro-batch of one shard: blobs come in, its operators process them on its stores, blobs go out.

Only the pages of a shard outlive a batch: those of its stores, and its book, which has its times, the offsets of the
internal topics that it reads, its punctuators and what it holds back. So a batch that is replayed, in any process, does
the same to the same pages. Pages that are still decoded (`page_cache.py`) are not read again. Operators are made anew
for each batch, so their own fields never make a difference.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from moldau.operators.columns import Columns
from moldau.operators.context import UNKNOWN_TIME, Shard, TopologyError
from moldau.operators.punctuation import Cancellable, Punctuators
from moldau.operators.record import Produced, Raw, new_tuple
from moldau.operators.stores.ordered import OrderedBytes
from moldau.operators.stores.pages import PagedBytes
from moldau.operators.stores.restoring import restorer
from moldau.operators.stores.spec import OnChange, OnChanges, StoreSpec
from moldau.plan.input_order import Inbox, in_order
from moldau.plan.page_cache import HotPages, Version, VersionedPages
from moldau.plan.shard_state import BOOK, GOING_ON, Book, PagesOf
from moldau.serdes.context import Serde

from . import blobs
from .blobs import RESTORED, Blob, Several
from .columns import InColumns, lanes_of
from .fallbacks import FALLBACKS, Fallbacks
from .levels import Schedule, ShardId
from .restoring import logged, restore
from .routing import routed
from .task import Execution, Task, World

BEFORE_ALL = -1  # as sequence of a blob: before all others
EACH = sys.maxsize  # as number of an attempt: each is a new one


class Instantiated(NamedTuple):
    """What is known of a plan by making its operators once: sub-topologies of the first level without state, and the
    shortest interval of wall-clock punctuators, in milliseconds.
    """

    passed: frozenset[int]
    tick_ms: int | None


@dataclass(frozen=True, slots=True)
class Conveyed:
    """A plan as it is sent to workers."""

    schedule: Schedule
    execution: Execution
    sinks: Mapping[str, int] = field(default_factory=dict[str, int])  # partition counts of topics that are written
    client: Mapping[str, str] = field(default_factory=dict[str, str])  # settings of clients
    logged: bool = False  # whether the state of shards is logged, so that they can be restored (`restoring.py`)
    start: str = ""  # the id of this start of the application: workers cache nothing beyond it
    known: Instantiated | None = None  # where the process that plans the query cannot make the operators

    def partitions(self, topic: str) -> int:
        return self.schedule.counts.get(topic) or self.sinks.get(topic, 1)


class HasFailed(Exception):
    """An attempt that is over: what arrives is to be held (`holding.py`)."""


class Worked(NamedTuple):
    """The result of a batch: records that wait, and whether there is more to come."""

    inboxes: dict[str, Inbox]
    unread: bool


class ShardBatch:
    """A shard for the time of a batch."""

    def __init__(
        self,
        conveyed: Conveyed,
        shard_id: ShardId,
        pages: PagesOf,
        shared: Mapping[str, Any] | None = None,
        hot: HotPages | None = None,
        number: int = EACH,
    ) -> None:
        self.conveyed, self.schedule, self.id, self.pages = conveyed, conveyed.schedule, shard_id, pages
        self.book = Book.of_bytes(pages(BOOK).get(GOING_ON))
        if self.book.failed >= number:
            raise HasFailed
        self.hot = HotPages() if hot is None else hot
        self.version = Version(self.book.version)
        self.warm = self.hot.take(self._hot_key, self.book.version)
        self.stores: dict[str, PagedBytes] = {}
        self.written: list[Produced | Several] = []
        self.columns: InColumns | None = None
        plan = self.schedule.plan
        state = Shard(plan.application_id or "", str(shard_id), self.book.system_time, self.book.stream_time)
        world = World(self._bytes, self.written.append, self._log, conveyed.partitions, self._log_all)
        self.task = Task(plan, plan.members(shard_id.group), state, world, conveyed.execution, shared)
        self.scheduled = [
            scheduled_again(queue, at) for queue, at in zip(self._queues(), self._remembered(), strict=True)
        ]

    def work(self, arrived: Iterable[Blob], now: int = 0, in_columns: bool = False) -> Worked:
        """Process all that may be processed, without writing pages. `now` is the time of the tick."""
        mirrors = self.schedule.mirrors
        held = [Blob(topic, self.id.partition, 0, 0, data) for topic, data in self._held() if topic in mirrors]
        arrived = self._mirrored([*held, *sorted(arrived, key=lambda blob: blob.origin)])
        unread = frozenset(blob.topic for blob in arrived if blob.more)
        task = self.task
        if now > task.shard.system_time:
            task.tick(now)
        inboxes = self._in_columns(arrived) if in_columns else None
        if inboxes is None:
            inboxes = self._inboxes(arrived)
            task.feed_all(in_order(inboxes, unread))
        task.commit()
        task.close()
        return Worked(inboxes, bool(unread))

    def end(self, worked: Worked) -> list[Blob]:
        """Write the pages, and return what is to be written to topics."""
        held = {topic: left for topic, inbox in worked.inboxes.items() if (left := inbox.left())}
        self._remember(worked.inboxes, held)
        out = list(self._out(incomplete=bool(held or worked.unread)))
        self.hot.keep(self._hot_key, self.book.version, self.stores)
        return out

    def _in_columns(self, arrived: list[Blob]) -> dict[str, Inbox] | None:
        """Process in columns what may be processed; None if that is impossible or would be slower."""
        task, book, internal = self.task, self.book, self.schedule.internal
        lanes = lanes_of(task)
        if lanes is None:
            return None
        self.columns = InColumns(task, lanes, self.id.partition, self.written.append)
        first = {topic: book.offsets.get(topic, 0) for topic in lanes if topic in internal}
        times = {topic: book.times.get(topic, UNKNOWN_TIME) for topic in lanes}
        taken = self.columns.take(arrived, self._held_records(), first, times)
        if taken is None:
            return None
        book.offsets |= taken.next
        inboxes = {topic: Inbox(task.read, taken.times[topic]) for topic in lanes}
        for topic, left in taken.left.items():
            inboxes[topic].waiting.extend(left)
        return inboxes

    def _held(self) -> list[tuple[str, bytes]]:
        """Return what was held back, in this order: topics and blobs."""
        own, found = self.pages(BOOK), list[tuple[str, bytes]]()
        for topic, number in self.book.held:
            data = own.get(number)
            assert data is not None, f"the shard {self.id} has lost what it held back"
            found.append((topic, data))
        return found

    def _held_records(self) -> list[tuple[str, bytes]]:
        """Return what was held back of topics whose records are processed."""
        return [one for one in self._held() if one[0] not in self.schedule.mirrors]

    def _mirrored(self, arrived: list[Blob]) -> list[Blob]:
        """Put changes into the stores that are mirrored here, and return the other blobs."""
        mirrors = self.schedule.mirrors
        for blob in arrived:
            if blob.topic in mirrors:
                store, _ = mirrors[blob.topic]
                spec = next(spec for spec in self.schedule.plan.stores if spec.name == store)
                take = restorer(spec, self.task.stores[store])
                assert take is not None, f"the store {store} cannot be mirrored"
                for key, value, timestamp, _, _ in blobs.rows(blob.data):
                    take(key or b"", value, timestamp)
        return [blob for blob in arrived if blob.topic not in mirrors]

    def _inboxes(self, arrived: list[Blob]) -> dict[str, Inbox]:
        book = self.book
        inboxes = {topic: Inbox(self.task.read, book.times.get(topic, UNKNOWN_TIME)) for topic in self.task.readers}
        for topic, data in self._held_records():
            inboxes[topic].waiting.extend(blobs.raw_records(Blob(topic, self.id.partition, 0, 0, data)))
        for blob in arrived:
            inboxes[blob.topic].waiting.extend(self._numbered(blob))
        return inboxes

    def _numbered(self, blob: Blob) -> Iterable[Raw]:
        """Return the records of a blob; those of an internal topic get their offsets here."""
        if blob.topic not in self.schedule.internal:
            return blobs.raw_records(blob)
        first = self.book.offsets.get(blob.topic, 0)
        numbered = list(blobs.raw_records(blob, first))
        self.book.offsets[blob.topic] = first + len(numbered)
        return numbered

    def _remember(self, inboxes: dict[str, Inbox], held: dict[str, list[Raw]]) -> None:
        book, own, shard = self.book, self.pages(BOOK), self.task.shard
        for name, store in self.stores.items():
            if store.write() and name not in book.stores:
                book.stores.append(name)
        book.version = self.version.text
        for _, number in book.held:
            own.remove(number)
        packed = [(topic, data) for topic, left in held.items() for data in blobs.of_raw(left)]
        gone = {number: None for _, number in book.held}
        book.held = [(topic, number) for number, (topic, _) in enumerate(packed, GOING_ON + 1)]
        kept = {number: data for number, (_, data) in enumerate(packed, GOING_ON + 1)}
        for number, data in kept.items():
            own.put(number, data)
        book.times = {topic: inbox.partition_time for topic, inbox in inboxes.items()}
        book.stream_time, book.system_time = shard.stream_time, shard.system_time
        book.punctuators = [remembered(kind, queue) for kind, queue in zip(self.scheduled, self._queues(), strict=True)]
        if self.conveyed.logged:
            self.written += logged(self.schedule.plan, self.id, book, self.stores, {**gone, **kept}.items())

    def _out(self, incomplete: bool) -> Iterable[Blob]:
        book = self.book
        for blob in routed(self.schedule, self.id, self.written, incomplete):
            blob.sequence = book.sequence
            book.sequence += 1
            yield blob
        self.pages(BOOK).put(GOING_ON, book.to_bytes())

    def _bytes(self, spec: StoreSpec) -> OrderedBytes:
        pages = VersionedPages(self.pages(spec.name), spec.name, self.version)
        store = self.warm.get(spec.name)
        if store is None:
            store = PagedBytes(pages, is_new=spec.name not in self.book.stores)
        else:
            store.move(pages)
        self.stores[spec.name] = store
        return store

    @property
    def _hot_key(self) -> tuple[str, ShardId]:
        return self.conveyed.start, self.id

    def _told(self, spec: StoreSpec) -> list[str]:
        """Return the topics for a store's changes: its changelog, and those that mirror it. A mirror has none."""
        mirrors = self.schedule.mirrors
        if any(store == spec.name and group == self.id.group for store, group in mirrors.values()):
            return []
        told = [topic for topic, (store, _) in mirrors.items() if store == spec.name]
        return [*told, self.schedule.plan.changelog(spec)] if spec.has_changelog else told

    def _log(self, spec: StoreSpec) -> OnChange | None:
        told = self._told(spec)
        partition, write = self.id.partition, self.written.append

        def tell(key: bytes, value: bytes | None, timestamp: int) -> None:
            for topic in told:
                write(new_tuple(Produced, (topic, partition, key, value, timestamp, ())))

        return tell if told else None

    def _log_all(self, spec: StoreSpec) -> OnChanges | None:
        told = self._told(spec)

        def tell(columns: Columns, key: Serde | None, value: Serde | None) -> None:
            assert self.columns is not None and key is not None and value is not None
            for topic in told:
                self.columns.log(topic, columns, key, value)

        return tell if told else None

    def _queues(self) -> tuple[Punctuators, Punctuators]:
        return self.task.shard.by_stream_time, self.task.shard.by_wall_clock

    def _remembered(self) -> list[list[list[int]]]:
        return self.book.punctuators or [[], []]


def run(
    conveyed: Conveyed,
    shard: ShardId,
    pages: PagesOf,
    arrived: Sequence[Blob],
    now: int = 0,
    shared: Mapping[str, Any] | None = None,
    hot: HotPages | None = None,
    fallbacks: Fallbacks = FALLBACKS,
    number: int = EACH,
) -> list[Blob]:
    """Process a batch of a shard in columns; record by record if that fails, from the pages as they were before.
    HasFailed if the shard has failed before in the attempt of this number.
    """
    error = None
    if not fallbacks.is_paused(conveyed.start, shard):
        batch = ShardBatch(conveyed, shard, pages, shared, hot, number)
        worked = attempt(batch, arrived, now)
        if not isinstance(worked, Exception):
            fallbacks.succeeded(conveyed.start, shard)
            return batch.end(worked)
        error = worked
    batch = ShardBatch(conveyed, shard, pages, shared, hot, number)
    out = batch.end(batch.work(arrived, now))
    fallbacks.fell_back(conveyed.start, shard, error)
    return out


def attempt(batch: ShardBatch, arrived: Sequence[Blob], now: int) -> Worked | Exception:
    """Work in columns, and return an error instead of raising it: record by record it comes again, with its record."""
    try:
        return batch.work(arrived, now, in_columns=True)
    except Exception as error:
        return error.with_traceback(None)


def restored(schedule: Schedule, shard: ShardId, pages: PagesOf, found: Iterable[Blob]) -> list[Blob]:
    """Restore the pages of a shard (`restoring.py`); return the blobs for mirrors of its stores, which come first."""
    changes = routed(schedule, shard, restore(schedule, shard, pages, found), incomplete=False)
    return [replace(blob, sequence=BEFORE_ALL) for blob in changes]


def restored_first(
    schedule: Schedule, shard: ShardId, pages: PagesOf, arrived: Sequence[Blob]
) -> tuple[list[Blob], list[Blob]]:
    """Restore a shard if changelogs are among what arrived; return the blobs for mirrors, and those to be processed."""
    lost = [blob for blob in arrived if blob.source == RESTORED]
    mirrored = restored(schedule, shard, pages, lost) if lost else []
    return mirrored, [blob for blob in arrived if blob.source != RESTORED]


def scheduled_again(punctuators: Punctuators, remembered: list[list[int]]) -> list[Cancellable]:
    """Let punctuators continue where they were. They are identified by the order in which operators schedule them; if a
    changed topology has another number of them, all begin anew.
    """
    made = sorted(punctuators.queue.items, key=lambda one: one.serial)
    if len(remembered) == len(made):
        punctuators.queue.items.clear()
        for one, (at, cancelled) in zip(made, remembered, strict=True):
            one.at, one.cancelled = at, bool(cancelled)
            if not cancelled:
                punctuators.queue.add(one)
    return made


def remembered(made: list[Cancellable], punctuators: Punctuators) -> list[list[int]]:
    known = {id(one) for one in made}
    for one in punctuators.queue.items:
        if id(one) not in known and not one.cancelled:
            raise TopologyError(
                f"{one.node} scheduled a punctuator while it processed a record: schedule it in init(), "
                "where it is made again after a restart"
            )
    return [[one.at, int(one.cancelled)] for one in made]
