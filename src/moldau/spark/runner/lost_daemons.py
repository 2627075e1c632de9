"""Spark's daemons of Python workers that were killed, which Spark itself does not miss.

It keeps a daemon and its idle workers for each kind of work. When it meets an idle worker that is dead it asks the
daemon to end it, and where the daemon is dead too the query fails: once for each kind of work, so six times for a
streams application, each time after a start that came a little further. So they are forgotten before a query is started
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ENVIRONMENT = "org.apache.spark.SparkEnv"
FACTORY = "org.apache.spark.api.python.PythonWorkerFactory"


def forget_lost_daemons(spark: Any) -> int:
    """So that Spark starts new ones; how many there were. Those of executors on other machines are not seen from here,
    and with Spark Connect none is.
    """
    if not hasattr(spark, "_jsparkSession"):
        return 0
    lost = [factory for factory in factories(spark) if is_lost(spark, factory)]
    for factory in lost:
        factory.stop()
    return len(lost)


def factories(spark: Any) -> Iterator[Any]:
    """One for each kind of work."""
    found = hidden(spark, ENVIRONMENT, "pythonWorkers", spark.sparkContext._jsc.sc().env())
    each = None if found is None else found.values().toList().iterator()
    while each is not None and each.hasNext():
        yield each.next()


def is_lost(spark: Any, factory: Any) -> bool:
    daemon = hidden(spark, FACTORY, "daemon", factory)
    return daemon is not None and not daemon.isAlive()


def hidden(spark: Any, owner: str, name: str, of: Any) -> Any:
    """A private field; None also where another Spark has no such field. Its owner is never asked for its own methods:
    Java would load all that they mention, and a light Spark does not have all of it.
    """
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for field in loader.loadClass(owner).getDeclaredFields():
        if field.getName() == name:
            field.setAccessible(True)
            return field.get(of)
    return None
