"""Replicas that move between the directories of this node (KIP-113).

A copy grows in the other directory, in a folder whose name ends with `-future`. It takes what is committed, as fast as
`replica.alter.log.dirs.io.max.bytes.per.second` allows; nothing of that is ever taken back, except by an unclean
election, after which the copy begins anew. When it has caught up, the controller is told where the replica is going to
lie (KIP-858). Once the metadata says so, the rest is copied in one step and the log goes on there.

A restart goes on with the copies that it finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau import logs
from moldau.broker.partition import Partition
from moldau.broker.steps import start
from moldau.cluster.following import Followed, take_records
from moldau.cluster.throttling import Throttle
from moldau.log.answers import Isolation
from moldau.log.directory import Directory
from moldau.log.log import Log
from moldau.wire import messages as m
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

CHUNK = 1 << 20
SLICE_MS = 2.0  # how long copying may hold the node at a time
TURN_MS = 1.0  # for requests, between two slices
PAUSE_MS = 50.0  # while the throttle, the controller or a flush is waited for


@dataclass(slots=True, eq=False)
class Move:
    """A replica on its way to another directory, and the copy of it."""

    partition: Partition
    target: Directory
    copy: Followed
    is_ready: bool = False  # it has all that is committed

    @property
    def lag(self) -> int:
        return max(0, self.partition.log.end_offset - self.copy.log.end_offset)


class Moves:
    """The moves of this node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.under_way: dict[Partition, Move] = {}
        self.throttle = Throttle(
            lambda: node.settings["replica.alter.log.dirs.io.max.bytes.per.second"], lambda key: True
        )
        self.is_running = False

    def begin(self, partition: Partition, target: Directory) -> None:
        """Move a replica to a directory, instead of where it was being moved before; raises Refused."""
        known = self.under_way.get(partition)
        if known is not None and known.target is target:
            return
        self.cancel(partition)
        if self.node.replicas.home_of(partition) is target:
            return
        copy = target.future(partition.log, self.node.replicas.unique(), now_ms=self.node.clock.wall_ms())
        followed = Followed(partition.topic_id, partition.index, copy, partition.placement.leader_epoch)
        self.under_way[partition] = Move(partition, target, followed)
        log.info("a replica is moved", partition=str(partition), to=target.path)
        if not self.is_running:
            self.is_running = True
            start(self.node, self.run())

    def resume(self, partition: Partition) -> None:
        """Go on with a move that an earlier start of this node has begun."""
        for target in self.node.replicas.directories:
            if (partition.topic, partition.index) in target.futures and target.offline is None:
                try:
                    self.begin(partition, target)
                except Refused as refused:
                    log.error("a move cannot go on", partition=str(partition), reason=refused.message)
                if partition not in self.under_way:
                    target.drop_future((partition.topic, partition.index))

    def cancel(self, partition: Partition) -> None:
        """Leave a replica where it is."""
        move = self.under_way.pop(partition, None)
        if move is not None:
            move.copy.log.shut("the move was cancelled")
            move.target.drop_future((partition.topic, partition.index))
            if partition.log.offline is None:
                self.node.assignments.check(partition)

    def close(self) -> None:
        """Let go of the files; the next start goes on."""
        for move in self.under_way.values():
            move.copy.log.close(clean=False)
        self.under_way = {}

    def to(self, target: Directory) -> list[Move]:
        """Return the moves into a directory."""
        return [move for move in self.under_way.values() if move.target is target]

    # Copying.

    async def run(self) -> None:
        """Copy until there is nothing left, a little at a time."""
        node = self.node
        while self.under_way:
            until, busy = node.clock.monotonic_ms() + SLICE_MS, True
            while busy and node.clock.monotonic_ms() < until:
                busy = sum(map(self.step, tuple(self.under_way.values()))) > 0
            await node.after(TURN_MS if busy else PAUSE_MS)
        self.is_running = False

    def step(self, move: Move) -> bool:
        """Take a move a step further; false if it has to wait."""
        partition, copy = move.partition, move.copy.log
        if partition.log.offline is not None or copy.offline is not None or move.target.offline is not None:
            log.error("a move has failed", partition=str(partition), to=move.target.path)
            self.cancel(partition)
            return True
        try:
            return self.advance(move)
        except Refused as refused:
            log.error("a move has failed", partition=str(partition), to=move.target.path, reason=refused.message)
            self.cancel(partition)
            return True

    def advance(self, move: Move) -> bool:
        own, copy = move.partition.log, move.copy.log
        key, now = (move.partition.topic, move.partition.index), self.node.clock.monotonic_ms()
        own.wake()
        if not own.start_offset <= copy.end_offset <= own.high_watermark or not has_same_epochs(own, copy):
            copy.truncate_fully(own.start_offset, self.node.clock.wall_ms())
        if copy.end_offset < own.high_watermark:
            if self.throttle.holds(key, now):
                return False
            self.throttle.count(key, self.copy_some(move, Isolation.HIGH_WATERMARK), now)
            return True
        move.is_ready = True
        self.node.assignments.check(move.partition)
        if self.node.assignments.is_misplaced(move.partition) or move.partition in self.node.replicas.flushing:
            return False
        self.finish(move)
        return True

    def copy_some(self, move: Move, isolation: Isolation) -> int:
        """Copy as much as a follower fetches at a time; returns how much it was."""
        own, copy = move.partition.log, move.copy.log
        span = own.read(copy.end_offset, CHUNK, isolation=isolation).span
        data = b"" if span is None else span.read()
        row = m.FetchResponse_PartitionData(
            records=data, high_watermark=own.high_watermark, log_start_offset=own.start_offset, diverging_epoch=None
        )
        move.copy.leader_epoch = own.epochs.latest
        take_records(move.copy, row, self.node.clock.wall_ms())
        return len(data)

    def finish(self, move: Move) -> None:
        """Copy the rest, and let the log go on in its new folder."""
        node, partition, copy = self.node, move.partition, move.copy.log
        while copy.end_offset < partition.log.end_offset and self.copy_some(move, Isolation.LOG_END):
            pass
        self.copy_some(move, Isolation.LOG_END)  # the start of the log
        if (copy.start_offset, copy.end_offset) != (partition.log.start_offset, partition.log.end_offset):
            log.warning("a move begins anew: the copy differs", partition=str(partition))
            copy.truncate_fully(partition.log.start_offset, node.clock.wall_ms())
            return
        home = node.replicas.home_of(partition)
        node.cleaner.forget(partition.log)
        node.forget_heads()
        move.target.adopt(partition.log, copy, home, node.replicas.unique(), now_ms=node.clock.wall_ms())
        del self.under_way[partition]
        log.info("a replica was moved", partition=str(partition), to=move.target.path)
        node.assignments.check(partition)


def has_same_epochs(own: Log, copy: Log) -> bool:
    """Tell whether a copy is of this history: an unclean election may have replaced what was committed."""
    end = copy.end_offset
    return end == copy.start_offset or own.epochs.epoch_of(end - 1) == copy.epochs.epoch_of(end - 1)
