"""Joins of a stream with a table, and of tables with each other: the nodes that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from moldau.operators.context import TopologyError
from moldau.operators.durations import Duration, milliseconds
from moldau.operators.grace_join import GraceJoin
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.stores.waiting import grace as waiting_store
from moldau.operators.stream_table_join import StreamTableJoin
from moldau.operators.table_join import JoinedTable, Joiner, Side, TableJoin, join_view
from moldau.operators.views import View, store_view
from moldau.serdes.context import Serde

from . import functions
from .materialized import Materialized, StoreOptions, optional, queried_spec
from .recipes import Factory, Recipe, Uses
from .repartitioning import repartitioned
from .serdes import SerdeLike

if TYPE_CHECKING:
    from .stream import KStream
    from .table import GlobalKTable, KTable

JOIN, LEFT_JOIN = "KSTREAM-JOIN-", "KSTREAM-LEFTJOIN-"
MERGE, THIS, OTHER = "KTABLE-MERGE-", "KTABLE-JOINTHIS-", "KTABLE-JOINOTHER-"
SIDES: dict[str, tuple[Side, Side]] = {
    "inner": ("inner", "inner"),
    "left": ("left", "right"),
    "outer": ("outer", "outer"),
}


def keyed_stream(
    stream: KStream[Any, Any], name: str | None, key: SerdeLike, value: SerdeLike, null_keys: bool
) -> KStream[Any, Any]:
    """Return the stream with each record in the partition of its key: through a topic, if the key was changed."""
    if not stream.repartition_required:
        return stream
    key, value = key or stream.key, value or stream.value
    source = repartitioned(stream.graph, stream.name, name or stream.name, key, value, null_keys=null_keys)
    return type(stream)(stream.graph, source, frozenset((source,)), key, value)


def join_table(
    stream: KStream[Any, Any],
    table: KTable[Any, Any],
    joiner: Callable[..., Any],
    left: bool,
    name: str | None,
    key: SerdeLike,
    value: SerdeLike,
    grace: Duration | None = None,
) -> KStream[Any, Any]:
    """Join a stream with a table. With a grace, records wait for a versioned table before they are joined."""
    check_same_builder(stream, table)
    stream = keyed_stream(stream, name, key, value, left)
    graph = stream.graph
    graph.copartition(stream.sources | table.sources)
    node = graph.named(name, LEFT_JOIN if left else JOIN)
    chosen, view = functions.joiner(joiner, node), table.recipe.view()
    if grace is None:
        graph.processor(node, [stream.name], lambda: StreamTableJoin(view, chosen, left), view.stores, "join")
    else:
        waiting = grace_store(node, table, grace, cast(Any, key or stream.key), cast(Any, value or stream.value))
        make = partial(GraceJoin, waiting.name, view, chosen, left)
        graph.processor(node, [stream.name], make, (waiting, *view.stores), "join")
    return type(stream)(graph, node, stream.sources | table.sources, key or stream.key)


def grace_store(node: str, table: KTable[Any, Any], grace: Duration, key: Serde, value: Serde) -> StoreSpec:
    if not table.recipe.versioned():
        raise TopologyError(
            f"{node} has a grace=, for which the table must be versioned: "
            "store=persistent_versioned_key_value_store(name, history_retention)"
        )
    return waiting_store(f"{node}-Buffer", milliseconds(grace, f"grace= of {node}"), key, value)


def join_global(
    stream: KStream[Any, Any],
    table: GlobalKTable[Any, Any],
    joiner: Callable[..., Any],
    left: bool,
    name: str | None,
    key_of: Any,
) -> KStream[Any, Any]:
    check_same_builder(stream, table)
    graph = stream.graph
    node = graph.named(name, LEFT_JOIN)  # for both kinds of join, as in Kafka
    if not callable(key_of):
        raise TopologyError(f"{node} joins a global table: key= must be a function of (key, value) that gives its key")
    chosen, view = functions.joiner(joiner, node), store_view(table.store)
    find = functions.of_key_value(key_of, node)
    graph.processor(node, [stream.name], lambda: StreamTableJoin(view, chosen, left, find), kind="join")
    return type(stream)(graph, node, stream.sources, stream.key, None, stream.repartition_required)


class JoinSide:
    """One side of a join of tables."""

    def __init__(self, side: Side, mine: Recipe, other: Recipe, joiner: Joiner) -> None:
        self.side: Side = side
        self.mine, self.joiner, self.send_old = mine, joiner, False
        self.view: View = other.view()

    def factory(self) -> Factory:
        return partial(TableJoin, self.side, self.view, self.joiner, self.send_old, self.mine.versioned())

    def stores(self) -> Uses:
        return self.view.stores


class Joined:
    """The table of a join, in which both sides meet."""

    def __init__(
        self, sides: tuple[JoinSide, JoinSide], store: Materialized | None, kind: Side, joiner: Joiner
    ) -> None:
        self.kind: Side = kind
        self.sides, self.joiner, self.send_old = sides, joiner, False
        self.given = None if store is None else store.spec
        self.spec = queried_spec(store)

    def factory(self) -> Factory:
        return partial(JoinedTable, None if self.spec is None else self.spec.name, self.send_old)

    def stores(self) -> Uses:
        """Return the store, if there is one. One without a name exists, as in Kafka, but nothing is written to it."""
        return () if self.given is None else (self.given,)

    def send_old_values(self, force: bool) -> bool:
        for side in self.sides:
            side.mine.send_old_values(True)
            side.send_old = True
        self.send_old = True
        return True

    def view(self) -> View:
        if self.spec is not None:
            return store_view(self.spec.name)
        left, right = (side.mine.view() for side in self.sides)
        return join_view(self.kind, left, right, self.joiner)

    def versioned(self) -> bool:
        return self.spec is not None and self.spec.versioned


def join_tables(
    left: KTable[Any, Any],
    right: KTable[Any, Any],
    joiner: Callable[..., Any],
    kind: Side,
    name: str | None,
    options: StoreOptions,
) -> KTable[Any, Any]:
    from .table import KTable

    check_tables(left, right)
    graph = left.graph
    store = optional(graph, MERGE, options, left.key)
    merge = graph.named(name, MERGE)
    chosen = functions.joiner(joiner, merge)
    if kind != "inner":
        left.recipe.send_old_values(True)
    if kind == "outer":
        right.recipe.send_old_values(True)
    mine, others = SIDES[kind]
    sides = (
        JoinSide(mine, left.recipe, right.recipe, chosen),
        JoinSide(others, right.recipe, left.recipe, lambda key, other, this: chosen(key, this, other)),
    )
    names = (graph.suffixed(name, "-join-this", THIS), graph.suffixed(name, "-join-other", OTHER))
    recipe = Joined(sides, store, kind, chosen)
    for node, side, parent in zip(names, sides, (left.name, right.name), strict=True):
        graph.table(node, [parent], side, "join")
    graph.table(merge, names, recipe, "join")
    sources = left.sources | right.sources
    graph.copartition(sources)
    key, value = (left.key, None) if store is None else (store.key, store.value)
    return KTable(graph, merge, sources, key, value, recipe, store and store.given)


def check_same_builder(one: Any, other: Any) -> None:
    if not hasattr(other, "graph"):
        raise TopologyError(f"{type(one).__name__} {one.name} needs a stream or a table to meet with, not {other!r}")
    if one.graph is not other.graph:
        raise TopologyError("streams and tables of two builders cannot be joined or merged: use one StreamsBuilder")


def check_tables(left: Any, right: Any) -> None:
    check_same_builder(left, right)
    if not hasattr(right, "recipe"):
        raise TopologyError(f"the table {left.name} is joined with a table, not with a {type(right).__name__}")
