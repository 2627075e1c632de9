"""Global tables in a worker: filled up to the offsets of the batch before its records are processed.

The source saves the ends of global topics in the position of each batch, and each row of the batch has them, so a
replay sees the tables as they were. A process that has already read further begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moldau.spark.connections import client_for
from moldau.spark.source.planning import Position, ranges
from moldau.spark.source.reading import read

from ..blobs import raw_records
from ..global_tables import GlobalTables
from ..shards import Conveyed
from .source import blobs_of_chunk

MOST = 4  # starts of applications whose tables a process keeps
PATIENCE_MS = 120_000
_filled: dict[str, Filled] = {}


class Filled:
    """The global tables of one start of an application, and how far they are read."""

    def __init__(self, conveyed: Conveyed) -> None:
        self.conveyed = conveyed
        self._begin()

    def _begin(self) -> None:
        self.at = Position({})
        self.tables = GlobalTables(self.conveyed.schedule.plan, self.conveyed.execution)

    def fill(self, end: Position) -> None:
        """Fill partition by partition, so that a new process does the same as an old one."""
        at = self.at
        if any(offset > end.offsets.get(one, 0) or at.is_anew(one[0], end) for one, offset in at.offsets.items()):
            self._begin()
        client = client_for(self.conveyed.client)
        isolation = client.config["isolation.level"]
        for wanted in ranges(self.at, end):
            for _, chunk in read(
                client, [wanted], isolation=isolation, fail_on_data_loss=False, patience_ms=PATIENCE_MS
            ):
                for blob in blobs_of_chunk(wanted, chunk, more=False):
                    self.tables.take(raw_records(blob))
        self.at = end


def global_stores(conveyed: Conveyed, ends: str | None) -> Mapping[str, Any]:
    """Return the stores that all shards may read, as of the offsets in `ends`."""
    if not conveyed.schedule.plan.global_stores:
        return {}
    if conveyed.start not in _filled:
        while len(_filled) >= MOST:
            del _filled[next(iter(_filled))]
        _filled[conveyed.start] = Filled(conveyed)
    found = _filled[conveyed.start]
    if ends is not None:
        found.fill(Position.of_json(json.loads(ends)))
    return found.tables.stores
