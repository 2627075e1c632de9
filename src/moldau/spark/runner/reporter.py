"""The reports of an application (`reports.py`), committed by its driver with the offsets of its group.

Both come from one place, for a commit without a report would take the last report away.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.admin.groups import committed
from moldau.client import Client, ClientError
from moldau.spark.options import OptionError
from moldau.spark.progress import PATIENCE_S, PAUSE_S, commit_offsets
from moldau.spark.runner.reports import HEARTBEAT_MS, Fallback, Report, to_text
from moldau.spark.source.planning import Numbers, Position

if TYPE_CHECKING:
    from moldau.spark.runner import Supervised
    from moldau.spark.runner.status import State

log = logging.getLogger("moldau.spark")


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


class Reporter:
    """Reports of one application. A cluster that cannot be written to does not stop it: that is logged, and tried
    again after a while.
    """

    def __init__(
        self,
        application: str,
        client: Callable[[], Client],
        fallbacks: Callable[[], tuple[Fallback, ...]],
        clock: Callable[[], int] = milliseconds,
    ) -> None:
        self._application, self._client, self._fallbacks, self._clock = application, client, fallbacks, clock
        self._offsets: Numbers = {}
        self._state: State | None = None
        self._batch: int | None = None
        self._batch_at_ms: int | None = None
        self._since_ms = self._due_ms = self._not_before_ms = 0

    def begins_at(self, position: Mapping[str, Any] | None) -> None:
        """Tell where the application goes on, before it has done a batch."""
        if position is not None:
            self._offsets = Position.of_json(position).offsets

    def observe(self, query: Supervised) -> None:
        """Look at the query, and write a report if there is something new or the last report is old."""
        now, status = self._clock(), query.status
        fallbacks = self._fallbacks()
        status.fallbacks = sum(one.batches for one in fallbacks)
        if status.state is not self._state:
            self._state, self._since_ms, self._due_ms = status.state, now, now
        if status.batch != self._batch:
            self._batch, self._batch_at_ms, self._due_ms = status.batch, now, now
            self._offsets = ends_of(query.progress) or self._offsets
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
    """Where the sources of a query have got to, by its last progress."""
    ends = [source.get("endOffset") for source in (progress or {}).get("sources", ())]
    documents = [json.loads(end) if isinstance(end, str) else end for end in ends if end]
    return {place: offset for one in documents for place, offset in Position.of_json(one).offsets.items()}
