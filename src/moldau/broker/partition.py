"""A partition on this node: its log, and the part that this node plays in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from moldau.cluster.leading import STUCK, Leading
from moldau.log.answers import Appended, Origin
from moldau.log.config import FOREVER
from moldau.log.log import Log
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ALL = -1  # acks: every replica in sync
Then = Callable[[Error], None]


@dataclass(slots=True, eq=False)
class Partition:
    """The log and who leads it. Waiting fetches watch this object, waiting acknowledgements its log.

    A record is committed when the high watermark has passed it: all replicas in sync have it, and if `flush.messages`
    promises a sync of it, that is done. Everything that is promised to a client waits for this one event: see
    `on_commit`, and `is_settled` for acknowledgements.

    The metadata says who leads. What that means here is done by `lead` and `follow`, and by nothing else: `placement`
    is a copy that changes with them, not while a request is being answered.
    """

    topic: str
    topic_id: bytes
    index: int
    log: Log
    node_id: int
    placement: Placement = field(default_factory=lambda: Placement(0, (), (), -1, -1, -1))
    min_insync_replicas: int = 1
    led: Leading | None = None  # what this leader knows of its followers; None where it has none, and where it follows
    is_alone: bool = False  # it leads, and nobody else is in sync: what is written is committed
    uncommitted: deque[tuple[int, Then]] | None = None  # end offsets, in order, and who waits for their commit
    read_offset: int = -1  # where records were read last
    rereads: int = 0  # and how often without a read elsewhere

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # The part that this node plays.

    @property
    def leads(self) -> bool:
        return self.placement.leader == self.node_id

    @property
    def lags(self) -> bool:
        """Tell whether this leader may not know yet what clients of the last one know to be committed (KIP-207)."""
        return self.led is not None and self.log.high_watermark < self.led.epoch_start

    def leader_error(self, epoch: int) -> Error:
        """Return whether a client that thinks of `epoch` (-1: none) may use this replica as the leader (KIP-320)."""
        placement = self.placement
        if placement.leader != self.node_id:
            return Error.NOT_LEADER_OR_FOLLOWER
        return self.epoch_error(epoch)

    def epoch_error(self, epoch: int) -> Error:
        """Return whether a client that thinks of `epoch` (-1: none) may read from this replica, leader or follower."""
        known = self.placement.leader_epoch
        if epoch < 0 or epoch == known:
            return Error.NONE
        return Error.FENCED_LEADER_EPOCH if epoch < known else Error.UNKNOWN_LEADER_EPOCH

    def lead(self, placement: Placement, now_ms: float) -> None:
        """Lead in the epoch that the metadata names, or go on leading with others in sync.

        An epoch begins where the log ends. With no other replica in sync, all that is there is committed; what a
        process that died had not synced is synced first, where `flush.messages` promises it to readers.
        """
        is_new = not self.leads or placement.leader_epoch != self.placement.leader_epoch
        if not is_new and placement.partition_epoch < self.placement.partition_epoch:
            return  # the controller has told this leader more than the metadata has shown yet
        self.placement = replace(placement)
        if len(placement.replicas) == 1:
            self.led = None
        else:
            if is_new or self.led is None:
                self.begin_epoch()
                self.led = Leading(self.node_id, placement.leader_epoch, self.log.end_offset)
            self.led.place(placement.replicas, placement.isr, placement.partition_epoch, now_ms)
        self.count_members()
        if is_new and self.is_alone and self.must_sync():
            with suppress(Refused):  # the log is offline then, or has no room: it is synced with the next append
                self.log.flush()
        self.synced()

    def count_members(self) -> None:
        """Note whether what is written is committed at once: nobody else is in sync, and nobody else has to be."""
        led, least = self.led, min(self.min_insync_replicas, len(self.placement.replicas))
        counted = self.placement.isr if led is None else led.counted
        self.is_alone = self.leads and tuple(counted) == (self.node_id,) and least <= 1

    def follow(self, placement: Placement) -> None:
        """Follow another leader, or nobody while there is none; who waits for a commit is sent there."""
        self.placement = replace(placement)
        self.led, self.is_alone = None, False
        self.abandon(Error.NOT_LEADER_OR_FOLLOWER)

    def begin_epoch(self) -> None:
        """Let the log know of this leader's epoch: until the first append it begins at the log's end."""
        with suppress(Refused):  # an offline log has no epochs
            self.log.leader_epochs.assign_if_newer(self.placement.leader_epoch, self.log.end_offset)

    # Records.

    def append(
        self, view: memoryview, now_ms: int, origin: Origin = Origin.CLIENT, transaction_version: int = 0
    ) -> Appended:
        """Append as the leader. With no other replica in sync, what is written is committed, unless `flush.messages`
        promises a sync: the caller then asks for one (`Replicas.flush`, `Replicas.commit`).
        """
        log = self.log
        appended = log.append(view, self.placement.leader_epoch, now_ms, origin, transaction_version)
        if self.is_alone and not self.must_sync():
            log.advance_high_watermark(log.end_offset)
        return appended

    def note_read(self, offset: int) -> None:
        """Whoever asks for the same records again and again may not be able to take them: are they damaged?

        It may be many readers, too: so it is looked at after 4, 8, 16, ... reads.
        """
        if offset != self.read_offset:
            self.read_offset, self.rereads = offset, 1
            return
        self.rereads += 1
        if self.rereads >= STUCK and self.rereads & (self.rereads - 1) == 0:
            self.log.check(offset)

    def on_commit(self, end_offset: int, then: Then) -> None:
        """Call `then` when all records before `end_offset` are committed, or with the reason why they never will be.

        Calls come in the order of the offsets.
        """
        if self.uncommitted is None:
            self.uncommitted = deque()
        self.uncommitted.append((end_offset, then))
        self.settle()

    def settle(self) -> None:
        """Call those whose records are committed by now; if the log is offline, call all."""
        waiting, log = self.uncommitted, self.log
        while waiting and (waiting[0][0] <= log.high_watermark or log.offline is not None):
            end_offset, then = waiting.popleft()
            then(Error.NONE if end_offset <= log.high_watermark else Error.KAFKA_STORAGE_ERROR)

    def abandon(self, error: Error) -> None:
        """Tell all who wait for a commit that there will be none."""
        while self.uncommitted:
            self.uncommitted.popleft()[1](error)

    def is_settled(self, offset: int, acks: int) -> bool:
        """Tell whether a record can be acknowledged: for acks=all it is committed, otherwise synced as promised.

        Nothing more happens to the records of a log that is offline, or that is led elsewhere by now.
        """
        log = self.log
        done = log.high_watermark > offset if acks == ALL else log.recovery_point > offset or not self.must_sync()
        return done or log.offline is not None or not self.leads

    def lacks_replicas(self) -> bool:
        """Tell whether fewer replicas are in sync than `min.insync.replicas` asks for.

        A topic cannot ask for more than it has (KIP-966).
        """
        placement = self.placement
        return len(placement.isr) < min(self.min_insync_replicas, len(placement.replicas))

    def synced(self) -> None:
        """Let readers see what waited for a sync, unless more came meanwhile that must wait."""
        log = self.log
        if self.is_alone and log.offline is None:
            log.advance_high_watermark(log.recovery_point if self.must_sync() else log.end_offset)

    def counted_end(self) -> int:
        """Return up to where this leader's own log counts: what `flush.messages` promises to sync must be synced."""
        return self.log.recovery_point if self.must_sync() else self.log.end_offset

    def must_sync(self) -> bool:
        """Tell whether `flush.messages` promises a sync of what was appended."""
        log, count = self.log, self.log.config.flush_messages
        return count < FOREVER and log.offline is None and log.end_offset - log.recovery_point >= count
