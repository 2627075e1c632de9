"""Compaction of whole logs: what readers see stays the same, whatever was written and wherever a crash falls."""

import random
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.log.compaction import Abandoned, Compacted, Sync, compact, group_segments
from moldau.log.compaction_keys import ENTRY_BYTES
from moldau.log.config import LogConfig
from moldau.log.disk import Files, OsDisk
from moldau.log.log import Isolation, Log, Origin
from moldau.wire import records as r
from moldau.wire.compression import Compression
from moldau.wire.records import Batch, Record, build, records
from tests.simulation.disk import Machine, SimDisk

T = 1_700_000_000_000
DAY = 86_400_000
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=2000, index_interval_bytes=200)
MEMORY = 1 << 20


@dataclass(slots=True)
class World:
    """A log in a folder, and its producers' sequences."""

    folder: Path
    config: LogConfig = CONFIG
    disk: Any = field(default_factory=OsDisk)
    sequences: dict[int, int] = field(default_factory=dict)
    log: Log = field(init=False)

    def __post_init__(self) -> None:
        files, path = Files(self.disk), str(self.folder / "t-0")
        self.log = Log.create(files, path, "t", 0, self.config, topic_id=bytes(16), now_ms=T)

    def reopen(self) -> None:
        """As after a crash: everything is read from the files again."""
        end = self.log.end_offset
        self.disk = OsDisk()
        files = Files(self.disk)
        self.log = Log.open(files, self.log.path, "t", 0, self.config, now_ms=T, recovery_point=0, high_watermark=end)
        assert self.log.offline is None, self.log.offline
        assert self.log.end_offset == end

    def put(self, items: Sequence[Record], producer: int = -1, transactional: bool = False, codec: int = 0) -> None:
        if producer < 0:
            raw = build(items, compression=codec)
        else:
            sequence = self.sequences.get(producer, 0)
            self.sequences[producer] = sequence + len(items)
            raw = build(
                items,
                compression=codec,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=transactional,
            )
        self.log.append(memoryview(raw), leader_epoch=0, now_ms=T)
        self.log.advance_high_watermark(self.log.end_offset)

    def end(self, producer: int, commit: bool) -> None:
        raw = r.end_txn_marker(commit, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=T)
        self.log.append(memoryview(raw), leader_epoch=0, now_ms=T, origin=Origin.COORDINATOR)
        self.log.advance_high_watermark(self.log.end_offset)

    def batches(self) -> Iterator[Batch]:
        for segment in self.log.segments:
            for _, batch in segment.batches():
                yield batch

    def records(self) -> list[Record]:
        return [record for batch in self.batches() if not batch.is_control for record in records(batch)]

    def committed(self) -> dict[bytes, bytes]:
        """The table that a consumer of committed records builds."""
        table: dict[bytes, bytes] = {}
        for batch in read_committed(self.log):
            for record in records(batch):
                if record.value is None:
                    table.pop(record.key or b"", None)
                else:
                    table[record.key or b""] = record.value
        return table

    def compact(self, first_dirty: int = 0, now_ms: int = T, memory: int = MEMORY) -> Compacted:
        return run(compact(self.log, first_dirty, self.upper, now_ms=now_ms, memory_bytes=memory))

    @property
    def upper(self) -> int:
        limit = min(self.log.last_stable_offset, self.log.segments.items[-1].base_offset)
        return self.log.segments.bases[self.log.segments.slot_of(limit)]


def run(steps: Generator[int | Sync, None, Compacted]) -> Compacted:
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        if isinstance(step, Sync):
            step.sync()


def read_committed(log: Log) -> Iterator[Batch]:
    """As a consumer does it: data of aborted transactions is skipped until its marker."""
    offset = log.start_offset
    while (read := log.read(offset, 5000, isolation=Isolation.COMMITTED)).span is not None:
        waiting = sorted(read.aborted or [], key=lambda entry: entry[1])
        aborted: set[int] = set()
        data = read.span.read()
        for batch in whole(data):
            while waiting and waiting[0][1] <= batch.last_offset:
                aborted.add(waiting.pop(0)[0])
            if batch.is_control:
                aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborted):
                yield batch
            offset = batch.next_offset


