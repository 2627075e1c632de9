"""Garbage collection in Python workers of Spark."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SETTLE_AT = (1, 2, 4)  # numbers of calls; some modules are imported only after the first
_calls = 0


def settle() -> None:
    """Exempt what is loaded by now from garbage collection.

    A worker collects all garbage after each task, and so visits every object of every module: nine tenths of its time
    where batches are small.
    """
    global _calls
    _calls += 1
    if _calls in SETTLE_AT:
        gc.collect()
        gc.freeze()


@contextmanager
def collecting_later() -> Iterator[None]:
    """Pause garbage collection while many records are processed: the worker collects after each task anyway."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
