"""Tables: the latest value of each key, and what is computed from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from moldau.operators.context import TopologyError
from moldau.operators.table import TableMapValues, TableTransformValues, ToStream, mapped
from moldau.operators.table_join import Side
from moldau.operators.views import computed_view, transformed_view
from moldau.operators.windows import Suppressed

from . import functions
from .foreign_joins import ForeignOptions, Partitioners, join_on_foreign_key
from .graph import Graph
from .joins import join_tables
from .materialized import Materialized, StoreOptions, optional, queried_spec
from .names import listed
from .recipes import Derived, Filtered, Recipe, Regrouped
from .serdes import SerdeLike
from .suppressing import suppress as held_back

if TYPE_CHECKING:
    from .grouped_table import KGroupedTable
    from .stream import KStream

K = TypeVar("K")
V = TypeVar("V")
L = TypeVar("L")
W = TypeVar("W")
FILTER, MAPVALUES, TOSTREAM = "KTABLE-FILTER-", "KTABLE-MAPVALUES-", "KTABLE-TOSTREAM-"
TRANSFORMVALUES, SELECT = "KTABLE-TRANSFORMVALUES-", "KTABLE-SELECT-"


class KTable(Generic[K, V]):
    """A table: the changes of the node `name`. `store` is the name under which it can be looked up, if it has one."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        sources: frozenset[str],
        key: SerdeLike,
        value: SerdeLike,
        recipe: Recipe,
        store: str | None = None,
    ) -> None:
        self.graph, self.name, self.sources, self.key, self.value = graph, name, sources, key, value
        self.recipe, self.store = recipe, store

    @property
    def queryable_store_name(self) -> str | None:
        return self.store

    def filter(
        self, predicate: Callable[[K, V], Any] | str, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, V]:
        """Keep keys whose value passes; others are deleted below."""
        return self._filter(predicate, False, name, options)

    def filter_not(
        self, predicate: Callable[[K, V], Any] | str, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, V]:
        return self._filter(predicate, True, name, options)

    def map_values(
        self, mapper: Callable[..., W] | str, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, W]:
        """Map each value. The mapper gets (value) or (key, value), and is not called for deleted keys."""
        store = optional(self.graph, MAPVALUES, options, self.key)
        node = self.graph.named(name, MAPVALUES)
        compute = mapped(functions.of_value(mapper, node))
        operator = partial(TableMapValues, compute)
        recipe = Derived(self.recipe, queried_spec(store), operator, lambda view: computed_view(view, compute))
        return self._derived(node, recipe, store, "map_values")

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Hold changes back until windows close, or until a time limit."""
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(f"suppress() of {self.name} needs Suppressed.until_window_closes(), not {suppressed!r}")
        recipe = held_back(self, suppressed)
        return KTable(self.graph, recipe.node, self.sources, self.key, self.value, recipe)

    def to_stream(self, mapper: Callable[[K, V], Any] | None = None, *, name: str | None = None) -> KStream[Any, V]:
        """Turn changes into a stream, in which a deletion is None; with a mapper, under a new key."""
        from .stream import KStream

        node = self.graph.named(name, TOSTREAM)
        self.graph.processor(node, [self.name], ToStream, kind="to_stream")
        stream: KStream[Any, V] = KStream(self.graph, node, self.sources, self.key, self.value)
        return stream if mapper is None else stream.select_key(mapper)

    def transform_values(
        self,
        transformer: Callable[[], Any],
        *,
        stores: Iterable[str] = (),
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, Any]:
        """Do as map_values, by an object with `transform(key, value)`, which is called for deleted keys too;
        `init(context)` gives it the named stores. `transformer` makes one for each task.
        """
        store = optional(self.graph, TRANSFORMVALUES, options, self.key)
        node = self.graph.named(name, TRANSFORMVALUES)
        functions.of_nothing(transformer, node)
        operator = partial(TableTransformValues, transformer)
        connected = listed(stores, f"stores= of {node}")
        recipe = Derived(
            self.recipe, queried_spec(store), operator, lambda view: transformed_view(view, transformer), connected
        )
        return self._derived(node, recipe, store, "transform_values")

    def group_by(
        self,
        selector: Callable[[K, V], tuple[L, W]],
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        name: str | None = None,
    ) -> KGroupedTable[L, W]:
        """Group by a new key. The selector returns the new key and the value that counts there."""
        from .grouped_table import KGroupedTable

        node = self.graph.named(name, SELECT)
        recipe = Regrouped(self.recipe, functions.of_key_value(selector, node))
        self.graph.table(node, [self.name], recipe, "group_by")
        return KGroupedTable(self.graph, node, key, value, name)

    def join(
        self,
        other: KTable[Any, W],
        joiner: Callable[..., Any],
        *,
        foreign_key: Callable[..., Any] | None = None,
        partitioners: Partitioners = (None, None),
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, Any]:
        """Join the keys that both tables have. The joiner gets (value, other) or (key, value, other). `foreign_key`, a
        function of (value) or (key, value), returns the key of the other table; `partitioners` are those of the keys
        of both tables, where they were not partitioned as usual.
        """
        return self._join(other, joiner, "inner", foreign_key, partitioners, name, options)

    def left_join(
        self,
        other: KTable[Any, W],
        joiner: Callable[..., Any],
        *,
        foreign_key: Callable[..., Any] | None = None,
        partitioners: Partitioners = (None, None),
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, Any]:
        """Join all keys of this table; the other's value may be None."""
        return self._join(other, joiner, "left", foreign_key, partitioners, name, options)

    def outer_join(
        self,
        other: KTable[K, W],
        joiner: Callable[..., Any],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, Any]:
        """Join the keys of either table; one of the values may be None."""
        return join_tables(self, other, joiner, "outer", name, options)

    def _filter(
        self, predicate: Callable[[K, V], Any] | str, negated: bool, name: str | None, options: StoreOptions
    ) -> KTable[K, V]:
        store = optional(self.graph, FILTER, options, self.key, self.value)
        node = self.graph.named(name, FILTER)
        recipe = Filtered(self.recipe, queried_spec(store), functions.of_key_value(predicate, node), negated)
        return self._derived(node, recipe, store, "filter", self.value)

    def _derived(
        self, node: str, recipe: Derived, store: Materialized | None, kind: str, value: SerdeLike = None
    ) -> KTable[K, Any]:
        """Add the node of a derived table. Its serdes are those of its store, if it has one."""
        self.graph.table(node, [self.name], recipe, kind)
        if store is None:
            return KTable(self.graph, node, self.sources, self.key, value, recipe)
        return KTable(self.graph, node, self.sources, store.key, store.value, recipe, store.given)

    def _join(
        self,
        other: KTable[Any, Any],
        joiner: Callable[..., Any],
        kind: Side,
        foreign_key: Callable[..., Any] | None,
        partitioners: Partitioners,
        name: str | None,
        options: StoreOptions,
    ) -> KTable[K, Any]:
        if foreign_key is not None:
            chosen = ForeignOptions(name, *both(partitioners), options)
            return join_on_foreign_key(self, other, foreign_key, joiner, kind == "left", chosen)
        if partitioners != (None, None):
            raise TopologyError(f"partitioners= of the join of {self.name} is for joins with foreign_key=")
        return join_tables(self, other, joiner, kind, name, options)


class GlobalKTable(Generic[K, V]):
    """A table that is complete in each process. It is looked up by any key that a function makes of a stream's record.
    `given` says whether the user named its store.
    """

    def __init__(self, graph: Graph, store: str, given: bool, key: SerdeLike, value: SerdeLike) -> None:
        self.graph, self.store, self.given, self.key, self.value = graph, store, given, key, value

    @property
    def queryable_store_name(self) -> str | None:
        return self.store if self.given else None


def both(partitioners: Any) -> Partitioners:
    if not isinstance(partitioners, tuple | list) or len(partitioners) != 2:
        raise TopologyError(f"partitioners= must be a pair, of the left and of the right table, not {partitioners!r}")
    return partitioners[0], partitioners[1]