def whole(data: bytes) -> Iterator[Batch]:
    position = 0
    while position + r.HEADER_SIZE <= len(data) and (batch := Batch(data, position)).is_whole:
        batch.verify()
        yield batch
        position += batch.size


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def record(key: int, value: bytes | None = b"v" * 50, age: int = 0) -> Record:
    return Record(0, T + age, b"key-%d" % key, value)


def fill(world: World, count: int, keys: int = 5, batch: int = 4, seed: int = 1) -> None:
    dice = random.Random(seed)
    for n in range(count):
        world.put([record(dice.randrange(keys), b"%06d-%d" % (n, i) * 5, n) for i in range(batch)])


def test_only_the_newest_of_each_key_stays(world: World) -> None:
    fill(world, 60)
    before, upper, table = world.records(), world.upper, world.committed()
    done = world.compact()
    assert done.end_offset == upper
    newest = {item.key: item.offset for item in before if item.offset < upper}
    wanted = [item for item in before if item.offset >= upper or newest[item.key] == item.offset]
    assert world.records() == wanted
    assert world.committed() == table
    assert done.tally.kept_records == len(newest)
    assert done.bytes_after < done.bytes_before
    world.reopen()
    assert world.records() == wanted


def test_small_segments_become_one(world: World) -> None:
    fill(world, 60)
    count = len(world.log.segments)
    done = world.compact()
    assert (done.segments_before, len(world.log.segments)) == (count - 1, done.segments_after + 1)
    again = world.compact(done.end_offset)
    assert again.segments_after == 1
    assert len(world.log.segments) == 2


def test_old_files_are_kept_for_a_while(world: World) -> None:
    fill(world, 60)
    world.compact()
    names = [path.name for path in Path(world.log.path).iterdir()]
    assert any(name.endswith(".log.deleted") for name in names)
    assert not any(name.endswith((".cleaned", ".swap")) for name in names)
    world.log.sweep(T + world.config.file_delete_delay_ms)
    assert not any(path.name.endswith(".deleted") for path in Path(world.log.path).iterdir())


def test_indexes_of_a_cleaned_segment_find_every_record(world: World) -> None:
    fill(world, 200, keys=60)
    world.compact()
    for item in world.records():
        span = world.log.read(item.offset, 1).span
        assert span is not None
        assert any(found == item for found in records(Batch(span.read())))
        by_time = world.log.offset_for_time(item.timestamp)
        wanted = next(other for other in world.records() if other.timestamp >= item.timestamp)
        assert (by_time.offset, by_time.timestamp) == (wanted.offset, wanted.timestamp)


def test_an_offset_that_is_gone_reads_what_follows(world: World) -> None:
    fill(world, 60)
    world.compact()
    offsets = [item.offset for item in world.records()]
    for offset in range(world.log.end_offset):
        span = world.log.read(offset, 1).span
        assert span is not None
        assert Batch(span.read()).last_offset >= offset
    assert offsets[0] > 0


def test_a_segment_of_which_nothing_is_left_stays_as_an_empty_one(world: World) -> None:
    world.log.configure(replace(CONFIG, segment_bytes=400))
    for n in range(12):
        world.put([record(1, b"%d" % n * 100)])
    world.put([record(2)])
    table = world.committed()
    world.compact()
    assert world.log.segments.items[0].size == 0
    assert world.log.start_offset == 0
    assert world.committed() == table
    world.reopen()
    assert (world.log.start_offset, world.committed()) == (0, table)


def test_a_full_map_stops_at_a_batch_and_the_next_run_goes_on(world: World) -> None:
    fill(world, 100, keys=1000)
    before, upper, table = world.records(), world.upper, world.committed()
    ends, first_dirty = [], 0
    while first_dirty < upper:
        done = world.compact(first_dirty, memory=60 * ENTRY_BYTES)
        assert done.end_offset > first_dirty
        first_dirty = done.end_offset
        ends.append(first_dirty)
        assert world.committed() == table
    assert len(ends) > 3
    newest = {item.key: item.offset for item in before if item.offset < upper}
    assert world.records() == [item for item in before if item.offset >= upper or newest[item.key] == item.offset]


