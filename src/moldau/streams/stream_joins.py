"""Joins of two streams: the nodes and stores that they consist of, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from moldau.operators.context import TopologyError
from moldau.operators.durations import Duration
from moldau.operators.stateless import PassThrough
from moldau.operators.stores.outer import outer
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.stores.window import window
from moldau.operators.stream_join import StreamJoin, StreamWindow
from moldau.operators.windows import JoinWindows

from . import functions
from .joins import keyed_stream
from .materialized import logging, persistent
from .names import checked_name
from .serdes import SerdeLike
from .tuning import store_type

if TYPE_CHECKING:
    from .stream import KStream

Kind = Literal["inner", "left", "outer"]


class StreamJoined(TypedDict, total=False):
    """The options of a join with a stream: the window, the serde of the other side's values, and the stores of both
    sides' records. `store` is the beginning of their names, or one of two stores, with `other_store`. A join with a
    versioned table has one option: the grace for which records wait.
    """

    window: JoinWindows
    grace: Duration
    other_value: SerdeLike
    store: str | StoreSpec
    other_store: StoreSpec
    store_type: str
    logging: bool | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JoinOptions:
    window: JoinWindows
    name: str | None = None
    store: str | StoreSpec | None = None
    other_store: StoreSpec | None = None
    key: SerdeLike = None
    value: SerdeLike = None
    other_value: SerdeLike = None
    store_type: str | None = None
    logging: bool | Mapping[str, str] = True


def joined_by(key: SerdeLike, value: SerdeLike, name: str | None, joined: StreamJoined) -> JoinOptions:
    if "grace" in joined:
        raise TopologyError("the grace of a join of two streams is that of its window: JoinWindows.of(..., grace=...)")
    if not isinstance(joined.get("window"), JoinWindows):
        raise TopologyError("a join of two streams needs window=JoinWindows.of('5 minutes')")
    given: Any = joined
    return JoinOptions(key=key, value=value, name=name, **given)


def of_table(joined: StreamJoined) -> Duration | None:
    """Return the grace of a join with a table, and refuse the other options."""
    strange = sorted(set(joined) - {"grace"})
    if strange:
        raise TopologyError(f"{strange[0]}= is for joins with a stream, not with a table")
    return joined.get("grace")


def join_streams(
    left: KStream[Any, Any],
    right: KStream[Any, Any],
    joiner: Callable[..., Any],
    kind: Kind,
    options: JoinOptions,
) -> KStream[Any, Any]:
    if getattr(right, "graph", None) is not left.graph:
        raise TopologyError(f"a stream is joined with one of the same StreamsBuilder, not with {right!r}")
    key, given = options.key or left.key, options.name
    relaxed = kind != "inner"
    left = keyed_stream(left, given and f"{given}-left", key, options.value, relaxed)
    right = keyed_stream(right, given and f"{given}-right", key, options.other_value, relaxed)
    left.graph.copartition(left.sources | right.sources)
    return Join(left, right, kind, options, key).add(joiner)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: the node that keeps its records, the node that joins them, and its store."""

    stream: KStream[Any, Any]
    window: str
    node: str
    store: StoreSpec
    outer: bool


