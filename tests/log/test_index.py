"""Index files: search, truncation, and what is on disk when."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from moldau.log.disk import Files, OsDisk
from moldau.log.index import OFFSET_ENTRY, TIME_ENTRY, Aborted, AbortedTransactions, Index

FILES = Files(OsDisk(), capacity=100)


def filled(path: Path, entries: list[tuple[int, int]]) -> Index:
    index = Index(FILES, str(path / "i"), OFFSET_ENTRY)
    index.start()
    for entry in entries:
        index.append(*entry)
    return index


@given(st.lists(st.integers(0, 1000), unique=True).map(sorted), st.integers(-1, 1001))
def test_floor_finds_the_last_entry_that_is_not_larger(keys: list[int], wanted: int) -> None:
    index = Index(FILES, "unused", OFFSET_ENTRY)
    index.start()
    for key in keys:
        index.append(key, key * 2)
    assert index.floor(wanted) == len([key for key in keys if key <= wanted]) - 1
    assert index.floor(wanted * 2, 1) == index.floor(wanted)


def test_entries_are_written_when_asked_and_read_back_from_the_file(tmp_path: Path) -> None:
    index = filled(tmp_path, [(3, 0), (8, 5000)])
    assert not (tmp_path / "i").exists()
    index.write()
    assert (tmp_path / "i").read_bytes() == OFFSET_ENTRY.pack(3, 0) + OFFSET_ENTRY.pack(8, 5000)
    again = Index(FILES, str(tmp_path / "i"), OFFSET_ENTRY)
    again.load(writable=False)
    assert (again.count, again.last(), again.floor(7)) == (2, (8, 5000), 0)


def test_a_preallocated_tail_is_cut_when_the_index_is_written(tmp_path: Path) -> None:
    (tmp_path / "i").write_bytes(bytes(4096))
    index = filled(tmp_path, [(3, 0)])
    index.write()
    assert (tmp_path / "i").read_bytes() == OFFSET_ENTRY.pack(3, 0)


def test_truncation_reaches_the_file(tmp_path: Path) -> None:
    index = filled(tmp_path, [(3, 0), (8, 5000), (9, 9000)])
    index.write()
    index.append(11, 14000)
    index.truncate(1)
    index.append(5, 5000)
    index.write()
    assert (tmp_path / "i").read_bytes() == OFFSET_ENTRY.pack(3, 0) + OFFSET_ENTRY.pack(5, 5000)


def test_a_time_entry_has_twelve_bytes() -> None:
    assert TIME_ENTRY.pack(1, 2) == bytes.fromhex("000000000000000100000002")


def test_aborted_transactions_are_kept_until_they_are_truncated(tmp_path: Path) -> None:
    path = str(tmp_path / "x.txnindex")
    first, second = Aborted(1, 0, 5, 6), Aborted(2, 3, 9, 10)
    index = AbortedTransactions(FILES, path)
    assert list(index) == []
    assert not Path(path).exists()
    index.append(first)
    index.append(second)
    assert list(AbortedTransactions(FILES, path)) == [first, second]
    assert Path(path).read_bytes()[:34] == bytes(2) + b"".join(n.to_bytes(8) for n in first)
    index.truncate(9)
    assert list(AbortedTransactions(FILES, path)) == list(index) == [first]
    index.clear()
    assert not Path(path).exists()
