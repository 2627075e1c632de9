"""Tables: the latest value of each key, and what is computed from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from moldau.operators.context import TopologyError
from moldau.operators.table import ToStream

from . import functions
from .foreign_joins import ForeignOptions, Partitioners, join_on_foreign_key
from .graph import Graph
from .joins import join_tables
from .materialized import StoreOptions, optional
from .names import listed
from .recipes import Filtered, Mapped, Recipe, Regrouped, Transformed
from .serdes import SerdeLike
from .suppressing import suppress as held_back
from .windows import Suppressed

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
    """`name` is the node whose changes it is; `store` the name under which it can be looked up, if it has one."""

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
        """Keys whose value passes; those of others are deleted below."""
        return self._filter(predicate, False, name, options)

    def filter_not(
        self, predicate: Callable[[K, V], Any] | str, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, V]:
        return self._filter(predicate, True, name, options)

    def map_values(
        self, mapper: Callable[..., W] | str, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, W]:
        """The mapper gets (value) or (key, value), and is never asked about deleted keys."""
        store = optional(self.graph, MAPVALUES, options, self.key)
        node = self.graph.named(name, MAPVALUES)
        spec = store.spec if store is not None and store.queryable else None
        recipe = Mapped(self.recipe, spec, functions.of_value(mapper, node))
        self.graph.table(node, [self.name], recipe, "map_values")
        return KTable(self.graph, node, self.sources, *serdes_of(store, self.key, None), recipe, store and store.given)

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Holds changes back: until windows close, or until a time limit."""
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(f"suppress() of {self.name} needs Suppressed.until_window_closes(), not {suppressed!r}")
        recipe = held_back(self, suppressed)
        return KTable(self.graph, recipe.node, self.sources, self.key, self.value, recipe)

    def to_stream(self, mapper: Callable[[K, V], Any] | None = None, *, name: str | None = None) -> KStream[Any, V]:
        """Its changes as a stream, deletes as None; with a mapper, under a new key."""
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
        """As map_values, by an object with `transform(key, value)`, which is asked about None too; `init(context)`
        gives it the named stores. `transformer` makes one for each task.
        """
        store = optional(self.graph, TRANSFORMVALUES, options, self.key)
        node = self.graph.named(name, TRANSFORMVALUES)
        functions.of_nothing(transformer, node)
        spec = store.spec if store is not None and store.queryable else None
        recipe = Transformed(self.recipe, spec, transformer, listed(stores, f"stores= of {node}"))
        self.graph.table(node, [self.name], recipe, "transform_values")
        return KTable(self.graph, node, self.sources, *serdes_of(store, self.key, None), recipe, store and store.given)

    def group_by(
        self,
        selector: Callable[[K, V], tuple[L, W]],
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        name: str | None = None,
    ) -> KGroupedTable[L, W]:
        """By a new key: the selector returns the group and the value that counts there."""
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
        """Keys that both tables have. The joiner gets (value, other) or (key, value, other). With a foreign key, a
        function of (value) or (key, value), that is the key of the other table; `partitioners` are those of the keys
        of both, where they were not partitioned as usual.
        """
        if foreign_key is not None:
            chosen = ForeignOptions(name, *both(partitioners), options)
            return join_on_foreign_key(self, other, foreign_key, joiner, False, chosen)
        only_with_foreign_key(partitioners, self.name)
        return join_tables(self, other, joiner, "inner", name, options)

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
        """Keys of this table; the other's value may be None."""
        if foreign_key is not None:
            chosen = ForeignOptions(name, *both(partitioners), options)
            return join_on_foreign_key(self, other, foreign_key, joiner, True, chosen)
        only_with_foreign_key(partitioners, self.name)
        return join_tables(self, other, joiner, "left", name, options)

    def outer_join(
        self,
        other: KTable[K, W],
        joiner: Callable[..., Any],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[K, Any]:
        """Keys of either table; one of the values may be None."""
        return join_tables(self, other, joiner, "outer", name, options)

    def _filter(
        self, predicate: Callable[[K, V], Any] | str, negated: bool, name: str | None, options: StoreOptions
    ) -> KTable[K, V]:
        store = optional(self.graph, FILTER, options, self.key, self.value)
        node = self.graph.named(name, FILTER)
        spec = store.spec if store is not None and store.queryable else None
        recipe = Filtered(self.recipe, spec, functions.of_key_value(predicate, node), negated)
        self.graph.table(node, [self.name], recipe, "filter")
        key, value = serdes_of(store, self.key, self.value)
        return KTable(self.graph, node, self.sources, key, value, recipe, store and store.given)


def serdes_of(store: Any, key: SerdeLike, value: SerdeLike) -> tuple[SerdeLike, SerdeLike]:
    return (key, value) if store is None else (store.key, store.value)


def both(partitioners: Any) -> Partitioners:
    if not isinstance(partitioners, tuple | list) or len(partitioners) != 2:
        raise TopologyError(f"partitioners= must be a pair, of the left and of the right table, not {partitioners!r}")
    return partitioners[0], partitioners[1]


def only_with_foreign_key(partitioners: Any, table: str) -> None:
    if partitioners != (None, None):
        raise TopologyError(f"partitioners= of the join of {table} is for joins with foreign_key=")
