"""The topology of a Streams application (KIP-1071), as its first member tells it and as the log keeps it.

It consists of subtopologies with the topics that they read and write. Those that must have equally many partitions
because they are read together stand in copartition groups, by their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from moldau.machines.group import refuse
from moldau.wire import messages as m
from moldau.wire.errors import Error


def record_of(told: Any) -> Any:
    """Return the record of a topology that a heartbeat tells; raises Refused if it makes no sense."""
    check(told)
    rows = [
        m.StreamsGroupTopologyValue_Subtopology(
            subtopology_id=part.subtopology_id,
            source_topics=part.source_topics,
            source_topic_regex=part.source_topic_regex,
            state_changelog_topics=[*map(info_of, part.state_changelog_topics)],
            repartition_sink_topics=part.repartition_sink_topics,
            repartition_source_topics=[*map(info_of, part.repartition_source_topics)],
            copartition_groups=[
                m.StreamsGroupTopologyValue_CopartitionGroup(
                    group.source_topics, group.source_topic_regex, group.repartition_source_topics
                )
                for group in part.copartition_groups
            ],
        )
        for part in told.subtopologies
    ]
    return m.StreamsGroupTopologyValue(told.epoch, rows)


def info_of(topic: Any) -> Any:
    configs = [m.StreamsGroupTopologyValue_TopicConfig(pair.key, pair.value) for pair in topic.topic_configs]
    return m.StreamsGroupTopologyValue_TopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)


def check(told: Any) -> None:
    if told.epoch < 0:
        invalid("The epoch of a topology is never below 0.")
    ids = [part.subtopology_id for part in told.subtopologies]
    if len(set(ids)) < len(ids):
        invalid("Two subtopologies have the same id.")
    for part in told.subtopologies:
        for group in part.copartition_groups:
            for places, topics in (
                (group.source_topics, part.source_topics),
                (group.repartition_source_topics, part.repartition_source_topics),
            ):
                if any(not 0 <= place < len(topics) for place in places):
                    invalid(
                        f"A copartition group of subtopology {part.subtopology_id} names a topic that is not there."
                    )


def invalid(why: str) -> NoReturn:
    refuse(Error.STREAMS_INVALID_TOPOLOGY, why)


def is_same(one: Any, other: Any) -> bool:
    """Return whether two topologies are the same, in whatever order their parts come."""
    return one.epoch == other.epoch and parts(one) == parts(other)


def parts(topology: Any) -> dict[str, Any]:
    return {part.subtopology_id: part for part in topology.subtopologies}


def names(topics: Iterable[Any]) -> list[str]:
    return [topic.name for topic in topics]


def inputs_of(part: Any) -> list[str]:
    return [*part.source_topics, *names(part.repartition_source_topics)]


def input_topics(topology: Any) -> dict[str, str]:
    """Return the topics that tasks read and commit offsets for, each with its subtopology."""
    return {topic: part.subtopology_id for part in topology.subtopologies for topic in inputs_of(part)}


def required_topics(topology: Any) -> set[str]:
    """Return all topics that must be there before a task can run."""
    return {name for part in topology.subtopologies for name in (*inputs_of(part), *names(part.state_changelog_topics))}


def repartition_topics(topology: Any) -> Iterator[Any]:
    for part in topology.subtopologies:
        yield from part.repartition_source_topics


def all_topics(topology: Any) -> list[str]:
    """Return each topic that a topology names, once."""
    topics = [
        name
        for part in topology.subtopologies
        for name in (*inputs_of(part), *part.repartition_sink_topics, *names(part.state_changelog_topics))
    ]
    return [*dict.fromkeys(topics)]
