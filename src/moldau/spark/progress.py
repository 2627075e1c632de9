"""How far a query has come, for others to see: offsets of a consumer group, and the lag in a query's progress."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

from moldau.admin.groups import commit
from moldau.client import Client, ClientError
from moldau.spark.source.planning import Numbers, Position, TopicPartition

PATIENCE_S, PAUSE_S = 2.0, 30.0
log = logging.getLogger("moldau.spark")


def commit_offsets(
    client: Client, group_id: str, offsets: Numbers, timeout_s: float | None = None, metadata: str = ""
) -> None:
    """Make offsets those of a group that has no members. `Position.of_json` reads them out of a query's progress. The
    first partition gets the metadata.
    """
    if offsets:
        commit(client, group_id, offsets, metadata={min(offsets): metadata}, timeout_s=timeout_s)


def lag(source: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Records of each partition that are waiting, by a source's part of a query's progress."""
    end, latest = (_document(source.get(name)) for name in ("endOffset", "latestOffset"))
    if not end or not latest:
        return {}
    read, there = Position.of_json(end), Position.of_json(latest)
    return {one: max(0, offset - read.start_of(one, there)) for one, offset in there.offsets.items()}


def _document(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


class GroupProgress:
    """The offsets of a group, written as a query comes forward.

    A group that cannot be written to does not stop the query, for its offsets are there to be seen: it is told, and
    tried again after a while.
    """

    def __init__(self, group_id: str) -> None:
        self._group = group_id
        self._done: Numbers = {}
        self._not_before = 0.0

    def reached(self, client: Client, offsets: Numbers) -> None:
        now = time.monotonic()
        if offsets == self._done or now < self._not_before:
            return
        try:
            commit_offsets(client, self._group, offsets, timeout_s=PATIENCE_S)
            self._done = offsets
        except ClientError as error:
            log.warning("Progress is not in the group %s: %s", self._group, error)
            self._not_before = now + PAUSE_S
