"""Streams by key: count, reduce and aggregate, as a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from moldau.operators.aggregate import StreamAggregate, StreamReduce
from moldau.operators.context import Operator
from moldau.operators.stores.spec import StoreSpec
from moldau.serdes.primitive import LONG

from . import functions
from .graph import Graph
from .materialized import StoreOptions, materialized
from .recipes import Aggregation, Recipe
from .repartitioning import names_of, repartitioned
from .serdes import SerdeLike
from .table import KTable

if TYPE_CHECKING:
    from .cogrouped import CogroupedKStream
    from .windowed import SessionWindowedKStream, TimeWindowedKStream
    from .windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
AGGREGATE, REDUCE = "KSTREAM-AGGREGATE-", "KSTREAM-REDUCE-"


def zero() -> int:
    return 0


def one_more(key: Any, value: Any, count: int) -> int:
    return count + 1


class KGroupedStream(Generic[K, V]):
    """What `group_by` and `group_by_key` make. `repartition` says whether the key was changed before."""

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
        """How many records each key has had."""
        burn(self.graph, options)
        store = materialized(self.graph, AGGREGATE, options, self.key, LONG)
        make = partial(aggregation, zero, one_more)
        return self.table(AGGREGATE, name, Aggregation(store.spec, make), store.given, "aggregate")

    def reduce(
        self, reducer: Callable[[V, V], V], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, V]:
        """The reducer gets what there is and the new value; the first value of a key is taken as it is."""
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
        """The adder gets key, value and the aggregate so far. The aggregate's serde is `value=`."""
        store = materialized(self.graph, AGGREGATE, options, self.key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        add = functions.aggregator(adder, f"aggregate ({store.name})")
        return self.table(
            AGGREGATE, name, Aggregation(store.spec, partial(aggregation, start, add)), store.given, "aggregate"
        )

    def cogroup(self, adder: Callable[[K, V, A], A]) -> CogroupedKStream[K, A]:
        """The beginning of an aggregate over several streams: `a.cogroup(f).cogroup(b, g).aggregate(...)`."""
        from .cogrouped import CogroupedKStream

        return CogroupedKStream(((self, functions.aggregator(adder, "cogroup")),))

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[K, V]: ...

    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows | UnlimitedWindows) -> TimeWindowedKStream[K, V]: ...

    def windowed_by(self, windows: Any) -> Any:
        """By window too: TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows."""
        from .windowed import windowed_by

        return windowed_by(self, windows)

    def table(self, prefix: str, name: str | None, recipe: Recipe, store: str | None, kind: str) -> KTable[K, Any]:
        """Adds the node that keeps the aggregate; before it a repartition topic, where the key was changed."""
        node = self.graph.named(name, prefix)
        spec = next(store for store in recipe.stores() if isinstance(store, StoreSpec))
        parent, sources = self.keyed_parent(spec.name)
        self.graph.table(node, [parent], recipe, kind)
        return KTable(self.graph, node, sources, spec.key, spec.value, recipe, store)

    def keyed_parent(self, prefix: str) -> tuple[str, frozenset[str]]:
        """The node to go on from, all of whose records are in the partition of their key; and its sources."""
        if not self.repartition:
            return self.name, self.sources
        if self._again is None:
            source = repartitioned(self.graph, self.name, self.topic or prefix, self.key, self.value)
            self._again = source if self.topic is not None else None
        else:
            names_of(self.graph, self._again)
            source = self._again
        return source, frozenset((source,))


def burn(graph: Graph, options: StoreOptions) -> None:
    """A count that says how to store, but not under which name, counts one number that nobody uses. So does Kafka."""
    if options and "store" not in options:
        graph.store_name(AGGREGATE)


def aggregation(
    initializer: Callable[[], Any], adder: Callable[[Any, Any, Any], Any], store: str, send_old: bool
) -> Operator:
    return StreamAggregate(store, initializer, adder, send_old)
