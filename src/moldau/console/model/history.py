"""What the sampler has seen, and what follows from it: rates, lags, health. Bounded, however large the cluster is."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from moldau.admin import TopicPartition
from moldau.admin.clusters import ClusterState
from moldau.admin.groups import Committed
from moldau.admin.topics import TopicState

POINTS = 300  # of a chart
SHOWN_GROUPS = 5  # lines of lag


@dataclass(frozen=True, slots=True)
class Read:
    """The offset and the lag of a group in a topic, summed over its partitions."""

    offset: int
    lag: int


def reads(
    committed: Mapping[str, Mapping[TopicPartition, Committed]], ends: Mapping[TopicPartition, int]
) -> dict[tuple[str, str], Read]:
    """Return offset and lag of each group in each topic where it has committed something."""
    sums: dict[tuple[str, str], Read] = {}
    for group, offsets in committed.items():
        for place, one in offsets.items():
            before = sums.get((group, place[0]), Read(0, 0))
            behind = max(0, ends[place] - one.offset) if place in ends else 0
            sums[group, place[0]] = Read(before.offset + one.offset, before.lag + behind)
    return sums


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster at a moment. `ends` are the next offsets of topics, summed over partitions; `lags` are those of
    groups, `reads` those of groups and topics.
    """

    at_s: float
    cluster: ClusterState
    topics: tuple[TopicState, ...]
    ends: Mapping[str, int]
    lags: Mapping[str, int]
    reads: Mapping[tuple[str, str], Read] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flow:
    """The current records per second into topics, and from topics to groups, and the lag of the groups."""

    written: Mapping[str, float] = field(default_factory=dict)
    read: Mapping[tuple[str, str], float] = field(default_factory=dict)
    lag: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the charts: what is kept of a sample once the next one has come."""

    at_s: float
    records: int
    lags: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Health:
    """Whether all is well, in numbers and in a sentence."""

    brokers: int
    topics: int
    partitions: int
    leaderless: int
    under_replicated: int
    fenced: int

    @property
    def is_well(self) -> bool:
        return not (self.leaderless or self.under_replicated or self.fenced)

    @property
    def sentence(self) -> str:
        counts = (
            (self.leaderless, "partition has no leader", "partitions have no leader"),
            (self.under_replicated, "partition lacks replicas", "partitions lack replicas"),
            (self.fenced, "broker is fenced", "brokers are fenced"),
        )
        wrong = [f"{number} {one if number == 1 else many}" for number, one, many in counts if number]
        return "; ".join(wrong) + "." if wrong else "All is well."


def health(sample: Sample) -> Health:
    parts = [part for topic in sample.topics for part in topic.partitions]
    return Health(
        len(sample.cluster.brokers),
        len(sample.topics),
        len(parts),
        sum(part.leader < 0 for part in parts),
        sum(part.is_under_replicated for part in parts),
        sum(broker.is_fenced for broker in sample.cluster.brokers),
    )


@dataclass(slots=True)
class History:
    """The last two samples in full, and a point for each earlier one."""

    last: Sample | None = None
    before: Sample | None = None
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS))

    def add(self, sample: Sample) -> None:
        self.before, self.last = self.last, sample
        self.points.append(Point(sample.at_s, sum(sample.ends.values()), sample.lags))

    def throughput(self) -> list[tuple[float, float]]:
        """Return records per second at each point; never negative, even if a topic was deleted."""
        return [
            (new.at_s, max(0, new.records - old.records) / (new.at_s - old.at_s))
            for old, new in pairwise(list(self.points))
            if new.at_s > old.at_s
        ]

    def rates(self) -> Mapping[str, float]:
        """Return the current records per second of each topic."""
        return self.flow().written

    def flow(self) -> Flow:
        """Return the current flow. A group whose offsets were set back reads nothing."""
        old, new = self.before, self.last
        if new is None:
            return Flow()
        lag = {place: one.lag for place, one in new.reads.items()}
        if old is None or new.at_s <= old.at_s:
            return Flow(lag=lag)
        passed = new.at_s - old.at_s
        written = {topic: max(0, end - old.ends.get(topic, end)) / passed for topic, end in new.ends.items()}
        read = {
            place: max(0, one.offset - old.reads[place].offset) / passed
            for place, one in new.reads.items()
            if place in old.reads
        }
        return Flow(written, read, lag)

    def lag_lines(self) -> dict[str, list[tuple[float, int]]]:
        """Return the lag at each point of the groups with the largest lag."""
        lags = self.last.lags if self.last else {}
        names = sorted(lags, key=lambda name: (-lags[name], name))[:SHOWN_GROUPS]
        points = list(self.points)
        return {name: [(point.at_s, point.lags[name]) for point in points if name in point.lags] for name in names}
