"""Batches for the tests, and what is read back of a partition."""

from __future__ import annotations

import time
from collections.abc import Iterable

from moldau.client import Client, Fetcher
from moldau.wire.records import Record, build, records


def batch(values: Iterable[str]) -> bytes:
    now = int(time.time() * 1000)  # markers have the broker's time: with another one the log would roll between them
    return bytes(build([Record(0, now, None, value.encode()) for value in values]))


def read(client: Client, topic: str, partition: int = 0, isolation_level: str = "read_committed") -> list[str]:
    """All values from the beginning on."""
    fetcher, committed = Fetcher(client, isolation_level=isolation_level), isolation_level == "read_committed"
    offset, found = 0, []
    while True:
        part = fetcher.fetch({(topic, partition): offset}, max_wait_ms=0)[topic, partition]
        assert not part.error, part.error.name
        data = part.committed() if committed else (one for one in part.batches() if not one.is_control)
        found += [(r.value or b"").decode() for one in data for r in records(one) if r.offset >= offset]
        offset = max([offset, *(one.next_offset for one in part.batches())])
        if offset >= (part.last_stable_offset if committed else part.high_watermark):
            return found
