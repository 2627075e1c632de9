"""The schedule of a plan: which sub-topologies run one after another, and how many shards each has.

A change of key ends a sub-topology: what it writes to an internal topic is read by another. On Spark these topics are
rows of one query, so a sub-topology runs a level after all that write what it reads. A shard is what Kafka Streams
calls a task: one sub-topology for one partition of its topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.operators.context import TopologyError
from moldau.operators.stores.spec import StoreSpec

from .nodes import SinkNode, SourceNode
from .plan import Plan


@dataclass(frozen=True, slots=True)
class ShardId:
    group: int  # the number of the sub-topology
    partition: int

    def __str__(self) -> str:
        """As Kafka names tasks."""
        return f"{self.group}_{self.partition}"


class Schedule:
    """What of a plan runs where, given the partition counts of all topics that it reads, by their full names.

    `groups` are the sub-topologies that run once a partition, `reads` their topics, `reader` the other way round;
    `levels` are groups that run at the same time; the place of a shard in `shards` is its number; the topics of
    `internal` are rows here, and those of `shown` are written besides. `mirrors` has for each internal topic by which a
    store is mirrored (unrolling.py) the store and the sub-topology that has the mirror.
    """

    __slots__ = (
        "counts", "groups", "internal", "levels", "mirrors", "numbers", "plan", "reader", "reads", "shards", "shown"
    )  # fmt: skip

    def __init__(self, plan: Plan, counts: Mapping[str, int], mirrors: Mapping[str, tuple[str, int]]) -> None:
        self.plan, self.counts, self.mirrors = plan, dict(counts), mirrors
        self.groups = local_groups(plan)
        self.reads = {group: topics_read(plan, group) for group in self.groups}
        self.reader = {topic: group for group, topics in self.reads.items() for topic in topics}
        found = depths(plan, self.groups)
        self.levels = tuple(
            tuple(group for group in self.groups if found[group] == depth)
            for depth in range(max(found.values(), default=-1) + 1)
        )
        self.shards = tuple(
            ShardId(group, partition)
            for group in self.groups
            for partition in range(max((counts[topic] for topic in self.reads[group]), default=0))
        )
        self.numbers = {shard: number for number, shard in enumerate(self.shards)}
        for topic, (_, group) in mirrors.items():
            self.reader[topic] = group
            self.counts[topic] = max(counts[one] for one in self.reads[group])
        self.internal = frozenset(plan.topic(topic.name) for topic in plan.internal_topics) | set(mirrors)
        self.shown = frozenset(plan.topic(topic.name) for topic in plan.internal_topics if topic.shown)

    def writes(self, group: int) -> tuple[str, ...]:
        """The internal topics that a sub-topology writes."""
        return tuple(self.plan.topic(name) for name in internal_written(self.plan, group))

    def changelogs(self) -> list[tuple[str, int]]:
        """The topics from which stores can be restored, and the sub-topology whose stores they are."""
        plan = self.plan
        stores = [(spec, group) for group in self.groups for spec in stores_of(plan, group)]
        return [(plan.changelog(spec), group) for spec, group in stores if spec.logged or spec.changelog]

    def shard_of(self, topic: str, partition: int) -> ShardId:
        return ShardId(self.reader[topic], partition)


def stores_of(plan: Plan, group: int) -> tuple[StoreSpec, ...]:
    """Those of a sub-topology that are its own, not mirrors of others'."""
    names = set(plan.groups[group])
    wanted = {store for node in plan.nodes if node.name in names for store in node.stores} - plan.global_stores
    return tuple(spec for spec in plan.stores if spec.name in wanted and home_of(plan, spec.name) == group)


def home_of(plan: Plan, store: str) -> int:
    """The sub-topology that writes a store: the first of those that have it (see unrolling.py)."""
    users = {node.name for node in plan.nodes if store in node.stores}
    return next(number for number, names in enumerate(plan.groups) if users & set(names))


def local_groups(plan: Plan) -> tuple[int, ...]:
    return tuple(number for number, names in enumerate(plan.groups) if not plan.is_global(names))


def topics_read(plan: Plan, group: int) -> tuple[str, ...]:
    names = set(plan.groups[group])
    sources = [node for node in plan.nodes if isinstance(node, SourceNode) and node.name in names]
    return tuple(plan.topic(topic) for source in sources for topic in source.topics)


def internal_written(plan: Plan, group: int) -> tuple[str, ...]:
    """By the names of the plan."""
    internal = {topic.name for topic in plan.internal_topics}
    names = set(plan.groups[group])
    sinks = [node for node in plan.nodes if isinstance(node, SinkNode) and node.name in names]
    return tuple(sink.topic for sink in sinks if isinstance(sink.topic, str) and sink.topic in internal)


def depths(plan: Plan, groups: tuple[int, ...]) -> dict[int, int]:
    """How many changes of key lie before each sub-topology, on the longest way."""
    writers: dict[str, list[int]] = {}
    for group in groups:
        for name in internal_written(plan, group):
            writers.setdefault(plan.topic(name), []).append(group)
    above = {group: [w for topic in topics_read(plan, group) for w in writers.get(topic, ())] for group in groups}
    found: dict[int, int] = {}
    while len(found) < len(groups):
        ready = [g for g in groups if g not in found and all(other in found for other in above[g])]
        if not ready:
            raise TopologyError("the topology writes to an internal topic that it reads above: that has no order")
        for group in ready:
            found[group] = max((found[other] + 1 for other in above[group]), default=0)
    return found


def partition_counts(plan: Plan, outside: Mapping[str, int]) -> dict[str, int]:
    """The partition counts of all topics that are read, those of the application's own as Kafka chooses them: what was
    said, else the count of what they are joined with, else the largest count of what is read above.
    """
    counts = dict(outside)
    explicit = {plan.topic(topic.name): topic.partitions for topic in plan.internal_topics}
    counts |= {topic: count for topic, count in explicit.items() if count is not None}
    groups = local_groups(plan)
    by_depth = sorted(groups, key=depths(plan, groups).__getitem__)
    for group in by_depth:
        check_copartitions(plan, group, counts, explicit)
        most = max((counts[topic] for topic in topics_read(plan, group) if topic in counts), default=0)
        for name in internal_written(plan, group):
            topic = plan.topic(name)
            if explicit[topic] is None:
                counts[topic] = max(counts.get(topic, 0), most)
    return counts


def check_copartitions(plan: Plan, group: int, counts: dict[str, int], explicit: Mapping[str, int | None]) -> None:
    """Topics that are joined must have as many partitions; internal ones whose count is free get that count."""
    names = set(plan.groups[group])
    for sources in plan.copartitioned:
        if not sources & names:
            continue
        nodes = [node for node in plan.nodes if isinstance(node, SourceNode) and node.name in sources]
        topics = [plan.topic(topic) for node in nodes for topic in node.topics]
        fixed = {topic: counts[topic] for topic in topics if explicit.get(topic, 1) is not None}
        if len(set(fixed.values())) > 1:
            told = ", ".join(f"{topic} has {count}" for topic, count in sorted(fixed.items()))
            raise TopologyError(
                f"topics that are joined must have the same number of partitions, but {told}: "
                "use repartition() on one of them"
            )
        wanted = next(iter(fixed.values()), max((counts.get(topic, 0) for topic in topics), default=0))
        counts.update((topic, wanted) for topic in topics if topic not in fixed)
