"""Paths that every node must reach: of checkpoints and state, and of packages for the Python workers of one query."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moldau.spark.options import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATH = "PYTHONPATH"
_giving = threading.RLock()
TASKS_A_CORE = 4  # more than one, so that every node gets a task


@contextmanager
def giving_functions(spark: SparkSession, packages: str | None = None) -> Iterator[None]:
    """Let functions that are given to Spark meanwhile run in Python workers of their own, which find modules in a
    folder of packages: Spark shares workers among functions with the same environment.

    One thread at a time, with packages or without: all functions get the environment that the context has just then,
    and a data source that two threads register at once is refused to one of them.
    """
    context = spark.sparkContext
    with _giving:
        before = context.environment
        if packages is not None:
            check_shared(spark, packages, "packages need")
            path = os.pathsep.join(filter(None, (packages, before.get(PATH))))
            context.environment = {**before, PATH: path}
        try:
            yield
        finally:
            context.environment = before


def check_shared(spark: SparkSession, location: str, need: str = "checkpoints need") -> None:
    """Raise OptionError if workers of a cluster do not see what the driver writes at `location`.

    A path with a scheme of its own (hdfs, s3a) is the same for all; a path of files must be mounted on every node.
    """
    parts = urlsplit(location)
    if parts.scheme not in ("", "file") or str(spark.sparkContext.master).startswith("local"):
        return
    folder = parts.path
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".reached-") as seen:
        name = seen.name

        def look(rows: Iterable[Any]) -> Iterator[tuple[str, bool]]:
            import socket

            yield socket.gethostname(), os.path.exists(name)

        width = spark.sparkContext.defaultParallelism * TASKS_A_CORE
        sights = spark.sparkContext.parallelize(range(width), width).mapPartitions(look).collect()
    blind = sorted({host for host, sees in sights if not sees})
    if blind:
        raise OptionError(
            f"{location} is not reached by {', '.join(blind)}: {need} a path that every node of the cluster "
            "reaches, such as a mounted folder or hdfs://..."
        )
