"""The topics of an application: those that it reads, and those that are created for it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from moldau.operators.context import TopologyError
from moldau.operators.stores.spec import StoreSpec
from moldau.spark.admin import REPLICATION
from moldau.spark.source.options import EARLIEST, LATEST

from ..levels import Schedule, stores_of
from ..nodes import SinkNode, SourceNode
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


@dataclass(frozen=True, slots=True)
class Own:
    """The settings of created topics: the replication factor, -1 for the broker's; topic settings; and the additional
    retention of windows' changelogs.
    """

    replication: int = REPLICATION
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    more_retention_ms: int = DAY_MS


def outside(plan: Plan, there: Mapping[str, int]) -> dict[str, int]:
    """Return the input topics of a plan with their partition counts; TopologyError if one is missing."""
    internal = {topic.name for topic in plan.internal_topics}
    sources = [node for node in plan.nodes if isinstance(node, SourceNode)]
    wanted = [(node, topic) for node in sources for topic in node.topics if topic not in internal]
    for node, topic in wanted:
        if topic not in there:
            raise TopologyError(f"{node.name} reads the topic {topic}, which does not exist: create it first")
    return {topic: there[topic] for _, topic in wanted}


def missing(plan: Plan, there: Collection[str]) -> list[str]:
    """Return the input and output topics of a plan that do not exist."""
    internal = {topic.name for topic in plan.internal_topics}
    read = [topic for node in plan.nodes if isinstance(node, SourceNode) for topic in node.topics]
    written = [node.topic for node in plan.nodes if isinstance(node, SinkNode) and isinstance(node.topic, str)]
    return [topic for topic in dict.fromkeys((*read, *written)) if topic not in internal and topic not in there]


def global_topics(plan: Plan) -> tuple[str, ...]:
    """Return the topics of global tables."""
    return tuple(topic for node in plan.global_nodes if isinstance(node, SourceNode) for topic in node.topics)


def with_matches(plan: Plan, there: Iterable[str]) -> Plan:
    """Replace patterns by the topics that match them now, at the start of the application."""
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


def changelogs(schedule: Schedule, own: Own) -> dict[str, tuple[int, dict[str, str]]]:
    """Return the changelogs of stores, with their partition counts and settings."""
    plan = schedule.plan
    found: dict[str, tuple[int, dict[str, str]]] = {}
    for group in schedule.groups:
        count = max((schedule.counts[topic] for topic in schedule.reads[group]), default=0)
        for spec in stores_of(plan, group):
            if spec.has_changelog:
                found[plan.changelog(spec)] = (count, changelog_settings(spec, own))
    return found


def shard_log(schedule: Schedule) -> dict[str, tuple[int, dict[str, str]]]:
    """Return the log of shards, which has the state of each and what it holds back."""
    return {log_of(schedule.plan): (1, SHARD_LOG)}


def repartitions(schedule: Schedule, own: Own) -> dict[str, tuple[int, dict[str, str]]]:
    """Return the repartition topics that others may read. They have the cluster's retention: Kafka Streams deletes what
    it has read, but here nothing is read back.
    """
    settings = {"cleanup.policy": "delete", **own.settings}
    return {topic: (schedule.counts[topic], settings) for topic in sorted(schedule.shown)}


def changelog_settings(spec: StoreSpec, own: Own) -> dict[str, str]:
    """Return the settings of Kafka Streams: windows expire after their retention, and a day for clocks that differ;
    versions are kept for so long before the topic is compacted.
    """
    made = {"cleanup.policy": COMPACT}
    if spec.retention_ms is not None and spec.versioned:
        made["min.compaction.lag.ms"] = str(spec.retention_ms + DAY_MS)
    elif spec.retention_ms is not None:
        made = {"cleanup.policy": COMPACT_DELETE, "retention.ms": str(spec.retention_ms + own.more_retention_ms)}
    return {**made, **own.settings, **dict(spec.changelog_settings)}


def check_counts(wanted: Mapping[str, tuple[int, Mapping[str, str]]], there: Mapping[str, int]) -> None:
    """Refuse existing topics with another number of partitions."""
    for topic, (count, _) in wanted.items():
        if topic in there and there[topic] != count:
            raise TopologyError(
                f"the topic {topic} has {there[topic]} partitions, and the application needs {count}: "
                "reset the application (moldau streams reset), or give it another application.id"
            )


def starting(schedule: Schedule, reset: str, begins: Mapping[str, Sequence[int]] | None = None) -> str:
    """Return where an application begins that has never run: one word, or JSON with a number for each partition if a
    source has its own `reset=`, or `begins` has the offsets of its topic.
    """
    chosen, given = resets(schedule.plan), begins or {}
    if not chosen and not given:
        return reset
    words = {"earliest": EARLIEST, "latest": LATEST, "none": EARLIEST}
    read = [topic for topic in sorted(schedule.reader) if topic not in schedule.internal]
    return json.dumps(
        {
            topic: {
                str(number): offset
                for number, offset in enumerate(
                    first_offsets(given[topic], schedule.counts[topic])
                    if topic in given
                    else [words[chosen.get(topic, reset)]] * schedule.counts[topic]
                )
            }
            for topic in read
        }
    )


def first_offsets(given: Sequence[int], count: int) -> list[int]:
    """Return the offsets of all partitions; those that were added since are read from their start."""
    return [*given, *[EARLIEST] * (count - len(given))]


def resets(plan: Plan) -> dict[str, str]:
    """Return `reset=` of sources by topic."""
    return {
        topic: node.reset
        for node in plan.nodes
        if isinstance(node, SourceNode) and node.reset is not None
        for topic in node.topics
    }


def check_resets(plan: Plan) -> None:
    """Refuse `reset='none'` for an application that has no position to continue from."""
    for topic, reset in resets(plan).items():
        if reset == "none":
            raise TopologyError(
                f"the topic {topic} is read with reset='none', and the application has not read it before: "
                "say earliest or latest"
            )