def test_tombstones_live_until_their_horizon(world: World) -> None:
    for n in range(10):
        world.put([record(n)])
    world.put([record(n, None) for n in range(5)])
    fill(world, 40, keys=1)
    table = world.committed()
    first = world.compact(now_ms=T)
    assert {item.key for item in world.records() if item.value is None} == {b"key-%d" % n for n in range(1, 5)}
    assert world.committed() == table
    horizons = [batch.delete_horizon for batch in world.batches() if batch.delete_horizon is not None]
    assert horizons == [T + DAY]
    world.compact(first.end_offset, now_ms=T + DAY - 1)
    assert any(item.value is None for item in world.records())
    world.compact(first.end_offset, now_ms=T + DAY)
    assert not any(item.value is None for item in world.records())
    assert world.committed() == table


def transactions(world: World) -> None:
    """Producer 1 commits, producer 2 aborts, both begin in one segment and end in another."""
    world.put([record(1, b"old"), record(2, b"old")])
    world.put([record(1, b"committed"), record(3, b"committed")], 1, transactional=True)
    world.put([record(2, b"aborted"), record(4, b"aborted")], 2, transactional=True)
    fill(world, 20, keys=1)
    world.end(1, True)
    world.end(2, False)
    fill(world, 20, keys=1, seed=2)


def test_aborted_records_displace_nothing(world: World) -> None:
    transactions(world)
    table = world.committed()
    assert table[b"key-2"] == b"old" and b"key-4" not in table
    world.compact()
    assert world.committed() == table
    assert {item.value for item in world.records() if item.key == b"key-2"} == {b"old"}
    world.reopen()
    assert world.committed() == table


def markers(world: World) -> list[tuple[int, int | None]]:
    return [(batch.producer_id, batch.delete_horizon) for batch in world.batches() if batch.is_control and batch.count]


def test_a_marker_stays_as_long_as_its_producer_is_live(world: World) -> None:
    transactions(world)
    for n in range(3):
        world.compact(now_ms=T + 2 * n * DAY)
        assert markers(world) == [(1, None), (2, None)]


def test_markers_outlive_their_data_by_the_delete_retention(world: World) -> None:
    transactions(world)
    world.log.sweep(T + 2 * DAY)  # the producers are forgotten
    dirty = world.compact(now_ms=T).end_offset
    assert markers(world) == [(1, None), (2, None)]
    dirty = world.compact(dirty, now_ms=T + 1).end_offset
    assert markers(world) == [(1, None), (2, T + 1 + DAY)]
    world.compact(dirty, now_ms=T + 1 + DAY)
    assert markers(world) == [(1, None)]
    assert [entry for segment in world.log.segments for entry in segment.txns] == []


def test_a_live_producer_keeps_its_sequence(world: World) -> None:
    world.put([record(1), record(2)], 9)
    world.put([record(1), record(2)], 9)
    fill(world, 40, keys=3)
    world.compact()
    kept = [batch for batch in world.batches() if batch.producer_id == 9]
    assert [(batch.count, batch.last_sequence) for batch in kept] == [(0, 3)]
    world.reopen()
    world.put([record(1)], 9)
    assert world.log.producers.by_id[9].last_sequence == 4


def test_an_open_transaction_is_not_touched(world: World) -> None:
    world.put([record(1, b"a")])
    world.put([record(1, b"b")], 5, transactional=True)
    fill(world, 60)
    assert world.upper == 0
    assert run(compact(world.log, 0, world.upper, now_ms=T, memory_bytes=MEMORY)).segments_before == 0


def test_garbage_in_a_batch_stays_and_all_else_is_cleaned(world: World) -> None:
    raw = r.assemble(0, 0, 0, 0, T, T, -1, -1, -1, 1, b"\xff" * 30)
    world.log.configure(replace(CONFIG, cleanup_policy=frozenset({"delete"})))
    fill(world, 10)
    world.log.append(memoryview(raw), leader_epoch=0, now_ms=T)
    world.log.advance_high_watermark(world.log.end_offset)
    world.log.configure(CONFIG)
    fill(world, 50, seed=3)
    done = world.compact()
    assert len(done.tally.damaged) == 1
    assert [batch.base_offset for batch in world.batches() if batch.view[r.HEADER_SIZE :] == b"\xff" * 30] == [40]
    assert done.tally.kept_records == 5


def test_a_segment_that_goes_meanwhile_ends_the_work(world: World) -> None:
    fill(world, 60)
    steps = compact(world.log, 0, world.upper, now_ms=T, memory_bytes=MEMORY)
    for _ in range(60):
        next(steps)
    world.log.delete_segments(world.log.segments.items[:1], T)
    before = world.records()
    with pytest.raises(Abandoned):
        run(steps)
    assert world.records() == before
    assert not any(path.name.endswith(".cleaned") for path in Path(world.log.path).iterdir())


