"""Files, spans and the bound on open files."""

import os
from pathlib import Path

import pytest

from moldau.log.disk import Files, OsDisk, OsFile, Span, remove_if_there, remove_tree


def test_a_span_reads_on_after_its_file_was_renamed_and_removed(tmp_path: Path) -> None:
    disk = OsDisk()
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"0123456789")
    span = Span(file, 2, 5)
    del file
    disk.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    disk.remove(f"{tmp_path}/b")
    assert len(span) == 5
    assert span.read() == b"23456"


def test_a_descriptor_is_closed_with_the_last_reference(tmp_path: Path) -> None:
    file = OsDisk().open(f"{tmp_path}/a", create=True)
    fd = file.fileno()
    span = Span(file, 0, 0)
    del file
    os.fstat(fd)
    del span
    with pytest.raises(OSError):
        os.fstat(fd)


def test_a_torn_write_is_overwritten_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsDisk().open(f"{tmp_path}/a", create=True)
    file.append(b"one")
    pwrite = os.pwrite
    calls: list[int] = []

    def half(fd: int, data: bytes, position: int) -> int:
        calls.append(position)
        if len(calls) == 2:
            raise OSError(28, "no space")
        return pwrite(fd, bytes(data)[: max(1, len(data) // 2)], position)

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(OSError):
        file.append(b"twotwo")
    assert file.size() == 3
    file.append(b"six")  # three writes of one byte
    assert Path(f"{tmp_path}/a").read_bytes()[:6] == b"onesix"


def test_only_so_many_files_stay_open(tmp_path: Path) -> None:
    class One:
        def __init__(self, n: int) -> None:
            self.path = f"{tmp_path}/{n}"
            self.file: OsFile | None = None

    files = Files(OsDisk(), capacity=3)
    owners = [One(n) for n in range(5)]
    for owner in owners:
        files.open(owner, create=True)
    assert [owner.file is not None for owner in owners] == [False, False, True, True, True]


def test_a_lock_is_held_until_it_is_released(tmp_path: Path) -> None:
    disk = OsDisk()
    release = disk.lock(f"{tmp_path}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{tmp_path}/.lock")
    release()
    disk.lock(f"{tmp_path}/.lock")()


def test_small_files_are_replaced_whole(tmp_path: Path) -> None:
    disk = OsDisk()
    disk.write_atomic(f"{tmp_path}/a", b"first")
    disk.write_atomic(f"{tmp_path}/a", b"2nd", sync=False)
    assert disk.read(f"{tmp_path}/a") == b"2nd"
    assert disk.listdir(str(tmp_path)) == ["a"]


def test_removing_is_idempotent_for_files_and_complete_for_folders(tmp_path: Path) -> None:
    disk = OsDisk()
    remove_if_there(disk, f"{tmp_path}/nothing")
    disk.mkdir(f"{tmp_path}/d")
    disk.write_atomic(f"{tmp_path}/d/a", b"")
    remove_tree(disk, f"{tmp_path}/d")
    assert not disk.exists(f"{tmp_path}/d")
