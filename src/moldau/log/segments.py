"""The segments of a partition in order of offset, and the ways in which they come and go.

A segment that goes is renamed to `.deleted` at once and removed after `file.delete.delay.ms`. Segments that compaction
has rewritten come as `.cleaned` files and are swapped in so that a crash at any point leaves the old ones or the new
ones: see `recovery.finish_interrupted_work`.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from moldau.log.disk import Files
from moldau.log.segment import DELETED, SWAP, Segment


@dataclass(slots=True, eq=False)
class Segments:
    """`items` and their base offsets; the last one is the active one."""

    files: Files
    folder: str
    interval: int
    items: list[Segment] = field(default_factory=list[Segment])
    bases: list[int] = field(default_factory=list[int])
    unsynced: list[Segment] = field(default_factory=list[Segment])  # sealed, but not on the disk for certain
    condemned: list[tuple[int, Segment]] = field(default_factory=list[tuple[int, Segment]])  # when to remove them

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def set(self, items: list[Segment]) -> None:
        self.items = items
        self.bases = [segment.base_offset for segment in items]

    def make(self, base_offset: int) -> Segment:
        return Segment(self.files, self.folder, base_offset, interval=self.interval)

    def start(self, base_offset: int) -> Segment:
        """Add a new, empty segment and seal the one before it. If that fails, the old one is as it was."""
        segment = self.make(base_offset)
        segment.start()
        if self.items:
            self.items[-1].seal()
            self.unsynced.append(self.items[-1])
        self.items.append(segment)
        self.bases.append(base_offset)
        return segment

    def slot_of(self, offset: int) -> int:
        """Return the place of the segment that holds `offset`; the first one for smaller offsets."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def end_of(self, slot: int, end_offset: int) -> int:
        """Return where the segment at this place ends, in a log that ends at `end_offset`."""
        return self.bases[slot + 1] if slot + 1 < len(self.bases) else end_offset

    @property
    def size(self) -> int:
        return sum(segment.look() for segment in self.items)

    def condemn(self, doomed: Sequence[Segment], due_ms: int) -> None:
        """Take segments out; their files go when `take_due` is called at `due_ms` or later."""
        gone = set(map(id, doomed))
        self.set([segment for segment in self.items if id(segment) not in gone])
        self.unsynced = [segment for segment in self.unsynced if id(segment) not in gone]
        for segment in doomed:
            segment.rename(DELETED)
            segment.release()
            self.condemned.append((due_ms, segment))

    def take_due(self, now_ms: int) -> list[Segment]:
        """Return the condemned segments whose delay is over; they are not known here any more."""
        due = [segment for due_ms, segment in self.condemned if due_ms <= now_ms]
        self.condemned = [(due_ms, segment) for due_ms, segment in self.condemned if due_ms > now_ms]
        return due

    def replace(self, old: Sequence[Segment], new: Sequence[Segment], due_ms: int) -> None:
        """Swap in what compaction has made of `old`: complete and synced `.cleaned` segments."""
        for segment in sorted(new, key=lambda s: s.base_offset, reverse=True):
            segment.rename(SWAP)
        self.condemn(old, due_ms)
        for segment in new:
            segment.rename("")
        self.set(sorted([*self.items, *new], key=lambda s: s.base_offset))
        self.files.disk.sync_dir(self.folder)

    def cut(self, offset: int) -> Segment:
        """Drop everything from `offset` on; the segment that held it becomes the active one."""
        slot = self.slot_of(offset)
        doomed = self.items[slot + 1 :]
        self.set(self.items[: slot + 1])
        for segment in reversed(doomed):
            segment.remove()
        self.unsynced = [segment for segment in self.unsynced if segment in self.items[:-1]]
        active = self.items[-1]
        active.reopen()
        active.truncate(offset)
        self.files.disk.sync_dir(self.folder)
        return active

    def clear(self) -> None:
        for segment in reversed(self.items):
            segment.remove()
        self.set([])
        self.unsynced = []

    def release(self) -> None:
        for segment in self.items:
            segment.release()
