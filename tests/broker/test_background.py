"""Jobs beside the node."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

from moldau.broker.rim.background import Inline, Worker


def fail() -> None:
    raise OSError("disk full")


def test_inline_work_is_done_at_once() -> None:
    results: list[Any] = []
    Inline().submit(lambda: 7, results.append)
    Inline().submit(fail, results.append)
    assert results[0] == 7
    assert isinstance(results[1], OSError)


def test_a_worker_works_in_order_elsewhere_and_reports_where_it_was_asked() -> None:
    calls: SimpleQueue[Any] = SimpleQueue()
    worker = Worker(calls.put)
    results: list[Any] = []
    for number in range(10):
        worker.submit(lambda number=number: (number, threading.current_thread().name), results.append)
    worker.submit(fail, results.append)
    worker.close()
    assert not results, "nothing is reported on the worker's thread"
    while not calls.empty():
        calls.get()()
    assert results[:10] == [(number, "moldau-background") for number in range(10)]
    assert isinstance(results[10], OSError)


def test_a_worker_without_work_has_no_thread() -> None:
    before = threading.active_count()
    worker = Worker(lambda call: None)
    assert threading.active_count() == before
    worker.close()
