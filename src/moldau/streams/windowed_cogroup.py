"""Several grouped streams as one aggregate by window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, Unpack

from moldau.operators.windowed import Windowed
from moldau.operators.windows import EmitStrategy, SessionWindows

from . import functions
from .cogrouped import AGGREGATE, CogroupedKStream, cogrouped
from .materialized import StoreOptions, materialized
from .table import KTable
from .windowed import FixedWindows, Windows, aggregation, window_store, windowed_key

K = TypeVar("K")
A = TypeVar("A")


class TimeWindowedCogroupedKStream(Generic[K, A]):
    """Cogrouped streams by hopping, tumbling, unlimited or sliding windows."""

    def __init__(self, cogroup: CogroupedKStream[K, A], windows: FixedWindows) -> None:
        self.cogroup, self.windows = cogroup, windows

    def aggregate(
        self, initializer: Callable[[], A], *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> KTable[Windowed, A]:
        """Aggregate all streams in each window. The aggregate's serde is `value=`."""
        return aggregate(self.cogroup, self.windows, initializer, None, name, options)


class SessionWindowedCogroupedKStream(Generic[K, A]):
    """Cogrouped streams by session."""

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
        """Aggregate all streams in each session. The merger gets the key and the aggregates of two sessions that became
        one.
        """
        return aggregate(self.cogroup, self.windows, initializer, merger, name, options)


def aggregate(
    cogroup: CogroupedKStream[Any, Any],
    windows: Windows,
    initializer: Callable[[], Any],
    merger: Callable[..., Any] | None,
    name: str | None,
    options: StoreOptions,
) -> KTable[Windowed, Any]:
    store = materialized(cogroup.graph, AGGREGATE, options, cogroup.groups[0][0].key)
    start = functions.of_nothing(initializer, f"aggregate ({store.name})")
    is_session = isinstance(windows, SessionWindows)
    merge = functions.merger(merger, f"aggregate ({store.name})") if is_session else None
    emit = EmitStrategy.on_window_update()
    spec = window_store(store, windows, emit)
    parts = [aggregation(spec, windows, (start, adder, merge), emit) for _, adder in cogroup.groups]
    return cogrouped(cogroup.graph, cogroup.groups, parts, spec, name, windowed_key(windows, spec.key), store.given)