def test_a_cancelled_compaction_leaves_no_files(world: World) -> None:
    fill(world, 60)
    before = world.records()
    steps = compact(world.log, 0, world.upper, now_ms=T, memory_bytes=MEMORY)
    while not any(path.name.endswith(".cleaned") for path in Path(world.log.path).iterdir()):
        next(steps)
    steps.close()
    assert not any(path.name.endswith(".cleaned") for path in Path(world.log.path).iterdir())
    assert world.records() == before


@dataclass(slots=True)
class Piece:
    """A segment, as far as grouping looks at it."""

    base_offset: int
    size: int
    index: Any = field(default_factory=lambda: Entries(1, 8))
    times: Any = field(default_factory=lambda: Entries(1, 12))

    def look(self) -> int:
        return self.size

    def look_into_indexes(self) -> None:
        pass


class Entries:
    def __init__(self, count: int, size: int) -> None:
        self.count = count
        self.entry = self
        self.size = size


@pytest.mark.parametrize(
    ("sizes", "bases", "entries", "wanted"),
    [
        ([500, 400, 300, 900, 100], None, 1, [2, 1, 2]),
        ([500, 500, 500], None, 1, [2, 1]),
        ([2000, 10, 10], None, 1, [1, 2]),
        ([10, 10, 10], [0, 2**31, 2**31 + 5], 1, [1, 2]),
        ([10, 10, 0, 10], [0, 5, 2**31, 2**31 + 5], 1, [3, 1]),
        ([10, 0, 0], [0, 2**31, 2**32], 1, [3]),
        ([10, 10, 10], None, 60, [2, 1]),
        ([], None, 1, []),
    ],
)
def test_neighbours_are_grouped_while_they_fit(
    sizes: list[int], bases: list[int] | None, entries: int, wanted: list[int]
) -> None:
    config = replace(CONFIG, segment_bytes=1000, segment_index_bytes=1500)
    offsets = bases or range(0, 10 * len(sizes), 10)
    pieces = [Piece(base, size) for base, size in zip(offsets, sizes, strict=True)]
    for piece in pieces:
        piece.index, piece.times = Entries(entries, 8), Entries(entries, 12)
    found: list[list[Any]] = list(group_segments(pieces, config, offsets[-1] + 10 if sizes else 0))  # type: ignore[arg-type]
    assert [len(group) for group in found] == wanted


class Crash(Exception):
    """The process dies here."""


