"""A task: the operators of a plan for one shard, connected and with their stores.

The path of a record is compiled once (`wiring.py`): each node's `emit` is the entry of its only child, or a loop over
its children. The runner of a task (the test driver, a level on Spark) decides what is read, what the time is, when to
commit, where the bytes of stores are kept and where output goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.operators.context import Context, Operator, Shard
from moldau.operators.errors import Failure, Handler, Response, StreamsError, answer
from moldau.operators.punctuation import Cancellable
from moldau.operators.record import Raw, Record
from moldau.operators.stores.ordered import OrderedBytes
from moldau.operators.stores.spec import OnChange, OnChanges, Opening, StoreSpec
from moldau.operators.timestamps import Extractor, fail_on_invalid_timestamp
from moldau.operators.topics import Collect, Sink, TopicReader
from moldau.operators.user import call_if_defined

from .nodes import Node, ProcessorNode, SinkNode, SourceNode
from .plan import Plan
from .wiring import Entry, connect, entry_of, failing_node


@dataclass(frozen=True, slots=True)
class Execution:
    """How a plan is run, from its settings."""

    deserialization: Handler = field(default=answer("fail"))
    processing: Handler = field(default=answer("fail"))
    production: Handler = field(default=answer("fail"))
    guarded: bool = False  # whether `processing` may continue: then errors are caught at each node
    extractor: Extractor = fail_on_invalid_timestamp
    cache_bytes: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


def one_partition(topic: str) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class World:
    """Where a task's stores are, and where its records go."""

    bytes: Callable[[StoreSpec], OrderedBytes]
    collect: Collect
    log: Callable[[StoreSpec], OnChange | None]  # None: the store's changes are not written to a changelog
    partitions: Callable[[str], int] = one_partition
    log_all: Callable[[StoreSpec], OnChanges | None] = lambda spec: None  # of many changes in columns


