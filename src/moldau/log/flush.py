"""A flush in three steps, so that the disk is waited for off the loop: prepare, `sync` (in a thread), `complete`."""

from dataclasses import dataclass, field
from typing import Protocol

from moldau.log.disk import Disk, File
from moldau.log.segment import Segment


class Flushed(Protocol):
    """The log that a flush belongs to."""

    def flushed(self, flush: "Flush") -> None: ...


@dataclass(slots=True, eq=False)
class Flush:
    """What must reach the disk so that the recovery point may move to `offset`."""

    log: Flushed
    disk: Disk
    files: list[File]
    folders: list[str]
    offset: int
    now_ms: int
    names: int = 0  # the log's `names_made` when this was prepared
    sealed: list[Segment] = field(default_factory=list[Segment])  # segments of which all is synced
    cuts: int = 0  # the log's `cuts` when this was prepared

    def sync(self) -> None:
        """Wait for the disk; OSError when it fails, and then the log must be told with `log.fail`."""
        for file in self.files:
            file.sync()
        for folder in self.folders:
            self.disk.sync_dir(folder)

    def complete(self) -> None:
        """Call this on the loop when `sync` is done."""
        self.log.flushed(self)
