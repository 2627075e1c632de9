"""Leader epochs of a partition: where each began (KIP-101, KIP-320).

The entries ascend in epoch and in start offset. They are kept in `leader-epoch-checkpoint`, which is written before the
recovery point passes them: what a crash loses of it is found again in the batches that recovery reads.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from moldau.log.checkpoints import read_epochs, write_epochs
from moldau.log.disk import Disk, remove_if_there

FILE = "leader-epoch-checkpoint"
UNDEFINED = (-1, -1)


@dataclass(slots=True, eq=False)
class LeaderEpochs:
    """Epochs and their start offsets. `latest` is the newest epoch, -1 when there is none."""

    disk: Disk
    folder: str
    entries: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    latest: int = -1
    dirty: bool = False

    @property
    def path(self) -> str:
        return f"{self.folder}/{FILE}"

    def load(self) -> None:
        for epoch, start in read_epochs(self.disk, self.path):
            self.assign(epoch, start)
        self.dirty = False

    def assign(self, epoch: int, start_offset: int) -> None:
        """`epoch` begins at `start_offset`; entries that contradict it are dropped, as the newest writer is right."""
        if epoch < 0 or (epoch == self.latest and start_offset >= self.entries[-1][1]):
            return
        kept = [entry for entry in self.entries if entry[0] < epoch and entry[1] < start_offset]
        self._set([*kept, (epoch, start_offset)])

    def assign_if_newer(self, epoch: int, start_offset: int) -> None:
        """What a batch that is read back says of its epoch; known epochs are not corrected by it."""
        if epoch > self.latest:
            self.assign(epoch, start_offset)

    def _set(self, entries: list[tuple[int, int]]) -> None:
        if entries != self.entries:
            self.entries = entries
            self.latest = entries[-1][0] if entries else -1
            self.dirty = True

    def epoch_of(self, offset: int) -> int:
        """Return the epoch in which `offset` was written, -1 if it lies before all known ones."""
        at = bisect_right([start for _, start in self.entries], offset)
        return self.entries[at - 1][0] if at else -1

    def end_offset(self, epoch: int, log_start_offset: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset): the newest epoch not above `epoch`, and where it ended; (-1, -1) if that is unknown.

        Nothing in the log is of an epoch before the first entry, not even before that entry: after a crash the log may
        begin earlier than its epochs, which were on the disk before its new start was.
        """
        if epoch == -1:
            return UNDEFINED
        if epoch == self.latest:
            return epoch, log_end_offset
        at = bisect_right([known for known, _ in self.entries], epoch)
        if at == len(self.entries):
            return UNDEFINED
        return (self.entries[at - 1][0], self.entries[at][1]) if at else (epoch, log_start_offset)

    def truncate_end(self, end_offset: int) -> None:
        """Forget the epochs that began at `end_offset` or later."""
        self._set([entry for entry in self.entries if entry[1] < end_offset])

    def truncate_start(self, start_offset: int) -> None:
        """The log now begins at `start_offset`: the epoch there starts with it, older ones are forgotten."""
        older = [epoch for epoch, start in self.entries if start <= start_offset]
        if older:
            newer = [entry for entry in self.entries if entry[1] > start_offset]
            self._set([(older[-1], start_offset), *newer])

    def clear(self) -> None:
        """Forget all epochs, on the disk too: a log that is woken or recovered must not find them again."""
        remove_if_there(self.disk, self.path)
        self._set([])

    def write(self, *, sync: bool = True) -> None:
        if self.dirty:
            write_epochs(self.disk, self.path, self.entries, sync=sync)
            self.dirty = False
