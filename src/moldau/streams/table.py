"""Tables: the latest value of each key, and what is computed from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from moldau.operators.stateless import MapValues
from moldau.operators.table import newest

from . import functions
from .graph import Graph
from .materialized import StoreOptions, optional
from .recipes import Filtered, Mapped, Recipe
from .serdes import SerdeLike

if TYPE_CHECKING:
    from .stream import KStream

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
FILTER, MAPVALUES, TOSTREAM = "KTABLE-FILTER-", "KTABLE-MAPVALUES-", "KTABLE-TOSTREAM-"


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
        self, predicate: Callable[[K, V], Any], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, V]:
        """Keys whose value passes; those of others are deleted below."""
        return self._filter(predicate, False, name, options)

    def filter_not(
        self, predicate: Callable[[K, V], Any], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, V]:
        return self._filter(predicate, True, name, options)

    def map_values(
        self, mapper: Callable[..., W], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[K, W]:
        """The mapper gets (value) or (key, value), and is never asked about deleted keys."""
        store = optional(self.graph, MAPVALUES, options, self.key)
        node = self.graph.named(name, MAPVALUES)
        spec = store.spec if store is not None and store.queryable else None
        recipe = Mapped(self.recipe, spec, functions.of_value(mapper, node))
        self.graph.table(node, [self.name], recipe, "map_values")
        return KTable(self.graph, node, self.sources, *serdes_of(store, self.key, None), recipe, store and store.given)

    def to_stream(self, mapper: Callable[[K, V], Any] | None = None, *, name: str | None = None) -> KStream[Any, V]:
        """Its changes as a stream, deletes as None; with a mapper, under a new key."""
        from .stream import KStream

        node = self.graph.named(name, TOSTREAM)
        self.graph.processor(node, [self.name], lambda: MapValues(newest), kind="to_stream")
        stream: KStream[Any, V] = KStream(self.graph, node, self.sources, self.key, self.value)
        return stream if mapper is None else stream.select_key(mapper)

    def _filter(
        self, predicate: Callable[[K, V], Any], negated: bool, name: str | None, options: StoreOptions
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
