"""The topics of an application: those that it reads, and the changelogs that are made for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from moldau.operators.context import TopologyError
from moldau.operators.stores.spec import StoreSpec

from ..levels import Schedule
from ..nodes import SourceNode
from ..plan import Plan

COMPACT, COMPACT_DELETE = "compact", "compact,delete"
DAY_MS = 24 * 60 * 60 * 1000


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
        names = set(plan.groups[group])
        stores = {store for node in plan.nodes if node.name in names for store in node.stores}
        count = max((schedule.counts[topic] for topic in schedule.reads[group]), default=0)
        for spec in plan.stores:
            if spec.name in stores and spec.logged and spec.changelog is None and spec.name not in plan.global_stores:
                found[plan.changelog(spec)] = (count, changelog_settings(spec))
    return found


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
