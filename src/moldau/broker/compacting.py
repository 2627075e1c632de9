"""Compaction on the node: a step at a time between requests, its syncs in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.work import BUSY, IDLE, Work
from moldau.log.compaction import Sync

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)


def compact_all(node: Node) -> Work:
    """Compact the log that needs it most, then the next, until none does. `tick` advances this a little at a time.

    When one cannot be compacted now, as on a full disk, it is not tried again before the next round.
    """
    cleaner = node.cleaner
    cleaner.memory_bytes = node.settings["log.cleaner.dedupe.buffer.size"]
    while cleaning := cleaner.next((partition.log for partition in node.replicas), node.clock.wall_ms()):
        while (step := cleaner.step()) is not None:
            if isinstance(step, Sync):
                yield from sync(node, step)
            yield BUSY
        if cleaning.result is None:
            return


def sync(node: Node, step: Sync) -> Work:
    """Wait for the disk without holding up the node."""
    outcome: list[Any] = []
    node.background.submit(step.sync, outcome.append)
    while not outcome:
        yield IDLE
    if isinstance(outcome[0], BaseException):
        log.error("a compacted segment cannot be synced; it will be tried again", reason=str(outcome[0]))
        node.cleaner.cancel()
