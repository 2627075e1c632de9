"""One segment: positions, indexes, walks, truncation."""

from itertools import pairwise
from pathlib import Path

import pytest

from moldau.log.checkpoints import Damaged
from moldau.log.disk import Files, OsDisk
from moldau.log.index import OFFSET_ENTRY, TIME_ENTRY
from moldau.log.segment import RECENT, Segment
from moldau.wire.records import patch
from tests.log.logs import NOW, batch

FILES = Files(OsDisk(), capacity=100)


def written(folder: Path, count: int, *, base: int = 100, values: int = 2, interval: int = 300) -> Segment:
    """Batches of some records each; the timestamps rise."""
    segment = Segment(FILES, str(folder), base, interval=interval)
    segment.start()
    for i in range(count):
        view = batch(*[b"x" * 40] * values, timestamp=NOW + i)
        patch(view, base_offset=base + i * values, leader_epoch=0)
        segment.append(view, base + i * values + values - 1, NOW + i)
    return segment


def opened(folder: Path, base: int = 100) -> Segment:
    return Segment(FILES, str(folder), base, interval=300)


@pytest.mark.parametrize("count", [1, 7, 50])
def test_every_offset_is_located_from_memory_and_from_the_files(tmp_path: Path, count: int) -> None:
    segment = written(tmp_path, count)
    truth = {batch.base_offset: (at, batch.size) for at, batch in segment.batches()}
    segment.seal()
    again = opened(tmp_path)
    for offset in range(100, 100 + 2 * count):
        expected = truth[offset - offset % 2]
        assert segment.locate(offset) == again.locate(offset) == expected
    assert segment.locate(100 + 2 * count) is again.locate(100 + 2 * count) is None


