"""Streams: records one after another, and what is done with each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack

from moldau.operators import stateless
from moldau.operators.context import Operator, TopologyError

from . import functions
from .branched import BranchedKStream
from .graph import Graph
from .grouped import KGroupedStream
from .joins import check_same_builder, join_global, join_table
from .materialized import StoreOptions, materialized
from .names import checked_name, listed
from .printing import Printer, pair_text
from .processors import user_operator
from .recipes import Source
from .repartitioning import repartitioned
from .serdes import SerdeLike
from .stream_joins import Kind, StreamJoined, join_streams, joined_by, of_table
from .table import GlobalKTable, KTable
from .topology import SHOWN
from .windowed_partitions import partitioner_of

K = TypeVar("K")
V = TypeVar("V")
L = TypeVar("L")
W = TypeVar("W")


class KStream(Generic[K, V]):
    """A stream: the records of the node `name`. `repartition` says whether the key was changed since records were last
    partitioned by it.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        sources: frozenset[str],
        key: SerdeLike = None,
        value: SerdeLike = None,
        repartition: bool = False,
    ) -> None:
        self.graph, self.name, self.sources, self.key, self.value = graph, name, sources, key, value
        self.repartition_required = repartition

    def filter(self, predicate: Callable[[K, V], Any] | str, *, name: str | None = None) -> KStream[K, V]:
        """Keep the records for which the predicate holds: a function of (key, value), or a SQL expression over key,
        value, timestamp and headers.
        """
        node = self.graph.named(name, "KSTREAM-FILTER-")
        if isinstance(predicate, str):
            return self._expression("filter", node, predicate, (self.key, self.value))
        return self._then(node, partial(stateless.Filter, functions.of_key_value(predicate, node)), "filter")

    def filter_not(self, predicate: Callable[[K, V], Any] | str, *, name: str | None = None) -> KStream[K, V]:
        node = self.graph.named(name, "KSTREAM-FILTER-")
        if isinstance(predicate, str):
            checked_expression(predicate, node)
            return self._expression("filter", node, f"not ({predicate})", (self.key, self.value))
        return self._then(node, partial(stateless.Filter, functions.of_key_value(predicate, node), True), "filter")

    def select_key(self, mapper: Callable[[K, V], L] | str, *, name: str | None = None) -> KStream[L, V]:
        """Give each record a new key; steps that need records by key repartition first."""
        node = self.graph.named(name, "KSTREAM-KEY-SELECT-")
        if isinstance(mapper, str):
            return self._expression("select_key", node, mapper, (None, self.value), True)
        operator = partial(stateless.SelectKey, functions.of_key_value(mapper, node))
        return self._then(node, operator, "select_key", (None, self.value), True)

    def map(self, mapper: Callable[[K, V], tuple[L, W]], *, name: str | None = None) -> KStream[L, W]:
        """Map each record to a new key and value, which the mapper returns as a pair."""
        node = self.graph.named(name, "KSTREAM-MAP-")
        operator = partial(stateless.Map, functions.of_key_value(mapper, node))
        return self._then(node, operator, "map", (None, None), True)

    def map_values(self, mapper: Callable[..., W] | str, *, name: str | None = None) -> KStream[K, W]:
        """Map each value. The mapper gets (value) or (key, value)."""
        node = self.graph.named(name, "KSTREAM-MAPVALUES-")
        if isinstance(mapper, str):
            return self._expression("map_values", node, mapper, (self.key, None))
        operator = partial(stateless.MapValues, functions.of_value(mapper, node))
        return self._then(node, operator, "map_values", (self.key, None))

    def flat_map(self, mapper: Callable[[K, V], Iterable[tuple[L, W]]], *, name: str | None = None) -> KStream[L, W]:
        """Map each record to any number of pairs of key and value."""
        node = self.graph.named(name, "KSTREAM-FLATMAP-")
        operator = partial(stateless.FlatMap, functions.of_key_value(mapper, node))
        return self._then(node, operator, "flat_map", (None, None), True)

    def flat_map_values(self, mapper: Callable[..., Iterable[W]], *, name: str | None = None) -> KStream[K, W]:
        """Map each value to any number of values. The mapper gets (value) or (key, value)."""
        node = self.graph.named(name, "KSTREAM-FLATMAPVALUES-")
        operator = partial(stateless.FlatMapValues, functions.of_value(mapper, node))
        return self._then(node, operator, "flat_map_values", (self.key, None))

    def foreach(self, action: Callable[[K, V], Any], *, name: str | None = None) -> None:
        """End the stream with an action for each record."""
        node = self.graph.named(name, "KSTREAM-FOREACH-")
        self._then(node, partial(stateless.Foreach, functions.of_key_value(action, node)), "foreach")

    def peek(self, action: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Do something for each record, and pass it on."""
        node = self.graph.named(name, "KSTREAM-PEEK-")
        return self._then(node, partial(stateless.Peek, functions.of_key_value(action, node)), "peek")

    def show_peek(self) -> None:
        """Use the number and the line of a peek in describe(), which is not run: ksqlDB peeks only to count."""
        node = self.graph.generate("KSTREAM-PEEK-")
        self.graph.processor(node, [self.name], stateless.PassThrough, kind=SHOWN)

    def to(
        self,
        topic: str | Callable[..., str],
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        partitioner: Callable[[str, K, V, int], int | None] | None = None,
        name: str | None = None,
    ) -> None:
        """Write to a topic, or to the one that a function of (key, value, record) returns."""
        if not isinstance(topic, str) and not callable(topic):
            raise TopologyError(f"to() needs the name of a topic, or a function that gives it, not {topic!r}")
        node = self.graph.named(name, "KSTREAM-SINK-")
        if callable(topic):
            topic = functions.topic_of(topic, node)
        key, value = key or self.key, value or self.value
        self.graph.sink(node, [self.name], topic, key=key, value=value, partitioner=partitioner_of(partitioner, key))

    def print(self, *, label: str | None = None, name: str | None = None, mapper: Any = None, file: Any = None) -> None:
        """End the stream with a line for each record, `[label]: key, value`, on standard output or in a file."""
        node = self.graph.named(name, "KSTREAM-PRINTER-")
        chosen = functions.of_key_value(mapper or pair_text, node)
        title = self.name if label is None else label
        if not (file is None or isinstance(file, str | Path) or hasattr(file, "write")):
            raise TopologyError(f"file= of {node} must be the path of a file, or an open file, not {file!r}")
        self._then(node, lambda: stateless.Foreach(Printer(title, chosen, file)), "print")

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Merge two streams in the order in which records come. Serdes are known where both have the same."""
        check_same_builder(self, other)
        if not isinstance(other, KStream):
            raise TopologyError(f"the stream {self.name} is merged with a stream, not with a {type(other).__name__}")
        node = self.graph.named(name, "KSTREAM-MERGE-")
        self.graph.processor(node, [self.name, other.name], stateless.PassThrough, kind="merge")
        repartition = self.repartition_required or other.repartition_required
        key, value = (
            mine if mine == others else None for mine, others in ((self.key, other.key), (self.value, other.value))
        )
        return KStream(self.graph, node, self.sources | other.sources, key, value, repartition)

    def split(self, *, name: str | None = None) -> BranchedKStream[K, V]:
        """Split the stream: `stream.split(name="by-").branch(is_small, name="small").default_branch(name="rest")`."""
        return BranchedKStream(self, name)

    def repartition(
        self,
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        partitions: int | None = None,
        partitioner: Callable[[str, K, V, int], int | None] | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Send records through a repartition topic, with this number of partitions if it is given. A topic with a name
        is written for others to read; on Spark the application itself does not read it.
        """
        if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
            raise TopologyError(f"partitions= of repartition() must be a whole number, at least 1, not {partitions!r}")
        prefix = self.graph.only_if_needed(name, "KSTREAM-REPARTITION-")
        key, value = key or self.key, value or self.value
        chosen: dict[str, Any] = {"partitions": partitions, "partitioner": partitioner, "shown": name is not None}
        source = repartitioned(self.graph, self.name, prefix, key, value, **chosen)
        return KStream(self.graph, source, frozenset((source,)), key, value)

    def to_table(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> KTable[K, V]:
        """Turn the stream into a table of the latest value of each key; None deletes a key."""
        node = self.graph.named(name, "KSTREAM-TOTABLE-")
        store = materialized(self.graph, "KSTREAM-TOTABLE-", options, self.key, self.value)
        parent, sources = self.name, self.sources
        if self.repartition_required:
            parent = repartitioned(self.graph, self.name, node, store.key, store.value)
            sources = frozenset((parent,))
        recipe = Source(store.spec, store.queryable)
        self.graph.table(node, [parent], recipe, "table_source")
        return KTable(self.graph, node, sources, store.key, store.value, recipe, store.given)

    def join(
        self,
        other: KStream[Any, Any] | KTable[Any, Any] | GlobalKTable[Any, Any],
        joiner: Callable[..., W],
        *,
        key: Any = None,
        value: SerdeLike = None,
        name: str | None = None,
        **joined: Unpack[StreamJoined],
    ) -> KStream[K, W]:
        """Join with a table, by the record's key; with a global table, by the key that the function `key` of
        (key, value) returns; or with the records of a stream that have the same key and are within `window`. Records
        without a match are dropped. The joiner gets (value, other) or (key, value, other).
        """
        return self._join(other, joiner, "inner", key, value, name, joined)

    def left_join(
        self,
        other: KStream[Any, Any] | KTable[Any, Any] | GlobalKTable[Any, Any],
        joiner: Callable[..., W],
        *,
        key: Any = None,
        value: SerdeLike = None,
        name: str | None = None,
        **joined: Unpack[StreamJoined],
    ) -> KStream[K, W]:
        """Do as join; without a match the joiner gets None: of a stream, once no match can come any more."""
        return self._join(other, joiner, "left", key, value, name, joined)

    def outer_join(
        self,
        other: KStream[Any, Any],
        joiner: Callable[..., W],
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        name: str | None = None,
        **joined: Unpack[StreamJoined],
    ) -> KStream[K, W]:
        """Do as left_join with a stream; its records without a match come too, with None for the left value."""
        return join_streams(self, other, joiner, "outer", joined_by(key, value, name, joined))

    def process(self, processor: Any, *, stores: Iterable[str] = (), name: str | None = None) -> KStream[Any, Any]:
        """Use a processor of your own: a class, or a function that makes one, with `process(record)`, and with
        `init(context)` to get `context.forward(record)`, `context.store(name)`, `context.schedule(...)`.
        """
        return self._process(processor, stores, name, fixed_key=False)

    def process_values(self, processor: Any, *, stores: Iterable[str] = (), name: str | None = None) -> KStream[K, Any]:
        """Do as process, for a processor that does not change the key: nothing is repartitioned below."""
        return self._process(processor, stores, name, fixed_key=True)

    def group_by_key(
        self, *, key: SerdeLike = None, value: SerdeLike = None, name: str | None = None
    ) -> KGroupedStream[K, V]:
        """Group by the records' own key. `name` is that of the repartition topic, if one is needed."""
        if name is not None:
            checked_name(name, "name= of group_by_key()")
        return KGroupedStream(
            self.graph, self.name, self.sources, key or self.key, value or self.value, self.repartition_required, name
        )

    def group_by(
        self,
        selector: Callable[[K, V], L] | str,
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        name: str | None = None,
    ) -> KGroupedStream[L, V]:
        """Group by a new key."""
        keyed = self.select_key(selector, name=name)
        return KGroupedStream(self.graph, keyed.name, self.sources, key, value or self.value, True, name)

    def _join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        kind: Kind,
        key: Any,
        value: SerdeLike,
        name: str | None,
        joined: StreamJoined,
    ) -> KStream[K, Any]:
        if isinstance(other, KStream):
            return join_streams(self, other, joiner, kind, joined_by(key, value, name, joined))
        left, grace = kind == "left", of_table(joined)
        if isinstance(other, GlobalKTable) and grace is None:
            return join_global(self, other, joiner, left, name, key)
        if isinstance(other, KTable):
            return join_table(self, other, joiner, left, name, key, value, grace)
        raise TopologyError(f"a stream is joined with a table, a global table or a stream, not with {other!r}")

    def _process(self, processor: Any, stores: Iterable[str], name: str | None, fixed_key: bool) -> KStream[Any, Any]:
        node = self.graph.only_if_needed(name, "KSTREAM-PROCESSVALUES-" if fixed_key else "KSTREAM-PROCESSOR-")
        operator, brought = user_operator(processor, node, fixed_key)
        self.graph.processor(node, [self.name], operator, (*listed(stores, f"stores= of {node}"), *brought))
        serdes = (self.key, None) if fixed_key else (None, None)
        rekeyed = self.repartition_required or not fixed_key
        return KStream(self.graph, node, self.sources, *serdes, rekeyed)

    def _expression(
        self, kind: str, node: str, text: str, serdes: tuple[SerdeLike, SerdeLike], rekeyed: bool = False
    ) -> KStream[Any, Any]:
        """Add a node with a SQL expression, which is checked now, in place of a function."""
        from moldau.operators import expressions  # brings a library along

        operators: dict[str, Callable[[str, str], Operator]] = {
            "filter": expressions.ExpressionFilter,
            "select_key": expressions.ExpressionKey,
            "map_values": expressions.ExpressionValue,
        }
        expressions.parse(text, node)
        return self._then(node, partial(operators[kind], text, node), kind, serdes, rekeyed)

    def _then(
        self,
        node: str,
        operator: Callable[[], Operator],
        kind: str,
        serdes: tuple[SerdeLike, SerdeLike] | None = None,
        rekeyed: bool = False,
    ) -> KStream[Any, Any]:
        """Add a node below this stream, and return its stream, with the same serdes unless others are given."""
        self.graph.processor(node, [self.name], operator, kind=kind)
        key, value = (self.key, self.value) if serdes is None else serdes
        return KStream(self.graph, node, self.sources, key, value, rekeyed or self.repartition_required)


def checked_expression(text: str, node: str) -> None:
    from moldau.operators import expressions  # brings a library along

    expressions.parse(text, node)
