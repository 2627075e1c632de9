"""Several grouped streams as one aggregate: each with an adder of its own, all in one store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from moldau.operators.context import TopologyError
from moldau.operators.stateless import PassThrough
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.views import View, store_view

from . import functions
from .graph import Graph
from .grouped import KGroupedStream, aggregation
from .materialized import StoreOptions, materialized
from .recipes import Factory, Recipe, Uses
from .serdes import SerdeLike
from .table import KTable

if TYPE_CHECKING:
    from moldau.operators.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

    from .windowed_cogroup import SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream

K = TypeVar("K")
A = TypeVar("A")
AGGREGATE, MERGE = "COGROUPKSTREAM-AGGREGATE-", "COGROUPKSTREAM-MERGE-"
Adder = Callable[[Any, Any, Any], Any]
Group = tuple[KGroupedStream[Any, Any], Adder]


class Cogrouped:
    """The table in which the aggregates of all streams meet. They share its store."""

    def __init__(self, parts: Sequence[Recipe], spec: StoreSpec) -> None:
        self.parts, self.spec = parts, spec

    def factory(self) -> Factory:
        return PassThrough

    def stores(self) -> Uses:
        return ()

    def send_old_values(self, force: bool) -> bool:
        for part in self.parts:
            part.send_old_values(force)
        return True

    def view(self) -> View:
        return store_view(self.spec.name)

    def versioned(self) -> bool:
        return self.spec.versioned


class CogroupedKStream(Generic[K, A]):
    def __init__(self, groups: tuple[Group, ...]) -> None:
        self.groups = groups
        self.graph = groups[0][0].graph

    def cogroup(self, grouped: KGroupedStream[K, Any], adder: Callable[[K, Any, A], A]) -> CogroupedKStream[K, A]:
        """Add a stream with the same key."""
        if not isinstance(grouped, KGroupedStream):
            raise TopologyError(
                f"cogroup() needs a grouped stream and a function, not {grouped!r}: group_by_key() first"
            )
        return CogroupedKStream((*self.groups, (grouped, functions.aggregator(adder, "cogroup"))))

    def aggregate(
        self, initializer: Callable[[], A], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, A]:
        """Aggregate all streams. The aggregate's serde is `value=`."""
        store = materialized(self.graph, AGGREGATE, options, self.groups[0][0].key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        parts = [aggregation(store.spec, start, adder) for _, adder in self.groups]
        return cogrouped(self.graph, self.groups, parts, store.spec, name, store.spec.key, store.given)

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, A]: ...

    @overload
    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | UnlimitedWindows
    ) -> TimeWindowedCogroupedKStream[K, A]: ...

    def windowed_by(self, windows: Any) -> Any:
        """Group by window too: TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows."""
        from .windowed import windowed_by
        from .windowed_cogroup import SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream

        return windowed_by(self, windows, TimeWindowedCogroupedKStream, SessionWindowedCogroupedKStream)


def cogrouped(
    graph: Graph,
    groups: Sequence[Group],
    parts: Sequence[Recipe],
    spec: StoreSpec,
    name: str | None,
    key: SerdeLike,
    given: str | None,
) -> KTable[Any, Any]:
    """Add a node for the aggregate of each stream, and the one where they meet."""
    parents = [grouped.keyed_parent(spec.name) for grouped, _ in groups]
    sources = frozenset[str]().union(*(sources for _, sources in parents))
    graph.copartition(sources)
    nodes: list[str] = []
    for number, ((parent, _), part) in enumerate(zip(parents, parts, strict=True)):
        node = graph.suffixed(name, f"-cogroup-agg-{number}", AGGREGATE)
        graph.table(node, [parent], part, "aggregate")
        nodes.append(node)
    merge = graph.suffixed(name, "-cogroup-merge", MERGE)
    recipe = Cogrouped(parts, spec)
    graph.table(merge, nodes, recipe, "merge")
    return KTable(graph, merge, sources, key, spec.value, recipe, given)
