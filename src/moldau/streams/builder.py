"""The builder with which every application begins: streams and tables of topics."""

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

from .graph import Graph
from .materialized import StoreOptions, materialized
from .names import checked_name, listed
from .recipes import Source
from .serdes import SerdeLike
from .stream import KStream
from .table import GlobalKTable, KTable
from .topology import Topology
from .tuning import check, reuses_source_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.views.served import Served

    from .kafka_streams import KafkaStreams

Reading = dict[str, Any]  # how a topic is read
_looking: list[bool] = []  # not empty while a file is loaded only to see what it builds


@contextmanager
def looking() -> Iterator[None]:
    """Let `run` return at once in the meantime."""
    _looking.append(True)
    try:
        yield
    finally:
        _looking.pop()


def agree(before: Reading, now: Reading, topics: str) -> None:
    """Refuse two streams of a topic that want it read in different ways: they are one source."""
    for name, given in now.items():
        if given is not None and given != before[name]:
            raise TopologyError(
                f"{topics} is read twice, with {name}={before[name]!r} and with {name}={given!r}: give both the same"
            )


class StreamsBuilder:
    """The builder of an application. `settings` are Kafka's: default.key.serde, statestore.cache.max.bytes ..."""

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
        """Read the records of one topic, of several, or of all whose names match a pattern."""
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
        """Read a topic as a table: the latest value of each key."""
        checked_name(topic, "the topic of table()")
        store = materialized(self.graph, f"{topic}-", options)
        source, node = self._table_names(name)
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
        """Read a topic as a table that is complete in each process, with all partitions."""
        checked_name(topic, "the topic of global_table()")
        store = materialized(self.graph, f"{topic}-", options)
        source, node = self._table_names(name)
        key, value, spec = store.key, store.value, store.spec
        make = partial(TableSource, spec.name, False)
        self.graph.add(lambda made: made.add_global_node(spec, source, topic, node, make, key, value, timestamp))
        return GlobalKTable(self.graph, spec.name, store.queryable, key, value)

    def add_state_store(self, store: StoreSpec) -> StreamsBuilder:
        """Add a store for processors, which name it in `stores=`."""
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
        """Add a store that a processor fills from a topic, complete in each process; all processors may read it."""
        source, node = self._table_names(name)
        read: dict[str, Any] = {"key": key, "value": value, "timestamp": timestamp}
        self.graph.add(lambda topology: topology.add_global_store(store, source, topic, node, processor, **read))
        return self

    def _table_names(self, name: str | None) -> tuple[str, str]:
        """Return the names of a table's source and of its own node."""
        source = self.graph.suffixed(name, "-source", "KSTREAM-SOURCE-")
        return source, self.graph.named(name, "KTABLE-SOURCE-")

    def run(self, settings: Mapping[str, Any] | None = None) -> None:
        """Run the application on Spark until it is stopped (SIGTERM, Ctrl-C)."""
        if _looking:
            return
        require_spark()
        from .application import run

        run(self.build(), settings)

    def start(self, settings: Mapping[str, Any] | None = None, *, spark: SparkSession | None = None) -> KafkaStreams:
        """Start the application in the background, with stores that can be queried."""
        from .kafka_streams import KafkaStreams

        return KafkaStreams(self, settings, spark=spark).start()

    def stores(self, settings: Mapping[str, Any] | None = None) -> Served:
        """Return the application's stores for queries, wherever it runs: they are read from its changelogs."""
        from .serving import served

        return served(self.build(), settings)

    def build(self) -> Topology:
        return self.graph.topology()

    def describe(self) -> str:
        """Return the topology as Kafka prints it."""
        return self.build().describe()

    def picture(self) -> str:
        """Return the topology as a Mermaid flowchart."""
        return self.build().picture()
