"""Leader epochs: assignment, look-up, truncation at both ends."""

from pathlib import Path

import pytest

from moldau.log.disk import OsDisk
from moldau.log.epochs import LeaderEpochs
from tests.log.logs import append, batch, create


def epochs(folder: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    found = LeaderEpochs(OsDisk(), str(folder))
    for entry in entries:
        found.assign(*entry)
    return found


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (1, (1, 3)),  # before the first one, which may be known from later on than the log has records: nothing
        (2, (2, 20)),
        (3, (2, 20)),  # nobody led with 3
        (4, (4, 35)),
        (6, (6, 50)),  # the newest one goes to the end of the log
        (7, (-1, -1)),
    ],
)
def test_the_end_of_an_epoch_is_where_the_next_one_begins(tmp_path: Path, asked: int, answer: tuple[int, int]) -> None:
    assert epochs(tmp_path, (2, 10), (4, 20), (6, 35)).end_offset(asked, 3, 50) == answer


def test_a_newer_writer_displaces_entries_that_contradict_it(tmp_path: Path) -> None:
    assert epochs(tmp_path, (1, 0), (2, 10), (4, 20), (3, 15)).entries == [(1, 0), (2, 10), (3, 15)]
    assert epochs(tmp_path, (1, 0), (2, 10), (3, 10)).entries == [(1, 0), (3, 10)]
    assert epochs(tmp_path, (1, 5), (1, 9)).entries == [(1, 5)]
    assert epochs(tmp_path, (1, 5), (1, 3)).entries == [(1, 3)]
    assert epochs(tmp_path, (-1, 5)).entries == []


def test_truncation_at_the_end_forgets_epochs_that_began_there(tmp_path: Path) -> None:
    found = epochs(tmp_path, (1, 0), (2, 10), (3, 20))
    found.truncate_end(20)
    assert found.entries == [(1, 0), (2, 10)]
    assert found.latest == 2


def test_a_log_that_is_cut_at_its_end_forgets_an_epoch_without_records(tmp_path: Path) -> None:
    """Of a leader that appended nothing: as a follower it would name that epoch for ever, and never be in sync."""
    log = create(tmp_path)
    append(log, batch(b"a"), epoch=1)
    log.leader_epochs.assign_if_newer(2, log.end_offset)
    log.truncate_to(1)
    assert (log.leader_epochs.entries, log.end_offset) == ([(1, 0)], 1)


def test_truncation_at_the_start_moves_the_epoch_that_is_left(tmp_path: Path) -> None:
    found = epochs(tmp_path, (1, 0), (2, 10), (3, 20))
    found.truncate_start(15)
    assert found.entries == [(2, 15), (3, 20)]
    found.truncate_start(3)
    assert found.entries == [(2, 15), (3, 20)]


def test_an_offset_belongs_to_the_epoch_that_began_last_before_it(tmp_path: Path) -> None:
    found = epochs(tmp_path, (1, 5), (2, 10))
    assert [found.epoch_of(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 2, 2]


def test_the_file_is_kafkas_and_is_written_only_after_a_change(tmp_path: Path) -> None:
    found = epochs(tmp_path, (0, 0), (3, 120))
    found.write()
    path = tmp_path / "leader-epoch-checkpoint"
    assert path.read_text() == "0\n2\n0 0\n3 120\n"
    again = LeaderEpochs(OsDisk(), str(tmp_path))
    again.load()
    assert (again.entries, again.latest, again.dirty) == ([(0, 0), (3, 120)], 3, False)
    path.unlink()
    again.write()
    assert not path.exists()
