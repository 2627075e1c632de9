"""Everything that Moldau uses of Spark beyond its public API: Java behind a session, its private fields, PySpark's own.

No other module names `_jvm`, `_jsc`, Py4J or Log4j. A new Spark may change any of it, so each function has a test in
tests/spark/test_private.py that says what it relies on. With Spark Connect there is no Java to reach: see `has_java`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ENVIRONMENT = "org.apache.spark.SparkEnv"
STARTING = "Initializing "  # how Spark says so
FACTORY = "org.apache.spark.api.python.PythonWorkerFactory"


def has_java(spark: Any) -> bool:
    """Tell whether the session runs on a Java that this process can call."""
    return hasattr(spark, "_jsparkSession")


def spark_home() -> Path:
    """Find Spark's home as PySpark does."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def activate(spark: Any) -> None:
    """Make a session the active one of this thread, where Java looks for data sources of Python."""
    if has_java(spark):
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)


def new_object(spark: Any, jar: Path, name: str, *arguments: Any) -> Any:
    """Make an object of a class in a jar, whether Java was started with that jar or not."""
    gateway = spark.sparkContext._gateway
    jvm = gateway.jvm
    places = gateway.new_array(jvm.java.net.URL, 1)
    places[0] = jvm.java.net.URL(jar.as_uri())
    loader = jvm.java.net.URLClassLoader(places, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    given = jvm.java.util.ArrayList()
    for one in arguments:
        given.add(one)
    return loader.loadClass(name).getConstructors()[0].newInstance(given.toArray())


def add_query_listener(spark: Any, jar: Path, name: str, *arguments: Any) -> None:
    """Add a listener for queries that is a class in a jar; it gets the session and `arguments`, which it may call."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark.sparkContext._gateway)
    session = spark._jsparkSession
    session.streams().addListener(new_object(spark, jar, name, session, *arguments))


def filter_standard_error(spark: Any, jar: Path, name: str) -> None:
    """Let a stream that is a class in a jar stand before Java's standard error."""
    jvm = spark.sparkContext._gateway.jvm
    system = jvm.java.lang.System
    system.setErr(jvm.java.io.PrintStream(new_object(spark, jar, name, system.err), True))


def silence_accumulators(spark: Any) -> None:
    """Keep PySpark's server of accumulators from printing that Java has closed its end."""
    ignore_end_of_stream(spark.sparkContext._accumulatorServer)


def ignore_end_of_stream(server: Any) -> None:
    """Handle errors of a server as before, but for the end of a stream.

    Java closes its end when it stops, and may do so when a query is stopped. PySpark takes that for an error.
    """
    handle = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError):
            handle(request, client_address)

    server.handle_error = handle_error


def log_errors_only(spark: Any, logger: str) -> None:
    """Let a logger of Java's log errors and nothing below."""
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.ERROR)


def file_system(spark: Any, path: str) -> tuple[Any, Callable[[str], Any]]:
    """Return Hadoop's file system of a path, as checkpoints see it, and the class of its paths."""
    context = spark.sparkContext
    paths = context._jvm.org.apache.hadoop.fs.Path
    return paths(path).getFileSystem(context._jsc.hadoopConfiguration()), paths


def executors(spark: Any) -> int:
    """Return how many executors a cluster has given this session by now; none where the driver runs all tasks."""
    return spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is one of them


def is_stopped(spark: Any) -> bool:
    """Tell whether Spark has stopped by itself, as it does when a cluster ends the application."""
    return spark.sparkContext._jsc.sc().isStopped()


def is_starting(query: Any) -> bool:
    """Tell whether the process that plans a query is still being started, by what Spark says of it."""
    return query.isActive and query.status["message"].startswith(STARTING)


def forget_lost_daemons(spark: Any) -> int:
    """Forget daemons of Python workers that were killed, so that Spark starts new ones; return how many there were.

    Spark keeps a daemon and its idle workers for each kind of work, and does not notice when one is killed. When it
    meets an idle worker that is dead it asks the daemon to end it, and where the daemon is dead too the query fails:
    once for each kind of work, six times for a streams application, each time after a start that came a little further.

    Daemons of executors on other machines are not seen from here.
    """
    lost = [factory for factory, daemon in daemons(spark) if not daemon.isAlive()]
    for factory in lost:
        factory.stop()
    return len(lost)


def daemons(spark: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the factories of Python workers, one for each kind of work, that have a daemon, and its process."""
    if not has_java(spark):
        return
    factories = private_field(spark, ENVIRONMENT, "pythonWorkers", spark.sparkContext._jsc.sc().env())
    each = None if factories is None else factories.values().toList().iterator()
    while each is not None and each.hasNext():
        factory = each.next()
        if (daemon := private_field(spark, FACTORY, "daemon", factory)) is not None:
            yield factory, daemon


def private_field(spark: Any, owner: str, name: str, of: Any) -> Any:
    """Return the value of a private field; None also where another Spark has no such field.

    The owner is never asked for its methods: Java would load all that they mention, and a light Spark lacks some of it.
    """
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for field in loader.loadClass(owner).getDeclaredFields():
        if field.getName() == name:
            field.setAccessible(True)
            return field.get(of)
    return None
