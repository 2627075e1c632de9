"""`spark.python.daemon.module`: Spark's daemon of Python workers, with what they need loaded before they are forked.

A worker then starts in milliseconds, and workers share the memory of modules. Spark has a daemon for each kind of
worker: those that plan need less than those that read.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

# Libraries that make threads when they are imported are told not to: threads do not outlive a fork.
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
PLANNING = ("moldau.spark.source",)
WORKING = ("pandas", "moldau.spark.source", "moldau.spark.filling", "moldau.spark.reading", "moldau.spark.sink_task")


def preload(worker: str) -> None:
    """Import what a kind of worker needs, and take it out of garbage collection."""
    for name, value in ALONE.items():
        os.environ.setdefault(name, value)
    importlib.import_module(worker)
    for module in WORKING if worker == "pyspark.worker" else PLANNING:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    preload(sys.argv[1])
    manager()
