"""With a cache, of several changes of a window or session the last is told, when the cache is flushed or full."""

from __future__ import annotations

from typing import Any

from moldau.operators.context import Shard
from moldau.operators.record import Raw, Record, Stamped
from moldau.operators.stores.ordered import MemoryBytes
from moldau.operators.stores.session import session
from moldau.operators.stores.spec import Opening, StoreSpec
from moldau.operators.stores.window import window
from moldau.operators.windowed import Windowed
from moldau.serdes.primitive import LONG, STRING

Log = list[tuple[bytes, bytes | None, int]]


def cached(spec: StoreSpec, size: int = 10_000) -> tuple[Any, Shard, Log, list[tuple[Any, ...]]]:
    shard, log, told = Shard(), Log(), list[tuple[Any, ...]]()
    opening = Opening("changelog", MemoryBytes(), lambda *change: log.append(change), shard, size)
    store = spec.open(spec, opening)
    store.listen(lambda window, new, old, cause: told.append((window, new, old, cause.timestamp, shard.source.offset)))
    return store, shard, log, told


def at(shard: Shard, time: int) -> None:
    shard.record, shard.source = Record("k", "v", time), Raw("in", 0, time * 10, None, None, time)


def test_the_last_change_of_a_window_is_told_with_what_was_told_before() -> None:
    store, shard, log, told = cached(window("w", 10, 20, STRING, LONG, stamped=True))
    for time, value in ((1, 1), (2, 2), (12, 1), (3, 3)):
        at(shard, time)
        store.put("k", Stamped(value, time), time // 10 * 10)
    assert (told, log) == ([], []) and store.fetch("k", 0) == Stamped(3, 3)
    store.flush()
    assert told == [
        (Windowed("k", 10, 20), Stamped(1, 12), None, 12, 120),
        (Windowed("k", 0, 10), Stamped(3, 3), None, 3, 30),
    ]
    assert [timestamp for _, _, timestamp in log] == [12, 3]
    at(shard, 4)
    store.put("k", Stamped(4, 4), 0)
    store.flush()
    assert told[-1] == (Windowed("k", 0, 10), Stamped(4, 4), Stamped(3, 3), 4, 40)


def test_time_is_observed_as_changes_are_let_go() -> None:
    store, shard, _, _ = cached(window("w", 10, 20, STRING, LONG, stamped=True, final=True))
    at(shard, 5)
    store.put("k", Stamped(1, 5), 0)
    store.flush()
    at(shard, 95)
    store.put("k", Stamped(1, 95), 90)
    assert [found.start for found, _ in store.fetch_all(0, 85)] == [0]
    store.flush()
    assert list(store.fetch_all(0, 85)) == []


def test_a_session_that_came_and_went_is_not_mentioned() -> None:
    store, shard, log, told = cached(session("s", 100, STRING, LONG))
    at(shard, 1)
    store.put(Windowed("k", 1, 1), 1)
    at(shard, 3)
    store.remove(Windowed("k", 1, 1))
    store.put(Windowed("k", 1, 3), 2)
    store.flush()
    assert told == [(Windowed("k", 1, 3), 2, None, 3, 30)] and len(log) == 1


def test_what_does_not_fit_is_told_at_once() -> None:
    store, shard, _, told = cached(window("w", 10, 1_000, STRING, LONG, stamped=True), 250)
    for time in range(0, 50, 10):
        at(shard, time)
        store.put("k", Stamped(1, time), time)
    assert [window.start for window, *_ in told] == [0, 10, 20, 30]