def test_only_the_last_batches_are_remembered(tmp_path: Path) -> None:
    segment = written(tmp_path, RECENT + 10, values=1)
    assert len(segment.recent_last) <= RECENT
    for offset in (100, 100 + RECENT // 2, 100 + RECENT // 2 + 1, 100 + RECENT + 9):
        found = segment.locate(offset)
        assert found is not None
        assert segment.batch_at(found[0]).base_offset == offset


def test_index_entries_come_after_each_interval(tmp_path: Path) -> None:
    segment = written(tmp_path, 50)
    segment.seal()
    entries = list(OFFSET_ENTRY.iter_unpack((tmp_path / f"{100:020d}.index").read_bytes()))
    assert len(entries) > 10
    batches = {at: batch.last_offset - 100 for at, batch in opened(tmp_path).batches()}
    assert all(batches[position] == offset for offset, position in entries)
    gaps = [b[1] - a[1] for a, b in pairwise(entries)]
    assert min(gaps) > 300


def test_the_largest_timestamp_is_the_last_time_entry(tmp_path: Path) -> None:
    written(tmp_path, 50).seal()
    entries = list(TIME_ENTRY.iter_unpack((tmp_path / f"{100:020d}.timeindex").read_bytes()))
    assert entries[-1] == (NOW + 49, 99)
    assert opened(tmp_path).largest_timestamp == NOW + 49


def test_a_segment_without_timestamps_has_the_files_time(tmp_path: Path) -> None:
    segment = Segment(FILES, str(tmp_path), 0)
    segment.start()
    segment.append(batch(b"x", timestamp=-1), 0, -1)
    segment.seal()
    assert segment.largest_timestamp == OsDisk().modified_ms(segment.path)
    assert (tmp_path / f"{0:020d}.timeindex").read_bytes() == b""


@pytest.mark.parametrize("damage", ["missing", "zeros", "preallocated", "cut"])
def test_indexes_are_rebuilt_when_they_cannot_be_right(tmp_path: Path, damage: str) -> None:
    written(tmp_path, 50).seal()
    names = [tmp_path / f"{100:020d}{kind}" for kind in (".index", ".timeindex")]
    before = [path.read_bytes() for path in names]
    for path in names:
        match damage:
            case "missing":
                path.unlink()
            case "zeros":
                path.write_bytes(bytes(240))
            case "preallocated":
                path.write_bytes(path.read_bytes() + bytes(2400))
            case _:
                path.write_bytes(path.read_bytes()[:-5])
    segment = opened(tmp_path)
    found = segment.locate(180)
    assert found is not None
    assert segment.batch_at(found[0]).base_offset == 180
    assert segment.largest_timestamp in (NOW + 49, NOW + 48, NOW + 47)
    if damage != "cut":
        assert [path.read_bytes() for path in names] == before


def test_a_segment_is_written_on_after_it_was_closed(tmp_path: Path) -> None:
    written(tmp_path, 50).seal()
    segment = opened(tmp_path)
    assert segment.resume() == 200
    assert (segment.max_timestamp, segment.first_timestamp) == (NOW + 49, NOW)
    view = batch(b"more")
    patch(view, base_offset=200)
    segment.append(view, 200, NOW)
    assert segment.locate(200) == (segment.size - len(view), len(view))
    assert segment.locate(150) is not None


def test_truncation_drops_whole_batches_and_their_entries(tmp_path: Path) -> None:
    segment = written(tmp_path, 50)
    segment.truncate(151)
    assert segment.recent_last[-1] == 149
    assert segment.size == (tmp_path / f"{100:020d}.log").stat().st_size
    assert segment.max_timestamp == NOW + 24
    segment.seal()
    last = list(OFFSET_ENTRY.iter_unpack((tmp_path / f"{100:020d}.index").read_bytes()))[-1]
    assert last[0] < 50
    assert last[1] < segment.size
    assert opened(tmp_path).resume() == 150


def test_renaming_takes_all_files_along(tmp_path: Path) -> None:
    segment = written(tmp_path, 5)
    segment.seal()
    segment.rename(".deleted")
    assert {path.suffix for path in tmp_path.iterdir()} == {".deleted"}
    assert len(list(tmp_path.iterdir())) == 3
    assert segment.locate(104) is not None
    segment.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_search_does_not_pass_over_records_behind_a_damaged_length(tmp_path: Path) -> None:
    segment = written(tmp_path, 3)
    segment.seal()
    path = Path(segment.path)
    data = bytearray(path.read_bytes())
    data[8] ^= 1  # the highest byte of the first batch's length
    path.write_bytes(data)
    with pytest.raises(Damaged, match="ends within a batch"):
        segment.locate(segment.base_offset + 2)


def test_a_walk_says_where_there_is_no_batch(tmp_path: Path) -> None:
    segment = written(tmp_path, 3)
    segment.open_file().append(b"\x00" * 100)
    segment.size += 100
    with pytest.raises(Damaged, match="position"):
        list(segment.headers())
    with pytest.raises(Damaged, match="position"):
        list(segment.batches())


def test_whichever_bit_of_the_index_flips_no_record_is_passed_over(tmp_path: Path) -> None:
    segment = written(tmp_path, 12)
    truth = {batch.base_offset: (at, batch.size) for at, batch in segment.batches()}
    segment.seal()
    path = Path(segment.index.path)
    sound = path.read_bytes()
    assert len(sound) > 2 * OFFSET_ENTRY.size
    for bit in range(len(sound) * 8):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        again = opened(tmp_path)
        for offset in range(100, 124, 2):
            assert again.locate(offset) == truth[offset], f"bit {bit}"


def test_whichever_bit_of_the_time_index_flips_the_newest_timestamp_is_right(tmp_path: Path) -> None:
    segment = written(tmp_path, 12)
    segment.seal()
    path = Path(segment.times.path)
    sound = path.read_bytes()
    for bit in range(len(sound) * 8):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert opened(tmp_path).largest_timestamp == NOW + 11, f"bit {bit}"
        path.write_bytes(damaged)
        again = opened(tmp_path)
        again.resume()
        assert again.largest_timestamp == NOW + 11, f"bit {bit}"


def test_whichever_bit_of_a_header_flips_its_records_are_not_passed_over(tmp_path: Path) -> None:
    segment = written(tmp_path, 6, values=3)
    segment.seal()
    path, (position, _) = Path(segment.path), segment.locate(106) or (0, 0)
    sound = path.read_bytes()
    for at in (*range(8, 12), *range(23, 27), *range(57, 61)):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[position + at] ^= 1 << bit
            path.write_bytes(damaged)
            for ready in (Segment.look, Segment.rebuild):
                try:
                    again = opened(tmp_path)
                    ready(again)
                    found = again.locate(107)
                except Damaged:
                    continue
                assert found is not None and found[0] <= position, f"bit {bit} of byte {at}"
