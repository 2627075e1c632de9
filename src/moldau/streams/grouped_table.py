"""Tables that are grouped by a new key: an old value is taken back from its old group, a new one goes to its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, Unpack

from moldau.operators.aggregate import Aggregator, Initializer, TableAggregate
from moldau.operators.changes import ChangeSerde
from moldau.serdes.primitive import LONG

from . import functions
from .graph import REPARTITION, Graph
from .grouped import nothing, one_more, reducing, zero
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


class KGroupedTable(Generic[K, V]):
    """What `KTable.group_by` returns. `topic` is the name of its repartition topic, if it was given."""

    def __init__(self, graph: Graph, name: str, key: SerdeLike, value: SerdeLike, topic: str | None) -> None:
        self.graph, self.name, self.key, self.value, self.topic = graph, name, key, value, topic
        self._again: str | None = None  # the source of a repartition topic with a name, used by all who follow

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> KTable[K, int]:
        """Count the keys of the table that each group has."""
        store = materialized(self.graph, AGGREGATE, options, self.key, LONG)
        return self._table(AGGREGATE, name, store, (zero, one_more, one_less), "aggregate")

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, V]:
        """Reduce the values of a group. Adder and subtractor get what there is, and the value that comes or goes."""
        store = materialized(self.graph, AGGREGATE, options, self.key, self.value)
        add, subtract = (functions.reducer(given, f"reduce ({store.name})") for given in (adder, subtractor))
        take_back: Aggregator = lambda key, value, reduced: subtract(reduced, value)  # noqa: E731
        return self._table(REDUCE, name, store, (nothing, reducing(add), take_back), "reduce")

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, A]:
        """Aggregate a group. Adder and subtractor get key, the value that comes or goes, and the aggregate so far."""
        store = materialized(self.graph, AGGREGATE, options, self.key)
        where = f"aggregate ({store.name})"
        start = functions.of_nothing(initializer, where)
        add, subtract = functions.aggregator(adder, where), functions.aggregator(subtractor, where)
        return self._table(AGGREGATE, name, store, (start, add, subtract), "aggregate")

    def _table(
        self,
        prefix: str,
        name: str | None,
        store: Materialized,
        steps: tuple[Initializer, Aggregator, Aggregator],
        kind: str,
    ) -> KTable[K, Any]:
        graph = self.graph
        recipe = Aggregation(store.spec, lambda store, send_old: TableAggregate(store, *steps, send_old))
        sink = graph.suffixed(name, "-sink", "KSTREAM-SINK-")
        source = graph.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node = graph.named(name, prefix)
        parent = self._again or self._repartitioned(sink, source, (self.topic or store.name) + REPARTITION)
        if self.topic is not None:
            self._again = parent
        graph.table(node, [parent], recipe, kind)
        return KTable(graph, node, frozenset((parent,)), store.key, store.value, recipe, store.given)

    def _repartitioned(self, sink: str, source: str, topic: str) -> str:
        """Send changes, old and new values, through a topic to the tasks of the new keys."""
        serde = ChangeSerde(self.value)
        self.graph.repartition_topic(topic)
        self.graph.sink(sink, [self.name], topic, key=self.key, value=serde)
        self.graph.source(source, topic, key=self.key, value=serde)
        return source
