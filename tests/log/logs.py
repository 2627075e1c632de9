"""Logs and batches for the tests of this folder."""

from pathlib import Path
from typing import Any

from moldau.log.config import LogConfig
from moldau.log.disk import Disk, Files, OsDisk, OsFile
from moldau.log.log import Log, Origin
from moldau.wire.records import Record, batches, build, end_txn_marker, records

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
PLAIN = LogConfig()


class Hasty(OsDisk):
    """The operating system's disk without waiting for it: the page cache is all that a dead process needs."""

    def sync_dir(self, path: str) -> None:
        pass

    def sync_all(self, path: str) -> None:
        pass

    def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        super().write_atomic(path, data, sync=False)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        opened = super().open(path, create=create)
        fd, opened.fd = opened.fd, -1
        return HastyFile(fd)


class HastyFile(OsFile):
    __slots__ = ()

    def sync(self) -> None:
        pass


def config(**settings: Any) -> LogConfig:
    return LogConfig.of({name.replace("_", "."): value for name, value in settings.items()})


def create(folder: Path, config: LogConfig = PLAIN, disk: Disk | None = None) -> Log:
    files = Files(disk or Hasty())
    return Log.create(files, f"{folder}/t-0", "t", 0, config, topic_id=TOPIC_ID, now_ms=NOW)


def reopen(folder: Path, config: LogConfig = PLAIN, disk: Disk | None = None, **state: Any) -> Log:
    """Open what is in the folder, by default as after a crash of the process."""
    state = {"now_ms": NOW, "lost_writes": False, **state}
    return Log.open(Files(disk or Hasty()), f"{folder}/t-0", "t", 0, config, **state)


def batch(*values: bytes | None, key: bytes | None = b"k", timestamp: int = NOW, **fields: Any) -> memoryview:
    return memoryview(build([Record(0, timestamp, key, value) for value in values], **fields))


def sequenced(sequence: int, count: int = 1, producer_id: int = 7, epoch: int = 0, **fields: Any) -> memoryview:
    values = [b"v%d" % (sequence + i) for i in range(count)]
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def append(log: Log, view: memoryview, *, origin: Origin = Origin.CLIENT, epoch: int = 0, now_ms: int = NOW) -> int:
    """Append, let it count as replicated, and return the base offset."""
    base = log.append(view, leader_epoch=epoch, now_ms=now_ms, origin=origin).base_offset
    log.advance_high_watermark(log.end_offset)
    return base


def end(log: Log, commit: bool, producer_id: int = 7, epoch: int = 0) -> int:
    marker = end_txn_marker(commit, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=0, timestamp=NOW)
    return append(log, memoryview(marker), origin=Origin.COORDINATOR)


def contents(log: Log, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """Offset and value of each record, read as a consumer reads: fetch by fetch, whole batches only."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.start_offset
    while span := log.read(offset, max_bytes).span:
        data, at = span.read(), 0
        assert len(data) == len(span)
        while at + 12 <= len(data) and (size := 12 + int.from_bytes(data[at + 8 : at + 12])) <= len(data) - at:
            one = next(batches(data[at : at + size]))
            one.verify()
            found += [(r.offset, r.value) for r in records(one) if r.offset >= log.start_offset and not one.is_control]
            offset, at = one.next_offset, at + size
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "t-0").iterdir())}
