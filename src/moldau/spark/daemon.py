"""Spark's daemon of Python workers (`spark.python.daemon.module`), which imports what they need before it forks them.

A worker then starts in milliseconds, and workers share the memory of modules.
"""

from __future__ import annotations

import gc
import importlib
import os

# Some libraries start threads when they are imported; threads do not survive a fork.
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
NEEDED = (
    "pyspark.worker",
    "pandas",
    "moldau.spark.source.readers",
    "moldau.spark.source.filling",
    "moldau.spark.source.reading",
    "moldau.spark.sink.task",
)


def preload() -> None:
    """Import what workers need, and take it out of garbage collection."""
    for name, value in ALONE.items():
        os.environ.setdefault(name, value)
    for module in NEEDED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    preload()
    manager()
