"""Streams by key: count, reduce and aggregate, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from moldau.operators.aggregate import Aggregator, Initializer, StreamAggregate, StreamReduce
from moldau.operators.stores.spec import StoreSpec
from moldau.serdes.primitive import LONG

from . import functions
from .graph import Graph
from .materialized import StoreOptions, materialized
from .recipes import Aggregation
from .repartitioning import names_of, repartitioned
from .serdes import SerdeLike
from .table import KTable

if TYPE_CHECKING:
    from moldau.operators.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

    from .cogrouped import CogroupedKStream
    from .windowed import SessionWindowedKStream, TimeWindowedKStream

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
AGGREGATE, REDUCE = "KSTREAM-AGGREGATE-", "KSTREAM-REDUCE-"


def zero() -> int:
    return 0


def one_more(key: Any, value: Any, count: int) -> int:
    return count + 1


def nothing() -> None:
    """Begin a reduction, which has no value before its first one."""


def reducing(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda key, value, aggregate: value if aggregate is None else reducer(aggregate, value)


class KGroupedStream(Generic[K, V]):
    """What `group_by` and `group_by_key` return. `repartition` says whether the key was changed before."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        sources: frozenset[str],
        key: SerdeLike,
        value: SerdeLike,
        repartition: bool,
        topic: str | None,
    ) -> None:
        self.graph, self.name, self.sources, self.key, self.value = graph, name, sources, key, value
        self.repartition, self.topic = repartition, topic
        self._again: str | None = None  # the source of a repartition topic with a name, used by all who follow

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> KTable[K, int]:
        """Count the records of each key."""
        use_number_up(self.graph, options)
        store = materialized(self.graph, AGGREGATE, options, self.key, LONG)
        return self.table(AGGREGATE, name, aggregation(store.spec, zero, one_more), store.given, "aggregate")

    def reduce(
        self, reducer: Callable[[V, V], V], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, V]:
        """Reduce the values of each key. The reducer gets the result so far and the new value; the first value of a
        key is taken as it is.
        """
        store = materialized(self.graph, REDUCE, options, self.key, self.value)
        chosen = functions.reducer(reducer, f"reduce ({store.name})")
        recipe = Aggregation(store.spec, lambda store, send_old: StreamReduce(store, chosen, send_old))
        return self.table(REDUCE, name, recipe, store.given, "reduce")

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, A]:
        """Aggregate the values of each key. The adder gets key, value and the aggregate so far, whose serde is
        `value=`.
        """
        store = materialized(self.graph, AGGREGATE, options, self.key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        add = functions.aggregator(adder, f"aggregate ({store.name})")
        return self.table(AGGREGATE, name, aggregation(store.spec, start, add), store.given, "aggregate")

    def cogroup(self, adder: Callable[[K, V, A], A]) -> CogroupedKStream[K, A]:
        """Begin an aggregate over several streams: `a.cogroup(f).cogroup(b, g).aggregate(...)`."""
        from .cogrouped import CogroupedKStream

        return CogroupedKStream(((self, functions.aggregator(adder, "cogroup")),))

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[K, V]: ...

    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows | UnlimitedWindows) -> TimeWindowedKStream[K, V]: ...

    def windowed_by(self, windows: Any) -> Any:
        """Group by window too: TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows."""
        from .windowed import SessionWindowedKStream, TimeWindowedKStream, windowed_by

        return windowed_by(self, windows, TimeWindowedKStream, SessionWindowedKStream)

    def table(
        self, prefix: str, name: str | None, recipe: Aggregation, store: str | None, kind: str, key: SerdeLike = None
    ) -> KTable[Any, Any]:
        """Add the node that keeps an aggregate, after a repartition topic if the key was changed. `key` is the serde of
        the table's keys, if they are not those of the store.
        """
        node, spec = self.graph.named(name, prefix), recipe.spec
        parent, sources = self.keyed_parent(spec.name)
        self.graph.table(node, [parent], recipe, kind)
        return KTable(self.graph, node, sources, key or spec.key, spec.value, recipe, store)

    def keyed_parent(self, prefix: str) -> tuple[str, frozenset[str]]:
        """Return a parent whose records are all in the partition of their key, and its sources."""
        if not self.repartition:
            return self.name, self.sources
        if self._again is None:
            source = repartitioned(self.graph, self.name, self.topic or prefix, self.key, self.value)
            self._again = source if self.topic is not None else None
        else:
            names_of(self.graph, self._again)
            source = self._again
        return source, frozenset((source,))


def use_number_up(graph: Graph, options: StoreOptions) -> None:
    """Use a number up for a count whose options name no store, as Kafka does."""
    if options and "store" not in options:
        graph.store_name(AGGREGATE)


def aggregation(spec: StoreSpec, initializer: Initializer, adder: Aggregator) -> Aggregation:
    return Aggregation(spec, lambda store, send_old: StreamAggregate(store, initializer, adder, send_old))
