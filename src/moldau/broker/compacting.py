"""Compaction on the node: a step at a time between requests, its syncs in the background."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from moldau.broker import logs
from moldau.log.compaction import Sync

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)


def compact_next(node: Node) -> Iterator[None]:
    """Compact the log that needs it most. `tick` advances this for about 2 ms at a time."""
    cleaner = node.cleaner
    cleaner.memory_bytes = node.settings["log.cleaner.dedupe.buffer.size"]
    logs = (partition.log for partition in node.replicas)
    if cleaner.current is not None or cleaner.next(logs, node.clock.wall_ms()) is None:
        return
    while (step := cleaner.step()) is not None:
        if isinstance(step, Sync):
            outcome: list[Any] = []
            node.background.submit(step.sync, outcome.append)
            while not outcome:
                yield
            if isinstance(outcome[0], BaseException):
                log.error("a compacted segment cannot be synced; it will be tried again", reason=str(outcome[0]))
                cleaner.cancel()
        yield
