"""Looking for damage in records that were synced long ago."""

from pathlib import Path

import pytest

from moldau.wire.refusal import Refused
from tests.log.logs import NOW, append, batch, create, sequenced


def test_damage_of_records_is_reported_and_the_log_stays_in_use(tmp_path: Path) -> None:
    log, reports = create(tmp_path), list[str]()
    log.on_damage = lambda _, reason: reports.append(reason)
    for value in (b"a", b"b", b"c"):
        log.append(batch(value), 0, NOW)
    log.check(0)
    assert not reports
    path = tmp_path / "t-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log.check(0)
    assert len(reports) == 1 and "record batch at offset 2" in reports[0]
    assert log.offline is None and log.read(0, 1).span is not None
    log.fail("gone")
    assert reports[1:] == ["gone"]


def test_rot_that_a_truncation_meets_takes_the_partition_offline(tmp_path: Path) -> None:
    log = create(tmp_path)
    for number in range(4):
        append(log, sequenced(number))
    size = log.size // 4
    with open(tmp_path / "t-0" / f"{0:020d}.log", "r+b") as file:
        file.seek(size + 16)  # the magic of the second batch
        file.write(b"\0")
    with pytest.raises(Refused, match=r"cannot be truncated: .* holds no batch at position"):
        log.truncate_to(3, NOW)
    assert log.offline is not None
