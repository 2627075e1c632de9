"""Streams: records one after another, and what is done with each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from moldau.operators import stateless
from moldau.operators.context import Operator, TopologyError

from . import functions
from .graph import Graph
from .grouped import KGroupedStream
from .serdes import SerdeLike

K = TypeVar("K")
V = TypeVar("V")
L = TypeVar("L")
W = TypeVar("W")


class KStream(Generic[K, V]):
    """`name` is the node whose records it is; `repartition` says whether the key was changed since it was last the one
    that decides where a record is.
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

    def filter(self, predicate: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Records for which the predicate holds."""
        node = self.graph.named(name, "KSTREAM-FILTER-")
        chosen = functions.of_key_value(predicate, node)
        return self.then(node, lambda: stateless.Filter(chosen), "filter")

    def filter_not(self, predicate: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        node = self.graph.named(name, "KSTREAM-FILTER-")
        chosen = functions.of_key_value(predicate, node)
        return self.then(node, lambda: stateless.Filter(chosen, True), "filter")

    def select_key(self, mapper: Callable[[K, V], L], *, name: str | None = None) -> KStream[L, V]:
        """A new key; what goes by key below is repartitioned first."""
        node = self.graph.named(name, "KSTREAM-KEY-SELECT-")
        chosen = functions.of_key_value(mapper, node)
        return self.then(node, lambda: stateless.SelectKey(chosen), "select_key", (None, self.value), True)

    def map(self, mapper: Callable[[K, V], tuple[L, W]], *, name: str | None = None) -> KStream[L, W]:
        """A new key and value: the mapper returns the pair."""
        node = self.graph.named(name, "KSTREAM-MAP-")
        chosen = functions.of_key_value(mapper, node)
        return self.then(node, lambda: stateless.Map(chosen), "map", (None, None), True)

    def map_values(self, mapper: Callable[..., W], *, name: str | None = None) -> KStream[K, W]:
        """The mapper gets (value) or (key, value)."""
        node = self.graph.named(name, "KSTREAM-MAPVALUES-")
        chosen = functions.of_value(mapper, node)
        return self.then(node, lambda: stateless.MapValues(chosen), "map_values", (self.key, None))

    def flat_map(self, mapper: Callable[[K, V], Iterable[tuple[L, W]]], *, name: str | None = None) -> KStream[L, W]:
        """Any number of pairs for each record."""
        node = self.graph.named(name, "KSTREAM-FLATMAP-")
        chosen = functions.of_key_value(mapper, node)
        return self.then(node, lambda: stateless.FlatMap(chosen), "flat_map", (None, None), True)

    def flat_map_values(self, mapper: Callable[..., Iterable[W]], *, name: str | None = None) -> KStream[K, W]:
        """Any number of values for each record; the mapper gets (value) or (key, value)."""
        node = self.graph.named(name, "KSTREAM-FLATMAPVALUES-")
        chosen = functions.of_value(mapper, node)
        return self.then(node, lambda: stateless.FlatMapValues(chosen), "flat_map_values", (self.key, None))

    def foreach(self, action: Callable[[K, V], Any], *, name: str | None = None) -> None:
        """Ends the stream with something that is done for each record."""
        node = self.graph.named(name, "KSTREAM-FOREACH-")
        chosen = functions.of_key_value(action, node)
        self.graph.processor(node, [self.name], lambda: stateless.Foreach(chosen), kind="foreach")

    def peek(self, action: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Something that is done for each record on its way."""
        node = self.graph.named(name, "KSTREAM-PEEK-")
        chosen = functions.of_key_value(action, node)
        return self.then(node, lambda: stateless.Peek(chosen), "peek")

    def to(
        self,
        topic: str | Callable[..., str],
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        partitioner: Callable[[str, K, V, int], int | None] | None = None,
        name: str | None = None,
    ) -> None:
        """Writes to a topic, or to the one that a function of (key, value, record) names."""
        if not isinstance(topic, str) and not callable(topic):
            raise TopologyError(f"to() needs the name of a topic, or a function that gives it, not {topic!r}")
        node = self.graph.named(name, "KSTREAM-SINK-")
        if callable(topic):
            functions.checked(topic, node, {3: "key, value, record"})
        self.graph.sink(node, self.name, topic, key or self.key, value or self.value, partitioner)

    def group_by_key(
        self, *, key: SerdeLike = None, value: SerdeLike = None, name: str | None = None
    ) -> KGroupedStream[K, V]:
        """By the key that records have. `name` is that of the repartition topic, if one is needed."""
        return KGroupedStream(
            self.graph, self.name, self.sources, key or self.key, value or self.value, self.repartition_required, name
        )

    def group_by(
        self,
        selector: Callable[[K, V], L],
        *,
        key: SerdeLike = None,
        value: SerdeLike = None,
        name: str | None = None,
    ) -> KGroupedStream[L, V]:
        """By a new key."""
        node = self.graph.named(name, "KSTREAM-KEY-SELECT-")
        chosen = functions.of_key_value(selector, node)
        self.graph.processor(node, [self.name], lambda: stateless.SelectKey(chosen), kind="select_key")
        return KGroupedStream(self.graph, node, self.sources, key, value or self.value, True, name)

    def then(
        self,
        node: str,
        operator: Callable[[], Operator],
        kind: str,
        serdes: tuple[SerdeLike, SerdeLike] | None = None,
        rekeyed: bool = False,
    ) -> KStream[Any, Any]:
        """The stream of a node below this one. Its serdes are this one's, unless said otherwise."""
        self.graph.processor(node, [self.name], operator, kind=kind)
        key, value = (self.key, self.value) if serdes is None else serdes
        return KStream(self.graph, node, self.sources, key, value, rekeyed or self.repartition_required)
