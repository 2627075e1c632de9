"""What it takes to run a topology on the topics that there are (KIP-1071).

A repartition topic gets as many partitions as the widest input of those who write to it, unless it has a number of its
own, or is read together with topics that must have the same number; a changelog gets one for each task. Topics that
are missing, or do not fit, are a problem that members are told as a status.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from moldau.machines.streams.topology import inputs_of, invalid, names, repartition_topics

NAMED_TOPICS = 3  # in a sentence; of the others the number is told

Counts = Callable[[str], int | None]  # how many partitions a topic has, None if there is no such topic


class Status(IntEnum):
    """What a member is told beside its tasks."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


Told = tuple[Status, str]


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that belongs to the application. A replication of 0 takes the broker's default."""

    name: str
    partitions: int
    replication: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of the topology whose tasks run apart from those of other parts: one for each partition of its input."""

    tasks: int
    sources: frozenset[str]
    sinks: frozenset[str]
    repartitions: Mapping[str, InternalTopic]
    changelogs: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)

    @property
    def inputs(self) -> Collection[str]:
        return self.sources | self.repartitions.keys()

    def internal(self) -> Iterator[InternalTopic]:
        yield from self.repartitions.values()
        yield from self.changelogs.values()


NO_PARTS: Mapping[str, Subtopology] = {}


@dataclass(frozen=True, slots=True)
class Configured:
    """A topology on the topics that there are. Without a problem it is ready to run."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]
    problem: Told | None = None
    missing: tuple[InternalTopic, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class Unfit(Exception):
    """The topics that there are do not fit the topology."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.told: Told = status, why


def configure(topology: Any, counts: Counts) -> Configured:
    """Decide on the partitions of internal topics; raises Refused if the topology cannot be run on any topics."""
    try:
        check_sources(topology, counts)
        decided = decide(topology, counts)
        configured = {
            part.subtopology_id: configure_part(part, decided, counts)
            for part in sorted(topology.subtopologies, key=lambda part: part.subtopology_id)
        }
        missing = missing_topics(configured.values(), counts)
    except Unfit as unfit:
        return Configured(topology.epoch, {}, unfit.told)
    problem = None
    if missing:
        sentence = f"Internal topics are missing: {summary([topic.name for topic in missing])}"
        problem = Status.MISSING_INTERNAL_TOPICS, sentence
    return Configured(topology.epoch, configured, problem, missing)


def check_sources(topology: Any, counts: Counts) -> None:
    missing = {name for part in topology.subtopologies for name in part.source_topics if counts(name) is None}
    if missing:
        raise Unfit(Status.MISSING_SOURCE_TOPICS, f"Source topics {summary(sorted(missing))} are missing.")


def summary(topics: Collection[str]) -> str:
    named = ", ".join([*topics][:NAMED_TOPICS])
    more = len(topics) - NAMED_TOPICS
    return f"{named} and {more} additional topics" if more > 0 else named


def decide(topology: Any, counts: Counts) -> dict[str, int]:
    """Return the partitions that internal topics are to have."""
    decided = repartition_counts(topology, counts)
    for part in topology.subtopologies:
        for group in part.copartition_groups:
            topics = {part.source_topics[place] for place in group.source_topics}
            topics |= {part.repartition_source_topics[place].name for place in group.repartition_source_topics}
            if topics:
                decided |= copartition(topology, topics, known(counts, decided))
    for part in topology.subtopologies:
        width = widest(part, known(counts, decided))
        decided |= dict.fromkeys(names(part.state_changelog_topics), width)
    return decided


def known(counts: Counts, decided: Mapping[str, int]) -> Counts:
    """Return counts in which existing topics come before what was decided."""

    def count(topic: str) -> int | None:
        existing = counts(topic)
        return decided.get(topic) if existing is None else existing

    return count


def repartition_counts(topology: Any, counts: Counts) -> dict[str, int]:
    """Return what each repartition topic asks for, or else the widest input of a subtopology that writes to it."""
    decided = {topic.name: topic.partitions for topic in repartition_topics(topology) if topic.partitions}
    open_sinks = {
        (sink, part.subtopology_id): part
        for part in topology.subtopologies
        for sink in part.repartition_sink_topics
        if sink not in decided
    }
    while open_sinks:
        widths = {
            place: count
            for place, part in open_sinks.items()
            if (count := widest_known(part, decided, counts)) is not None
        }
        if not widths:
            invalid("The partitions of repartition topics cannot be told: the topology may have a loop.")
        for (sink, _), count in widths.items():
            decided.setdefault(sink, count)
        open_sinks = {place: part for place, part in open_sinks.items() if place[0] not in decided}
    if any(topic.name not in decided for topic in repartition_topics(topology)):
        invalid("The partitions of repartition topics cannot be told: nobody writes to one that is read.")
    return decided


def widest_known(part: Any, decided: Mapping[str, int], counts: Counts) -> int | None:
    """Return the widest of the inputs whose partitions can be told so far."""
    sizes = [decided.get(name) for name in names(part.repartition_source_topics)]
    sizes += [counts(name) for name in part.source_topics]
    return max((count for count in sizes if count is not None), default=None)


def copartition(topology: Any, topics: Collection[str], counts: Counts) -> dict[str, int]:
    """Partitions of repartition topics that are read together with others: all must have the same number."""
    fixed = {topic.name for topic in repartition_topics(topology) if topic.partitions}
    flexible = {topic.name for topic in repartition_topics(topology)} - fixed
    sizes = {topic: counts(topic) or 0 for topic in topics}
    external = {topic: size for topic, size in sizes.items() if topic not in fixed | flexible}
    bound = external or {topic: size for topic, size in sizes.items() if topic in fixed}
    if len(set(bound.values())) > 1:
        shown = ", ".join(f"{topic}={bound[topic]}" for topic in sorted(bound))
        unfit = f"Following topics do not have the same number of partitions: [{{{shown}}}]"
        raise Unfit(Status.INCORRECTLY_PARTITIONED_TOPICS, unfit)
    width = next(iter(bound.values()), max(sizes.values()))
    for topic in sorted(fixed & sizes.keys()):
        if sizes[topic] != width:
            raise Unfit(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{sizes[topic]}] of repartition topic [{topic}] doesn't match number of "
                f"partitions [{width}] of the source topic.",
            )
    return dict.fromkeys(sizes.keys() - external.keys(), width)


def widest(part: Any, counts: Counts) -> int:
    sizes = [counts(topic) or 0 for topic in inputs_of(part)]
    if not sizes:
        invalid(f"Subtopology {part.subtopology_id} reads no topics.")
    return max(sizes)


def configure_part(part: Any, decided: Mapping[str, int], counts: Counts) -> Subtopology:
    return Subtopology(
        tasks=widest(part, known(counts, decided)),
        sources=frozenset(part.source_topics),
        sinks=frozenset(part.repartition_sink_topics),
        repartitions=internal_topics(part.repartition_source_topics, decided),
        changelogs=internal_topics(part.state_changelog_topics, decided),
    )


def internal_topics(topics: Iterable[Any], decided: Mapping[str, int]) -> dict[str, InternalTopic]:
    return {
        topic.name: InternalTopic(
            topic.name,
            topic.partitions or decided[topic.name],
            topic.replication_factor,
            {pair.key: pair.value for pair in topic.topic_configs},
        )
        for topic in topics
    }


def missing_topics(subtopologies: Iterable[Subtopology], counts: Counts) -> tuple[InternalTopic, ...]:
    """Internal topics that have to be created. Those that are there must have the partitions that were decided."""
    wanted = {topic.name: topic for part in subtopologies for topic in part.internal()}
    for name, topic in wanted.items():
        count = counts(name)
        if count is not None and count != topic.partitions:
            raise Unfit(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {topic.partitions}, found {count}",
            )
    return tuple(wanted[name] for name in sorted(wanted) if counts(name) is None)
