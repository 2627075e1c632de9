"""The archive of classes: written by the first session, taken over when it is whole, read by all that follow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moldau.spark.session import archive


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "moldau"


def options(version: str = "17") -> str:
    return archive.java_options(Path("/java") / version, Path("/spark/jars"), None)


def written(told: str, age_s: float) -> Path:
    """What Java leaves that was told to write an archive."""
    file = Path(told.split()[0].partition("=")[2])
    file.write_text("an archive")
    stamp = file.stat().st_mtime - age_s
    os.utime(file, (stamp, stamp))
    return file


def test_an_archive_is_written_once_and_then_read(cache: Path) -> None:
    first = options()
    assert first.startswith("-XX:ArchiveClassesAtExit=")
    written(first, age_s=100)
    second = options()
    assert second.startswith("-XX:SharedArchiveFile=")
    assert Path(second.split()[0].partition("=")[2]).read_text() == "an archive"
    assert options() == second
    assert options(version="21").startswith("-XX:ArchiveClassesAtExit=")


def test_an_archive_that_may_still_be_written_is_left_alone(cache: Path) -> None:
    file = written(options(), age_s=0)
    assert options().startswith("-XX:ArchiveClassesAtExit=")
    assert file.exists()


def test_sessions_that_end_at_the_same_time_leave_one_archive(cache: Path) -> None:
    file = written(options(), age_s=100)
    for number in range(archive.MOST_UNSETTLED):
        file.with_name(f"{file.name.rpartition('-')[0]}-x{number}.jsa").write_text("another")
    stamp = file.stat().st_mtime
    for one in cache.iterdir():
        os.utime(one, (stamp, stamp))
    assert options().startswith("-XX:SharedArchiveFile=")
    assert len(list(cache.iterdir())) == 1


def test_not_all_of_many_sessions_write_one(cache: Path) -> None:
    file = written(options(), age_s=0)
    for number in range(archive.MOST_UNSETTLED):
        file.with_name(f"{file.name.rpartition('-')[0]}-x{number}.jsa").write_text("another")
    assert options() == archive.QUIET


def test_a_cache_that_cannot_be_written_to_is_done_without(cache: Path) -> None:
    cache.parent.joinpath("moldau").write_text("no folder")
    assert options() == archive.QUIET
