"""The test driver: it runs a topology in memory, record by record, without a broker and without Spark.

It works as Kafka's TopologyTestDriver. Each topic has one partition, and one task runs all sub-topologies, so there is
one stream time. A commit follows each record, so a cache only merges changes by one record. Records that are written
to a topic which the topology also reads are fed back in.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from moldau.operators.context import UNKNOWN_TIME, Shard
from moldau.operators.durations import Duration, milliseconds
from moldau.operators.priority import PriorityQueue
from moldau.operators.record import Produced, Raw, Record
from moldau.operators.stores.ordered import MemoryBytes
from moldau.operators.stores.spec import OnChange, StoreSpec
from moldau.plan.input_order import Inbox
from moldau.plan.nodes import SourceNode
from moldau.plan.task import Task, World, one_partition

from .builder import StreamsBuilder
from .driver_topics import TestInputTopic, TestOutputTopic
from .serdes import SerdeLike, settled
from .settings import execution
from .topology import Topology
from .tuning import check

APPLICATION = "test-driver"
MAX_ROUNDS = 1_000_000  # records that one input may cause: a topology that feeds itself does not end


class TopologyTestDriver:
    """A topology under test."""

    def __init__(
        self,
        topology: StreamsBuilder | Topology,
        settings: Mapping[str, Any] | None = None,
        initial_wall_clock_ms: int = 0,
        partitions: Callable[[str], int] = one_partition,
    ) -> None:
        built = topology.build() if isinstance(topology, StreamsBuilder) else topology
        self.settings = {**built.settings, **check(settings or {})}
        self.settings.setdefault("application.id", built.application_id or APPLICATION)
        self.plan = built.plan(self.settings)
        self.wall_clock = initial_wall_clock_ms
        self.outputs: dict[str, deque[Produced]] = {}
        self._written: list[Produced] = []
        self._offsets: dict[str, int] = {}
        self._inboxes: dict[str, Inbox] = {}
        self._ready: PriorityQueue[Inbox] = PriorityQueue(lambda inbox: inbox.head_time)
        self._patterns = [node for node in self.plan.nodes if isinstance(node, SourceNode) and node.pattern]
        run = execution(self.settings)
        self.content: dict[str, MemoryBytes] = {}
        world = World(self._bytes, self._written.append, self._log, partitions)
        identity = self.plan.application_id or APPLICATION
        self.global_task = Task(self.plan, self.plan.global_nodes, self._shard(identity), world, run)
        self.task = Task(self.plan, self.plan.local_nodes, self._shard(identity), world, run, self.global_task.stores)
        for topic in self.task.readers:
            self._inboxes[topic] = Inbox(self._read)

    def create_input_topic(
        self,
        topic: str,
        key: SerdeLike = None,
        value: SerdeLike = None,
        start: int | None = None,
        advance: Duration = 0,
    ) -> TestInputTopic:
        """Return an input topic. Records without a time of their own get `start`, which then advances. Serdes that are
        not given are those with which the topology reads the topic.
        """
        known = self.task.readers.get(topic) or self.global_task.readers.get(topic)
        node = self.plan.node(known.node) if known else None
        if isinstance(node, SourceNode):
            key, value = key or node.key, value or node.value
        first = self.wall_clock if start is None else start
        step = milliseconds(advance, "advance=")
        return TestInputTopic(self, topic, *self._serdes(topic, key, value), first, step)

    def create_output_topic(self, topic: str, key: SerdeLike = None, value: SerdeLike = None) -> TestOutputTopic:
        """Return an output topic. Serdes that are not given are those with which the topology writes it."""
        for node in self.plan.nodes:
            if getattr(node, "topic", None) == topic and not isinstance(node, SourceNode):
                key, value = key or getattr(node, "key", None), value or getattr(node, "value", None)
        return TestOutputTopic(self, topic, *self._serdes(topic, key, value))

    def pipe(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Any = ()) -> None:
        """Feed one record in bytes, and process all that follows from it."""
        self.feed([Raw(topic, 0, self._next_offset(topic), key, value, timestamp, tuple(headers))])

    def feed(self, raws: Iterable[Raw]) -> None:
        """Feed records as topics have them, and process all that follows from them."""
        for raw in raws:
            if raw.topic in self.global_task.readers:
                self._feed_global(raw)
            elif not self._enqueue(raw):
                known = ", ".join([*self.task.readers, *self.global_task.readers])
                raise LookupError(f"the topology does not read the topic {raw.topic!r}: it reads {known or 'none'}")
        self._work()

    def advance_wall_clock_time(self, by: Duration) -> None:
        self.wall_clock += milliseconds(by, "the time to advance")
        if self.task.tick(self.wall_clock):
            self.task.commit()
        self._work()

    def store(self, name: str) -> Any:
        """Return a store by its name, which may be a generated one, as in Kafka."""
        store = self.stores.get(name)
        if store is None:
            raise LookupError(f"the topology has no store {name!r}: it has {', '.join(self.stores) or 'none'}")
        return store

    @property
    def stores(self) -> dict[str, Any]:
        return {**self.task.stores, **self.global_task.stores}

    @property
    def produced_topic_names(self) -> set[str]:
        """All topics that were written, internal ones included."""
        return set(self.outputs)

    @property
    def dropped(self) -> dict[tuple[str, str], int]:
        """How many records were dropped, by node and reason."""
        return {**self.task.shard.dropped, **self.global_task.shard.dropped}

    def restart(self) -> None:
        """Restart the application: make all operators anew on the content of the stores."""
        before = self.task
        before.close()
        shard = replace(self._shard(before.shard.application_id), stream_time=before.shard.stream_time)
        self.task = Task(self.plan, before.nodes, shard, before.world, before.execution, self.global_task.stores)

    def close(self) -> None:
        self.task.close()
        self.global_task.close()

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _bytes(self, spec: StoreSpec) -> MemoryBytes:
        return self.content.setdefault(spec.name, MemoryBytes())

    def _read(self, raw: Raw, partition_time: int) -> Record | None:
        return self.task.read(raw, partition_time)

    def _shard(self, identity: str) -> Shard:
        return Shard(identity, "0_0", self.wall_clock)

    def _serdes(self, topic: str, key: SerdeLike, value: SerdeLike) -> tuple[Any, Any]:
        where = f"the topic {topic}"
        return settled(key, "key", self.settings, where), settled(value, "value", self.settings, where)

    def _next_offset(self, topic: str) -> int:
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        return offset

    def _log(self, spec: StoreSpec) -> OnChange | None:
        if not spec.has_changelog:
            return None
        topic, write = self.plan.changelog(spec), self._written.append
        return lambda key, value, timestamp: write(Produced(topic, None, key, value, timestamp))

    def _enqueue(self, raw: Raw) -> bool:
        """Add a record to the inbox of its topic; return whether the topology reads the topic."""
        inbox = self._inboxes.get(raw.topic) or self._matching(raw.topic)
        if inbox is None:
            return False
        if inbox.add(raw):
            self._ready.add(inbox)
        return True

    def _matching(self, topic: str) -> Inbox | None:
        """Return the inbox of a new topic, if a pattern matches it."""
        for node in self._patterns:
            if re.fullmatch(node.pattern or "", topic):
                self.task.read_topic(node, topic)
                shared = self._inboxes.setdefault(node.name, Inbox(self._read))
                self._inboxes[topic] = shared
                return shared
        return None

    def _feed_global(self, raw: Raw) -> None:
        task = self.global_task
        record = task.read(raw, UNKNOWN_TIME)
        if record is not None:
            task.feed(raw, record)

    def _work(self) -> None:
        task, ready = self.task, self._ready
        if self._written:
            self._hand_out()
        for _ in range(MAX_ROUNDS):
            if not ready.items:
                return
            inbox = ready.poll()
            raw, record = inbox.take()
            if inbox.advance():
                ready.add(inbox)
            task.feed(raw, record)
            task.punctuate()
            task.commit()
            if self._written:
                self._hand_out()
        raise RecursionError(f"one record set off {MAX_ROUNDS} others: the topology feeds itself")

    def _hand_out(self) -> None:
        """Hand written records over to tests, and to the topology where it reads them."""
        written, outputs = self._written[:], self.outputs
        self._written.clear()
        for record in written:
            topic = record.topic
            if topic not in outputs:
                outputs[topic] = deque()
            outputs[topic].append(record)
            is_global = topic in self.global_task.readers
            if is_global or topic in self._inboxes or (self._patterns and self._matching(topic)):
                offset = self._next_offset(topic)
                raw = Raw(topic, 0, offset, record.key, record.value, record.timestamp, record.headers)
                if is_global:
                    self._feed_global(raw)
                else:
                    self._enqueue(raw)
