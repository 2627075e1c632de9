"""A conveyor without Spark: the levels of a plan, one micro-batch after another, with all shards made anew for each.
What a worker keeps of their pages is dropped, unless there is a `hot`.
"""

import random
import uuid
from collections.abc import Iterable, Mapping
from functools import partial

from moldau.operators.columns import InRows
from moldau.operators.record import Produced, Raw
from moldau.plan import blobs
from moldau.plan.blobs import KEY_DECIDES, OUTSIDE, Blob
from moldau.plan.fallbacks import Fallbacks
from moldau.plan.global_tables import GlobalTables
from moldau.plan.levels import Schedule, ShardId, partition_counts
from moldau.plan.page_cache import HotPages
from moldau.plan.shards import Conveyed, run
from moldau.plan.unrolling import mirrored, unrolled
from moldau.streams import StreamsBuilder, Topology
from moldau.streams.settings import execution
from tests.operators.kept import Kept


class Watched(Fallbacks):
    """Fallbacks whose errors are kept; with `in_rows` columns are never tried."""

    def __init__(self, in_rows: bool = False) -> None:
        super().__init__()
        self.in_rows = in_rows
        self.errors: list[Exception] = []

    def is_paused(self, start: str, shard: ShardId) -> bool:
        return self.in_rows or super().is_paused(start, shard)

    def fell_back(self, start: str, shard: ShardId, error: Exception | None) -> None:
        if not self.in_rows:
            super().fell_back(start, shard, error)
        self.errors += [error] if error is not None else []


class Conveyor:
    """`shuffle` stands for Spark's: it delivers blobs in any order."""

    def __init__(
        self,
        builder: StreamsBuilder | Topology,
        partitions: Mapping[str, int],
        settings: Mapping[str, object],
        seed: int = 0,
        hot: HotPages | None = None,
        logged: bool = False,
        in_rows: bool = False,
    ) -> None:
        """`in_rows`: records are taken one by one."""
        self.hot = hot
        topology = builder.build() if isinstance(builder, StreamsBuilder) else builder
        chosen = {**topology.settings, **settings, "application.id": "app"}
        plan = unrolled(topology.plan(chosen))
        schedule = Schedule(plan, partition_counts(plan, partitions), mirrored(plan))
        self.conveyed = Conveyed(schedule, execution(chosen), logged=logged, start=uuid.uuid4().hex)
        self.fallbacks = Watched(in_rows)
        self.tables = GlobalTables(plan, self.conveyed.execution)
        self.pages: dict[tuple[ShardId, str], Kept] = {}
        self.shuffle = random.Random(seed).shuffle
        self.outputs: dict[str, list[Produced]] = {}
        self.first: list[Blob] = []  # what comes with the next batch besides

    def batch(
        self,
        records: Iterable[Raw],
        unread: Iterable[tuple[str, int]] = (),
        now: int = 0,
        wake: Iterable[ShardId] = (),
    ) -> None:
        """Process records; `wake`: shards that run though nothing arrives for them."""
        schedule = self.conveyed.schedule
        waiting = [*self.packed(records, frozenset(unread)), *self.first]
        self.first.clear()
        for level in schedule.levels:
            self.shuffle(waiting)
            rows: dict[ShardId, list[Blob]] = {shard: [] for shard in wake if shard.group in level}
            later: list[Blob] = []
            for blob in waiting:
                mine = blob.partition != KEY_DECIDES and schedule.reader.get(blob.topic) in level
                (rows.setdefault(schedule.shard_of(blob.topic, blob.partition), []) if mine else later).append(blob)
            for shard, arrived in rows.items():
                later += self.run(shard, arrived, now)
            waiting = later
        for blob in sorted(waiting, key=lambda blob: blob.origin):
            self.deliver(blob)
        for error in self.fallbacks.errors:
            if not isinstance(error, InRows):
                raise error  # record by record it went well

    def run(self, shard: ShardId, arrived: list[Blob], now: int) -> list[Blob]:
        pages = partial(self.kept, shard)
        return run(self.conveyed, shard, pages, arrived, now, self.tables.stores, self.hot, self.fallbacks)

    def written(self) -> dict[tuple[ShardId, str], dict[int, bytes]]:
        """All pages."""
        return {key: dict(kept.pages) for key, kept in self.pages.items() if kept.pages}

    def put_back(self, written: Mapping[tuple[ShardId, str], dict[int, bytes]]) -> None:
        """The pages are what they were, as after a batch that failed."""
        self.pages = {key: Kept(pages) for key, pages in written.items()}

    def kept(self, shard: ShardId, name: str) -> Kept:
        return self.pages.setdefault((shard, name), Kept())

    def packed(self, records: Iterable[Raw], unread: frozenset[tuple[str, int]]) -> Iterable[Blob]:
        places: dict[tuple[str, int], list[Raw]] = {place: [] for place in unread}
        for raw in records:
            places.setdefault((raw.topic, raw.partition), []).append(raw)
        for (topic, partition), some in places.items():
            cuts = [some[at : at + 3] for at in range(0, len(some), 3)] or [[]]
            for cut in cuts:
                data = next(blobs.of_raw(cut), blobs.EMPTY)
                first = cut[0].offset if cut else 0
                yield Blob(topic, partition, OUTSIDE, first, data, (topic, partition) in unread)

    def deliver(self, blob: Blob) -> None:
        assert blob.partition == KEY_DECIDES
        out = self.outputs.setdefault(blob.topic, [])
        out += [
            Produced(blob.topic, number, k, v, time, headers) for k, v, time, headers, number in blobs.rows(blob.data)
        ]
