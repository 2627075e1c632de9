"""Streams by key and window: count, reduce and aggregate, as a table of windowed keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, Unpack

from moldau.operators.context import Operator, TopologyError
from moldau.operators.durations import milliseconds
from moldau.operators.session_aggregate import SessionAggregate
from moldau.operators.sliding_aggregate import SlidingAggregate
from moldau.operators.stores.session import session
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.stores.window import window
from moldau.operators.window_aggregate import TimeWindowAggregate
from moldau.operators.windowed import Windowed
from moldau.operators.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.serdes.primitive import LONG

from . import functions
from .grouped import AGGREGATE, REDUCE, KGroupedStream, one_more, zero
from .materialized import Materialized, StoreOptions, materialized, persistent
from .recipes import Aggregation
from .serdes import SerdeLike
from .table import KTable
from .windows import EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

FixedWindows = TimeWindows | UnlimitedWindows | SlidingWindows
Windows = FixedWindows | SessionWindows
Make = Callable[[str, bool], Operator]  # name of the store, whether old values are sent


class WindowedAggregation(Aggregation):
    """The aggregate of windows; `grace_ms` is how long after its end a window may still change."""

    def __init__(self, spec: StoreSpec, make: Make, grace_ms: int) -> None:
        super().__init__(spec, make)
        self.grace_ms = grace_ms


def grace_of(windows: Windows) -> int:
    return windows.grace_ms + (windows.gap_ms if isinstance(windows, SessionWindows) else 0)


def size_of(windows: FixedWindows) -> int:
    return windows.difference_ms if isinstance(windows, SlidingWindows) else windows.size_ms


def least_retention(windows: Windows) -> tuple[int, str]:
    """How long windows must be kept for records that may still come, and what that is in words."""
    if isinstance(windows, SlidingWindows):
        return 2 * windows.difference_ms + windows.grace_ms, "twice the time difference plus the grace period"
    if isinstance(windows, SessionWindows):
        return windows.gap_ms + windows.grace_ms, "the inactivity gap plus the grace period"
    return windows.size_ms + windows.grace_ms, "the window size plus the grace period"


def retention_of(windows: Windows, options: StoreOptions, store: str) -> int:
    least, words = least_retention(windows)
    given = options.get("retention")
    kept = least if given is None else milliseconds(given, f"retention= of {store}")
    if kept < least:
        raise TopologyError(f"retention= of the store {store} is {kept} ms: it must be at least {least} ms, {words}")
    return kept


def window_store(store: Materialized, windows: Windows, emit: EmitStrategy) -> StoreSpec:
    given = store.options.get("store")
    if isinstance(given, StoreSpec):
        return store.applied(as_table(given, windows))
    kept = retention_of(windows, store.options, store.name)
    on_disk = persistent(store.options.get("store_type", "persistent"), store.name)
    if isinstance(windows, SessionWindows):
        made = session(store.name, kept, final=emit.on_close, persistent=on_disk, cached=True)
        return without_cache(store.applied(made), emit)
    sliding = isinstance(windows, SlidingWindows)
    made = store.applied(
        window(
            store.name,
            size_of(windows),
            kept,
            stamped=True,
            final=emit.on_close,
            indexed=sliding,
            persistent=on_disk,
            cached=True,
        )
    )
    return without_cache(made, emit) if sliding else made


def without_cache(spec: StoreSpec, emit: EmitStrategy) -> StoreSpec:
    """Sessions and sliding windows that are emitted as they close have no cache, whatever was said: as in Kafka."""
    return replace(spec, cached=False) if emit.on_close else spec


def as_table(given: StoreSpec, windows: Windows) -> StoreSpec:
    """A store that the user chose. Windowed tables keep the time of each value, whether that was asked for or not."""
    fitting = ("session",) if isinstance(windows, SessionWindows) else ("window", "timestamped-window")
    least, words = least_retention(windows)
    if given.kind not in fitting:
        raise TopologyError(f"the store {given.name} is a {given.kind} store: these windows need a {fitting[0]} store")
    if (given.retention_ms or 0) < least:
        raise TopologyError(f"the store {given.name} must keep windows for at least {least} ms, {words}")
    if given.kind == "session":
        return given
    return replace(given, kind="timestamped-window", parts=tuple({**dict(given.parts), "stamped": True}.items()))


def windowed_key(windows: Windows, key: SerdeLike) -> Any:
    inner: Any = key
    return (
        SessionWindowedSerde(inner)
        if isinstance(windows, SessionWindows)
        else TimeWindowedSerde(inner, size_of(windows))
    )


def burnt(store: StoreOptions, grouped: KGroupedStream[Any, Any], windows: Windows) -> None:
    """A count that says how to store, but not under which name, takes a number that it does not use. So does Kafka,
    but for sliding windows.
    """
    if store and "store" not in store and not isinstance(windows, SlidingWindows):
        grouped.graph.store_name(AGGREGATE)


class Table(Generic[K]):
    """Adds the node of a windowed aggregate."""

    def __init__(self, grouped: KGroupedStream[K, Any], windows: Windows, emit: EmitStrategy) -> None:
        self.grouped, self.windows, self.emit = grouped, windows, emit

    def add(self, prefix: str, name: str | None, store: Materialized, make: Make, kind: str) -> KTable[Windowed, Any]:
        graph = self.grouped.graph
        spec = window_store(store, self.windows, self.emit)
        node = graph.named(name, prefix)
        recipe = WindowedAggregation(spec, make, grace_of(self.windows))
        parent, sources = self.grouped.keyed_parent(spec.name)
        graph.table(node, [parent], recipe, kind)
        return KTable(graph, node, sources, windowed_key(self.windows, spec.key), spec.value, recipe, store.given)


class TimeWindowedKStream(Generic[K, V]):
    """Of hopping, tumbling, unlimited or sliding windows."""

    def __init__(self, grouped: KGroupedStream[K, V], windows: FixedWindows, emit: EmitStrategy | None = None) -> None:
        self.grouped, self.windows, self.emit = grouped, windows, emit or EmitStrategy.on_window_update()

    def emit_strategy(self, emit: EmitStrategy) -> TimeWindowedKStream[K, V]:
        """When results are forwarded: at each update, or once as a window closes."""
        checked_strategy(emit)
        if emit.on_close and isinstance(self.windows, UnlimitedWindows):
            raise TopologyError(
                "an unlimited window never closes: emit_strategy() must be EmitStrategy.on_window_update()"
            )
        return TimeWindowedKStream(self.grouped, self.windows, emit)

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> KTable[Windowed, int]:
        """How many records each key has in each window."""
        burnt(options, self.grouped, self.windows)
        store = materialized(self.grouped.graph, AGGREGATE, options, self.grouped.key, LONG)
        return self._table(AGGREGATE, name, store, zero, one_more, "windowed_aggregate")

    def reduce(
        self, reducer: Callable[[V, V], V], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[Windowed, V]:
        """The reducer gets what there is and the new value; the first value of a window is taken as it is."""
        store = materialized(self.grouped.graph, REDUCE, options, self.grouped.key, self.grouped.value)
        chosen = functions.reducer(reducer, f"reduce ({store.name})")
        return self._table(REDUCE, name, store, nothing, reducing(chosen), "windowed_reduce")

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[Windowed, A]:
        """The adder gets key, value and the aggregate so far. The aggregate's serde is `value=`."""
        store = materialized(self.grouped.graph, AGGREGATE, options, self.grouped.key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        add = functions.aggregator(adder, f"aggregate ({store.name})")
        return self._table(AGGREGATE, name, store, start, add, "windowed_aggregate")

    def _table(
        self,
        prefix: str,
        name: str | None,
        store: Materialized,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        kind: str,
    ) -> KTable[Windowed, Any]:
        make = time_windowed(self.windows, initializer, adder, self.emit.on_close)
        return Table(self.grouped, self.windows, self.emit).add(prefix, name, store, make, kind)


class SessionWindowedKStream(Generic[K, V]):
    def __init__(
        self, grouped: KGroupedStream[K, V], windows: SessionWindows, emit: EmitStrategy | None = None
    ) -> None:
        self.grouped, self.windows, self.emit = grouped, windows, emit or EmitStrategy.on_window_update()

    def emit_strategy(self, emit: EmitStrategy) -> SessionWindowedKStream[K, V]:
        """When results are forwarded: at each update, or once as a session closes."""
        checked_strategy(emit)
        return SessionWindowedKStream(self.grouped, self.windows, emit)

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> KTable[Windowed, int]:
        """How many records each session has."""
        burnt(options, self.grouped, self.windows)
        store = materialized(self.grouped.graph, AGGREGATE, options, self.grouped.key, LONG)
        make = session_windowed(self.windows, zero, one_more, added, self.emit.on_close)
        return self._table(AGGREGATE, name, store, make, "windowed_aggregate")

    def reduce(
        self, reducer: Callable[[V, V], V], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[Windowed, V]:
        """The reducer gets what there is and the new value, and merges sessions too."""
        store = materialized(self.grouped.graph, REDUCE, options, self.grouped.key, self.grouped.value)
        chosen = functions.reducer(reducer, f"reduce ({store.name})")
        make = session_windowed(self.windows, nothing, reducing(chosen), merging(chosen), self.emit.on_close)
        return self._table(REDUCE, name, store, make, "windowed_reduce")

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        merger: Callable[[K, A, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[Windowed, A]:
        """The merger gets the key and the aggregates of two sessions that became one."""
        store = materialized(self.grouped.graph, AGGREGATE, options, self.grouped.key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        add = functions.aggregator(adder, f"aggregate ({store.name})")
        merge = functions.merger(merger, f"aggregate ({store.name})")
        make = session_windowed(self.windows, start, add, merge, self.emit.on_close)
        return self._table(AGGREGATE, name, store, make, "windowed_aggregate")

    def _table(
        self, prefix: str, name: str | None, store: Materialized, make: Make, kind: str
    ) -> KTable[Windowed, Any]:
        return Table(self.grouped, self.windows, self.emit).add(prefix, name, store, make, kind)


def windowed_by(
    grouped: KGroupedStream[Any, Any], windows: Windows
) -> TimeWindowedKStream[Any, Any] | SessionWindowedKStream[Any, Any]:
    if isinstance(windows, SessionWindows):
        return SessionWindowedKStream(grouped, windows)
    if isinstance(windows, TimeWindows | UnlimitedWindows | SlidingWindows):
        return TimeWindowedKStream(grouped, windows)
    raise TopologyError(f"windowed_by() needs windows such as TimeWindows.of('5 minutes'), not {windows!r}")


def time_windowed(
    windows: FixedWindows, initializer: Callable[[], Any], adder: Callable[[Any, Any, Any], Any], final: bool
) -> Make:
    if isinstance(windows, SlidingWindows):
        return lambda store, send_old: SlidingAggregate(
            store, windows, initializer, adder, final=final, send_old=send_old
        )
    return lambda store, send_old: TimeWindowAggregate(
        store, windows, initializer, adder, final=final, send_old=send_old
    )


def session_windowed(
    windows: SessionWindows,
    initializer: Callable[[], Any],
    adder: Callable[[Any, Any, Any], Any],
    merger: Callable[[Any, Any, Any], Any],
    final: bool,
) -> Make:
    return lambda store, send_old: SessionAggregate(
        store, windows, initializer, adder, merger, final=final, send_old=send_old
    )


def checked_strategy(emit: Any) -> None:
    if not isinstance(emit, EmitStrategy):
        raise TopologyError(f"emit_strategy() needs EmitStrategy.on_window_close() or on_window_update(), not {emit!r}")


def nothing() -> None:
    """A reduction begins with its first value."""


def reducing(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda key, value, aggregate: value if aggregate is None else reducer(aggregate, value)


def merging(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda key, one, other: other if one is None else reducer(one, other)


def added(key: Any, one: int, other: int) -> int:
    return one + other
