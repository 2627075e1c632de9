"""Which partitions of a share group have a state at the share coordinator (KIP-932).

A partition is `initializing` from the moment the group needs it until the share coordinator has its state: only then
may it be assigned. A topic whose state is being deleted is `deleting`. All of it is one record of the group, so that a
crash in between leaves a note of what has to be done again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from moldau.machines.consumer.assignors import Partitions
from moldau.machines.effects import Change
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import messages as m

UNKNOWN = "<UNKNOWN>"  # the name of a topic that is gone, as Kafka writes it
NO_OFFSET = -1  # the share coordinator's partition then begins where share.auto.offset.reset says


class Known(NamedTuple):
    """Partitions of a topic, with the name that it had."""

    name: str
    partitions: frozenset[int]


Topics = Mapping[bytes, Known]


@dataclass(frozen=True, slots=True)
class States:
    """The record. Each step of a topic's life is a function from one to the next."""

    initializing: Topics = field(default_factory=dict[bytes, Known])
    initialized: Topics = field(default_factory=dict[bytes, Known])
    deleting: Mapping[bytes, str] = field(default_factory=dict[bytes, str])

    def begin(self, topics: Topics) -> States:
        """Note that partitions are about to get a state."""
        deleting = {topic: name for topic, name in self.deleting.items() if topic not in topics}
        return replace(self, initializing=union(self.initializing, topics), deleting=deleting)

    def finish(self, topics: Topics) -> States:
        """Note that they have it."""
        return replace(self.give_up(topics), initialized=union(self.initialized, topics))

    def give_up(self, topics: Topics) -> States:
        """Note that they did not get it."""
        return replace(self, initializing=difference(self.initializing, topics))

    def delete(self, topics: Topics) -> States:
        """Note that the state of whole topics is about to be deleted."""
        names = {topic: known.name for topic, known in topics.items()}
        return replace(self.without(topics), deleting={**self.deleting, **names})

    def without(self, topics: Collection[bytes]) -> States:
        """Forget all about some topics."""
        return States(
            {topic: known for topic, known in self.initializing.items() if topic not in topics},
            {topic: known for topic, known in self.initialized.items() if topic not in topics},
            {topic: name for topic, name in self.deleting.items() if topic not in topics},
        )

    def knows(self, topic: bytes) -> bool:
        return topic in self.initializing or topic in self.initialized or topic in self.deleting


def union(some: Topics, others: Topics) -> Topics:
    result = dict(some)
    for topic, known in others.items():
        before = result[topic].partitions if topic in result else frozenset[int]()
        result[topic] = Known(known.name, before | known.partitions)
    return result


def difference(some: Topics, others: Topics) -> Topics:
    result: dict[bytes, Known] = {}
    for topic, known in some.items():
        left = known.partitions - others[topic].partitions if topic in others else known.partitions
        if left:
            result[topic] = Known(known.name, left)
    return result


def missing(states: States, names: Iterable[str], cluster: Cluster) -> Topics:
    """Return the partitions of these topics that have no state yet, or of which a crash has left none known."""
    wanted = [cluster.topics[name] for name in sorted(names) if name in cluster.topics]
    whole = {topic.id: Known(topic.name, frozenset(topic.partitions)) for topic in wanted}
    return difference(whole, states.initialized)


def deletable(states: States, cluster: Cluster) -> Topics:
    """Return all that a group may have at the share coordinator, also what could not be deleted before."""
    retried = {
        topic: Known(name, frozenset(cluster.topics_by_id[topic].partitions))
        for topic, name in states.deleting.items()
        if topic in cluster.topics_by_id
    }
    return union(union(states.initialized, states.initializing), retried)


def with_names(partitions: Partitions, cluster: Cluster) -> Topics:
    """Partitions by topic id, with the names of their topics."""
    known = cluster.topics_by_id
    return {
        topic: Known(known[topic].name if topic in known else UNKNOWN, indexes) for topic, indexes in partitions.items()
    }


# The record, as Kafka writes it.


def states_change(group_id: str, states: States) -> Change:
    value = m.ShareGroupStatePartitionMetadataValue(
        rows_of(states.initializing),
        rows_of(states.initialized),
        [m.ShareGroupStatePartitionMetadataValue_TopicInfo(*topic) for topic in states.deleting.items()],
    )
    return Change(m.ShareGroupStatePartitionMetadataKey(group_id), value)


def rows_of(topics: Topics) -> list[Any]:
    row = m.ShareGroupStatePartitionMetadataValue_TopicPartitionsInfo
    return [row(topic, known.name, sorted(known.partitions)) for topic, known in topics.items()]


def states_of(value: Any) -> States:
    return States(
        topics_of(value.initializing_topics),
        topics_of(value.initialized_topics),
        {bytes(row.topic_id): row.topic_name for row in value.deleting_topics},
    )


def topics_of(rows: Iterable[Any]) -> Topics:
    return {bytes(row.topic_id): Known(row.topic_name, frozenset(row.partitions)) for row in rows}


# Requests to the share coordinator.


def initialization(group_id: str, epoch: int, offsets: Mapping[bytes, Mapping[int, int]]) -> Any:
    """Return a request to set up the state of partitions, each with the offset at which it begins."""
    rows = [
        m.InitializeShareGroupStateRequest_InitializeStateData(
            topic,
            [
                m.InitializeShareGroupStateRequest_PartitionData(index, epoch, offset)
                for index, offset in sorted(starts.items())
            ],
        )
        for topic, starts in offsets.items()
    ]
    return m.InitializeShareGroupStateRequest(group_id, rows)


def unset(topics: Topics) -> dict[bytes, dict[int, int]]:
    return {topic: dict.fromkeys(known.partitions, NO_OFFSET) for topic, known in topics.items()}


def deletion(group_id: str, topics: Topics) -> Any:
    """Return a request to delete the state of partitions."""
    rows = [
        m.DeleteShareGroupStateRequest_DeleteStateData(
            topic, [m.DeleteShareGroupStateRequest_PartitionData(index) for index in sorted(known.partitions)]
        )
        for topic, known in topics.items()
    ]
    return m.DeleteShareGroupStateRequest(group_id, rows)
