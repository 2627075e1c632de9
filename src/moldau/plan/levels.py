"""The schedule of a plan: the order in which sub-topologies run, and how many shards each has.

A change of key ends a sub-topology: it writes to an internal topic, which another one reads. On Spark internal topics
are rows of one query, so a sub-topology runs a level after all those that write what it reads. A shard is what Kafka
Streams calls a task: one sub-topology for one partition of its topics.
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
        """Return Kafka's name of the task."""
        return f"{self.group}_{self.partition}"


class Schedule:
    """What runs where, given the partition counts of all topics that a plan reads, by their full names.

    `groups` are the sub-topologies that run once a partition, `reads` their topics, `reader` the inverse of it;
    `levels` are groups that run at the same time; the index of a shard in `shards` is its number; the topics of
    `internal` are rows, and those of `shown` are also written. `mirrors` has, for each internal topic that mirrors a
    store (unrolling.py), the store and the sub-topology with the mirror.
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
        """Return the internal topics that a sub-topology writes."""
        return tuple(self.plan.topic(name) for name in internal_written(self.plan, group))

    def changelogs(self) -> list[tuple[str, int]]:
        """Return the topics from which stores can be restored, each with its sub-topology."""
        plan = self.plan
        stores = [(spec, group) for group in self.groups for spec in stores_of(plan, group)]
        return [(plan.changelog(spec), group) for spec, group in stores if spec.logged or spec.changelog]

    def shard_of(self, topic: str, partition: int) -> ShardId:
        return ShardId(self.reader[topic], partition)


def stores_of(plan: Plan, group: int) -> tuple[StoreSpec, ...]:
    """Return the stores of a sub-topology that are its own, not mirrors of others."""
    wanted = {store for node in plan.members(group) for store in node.stores} - plan.global_stores
    return tuple(spec for spec in plan.stores if spec.name in wanted and home_of(plan, spec.name) == group)


def home_of(plan: Plan, store: str) -> int:
    """Return the sub-topology that writes a store: the first of those that use it (see unrolling.py)."""
    users = {node.name for node in plan.nodes if store in node.stores}
    return next(number for number, names in enumerate(plan.groups) if users & set(names))


def local_groups(plan: Plan) -> tuple[int, ...]:
    return tuple(number for number, names in enumerate(plan.groups) if not plan.is_global(names))


def sources_of(plan: Plan, group: int) -> list[SourceNode]:
    return [node for node in plan.members(group) if isinstance(node, SourceNode)]


def topics_read(plan: Plan, group: int) -> tuple[str, ...]:
    return tuple(plan.topic(topic) for source in sources_of(plan, group) for topic in source.topics)


def internal_written(plan: Plan, group: int) -> tuple[str, ...]:
    """Return the internal topics that a sub-topology writes, by their names in the plan."""
    internal = {topic.name for topic in plan.internal_topics}
    topics = (node.topic for node in plan.members(group) if isinstance(node, SinkNode))
    return tuple(topic for topic in topics if isinstance(topic, str) and topic in internal)


def depths(plan: Plan, groups: tuple[int, ...]) -> dict[int, int]:
    """Return how many changes of key come before each sub-topology, on the longest path."""
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
    """Return the partition counts of all topics that are read. That of an internal topic is chosen as in Kafka: the
    given one, otherwise that of the topics it is joined with, otherwise the largest one above.
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
    """Check that joined topics have equally many partitions; internal ones without a count get the count of others."""
    for sources in plan.copartitioned:
        if not sources & set(plan.groups[group]):
            continue
        nodes = [node for node in plan.nodes if isinstance(node, SourceNode) and node.name in sources]
        topics = [plan.topic(topic) for node in nodes for topic in node.topics]
        fixed = {topic: counts[topic] for topic in topics if explicit.get(topic, 1) is not None}
        if len(set(fixed.values())) > 1:
            counted = ", ".join(f"{topic} has {count}" for topic, count in sorted(fixed.items()))
            raise TopologyError(
                f"topics that are joined must have the same number of partitions, but {counted}: "
                "use repartition() on one of them"
            )
        wanted = next(iter(fixed.values()), max((counts.get(topic, 0) for topic in topics), default=0))
        counts.update((topic, wanted) for topic in topics if topic not in fixed)
