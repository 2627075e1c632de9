"""The nodes of a plan: sources, processors and sinks. They are frozen; factories make their operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moldau.operators.context import Operator
from moldau.operators.timestamps import Extractor
from moldau.operators.topics import Partitioner, TopicOf
from moldau.serdes.context import Serde


@dataclass(frozen=True, slots=True)
class SourceNode:
    """Reads topics, or all topics whose names match a pattern."""

    name: str
    topics: tuple[str, ...]
    key: Serde | None = None
    value: Serde | None = None
    pattern: str | None = None
    timestamp: Extractor | None = None
    reset: str | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        return ()

    @property
    def stores(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ProcessorNode:
    """A processor. `operator` makes an operator for each shard; `kind` says what it does."""

    name: str
    parents: tuple[str, ...]
    operator: Callable[[], Operator]
    stores: tuple[str, ...] = ()
    kind: str = "process"


@dataclass(frozen=True, slots=True)
class SinkNode:
    name: str
    parents: tuple[str, ...]
    topic: str | TopicOf
    key: Serde | None = None
    value: Serde | None = None
    partitioner: Partitioner | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return ()


Node = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A repartition topic: written and read by the topology itself. Its name gets the application's id as prefix."""

    name: str
    partitions: int | None = None  # None: as many as the topics above it, or those it is joined with, have
    shown: bool = False  # whether others may read it: then it exists as a topic, although it is not read here
