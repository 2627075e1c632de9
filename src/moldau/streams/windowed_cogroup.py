"""Several grouped streams as one aggregate by window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, Unpack

from moldau.operators.context import TopologyError
from moldau.operators.windowed import Windowed

from . import functions
from .cogrouped import AGGREGATE, CogroupedKStream, cogrouped
from .materialized import Materialized, StoreOptions, materialized
from .table import KTable
from .windowed import (
    FixedWindows,
    Make,
    WindowedAggregation,
    Windows,
    grace_of,
    session_windowed,
    time_windowed,
    window_store,
    windowed_key,
)
from .windows import EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

K = TypeVar("K")
A = TypeVar("A")


class TimeWindowedCogroupedKStream(Generic[K, A]):
    """Of hopping, tumbling, unlimited or sliding windows."""

    def __init__(self, cogroup: CogroupedKStream[K, A], windows: FixedWindows) -> None:
        self.cogroup, self.windows = cogroup, windows

    def aggregate(
        self, initializer: Callable[[], A], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[Windowed, A]:
        """The aggregate of all streams in each window. Its serde is `value=`."""
        groups = self.cogroup.groups
        store = materialized(self.cogroup.graph, AGGREGATE, options, groups[0][0].key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        makes = [time_windowed(self.windows, start, adder, False) for _, adder in groups]
        return table(self.cogroup, self.windows, store, makes, name)


class SessionWindowedCogroupedKStream(Generic[K, A]):
    def __init__(self, cogroup: CogroupedKStream[K, A], windows: SessionWindows) -> None:
        self.cogroup, self.windows = cogroup, windows

    def aggregate(
        self,
        initializer: Callable[[], A],
        merger: Callable[[K, A, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> KTable[Windowed, A]:
        """The merger gets the key and the aggregates of two sessions that became one."""
        groups = self.cogroup.groups
        store = materialized(self.cogroup.graph, AGGREGATE, options, groups[0][0].key)
        start = functions.of_nothing(initializer, f"aggregate ({store.name})")
        merge = functions.merger(merger, f"aggregate ({store.name})")
        makes = [session_windowed(self.windows, start, adder, merge, False) for _, adder in groups]
        return table(self.cogroup, self.windows, store, makes, name)


def table(
    cogroup: CogroupedKStream[Any, Any], windows: Windows, store: Materialized, makes: list[Make], name: str | None
) -> KTable[Windowed, Any]:
    spec = window_store(store, windows, EmitStrategy.on_window_update())
    parts = [WindowedAggregation(spec, make, grace_of(windows)) for make in makes]
    key = windowed_key(windows, spec.key)
    return cogrouped(cogroup.graph, cogroup.groups, parts, spec, name, key, store.given)


def windowed_by(
    cogroup: CogroupedKStream[Any, Any], windows: Windows
) -> TimeWindowedCogroupedKStream[Any, Any] | SessionWindowedCogroupedKStream[Any, Any]:
    if isinstance(windows, SessionWindows):
        return SessionWindowedCogroupedKStream(cogroup, windows)
    if isinstance(windows, TimeWindows | UnlimitedWindows | SlidingWindows):
        return TimeWindowedCogroupedKStream(cogroup, windows)
    raise TopologyError(f"windowed_by() needs windows such as TimeWindows.of('5 minutes'), not {windows!r}")
