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
MORE = "MOLDAU_SPARK_MODULES"  # the environment variable that names more of them


def preload() -> None:
    """Import what workers need, and take it out of garbage collection."""
    for name, value in ALONE.items():
        os.environ.setdefault(name, value)
    for module in (*NEEDED, *os.environ.get(MORE, "").split()):
        importlib.import_module(module)
    warm()
    gc.collect()
    gc.freeze()


def warm() -> None:
    """Write and read a record: compiled code takes more than a second to load, and forked workers have it then."""
    import pyarrow as pa

    from moldau.client import Error, Fetched
    from moldau.spark.sink.batches import Batches, TopicLimits
    from moldau.spark.sink.rows import rows_of
    from moldau.spark.source.batches import decoded

    written: list[bytearray] = []
    column = pa.array([b"a"], pa.binary())
    batches = Batches(lambda _topic, _partition, batch: written.append(batch), 0)
    batches.add(TopicLimits("", 1, 1000, 1000), rows_of(pa.record_batch({"key": column}), column, column, False))
    batches.finish()
    for chunk in decoded(Fetched(Error.NONE, memoryview(written[0])), 0, 1):
        assert (chunk.keys, chunk.values) == (column, column)


if __name__ == "__main__":
    from pyspark.daemon import manager

    preload()
    manager()
