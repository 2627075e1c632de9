"""What a Python worker of Spark does for itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SETTLE_AT = (1, 2, 4)  # calls; some modules are imported only after the first one
_calls = 0


def settle() -> None:
    """Take what is loaded by now out of garbage collection.

    A worker collects all of its garbage after each task, and looks at every object of every module for it: nine tenths
    of its time where batches are small.
    """
    global _calls
    _calls += 1
    if _calls in SETTLE_AT:
        gc.collect()
        gc.freeze()


@contextmanager
def collecting_later() -> Iterator[None]:
    """Garbage is not looked for while many records are at work: the worker does so after each task."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
