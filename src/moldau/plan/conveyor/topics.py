"""The topics of an application: those that it reads, and those that are made for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from moldau.operators.context import TopologyError
from moldau.operators.stores.spec import StoreSpec

from ..levels import Schedule, stores_of
from ..nodes import SourceNode
from ..plan import Plan
from ..restoring import log_of

COMPACT, COMPACT_DELETE = "compact", "compact,delete"
DAY_MS = 24 * 60 * 60 * 1000
MOST_BYTES = 4 << 20  # of a record: a blob of what is held back, and a record of a topic may be as large as a blob
SHARD_LOG = {
    "cleanup.policy": COMPACT,
    "max.message.bytes": str(MOST_BYTES),
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}


def outside(plan: Plan, there: Mapping[str, int]) -> dict[str, int]:
    """The topics of others that a plan reads, with their partition counts; TopologyError where one is missing."""
    internal = {topic.name for topic in plan.internal_topics}
    wanted = [
        (node, topic)
        for node in plan.nodes
        if isinstance(node, SourceNode)
        for topic in node.topics
        if topic not in internal
    ]
    for node, topic in wanted:
        if topic not in there:
            raise TopologyError(f"{node.name} reads the topic {topic}, which does not exist: create it first")
    return {topic: there[topic] for _, topic in wanted}


def global_topics(plan: Plan) -> tuple[str, ...]:
    """Those that global tables are filled from."""
    return tuple(topic for node in plan.global_nodes if isinstance(node, SourceNode) for topic in node.topics)


def with_matches(plan: Plan, there: Iterable[str]) -> Plan:
    """Patterns stand for the topics that match them when the application starts."""
    names = sorted(name for name in there if not name.startswith("__"))
    nodes = tuple(
        replace(node, topics=matching(node, names), pattern=None)
        if isinstance(node, SourceNode) and node.pattern is not None
        else node
        for node in plan.nodes
    )
    return replace(plan, nodes=nodes)


def matching(node: SourceNode, names: list[str]) -> tuple[str, ...]:
    found = tuple(name for name in names if re.fullmatch(node.pattern or "", name))
    if not found:
        raise TopologyError(f"{node.name} reads the topics that match {node.pattern!r}, and there are none yet")
    return found


def changelogs(schedule: Schedule) -> dict[str, tuple[int, dict[str, str]]]:
    """The topics that hold what is in stores: how many partitions each has, and its settings."""
    plan = schedule.plan
    found: dict[str, tuple[int, dict[str, str]]] = {}
    for group in schedule.groups:
        count = max((schedule.counts[topic] for topic in schedule.reads[group]), default=0)
        for spec in stores_of(plan, group):
            if spec.has_changelog:
                found[plan.changelog(spec)] = (count, changelog_settings(spec))
    return found


def shard_log(schedule: Schedule) -> dict[str, tuple[int, dict[str, str]]]:
    """The log of shards: a short text each, and what they hold back."""
    return {log_of(schedule.plan): (1, SHARD_LOG)}


def repartitions(schedule: Schedule) -> dict[str, tuple[int, dict[str, str]]]:
    """The repartition topics that others may read. They are kept as long as the cluster keeps any topic: Kafka Streams
    deletes what it has read back, and nothing is read back here.
    """
    return {topic: (schedule.counts[topic], {"cleanup.policy": "delete"}) for topic in sorted(schedule.shown)}


def changelog_settings(spec: StoreSpec) -> dict[str, str]:
    """As Kafka Streams has them: what is windowed goes when its time is over, and a day for clocks that differ."""
    made = {"cleanup.policy": COMPACT}
    if spec.retention_ms is not None and not spec.versioned:
        made = {"cleanup.policy": COMPACT_DELETE, "retention.ms": str(spec.retention_ms + DAY_MS)}
    return {**made, **dict(spec.changelog_settings)}


def check_counts(wanted: Mapping[str, tuple[int, Mapping[str, str]]], there: Mapping[str, int]) -> None:
    """One that is there with another number of partitions is refused."""
    for topic, (count, _) in wanted.items():
        if topic in there and there[topic] != count:
            raise TopologyError(
                f"the topic {topic} has {there[topic]} partitions, and the application needs {count}: "
                "reset the application (moldau streams reset), or give it another application.id"
            )
