"""The Processor API: a topology, node by node. The steps of the DSL's builder add nodes here too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from moldau.operators.context import TopologyError
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.timestamps import BY_NAME, Extractor
from moldau.plan.describe import describe
from moldau.plan.nodes import InternalTopic, Node, ProcessorNode, SinkNode, SourceNode
from moldau.plan.picture import picture
from moldau.plan.plan import Plan

from . import functions
from .names import checked_name, listed
from .processors import user_operator
from .serdes import SerdeLike, settled
from .tuning import check
from .windowed_partitions import ByInnerKey, WindowedSerde

SHOWN = "shown"  # the kind of a node that only describe() shows: it is not run
RESETS = ("earliest", "latest", "none")
EXPLICIT = "ensure.explicit.internal.resource.naming"
GENERATED = re.compile(r"(KSTREAM|KTABLE|COGROUPKSTREAM)-.*[0-9]{10}.*|.*-STATE-STORE-[0-9]{10}")


class Topology:
    """A topology. Nodes are added parents first; each one is checked at once."""

    def __init__(self, application_id: str | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self.application_id = application_id
        self.settings = check(settings or {})
        self.nodes: dict[str, Node] = {}
        self.stores: dict[str, StoreSpec] = {}
        self.internal: dict[str, InternalTopic] = {}
        self.copartitioned: list[frozenset[str]] = []
        self.global_stores: set[str] = set()
        self._readers: dict[str, str] = {}  # topic -> the source that reads it

    def add_source(
        self,
        name: str,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | None = None,
        key: SerdeLike = None,
        value: SerdeLike = None,
        timestamp: Extractor | str | None = None,
        reset: str | None = None,
    ) -> Topology:
        wanted = listed(topics, f"what the source {name} reads")
        if not wanted and pattern is None:
            raise TopologyError(f"the source {name} reads nothing: give it topics, or a pattern")
        if pattern is not None:
            check_pattern(pattern, name)
        if reset is not None and reset not in RESETS:
            raise TopologyError(f"reset= of the source {name} must be one of {', '.join(RESETS)}, not {reset!r}")
        for topic in wanted:
            checked_name(topic, f"a topic of the source {name}")
            if topic in self._readers:
                other = self._readers[topic]
                raise TopologyError(
                    f"{name} reads the topic {topic}, which {other} reads already: use that one for both"
                )
            self._readers[topic] = name
        self._add(SourceNode(name, wanted, key, value, pattern, extractor(timestamp, name), reset))  # type: ignore[arg-type]
        return self

    def add_processor(
        self, name: str, processor: Any, parents: str | Iterable[str], stores: Iterable[str | StoreSpec] = ()
    ) -> Topology:
        """Add a processor. `processor` is a class or a function that makes one, as each task needs its own. It has
        `process(record)`, and may have `init(context)`, `close()` and `stores()`, which returns specs of stores.
        """
        made, brought = user_operator(processor, name)
        return self.add_node(name, made, parents, [*listed(stores, f"stores= of {name}"), *brought])

    def add_node(
        self,
        name: str,
        operator: Callable[[], Any],
        parents: str | Iterable[str],
        stores: Iterable[str | StoreSpec] = (),
        kind: str = "process",
    ) -> Topology:
        """Do as add_processor, with an operator of the platform."""
        names: list[str] = []
        for store in listed(stores, f"stores= of {name}"):
            if not isinstance(store, str):
                self.add_store(store)
            names.append(self._known_store(store if isinstance(store, str) else store.name, name))
        uses = tuple(dict.fromkeys(names))
        self._add(ProcessorNode(name, self._known(parents, name), operator, uses, kind))
        return self

    def add_sink(
        self,
        name: str,
        topic: Any,
        parents: str | Iterable[str],
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        partitioner: Any = None,
    ) -> Topology:
        if not callable(topic):
            checked_name(topic, f"the topic of the sink {name}")
        if partitioner is not None:
            functions.checked(partitioner, name, {4: "topic, key, value, number of partitions"})
        self._add(SinkNode(name, self._known(parents, name), topic, key, value, partitioner))  # type: ignore[arg-type]
        return self

    def add_state_store(self, store: StoreSpec, *processors: str) -> Topology:
        self.add_store(store)
        for processor in processors:
            self.connect_processor_and_state_stores(processor, store.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Topology:
        node = self.nodes.get(str(processor))
        if not isinstance(node, ProcessorNode):
            raise TopologyError(f"there is no processor {processor!r} to connect with stores: add it first")
        names = (self._known_store(store, processor) for store in stores)
        self.nodes[processor] = replace(node, stores=tuple(dict.fromkeys((*node.stores, *names))))
        return self

    def add_global_store(
        self,
        store: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        operator: Any,
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        timestamp: Extractor | str | None = None,
    ) -> Topology:
        """Add a store that a processor fills from a topic, complete in each process; every other processor may read it.
        Its topic serves as its changelog.
        """
        made, _ = user_operator(operator, processor)
        return self.add_global_node(store, source, topic, processor, made, key, value, timestamp)

    def add_global_node(
        self,
        store: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        operator: Callable[[], Any],
        key: SerdeLike,
        value: SerdeLike,
        timestamp: Extractor | str | None,
    ) -> Topology:
        """Do as add_global_store, with an operator of the platform."""
        spec = self._filled_store(store, source, topic, key, value, timestamp)
        self.add_node(processor, operator, source, [replace(spec, cached=False)], "global_store")
        self.global_stores.add(store.name)
        return self

    def add_read_only_state_store(
        self,
        store: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        operator: Any,
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        timestamp: Extractor | str | None = None,
    ) -> Topology:
        """Add a store that is filled from a topic, partition by partition; the topic is its changelog."""
        spec = self._filled_store(store, source, topic, key, value, timestamp)
        return self.add_processor(processor, operator, source, [replace(spec, changelog=topic)])

    def _filled_store(
        self, store: StoreSpec, source: str, topic: str, key: SerdeLike, value: SerdeLike, timestamp: Any
    ) -> StoreSpec:
        """Add the source of a store that is filled from a topic; return the store without a changelog of its own."""
        checked_store(store)
        self.add_source(source, topic, key=key, value=value, timestamp=timestamp)
        return replace(store, logged=False, key=cast(Any, store.key or key), value=cast(Any, store.value or value))

    def add_store(self, store: StoreSpec) -> None:
        checked_name(checked_store(store).name, "the name of a store")
        known = self.stores.get(store.name)
        if known is not None and known != store:
            raise TopologyError(f"there is a store {store.name!r} already: give this one another name")
        self.stores[store.name] = store

    def add_internal_topic(self, topic: InternalTopic) -> None:
        self.internal[topic.name] = topic

    def copartition(self, sources: Iterable[str]) -> None:
        self.copartitioned.append(frozenset(sources))

    def describe(self) -> str:
        """Return the topology as Kafka prints it."""
        return describe(self.freeze())

    def picture(self) -> str:
        """Return the topology as a Mermaid flowchart."""
        return picture(self.freeze())

    def freeze(self) -> Plan:
        """Return the plan as it stands; serdes that were not given are still missing."""
        return Plan(
            self.application_id,
            tuple(self.nodes.values()),
            tuple(self.stores.values()),
            tuple(self.internal.values()),
            tuple(self.copartitioned),
            frozenset(self.global_stores),
        )

    def plan(self, settings: Mapping[str, Any] | None = None) -> Plan:
        """Return the plan with all serdes: those given, or default.key.serde and default.value.serde."""
        chosen = {**self.settings, **(settings or {})}
        plan = self.freeze()
        if str(chosen.get(EXPLICIT, False)).lower() == "true":
            check_names(plan)
        run = (node for node in plan.nodes if not (isinstance(node, ProcessorNode) and node.kind == SHOWN))
        nodes = tuple(with_serdes(node, chosen) for node in run)
        stores = tuple(store_with_serdes(store, chosen) for store in plan.stores)
        return replace(
            plan, nodes=nodes, stores=stores, application_id=chosen.get("application.id", self.application_id)
        )

    def _add(self, node: Node) -> None:
        checked_name(node.name, "the name of a node")
        if node.name in self.nodes:
            raise TopologyError(f"there is a node {node.name!r} already: give this one another name")
        self.nodes[node.name] = node

    def _known(self, parents: str | Iterable[str], name: str) -> tuple[str, ...]:
        wanted = listed(parents, f"the parents of {name}")
        if not wanted:
            raise TopologyError(f"{name} has no parent: name the nodes that it gets records from")
        for parent in wanted:
            if parent not in self.nodes:
                raise TopologyError(f"{name} has the parent {parent!r}, which is not there: add it first")
            if isinstance(self.nodes[parent], SinkNode):
                raise TopologyError(f"{name} has the parent {parent!r}, which is a sink: a sink forwards nothing")
        return wanted

    def _known_store(self, store: str, name: str) -> str:
        if store not in self.stores:
            raise TopologyError(f"{name} uses the store {store!r}, which is not there: add_state_store() first")
        if store in self.global_stores:
            raise TopologyError(f"{name} needs no connection with {store!r}: every processor reads global stores")
        return store


def extractor(given: Extractor | str | None, name: str) -> Extractor | None:
    if given is None:
        return None
    if not isinstance(given, str):
        functions.checked(given, f"timestamp= of {name}", {2: "record, highest time of its partition"})
        return given
    short = given.rsplit(".", 1)[-1]
    if short not in BY_NAME:
        raise TopologyError(f"timestamp= of {name} is {given!r}: use a function, or one of {', '.join(BY_NAME)}")
    return BY_NAME[short]


def check_pattern(pattern: Any, name: str) -> None:
    try:
        if not isinstance(pattern, str) or not pattern:
            raise TypeError("it must be a text")
        re.compile(pattern)
    except (re.error, TypeError, OverflowError) as error:
        raise TopologyError(f"pattern= of {name} must be a regular expression, not {pattern!r}: {error}") from None


def checked_store(store: Any) -> StoreSpec:
    if not isinstance(store, StoreSpec):
        raise TopologyError(
            f"a store is given by a function of moldau.streams.stores, persistent_key_value_store('name') say, not by "
            f"{store!r}"
        )
    return store


def check_names(plan: Plan) -> None:
    """Refuse generated names of stores and repartition topics: they change with the topology."""
    made_up = [f"the store {spec.name}" for spec in plan.stores if GENERATED.fullmatch(spec.name)]
    made_up += [f"the repartition topic {topic.name}" for topic in plan.internal_topics if GENERATED.match(topic.name)]
    if made_up:
        raise TopologyError(f"{EXPLICIT} is set, but names were made up: {', '.join(made_up)}. Give store= and name=")


def with_serdes(node: Node, settings: Mapping[str, Any]) -> Node:
    match node:
        case SourceNode():
            where = f"{node.name}, which reads {', '.join(node.topics) or node.pattern}"
        case SinkNode():
            where = f"{node.name}, which writes {node.topic if isinstance(node.topic, str) else 'topics'}"
        case ProcessorNode():
            return node
    key = settled(node.key, "key", settings, where)
    made = replace(node, key=key, value=settled(node.value, "value", settings, where))
    if isinstance(made, SinkNode) and isinstance(made.partitioner, ByInnerKey):
        return replace(made, partitioner=ByInnerKey(cast(WindowedSerde, key)))
    return made


def store_with_serdes(store: StoreSpec, settings: Mapping[str, Any]) -> StoreSpec:
    where = f"the store {store.name}"
    key = settled(store.key, "key", settings, where)
    return store.with_serdes(key, settled(store.value, "value", settings, where))
