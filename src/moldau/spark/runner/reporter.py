"""Commits the reports of an application (`reports.py`) with the offsets of its group, from its driver.

Nobody else commits: a commit without a report would remove the last report.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.admin.groups import committed
from moldau.client import Client, ClientError
from moldau.spark.options import OptionError
from moldau.spark.progress import PATIENCE_S, PAUSE_S, commit_offsets, position
from moldau.spark.runner.reports import HEARTBEAT_MS, Fallback, Report, to_text
from moldau.spark.source.planning import Numbers, Position

if TYPE_CHECKING:
    from moldau.spark.runner import Supervised
    from moldau.spark.runner.status import State

log = logging.getLogger("moldau.spark")


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


class Reporter:
    """The reports of one application. If a commit fails it is logged, and tried again later."""

    def __init__(
        self,
        application: str,
        client: Callable[[], Client],
        fallbacks: Callable[[], tuple[Fallback, ...]],
        clock: Callable[[], int] = milliseconds,
    ) -> None:
        self._application, self._client, self._fallbacks, self._clock = application, client, fallbacks, clock
        self._offsets: Numbers = {}
        self._progress: Mapping[str, Any] | None = None
        self._state: State | None = None
        self._batch: int | None = None
        self._batch_at_ms: int | None = None
        self._since_ms = self._due_ms = self._not_before_ms = 0

    def begins_at(self, position: Mapping[str, Any] | None) -> None:
        """Set where the application continues, before its first batch."""
        if position is not None:
            self._offsets = Position.of_json(position).offsets

    def observe(self, query: Supervised) -> None:
        """Write a report if the query has changed or its last report is old."""
        now, status = self._clock(), query.status
        fallbacks = self._fallbacks()
        status.fallbacks = sum(one.batches for one in fallbacks)
        if status.state is not self._state:
            self._state, self._since_ms, self._due_ms = status.state, now, now
        before = self._offsets
        if query.progress is not self._progress:
            self._progress, self._offsets = query.progress, ends_of(query.progress) or before
        if status.batch != self._batch or self._offsets != before:  # Spark gives an idle moment the next batch's number
            self._batch, self._batch_at_ms, self._due_ms = status.batch, now, now
        if now >= max(self._due_ms, self._not_before_ms):
            self._write(Report(status.state, self._since_ms, now, self._batch_at_ms, status.error, fallbacks))

    def _write(self, report: Report) -> None:
        group = self._application
        try:
            client = self._client()
            if not self._offsets:
                before = committed(client, group, timeout_s=PATIENCE_S)
                self._offsets = {place: one.offset for place, one in before.items()}
            commit_offsets(client, group, self._offsets, PATIENCE_S, to_text(report))
        except (ClientError, OptionError) as error:
            log.warning("%s cannot report what it does: %s", group, error)
            self._not_before_ms = report.at_ms + int(PAUSE_S * 1000)
        else:
            self._due_ms = report.at_ms + HEARTBEAT_MS


def ends_of(progress: Mapping[str, Any] | None) -> Numbers:
    """Return the end offsets of a query's sources, from its last progress."""
    ends = [position(source, "endOffset") for source in (progress or {}).get("sources", ())]
    return {place: offset for end in ends if end is not None for place, offset in end.offsets.items()}
