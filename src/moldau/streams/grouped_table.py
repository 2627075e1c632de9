"""Tables that are grouped anew: what was is taken back from its old group, what is goes to its new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, Unpack

from moldau.operators.aggregate import TableAggregate
from moldau.operators.changes import ChangeSerde
from moldau.serdes.primitive import LONG

from . import functions
from .graph import REPARTITION, Graph
from .grouped import one_more, zero
from .materialized import Materialized, StoreOptions, materialized
from .recipes import Aggregation
from .serdes import SerdeLike
from .table import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
AGGREGATE, REDUCE = "KTABLE-AGGREGATE-", "KTABLE-REDUCE-"


def one_less(key: Any, value: Any, count: int) -> int:
    return count - 1


def nothing() -> None:
    """Where values are their own aggregate there is none to begin with."""


def adding(add: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda key, value, reduced: value if reduced is None else add(reduced, value)


def taking(subtract: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda key, value, reduced: subtract(reduced, value)


class KGroupedTable(Generic[K, V]):
    def __init__(self, graph: Graph, name: str, key: SerdeLike, value: SerdeLike, topic: str | None) -> None:
        self.graph, self.name, self.key, self.value, self.topic = graph, name, key, value, topic
        self._again: str | None = None  # the source of a repartition topic with a name, used by all who follow

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> KTable[K, int]:
        """How many keys of the table each group has."""
        store = materialized(self.graph, AGGREGATE, options, self.key, LONG)
        recipe = Aggregation(
            store.spec, lambda store, send_old: TableAggregate(store, zero, one_more, one_less, send_old)
        )
        return self._table(AGGREGATE, name, store, recipe, "aggregate")

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, V]:
        """Adder and subtractor get what there is, and the value that comes or goes."""
        store = materialized(self.graph, AGGREGATE, options, self.key, self.value)
        add, subtract = (functions.reducer(given, f"reduce ({store.name})") for given in (adder, subtractor))
        recipe = Aggregation(
            store.spec,
            lambda store, send_old: TableAggregate(store, nothing, adding(add), taking(subtract), send_old),
        )
        return self._table(REDUCE, name, store, recipe, "reduce")

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, A]:
        """Adder and subtractor get key, the value that comes or goes, and the aggregate so far."""
        store = materialized(self.graph, AGGREGATE, options, self.key)
        where = f"aggregate ({store.name})"
        start = functions.of_nothing(initializer, where)
        add, subtract = functions.aggregator(adder, where), functions.aggregator(subtractor, where)
        recipe = Aggregation(store.spec, lambda store, send_old: TableAggregate(store, start, add, subtract, send_old))
        return self._table(AGGREGATE, name, store, recipe, "aggregate")

    def _table(
        self, prefix: str, name: str | None, store: Materialized, recipe: Aggregation, kind: str
    ) -> KTable[K, Any]:
        graph = self.graph
        sink = graph.suffixed(name, "-sink", "KSTREAM-SINK-")
        source = graph.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node = graph.named(name, prefix)
        parent = self._again or self._repartitioned(sink, source, (self.topic or store.name) + REPARTITION)
        if self.topic is not None:
            self._again = parent
        graph.table(node, [parent], recipe, kind)
        return KTable(graph, node, frozenset((parent,)), store.key, store.value, recipe, store.given)

    def _repartitioned(self, sink: str, source: str, topic: str) -> str:
        """Changes, old and new, through a topic: to the tasks of the new keys."""
        serde = ChangeSerde(self.value)
        self.graph.repartition_topic(topic)
        self.graph.sink(sink, self.name, topic, self.key, serde)
        self.graph.source(source, topic, key=self.key, value=serde)
        return source
