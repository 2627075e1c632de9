"""The progress of a query, for others to see: offsets of a consumer group, and the lag."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

from moldau.admin.groups import commit
from moldau.client import Client, ClientError
from moldau.spark.source.planning import LANE, Numbers, Position, TopicPartition

PATIENCE_S, PAUSE_S = 2.0, 30.0
log = logging.getLogger("moldau.spark")


def commit_offsets(
    client: Client, group_id: str, offsets: Numbers, timeout_s: float | None = None, metadata: str = ""
) -> None:
    """Commit offsets for a group without members; the first partition gets the metadata."""
    if offsets:
        commit(client, group_id, offsets, metadata={min(offsets): metadata}, timeout_s=timeout_s)


def lag(source: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Count the records that wait in each partition, from one source in a query's progress."""
    read, latest = position(source, "endOffset"), position(source, "latestOffset")
    if read is None or latest is None:
        return {}
    return {one: max(0, offset - read.start_of(one, latest)) for one, offset in latest.offsets.items()}


def position(source: Mapping[str, Any], name: str) -> Position | None:
    """Read an offset of a source out of a query's progress, where it is JSON or the text of it; None without one, and
    for a lane, which has many.
    """
    value = source.get(name)
    document = json.loads(value) if isinstance(value, str) else value
    return Position.of_json(document) if document and LANE not in document else None


class GroupProgress:
    """The offsets of a group, committed as a query proceeds. If that fails it is logged, and tried again later."""

    def __init__(self, group_id: str) -> None:
        self._group = group_id
        self._done: Numbers = {}
        self._not_before = 0.0

    def commit(self, client: Client, offsets: Numbers) -> None:
        now = time.monotonic()
        if offsets == self._done or now < self._not_before:
            return
        try:
            commit_offsets(client, self._group, offsets, timeout_s=PATIENCE_S)
            self._done = offsets
        except ClientError as error:
            log.warning("Offsets of the group %s were not committed: %s", self._group, error)
            self._not_before = now + PAUSE_S
