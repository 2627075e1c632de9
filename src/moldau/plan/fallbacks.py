"""Batches that cannot be processed in columns: how many there were, why, and when columns are tried again.

A batch that fails in columns is processed again record by record, from the state before it. The next batch of the shard
is tried in columns again. While every try fails, the pauses between tries grow to 1, 3, 7 ... `LONGEST_PAUSE` batches:
a shard whose batches all fail wastes one try in 64, and one that failed once continues in columns at once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.operators.columns import InRows

from .levels import ShardId

LONGEST_PAUSE = 63  # batches of a shard
MOST_KNOWN = 10_000  # pauses and logged reasons that a process remembers
Counts = dict[tuple[int, str], int]  # (sub-topology, reason) -> batches processed record by record
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Pause:
    """The pause of a shard: how many tries have failed in a row, and how many batches remain until the next one."""

    failures: int
    left: int
    reason: str


class Fallbacks:
    """The fallbacks of one process, by the start of an application and its shards."""

    def __init__(self) -> None:
        self._pauses: dict[tuple[str, ShardId], Pause] = {}
        self._counts: dict[str, Counts] = {}
        self._logged: dict[tuple[str, int, str], None] = {}

    def is_paused(self, start: str, shard: ShardId) -> bool:
        """Whether the next batch is processed record by record without a try."""
        pause = self._pauses.get((start, shard))
        return pause is not None and pause.left > 0

    def succeeded(self, start: str, shard: ShardId) -> None:
        """Note a batch that was processed in columns."""
        if self._pauses:
            self._pauses.pop((start, shard), None)

    def fell_back(self, start: str, shard: ShardId, error: Exception | None) -> None:
        """Note a batch that was processed record by record, for an error in columns or, without one, in a pause."""
        pause = self._pauses.get((start, shard))
        if error is not None:
            failures = 0 if pause is None else pause.failures
            pause = Pause(failures + 1, min(2**failures - 1, LONGEST_PAUSE), reason_of(error))
            self._pauses[start, shard] = pause
            forget_oldest(self._pauses)
            self._log(start, shard.group, pause.reason)
        else:
            assert pause is not None, "a batch without a try is one of a pause"
            pause.left -= 1
        counts = self._counts.setdefault(start, {})
        counts[shard.group, pause.reason] = counts.get((shard.group, pause.reason), 0) + 1

    def drain(self, start: str) -> Counts:
        """Return what was counted since the last call."""
        return self._counts.pop(start, {})

    def _log(self, start: str, group: int, reason: str) -> None:
        """Log a reason once for each sub-topology."""
        if (start, group, reason) in self._logged:
            return
        self._logged[start, group, reason] = None
        forget_oldest(self._logged)
        log.warning("Sub-topology %d processes batches record by record, which is slow: %s.", group, reason)


def reason_of(error: Exception) -> str:
    """Return the reason as a text without details of the record, as counts and log lines are grouped by it."""
    return str(error) if isinstance(error, InRows) else f"{type(error).__name__} in columns alone"


def add(counts: Mapping[tuple[int, str], int], more: Mapping[tuple[int, str], int]) -> Counts:
    return {key: counts.get(key, 0) + more.get(key, 0) for key in {**counts, **more}}


def forget_oldest(known: dict[Any, Any]) -> None:
    while len(known) > MOST_KNOWN:
        del known[next(iter(known))]


FALLBACKS = Fallbacks()  # of this process