class DyingDisk(OsDisk):
    """Dies before the n-th change of the folder or of a file's end."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = 10**9

    def _live(self) -> None:
        if self.left <= 0:
            raise Crash
        self.left -= 1

    def rename(self, source: str, target: str) -> None:
        self._live()
        OsDisk.rename(self, source, target)

    def remove(self, path: str) -> None:
        self._live()
        OsDisk.remove(self, path)

    def open(self, path: str, *, create: bool = False) -> Any:
        if create:
            self._live()
        return OsDisk.open(self, path, create=create)

    def sync_dir(self, path: str) -> None:
        self._live()
        OsDisk.sync_dir(self, path)


def test_a_crash_at_any_point_leaves_the_same_table(tmp_path: Path) -> None:
    crashes, died = 0, True
    while died:
        disk = DyingDisk()
        world = World(tmp_path / str(crashes), replace(CONFIG, segment_bytes=600), disk=disk)
        world.put([record(1), record(2, b"old")])
        world.put([record(1, b"committed"), record(3)], 1, transactional=True)
        world.put([record(2, b"aborted"), record(4)], 2, transactional=True)
        world.end(2, False)
        world.end(1, True)
        fill(world, 6)
        world.log.flush(T)
        table, upper = world.committed(), world.upper
        disk.left = crashes
        try:
            run(compact(world.log, 0, upper, now_ms=T, memory_bytes=MEMORY))
            died = False
        except Crash:
            crashes += 1
        disk.left = 0
        world.reopen()
        assert world.committed() == table
        assert not any(path.name.endswith((".cleaned", ".swap")) for path in Path(world.log.path).iterdir())
        run(compact(world.log, 0, upper, now_ms=T, memory_bytes=MEMORY))
        assert world.committed() == table
    assert crashes > 20


KEYS = st.integers(0, 6)
VALUES = st.none() | st.binary(min_size=1, max_size=60)
ITEMS = st.lists(st.tuples(KEYS, VALUES, st.integers(0, 1000)), min_size=1, max_size=6)
ACTION = st.one_of(
    st.tuples(st.just("put"), ITEMS, st.sampled_from([-1, 10, 11]), st.sampled_from(list(Compression))),
    st.tuples(st.just("txn"), ITEMS, st.sampled_from([20, 21]), st.sampled_from(list(Compression))),
    st.tuples(st.just("end"), st.sampled_from([20, 21]), st.booleans(), st.none()),
    st.tuples(st.just("compact"), st.integers(0, 3 * DAY), st.integers(1, 40), st.none()),
)


class Story:
    """Random writes and compactions, checked against what was written."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder, replace(CONFIG, segment_bytes=700))
        self.written: dict[int, Record] = {}
        self.open: set[int] = set()
        self.dirty = 0
        self.now = T

    def play(self, action: tuple[Any, ...]) -> None:
        kind, first, second, codec = action
        {"put": self.put, "txn": self.txn, "end": self.end, "compact": self.compact}[kind](first, second, codec)

    def put(self, items: Any, producer: int, codec: Compression, transactional: bool = False) -> None:
        base = self.world.log.end_offset
        made = [record(key, value, age) for key, value, age in items]
        self.world.put(made, producer, transactional, codec)
        self.written |= {base + n: item._replace(offset=base + n) for n, item in enumerate(made)}

    def txn(self, items: Any, producer: int, codec: Compression) -> None:
        self.put(items, producer, codec, True)
        self.open.add(producer)

    def end(self, producer: int, commit: bool, _: None) -> None:
        if producer in self.open:
            self.open.remove(producer)
            self.world.end(producer, commit)

    def compact(self, wait_ms: int, keys: int, _: None) -> None:
        self.now += wait_ms
        table = self.world.committed()
        done = self.world.compact(self.dirty, self.now, keys * ENTRY_BYTES * 10 // 9 + 1)
        self.dirty = max(self.dirty, done.end_offset)
        assert self.world.committed() == table
        assert done.tally.damaged == []
        self.check()

    def check(self) -> None:
        found = self.world.records()
        assert [self.written[item.offset] for item in found] == found
        offsets = [item.offset for item in found]
        assert offsets == sorted(set(offsets))
        clean = [item.key for item in found if item.offset < self.dirty]
        assert len(clean) == len(set(clean))
        last = {batch.producer_id: batch.last_sequence for batch in self.world.batches() if not batch.is_control}
        for producer, following in self.world.sequences.items():
            assert last[producer] == following - 1


@given(st.lists(ACTION, max_size=40))
@settings(deadline=None, max_examples=100)
def test_no_reader_notices_a_compaction(tmp_path_factory: Any, actions: list[tuple[Any, ...]]) -> None:
    story = Story(tmp_path_factory.mktemp("story"))
    for action in actions:
        story.play(action)
    end, high = story.world.log.end_offset, story.world.log.high_watermark
    for producer in list(story.open):
        story.end(producer, True, None)
    story.compact(0, 40, None)
    table = story.world.committed()
    story.world.reopen()
    assert story.world.committed() == table
    assert story.world.log.end_offset >= end and story.world.log.high_watermark >= high
    story.check()


def test_what_replaces_an_older_record_is_synced_before_that_one_goes() -> None:
    machine = Machine(random.Random(1), lambda: T, Counter())
    SimDisk(machine).mkdir("/data")
    machine.root.sync()
    world = World(Path("/data"), disk=SimDisk(machine))
    for value in (b"old", b"new", b"last"):
        world.put([Record(0, T, b"k" if value != b"last" else b"l", value)])
        world.log.roll(T)
    steps = compact(world.log, 0, 2, now_ms=T, memory_bytes=MEMORY)
    next(step for step in steps if isinstance(step, Sync)).sync()
    machine.lose_power()
    log = Log.open(Files(SimDisk(machine)), "/data/t-0", "t", 0, CONFIG, now_ms=T)
    values = [record.value for segment in log.segments for _, batch in segment.batches() for record in records(batch)]
    assert values == [b"old", b"new", b"last"]