class Join:
    def __init__(
        self, left: KStream[Any, Any], right: KStream[Any, Any], kind: Kind, options: JoinOptions, key: SerdeLike
    ) -> None:
        self.left, self.right, self.kind, self.options, self.key = left, right, kind, options, key
        self.graph, self.windows = left.graph, options.window

    def add(self, joiner: Callable[..., Any]) -> KStream[Any, Any]:
        graph, given = self.graph, self.options.name
        windows = (
            graph.suffixed(given, "-this-windowed", "KSTREAM-WINDOWED-"),
            graph.suffixed(given, "-other-windowed", "KSTREAM-WINDOWED-"),
        )
        this_name = graph.generate("KSTREAM-OUTERTHIS-" if self.kind == "outer" else "KSTREAM-JOINTHIS-")
        other_name = graph.generate("KSTREAM-JOINOTHER-" if self.kind == "inner" else "KSTREAM-OUTEROTHER-")
        merge = graph.suffixed(given, "-merge", "KSTREAM-MERGE-")
        this_suffix = "-outer-this-join" if self.kind == "outer" else "-this-join"
        other_suffix = "-other-join" if self.kind == "inner" else "-outer-other-join"
        value, other_value = self.options.value or self.left.value, self.options.other_value or self.right.value
        this_store = self.store(self.options.store, this_name, this_suffix, value)
        other_store = self.store(self.options.other_store or self.base, other_name, other_suffix, other_value)
        if this_store.name == other_store.name:
            raise TopologyError(f"both sides of the join would be kept in {this_store.name}: give two stores")
        waiting = self.waiting_store(this_name, value, other_value)
        if given is not None:
            this_name, other_name = (checked_name(given + end, "name=") for end in (this_suffix, other_suffix))
        this = Side(self.left, windows[0], this_name, this_store, self.kind != "inner")
        other = Side(self.right, windows[1], other_name, other_store, self.kind == "outer")
        chosen = functions.joiner(joiner, merge)
        for side in (this, other):
            self.keep(side)
        for side, partner, left in ((this, other, True), (other, this, False)):
            self.join(side, partner, left, waiting, chosen)
        graph.processor(merge, [this.node, other.node], PassThrough, kind="merge")
        return type(self.left)(graph, merge, self.left.sources | self.right.sources, self.key, None)

    @property
    def base(self) -> str | None:
        """The beginning of both stores' names, if the user gave it."""
        return self.options.store if isinstance(self.options.store, str) else None

    def store(self, given: str | StoreSpec | None, made: str, suffix: str, value: SerdeLike) -> StoreSpec:
        if isinstance(given, StoreSpec):
            return self.fitting(given, value)
        return self.kept((made if given is None else checked_name(given + suffix, "store=")) + "-store", value)

    def fitting(self, given: StoreSpec, value: SerdeLike) -> StoreSpec:
        """Return a store of the user's, after checking that it keeps what this join needs."""
        size = self.windows.size_ms
        parts, kept = dict(given.parts), size + self.windows.grace_ms
        if given.kind != "window" or not parts["duplicates"]:
            raise TopologyError(f"the store {given.name} must be a window store with retain_duplicates=True")
        if given.retention_ms != kept or parts["window_size_ms"] != size:
            raise TopologyError(
                f"the store {given.name} must have the window size {size} ms and the retention {kept} ms of its join"
            )
        return given.with_serdes(given.key or cast(Any, self.key), given.value or cast(Any, value))

    def keep(self, side: Side) -> None:
        name = side.store.name
        self.graph.processor(side.window, [side.stream.name], lambda: StreamWindow(name), [side.store], "join")

    def join(
        self, side: Side, partner: Side, left: bool, waiting: StoreSpec | None, joiner: Callable[[Any, Any, Any], Any]
    ) -> None:
        other, shared = partner.store.name, None if waiting is None else waiting.name
        make = partial(StreamJoin, other, self.windows, joiner, left=left, outer=side.outer, waiting=shared)
        stores = [other] if waiting is None else [other, waiting]
        self.graph.processor(side.node, [side.window], make, stores, "join")

    def on_disk(self, name: str) -> bool:
        return persistent(self.options.store_type or store_type(self.graph.settings), name)

    def kept(self, name: str, value: SerdeLike) -> StoreSpec:
        """Return the store of one side, which keeps all records for window and grace, duplicates included."""
        size, options = self.windows.size_ms, self.options
        key, written = cast(Any, self.key), cast(Any, value)
        kept: Any = {"persistent": self.on_disk(name), **logging(options.logging)}
        return window(name, size, size + self.windows.grace_ms, key, written, duplicates=True, **kept)

    def waiting_store(self, this_name: str, value: SerdeLike, other_value: SerdeLike) -> StoreSpec | None:
        if self.kind == "inner" or self.windows.eager:
            return None
        options, given = self.options, self.options.store
        base = given.name if isinstance(given, StoreSpec) else given
        suffix = "-outer-shared-join" if self.kind == "outer" else "-left-shared-join"
        name = f"KSTREAM-OUTERSHARED-{this_name[-10:]}" if base is None else base + suffix
        on_disk = given.persistent if isinstance(given, StoreSpec) else self.on_disk(name)
        kept: Any = {"persistent": on_disk, **logging(options.logging)}
        return outer(f"{name}-store", cast(Any, self.key), cast(Any, value), cast(Any, other_value), **kept)