class Task:
    """A task of Kafka Streams."""

    def __init__(
        self,
        plan: Plan,
        nodes: Iterable[Node],
        shard: Shard,
        world: World,
        execution: Execution,
        shared: Mapping[str, Any] | None = None,
    ) -> None:
        """Open stores and make operators. `shared` are the global stores, which every node may read."""
        self.plan, self.shard, self.world, self.execution = plan, shard, world, execution
        self.nodes = tuple(nodes)
        self._shared = frozenset(shared or ())
        self.stores = self._opened()
        shard.stores |= {**(shared or {}), **self.stores}
        self._flushes = [store.flush for store in self.stores.values() if store.cached]
        self.operators = {node.name: self._operator(node) for node in self.nodes if not isinstance(node, SourceNode)}
        self._owners = {id(operator): name for name, operator in self.operators.items()}
        self._contexts = {node.name: self._context(node) for node in self.nodes}
        self._connect()
        self.readers: dict[str, TopicReader] = {}
        self._entries: dict[str, Entry] = {}
        for node in self.nodes:
            if isinstance(node, SourceNode):
                for topic in node.topics:
                    self.read_topic(node, plan.topic(topic))
        for name, operator in self.operators.items():
            operator.init(self._contexts[name])

    def read_topic(self, node: SourceNode, topic: str) -> None:
        """Add a topic; those of a pattern are found while the task runs."""
        assert node.key is not None and node.value is not None, f"{node.name} has no serdes"
        extract = node.timestamp or self.execution.extractor
        self.readers[topic] = TopicReader(node.name, topic, node.key, node.value, extract, self.shard)
        self._entries[topic] = self._contexts[node.name].emit

    def read(self, raw: Raw, partition_time: int) -> Record | None:
        """Read a record of a topic; None if it is dropped."""
        reader = self.readers[raw.topic]
        try:
            record = reader.read(raw, partition_time)
        except StreamsError:
            raise
        except Exception as error:
            return self._unreadable(Failure("deserialization", reader.node, self.shard.id, error, raw), error)
        if record is None:
            self._contexts[reader.node].dropped("invalid timestamp")
        return record

    def feed(self, raw: Raw, record: Record) -> None:
        """Process a record that was read."""
        shard = self.shard
        if record.timestamp > shard.stream_time:
            shard.stream_time = record.timestamp
        shard.source, shard.record = raw, record
        try:
            self._entries[raw.topic](record)
        except StreamsError:
            raise
        except Exception as error:
            return self._refused(error, record, self.readers[raw.topic].node)

    def feed_all(self, records: Iterable[tuple[Raw, Record]]) -> None:
        """Process records that were read, one after another."""
        shard = self.shard
        for raw, record in records:
            self.feed(raw, record)
            if shard.by_stream_time.count:
                self.punctuate()

    def punctuate(self) -> bool:
        """Call the punctuators that are due by stream time; return whether any was."""
        shard = self.shard
        return shard.stream_time >= 0 and shard.by_stream_time.run(shard.stream_time, self._call)

    def tick(self, system_time: int) -> bool:
        """Set the wall-clock time and call the punctuators that are due by it; return whether any was."""
        self.shard.system_time = system_time
        return self.shard.by_wall_clock.run(system_time, self._call)

    def commit(self) -> None:
        """Flush the caches: what they held back is forwarded."""
        for flush in self._flushes:
            try:
                flush()
            except StreamsError:
                raise
            except Exception as error:  # the shard stands at the record that was held back
                return self._refused(error, self.shard.record, self.nodes[0].name)
        return None

    def close(self) -> None:
        for operator in self.operators.values():
            call_if_defined(operator, "close")

    def _opened(self) -> dict[str, Any]:
        """Open the stores in the order in which nodes name them, which is the order in which caches are flushed."""
        specs = {spec.name: spec for spec in self.plan.stores}
        wanted = dict.fromkeys(store for node in self.nodes for store in node.stores if store not in self._shared)
        return {name: self._open(specs[name]) for name in wanted}

    def _open(self, spec: StoreSpec) -> Any:
        log = self.world.log(spec)
        cache_bytes = self.execution.cache_bytes if spec.cached else 0
        topic, told = self.plan.changelog(spec), self.world.log_all(spec)
        return spec.open(spec, Opening(topic, self.world.bytes(spec), log, self.shard, cache_bytes, told))

    def _operator(self, node: ProcessorNode | SinkNode) -> Operator:
        if isinstance(node, ProcessorNode):
            return node.operator()
        assert node.key is not None and node.value is not None, f"{node.name} has no serdes"
        topic = self.plan.topic(node.topic) if isinstance(node.topic, str) else node.topic
        world, handler = self.world, self.execution.production
        return Sink(topic, node.key, node.value, world.collect, node.partitioner, world.partitions, handler)

    def _context(self, node: Node) -> Context:
        return Context(node.name, self.shard, self._shared | frozenset(node.stores), self.execution.settings)

    def _connect(self) -> None:
        refuse = self._decide if self.execution.guarded else None
        entries: dict[str, Entry] = {}
        for node in self.nodes:
            if not isinstance(node, SourceNode):
                operator, context = self.operators[node.name], self._contexts[node.name]
                entries[node.name] = entry_of(operator, context, self.shard, bool(node.stores), refuse)
        for node in self.nodes:
            children = [(child.name, entries[child.name]) for child in self.nodes if node.name in child.parents]
            connect(self._contexts[node.name], children)

    def _call(self, due: Cancellable, now: int) -> None:
        shard = self.shard
        shard.source, shard.record = None, Record(None, None, now)
        try:
            due.callback(now)
        except StreamsError:
            raise
        except Exception as error:
            return self._refused(error, None, due.node)

    def _unreadable(self, failure: Failure, error: Exception) -> None:
        self._obey(self.execution.deserialization(failure), failure, error)
        self._contexts[failure.node].dropped("deserialization failed")

    def _refused(self, error: Exception, record: Record | None, node: str) -> None:
        name = failing_node(error, self._owners) or node
        return self._decide(self._contexts[name].failure("processing", error, record), error)

    def _decide(self, failure: Failure, error: Exception) -> None:
        self._obey(self.execution.processing(failure), failure, error)
        self._contexts[failure.node].dropped("processing failed")

    def _obey(self, response: Response, failure: Failure, error: Exception) -> None:
        for letter in response.dead_letters:
            self.world.collect(letter)
        if response.decision == "fail":
            raise StreamsError(str(failure)) from error
