"""Streams by key and window: count, reduce and aggregate, as a table of windowed keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Self, TypeVar, Unpack, cast

from moldau.operators.context import Operator, TopologyError
from moldau.operators.durations import milliseconds
from moldau.operators.session_aggregate import Merger, SessionAggregate
from moldau.operators.sliding_aggregate import SlidingAggregate
from moldau.operators.stores.session import session
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.stores.window import window
from moldau.operators.window_aggregate import Aggregator, Initializer, TimeWindowAggregate
from moldau.operators.windowed import Windowed
from moldau.operators.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.operators.windows import EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from moldau.serdes.primitive import LONG

from . import functions
from .grouped import AGGREGATE, REDUCE, KGroupedStream, nothing, one_more, reducing, use_number_up, zero
from .materialized import Materialized, StoreOptions, materialized, persistent
from .recipes import Aggregation
from .serdes import SerdeLike
from .table import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

FixedWindows = TimeWindows | UnlimitedWindows | SlidingWindows
Windows = FixedWindows | SessionWindows
Steps = tuple[Initializer, Aggregator, Merger | None]  # only sessions are merged
W = TypeVar("W")


class WindowedAggregation(Aggregation):
    """The aggregate of windows; `grace_ms` is how long after its end a window may still change."""

    def __init__(self, spec: StoreSpec, make: Callable[[str, bool], Operator], grace_ms: int) -> None:
        super().__init__(spec, make)
        self.grace_ms = grace_ms


def grace_of(windows: Windows) -> int:
    return windows.grace_ms + (windows.gap_ms if isinstance(windows, SessionWindows) else 0)


def size_of(windows: FixedWindows) -> int:
    return windows.difference_ms if isinstance(windows, SlidingWindows) else windows.size_ms


def least_retention(windows: Windows) -> tuple[int, str]:
    """Return how long windows must be kept for records that may still come, and the words for it."""
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
    options: dict[str, Any] = {"stamped": True, "final": emit.on_close, "indexed": sliding, "persistent": on_disk}
    made = store.applied(window(store.name, size_of(windows), kept, cached=True, **options))
    return without_cache(made, emit) if sliding else made


def without_cache(spec: StoreSpec, emit: EmitStrategy) -> StoreSpec:
    """Take the cache from sessions and sliding windows that are emitted when they close, as Kafka always does."""
    return replace(spec, cached=False) if emit.on_close else spec


def as_table(given: StoreSpec, windows: Windows) -> StoreSpec:
    """Check a store of the user's choice. A windowed table keeps the time of each value, so it must too."""
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
    if isinstance(windows, SessionWindows):
        return SessionWindowedSerde(inner)
    return TimeWindowedSerde(inner, size_of(windows))


class WindowedKStream(Generic[K, V, W]):
    """A stream by key and window, and when its results are forwarded."""

    def __init__(self, grouped: KGroupedStream[K, V], windows: W, emit: EmitStrategy | None = None) -> None:
        self.grouped, self.windows, self.emit = grouped, windows, emit or EmitStrategy.on_window_update()

    def emit_strategy(self, emit: EmitStrategy) -> Self:
        """Choose when results are forwarded: at each update, or once when a window closes."""
        if not isinstance(emit, EmitStrategy):
            raise TopologyError(
                f"emit_strategy() needs EmitStrategy.on_window_close() or on_window_update(), not {emit!r}"
            )
        if emit.on_close and isinstance(self.windows, UnlimitedWindows):
            raise TopologyError(
                "an unlimited window never closes: emit_strategy() must be EmitStrategy.on_window_update()"
            )
        return type(self)(self.grouped, self.windows, emit)

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> KTable[Windowed, int]:
        """Count the records of each key in each window."""
        graph = self.grouped.graph
        if not isinstance(self.windows, SlidingWindows):
            use_number_up(graph, options)
        store = materialized(graph, AGGREGATE, options, self.grouped.key, LONG)
        return self._table(AGGREGATE, name, store, (zero, one_more, add_counts), "windowed_aggregate")

    def reduce(
        self, reducer: Callable[[V, V], V], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[Windowed, V]:
        """Reduce the values of each window. The reducer gets the result so far and the new value; the first value of a
        window is taken as it is. It merges sessions too.
        """
        store = materialized(self.grouped.graph, REDUCE, options, self.grouped.key, self.grouped.value)
        chosen = functions.reducer(reducer, f"reduce ({store.name})")
        return self._table(REDUCE, name, store, (nothing, reducing(chosen), merging(chosen)), "windowed_reduce")

    def _table(
        self, prefix: str, name: str | None, store: Materialized, steps: Steps, kind: str
    ) -> KTable[Windowed, Any]:
        windows: Any = self.windows
        spec = window_store(store, windows, self.emit)
        recipe = aggregation(spec, windows, steps, self.emit)
        return self.grouped.table(prefix, name, recipe, store.given, kind, windowed_key(windows, spec.key))


class TimeWindowedKStream(WindowedKStream[K, V, FixedWindows]):
    """A stream by key and hopping, tumbling, unlimited or sliding windows."""

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[Windowed, A]:
        """Aggregate the values of each window. The adder gets key, value and the aggregate so far, whose serde is
        `value=`.
        """
        store = materialized(self.grouped.graph, AGGREGATE, options, self.grouped.key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        add = functions.aggregator(adder, f"aggregate ({store.name})")
        return self._table(AGGREGATE, name, store, (start, add, None), "windowed_aggregate")


class SessionWindowedKStream(WindowedKStream[K, V, SessionWindows]):
    """A stream by key and session."""

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        merger: Callable[[K, A, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[Windowed, A]:
        """Aggregate the values of each session. The merger gets the key and the aggregates of two sessions that became
        one.
        """
        store = materialized(self.grouped.graph, AGGREGATE, options, self.grouped.key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        add = functions.aggregator(adder, f"aggregate ({store.name})")
        merge = functions.merger(merger, f"aggregate ({store.name})")
        return self._table(AGGREGATE, name, store, (start, add, merge), "windowed_aggregate")


def windowed_by(grouped: Any, windows: Windows, by_time: Callable[..., Any], by_session: Callable[..., Any]) -> Any:
    if isinstance(windows, SessionWindows):
        return by_session(grouped, windows)
    if isinstance(windows, TimeWindows | UnlimitedWindows | SlidingWindows):
        return by_time(grouped, windows)
    raise TopologyError(f"windowed_by() needs windows such as TimeWindows.of('5 minutes'), not {windows!r}")


def aggregation(spec: StoreSpec, windows: Windows, steps: Steps, emit: EmitStrategy) -> WindowedAggregation:
    (initializer, adder, merger), final = steps, emit.on_close
    operator: Any = SlidingAggregate if isinstance(windows, SlidingWindows) else TimeWindowAggregate
    if isinstance(windows, SessionWindows):
        operator = partial(SessionAggregate, merger=cast(Merger, merger))

    def make(store: str, send_old: bool) -> Operator:
        return operator(store, windows, initializer, adder, final=final, send_old=send_old)

    return WindowedAggregation(spec, make, grace_of(windows))


def merging(reducer: Callable[[Any, Any], Any]) -> Merger:
    return lambda key, one, other: other if one is None else reducer(one, other)


def add_counts(key: Any, one: int, other: int) -> int:
    return one + other
