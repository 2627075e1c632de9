"""What the rim and the node count: plain numbers, so that counting costs next to nothing. metrics.py reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from moldau.machines.metadata.cluster import Cluster

TIMES = 65


@dataclass(slots=True)
class Counters:
    """`times[n]` counts requests that took less than 2**n * 1.024 microseconds (and not less than half of it)."""

    bytes_in: int = 0
    bytes_out: int = 0
    accepted: int = 0
    times: list[int] = field(default_factory=lambda: [0] * TIMES)
    refused: Counter[str] = field(default_factory=Counter[str])

    def add_time(self, nanoseconds: int, requests: int) -> None:
        """Count the requests of one wake-up with their mean: reading the clock for each would cost too much."""
        self.times[(nanoseconds // requests >> 10).bit_length()] += requests


@dataclass(slots=True)
class ClusterCounters:
    """What a node has seen happen in its cluster since it started: only changes are counted, no partitions walked."""

    isr_shrinks: int = 0
    isr_expansions: int = 0
    elections: int = 0
    unclean_elections: int = 0
    commits: int = 0  # of changes of the metadata that this node has written
    commit_ms: float = 0.0
    reassignment_bytes_in: int = 0
    reassignment_bytes_out: int = 0

    def note_isr(self, before: Collection[int], after: Collection[int], replicas: Collection[int]) -> None:
        """Count a change of the replicas in sync. One that has been moved away did not fall behind."""
        if before and set(before) != set(after):
            self.isr_shrinks += not set(before) & set(replicas) <= set(after)
            self.isr_expansions += not set(after) <= set(before)

    def note_election(self, image: Cluster, record: Any) -> None:
        """Count a PartitionChangeRecord that names another leader, before it is replayed."""
        topic = image.topics_by_id.get(bytes(record.topic_id))
        known = topic.partitions.get(record.partition_id) if topic else None
        if known is not None and record.leader >= 0 and record.leader != known.leader:
            self.elections += 1
            self.unclean_elections += record.leader not in (*known.isr, *known.eligible_leaders)
