"""The beginning of every application: streams and tables of topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from moldau.extras import require_spark
from moldau.operators.context import TopologyError
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.table import TableSource
from moldau.operators.timestamps import Extractor

from .global_table import GlobalKTable
from .graph import Graph
from .materialized import StoreOptions, materialized
from .names import checked_name, listed
from .recipes import Source
from .serdes import SerdeLike
from .stream import KStream
from .table import KTable
from .topology import Topology
from .tuning import check, reuses_source_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.views.served import Served

    from .kafka_streams import KafkaStreams

Reading = dict[str, Any]  # how a topic is read
_looking: list[bool] = []  # not empty while somebody only wants to see what a file builds


@contextmanager
def looking() -> Iterator[None]:
    """While this lasts, `run` comes back at once."""
    _looking.append(True)
    try:
        yield
    finally:
        _looking.pop()


def agree(before: Reading, now: Reading, topics: str) -> None:
    """Two streams of a topic are one source: it is read in one way."""
    for name, given in now.items():
        if given is not None and given != before[name]:
            raise TopologyError(
                f"{topics} is read twice, with {name}={before[name]!r} and with {name}={given!r}: give both the same"
            )


class StreamsBuilder:
    """`settings` are Kafka's: default.key.serde, statestore.cache.max.bytes ..."""

    def __init__(self, application_id: str | None = None, settings: Mapping[str, Any] | None = None) -> None:
        if application_id is not None:
            checked_name(application_id, "the application's id")
        self.graph = Graph(application_id, check(settings or {}))
        self._sources: dict[frozenset[str], tuple[str, Reading]] = {}  # topics that are read as a stream -> by whom

    def stream(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | None = None,
        key: SerdeLike = None,
        value: SerdeLike = None,
        timestamp: Extractor | str | None = None,
        reset: str | None = None,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """The records of one topic, of several, or of all whose names match a pattern."""
        wanted = listed(topics, "what stream() reads")
        if bool(wanted) == (pattern is not None):
            raise TopologyError("stream() needs topics, or pattern=, and not both")
        node = self.graph.named(name, "KSTREAM-SOURCE-")
        reading: Reading = {"key": key, "value": value, "timestamp": timestamp, "reset": reset}
        mine, read = (node, reading), frozenset(map(str, wanted))
        first, before = self._sources.setdefault(read, mine) if wanted else mine
        if first != node:
            agree(before, reading, ", ".join(wanted))
            self.graph.aliases[node] = first
        else:
            self.graph.source(node, wanted, pattern=pattern, key=key, value=value, timestamp=timestamp, reset=reset)
        return KStream(self.graph, node, frozenset((node,)), key, value)

    def table(
        self,
        topic: str,
        *,
        timestamp: Extractor | str | None = None,
        reset: str | None = None,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[Any, Any]:
        """The latest value of each key of a topic."""
        checked_name(topic, "the topic of table()")
        store = materialized(self.graph, f"{topic}-", options)
        source = self.graph.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node = self.graph.named(name, "KTABLE-SOURCE-")
        key, value = store.key, store.value
        self.graph.source(source, topic, key=key, value=value, timestamp=timestamp, reset=reset)
        spec = replace(store.spec, changelog=topic) if reuses_source_topics(self.graph.settings) else store.spec
        recipe = Source(spec, store.queryable)
        self.graph.table(node, [source], recipe, "table_source")
        return KTable(self.graph, node, frozenset((source,)), key, value, recipe, store.given)

    def global_table(
        self,
        topic: str,
        *,
        timestamp: Extractor | str | None = None,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> GlobalKTable[Any, Any]:
        """The latest value of each key of a topic, of all its partitions, on each process."""
        checked_name(topic, "the topic of global_table()")
        store = materialized(self.graph, f"{topic}-", options)
        source = self.graph.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node = self.graph.named(name, "KTABLE-SOURCE-")
        key, value, spec = store.key, store.value, store.spec

        def step(topology: Topology) -> None:
            topology.add_global_node(
                spec, source, topic, node, partial(TableSource, spec.name, False), key, value, timestamp
            )

        self.graph.add(step)
        return GlobalKTable(self.graph, spec.name, store.queryable, key, value)

    def add_state_store(self, store: StoreSpec) -> StreamsBuilder:
        """A store for processors, which name it in `stores=`."""
        self.graph.add(lambda topology: topology.add_store(store))
        return self

    def add_global_store(
        self,
        store: StoreSpec,
        topic: str,
        processor: Any,
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        timestamp: Extractor | str | None = None,
        name: str | None = None,
    ) -> StreamsBuilder:
        """A store that a processor fills from a topic, whole on each process; every other processor may read it."""
        source = self.graph.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node = self.graph.named(name, "KTABLE-SOURCE-")

        def step(topology: Topology) -> None:
            topology.add_global_store(store, source, topic, node, processor, key=key, value=value, timestamp=timestamp)

        self.graph.add(step)
        return self

    def run(self, settings: Mapping[str, Any] | None = None) -> None:
        """Runs the application on Spark until it is told to stop (SIGTERM, Ctrl-C)."""
        if _looking:
            return
        require_spark()
        from .application import run

        run(self.build(), settings)

    def start(self, settings: Mapping[str, Any] | None = None, *, spark: SparkSession | None = None) -> KafkaStreams:
        """The application at work in the background, with stores that can be asked."""
        from .kafka_streams import KafkaStreams

        return KafkaStreams(self, settings, spark=spark).start()

    def stores(self, settings: Mapping[str, Any] | None = None) -> Served:
        """The application's stores, to be asked wherever it runs: they are read from its changelogs."""
        from .serving import served

        return served(self.build(), settings)

    def build(self) -> Topology:
        return self.graph.topology()

    def describe(self) -> str:
        """The topology as Kafka writes it down."""
        return self.build().describe()

    def picture(self) -> str:
        """The topology as a flowchart in Mermaid's words."""
        return self.build().picture()
