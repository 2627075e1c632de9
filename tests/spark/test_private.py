"""What Moldau uses of Spark beyond its public API: a Spark that has changed it fails here, and by name."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
import zipfile
from pathlib import Path
from socket import AF_UNIX
from typing import TYPE_CHECKING, Any

import pytest

from moldau.spark.runner import Policy, QueryFailed, run
from moldau.spark.session import classes, java, private

from .chaos import kill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SAYS = re.compile(r"/streaming/runtime/(StreamExecution|ProgressContext|ProgressReporter)\.class$")


def jar() -> Path:
    compiled = classes.class_path(java.prepare())
    assert compiled is not None
    return compiled


def test_a_session_has_java_and_one_of_spark_connect_has_none(spark: SparkSession) -> None:
    """Relies on `_jsparkSession`, which sessions of Spark Connect lack."""
    assert private.has_java(spark)
    connect = object()
    assert not private.has_java(connect)
    private.activate(connect)
    assert private.forget_lost_daemons(connect) == 0


def test_the_home_of_spark_has_its_jars() -> None:
    """Relies on `pyspark.find_spark_home`."""
    assert list((private.spark_home() / "jars").glob("spark-core_*.jar"))


def test_a_session_becomes_that_of_a_thread(spark: SparkSession) -> None:
    """Relies on `SparkSession.setActiveSession` of Java; a thread has no session of its own at first."""
    seen: list[bool] = []

    def look() -> None:
        active: Any = spark._jvm
        active.SparkSession.clearActiveSession()
        seen.append(active.SparkSession.getActiveSession().isDefined())
        private.activate(spark)
        seen.append(active.SparkSession.getActiveSession().isDefined())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [False, True]


@pytest.mark.needs("javac")
def test_java_calls_a_listener_that_calls_python(spark: SparkSession, tmp_path: Path) -> None:
    """Relies on Py4J's callbacks and on `streams().addListener` of Java."""
    done = threading.Event()

    class Progress:
        def accept(self, options: Any, progress: str) -> None:
            done.set()

        class Java:
            implements = ("java.util.function.BiConsumer",)

    private.add_query_listener(spark, jar(), classes.LISTENER, "rate", Progress())
    writer = spark.readStream.format("rate").load().writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        assert done.wait(60)
    finally:
        query.stop()
        java: Any = spark._jsparkSession
        java.streams().removeListener(java.streams().listListeners()[-1])


@pytest.mark.needs("javac")
def test_standard_error_of_java_is_filtered(spark: SparkSession) -> None:
    """Relies on `System.setErr` of Java, through Py4J; the session has done it."""
    system: Any = spark._jvm
    before = system.java.lang.System.err
    private.filter_standard_error(spark, jar(), classes.ERRORS)
    try:
        assert not before.equals(system.java.lang.System.err)
    finally:
        system.java.lang.System.setErr(before)


def test_the_server_of_accumulators_has_a_handler_of_errors(spark: SparkSession) -> None:
    """Relies on `_accumulatorServer`, a server of Python's own kind; the session has changed its handler."""
    server: Any = spark.sparkContext
    assert isinstance(server._accumulatorServer, socketserver.BaseServer)
    assert server._accumulatorServer.handle_error.__module__ == private.__name__


@pytest.mark.parametrize(("error", "told"), [(EOFError(), False), (ValueError("other"), True)])
def test_that_java_closes_its_end_is_no_error(
    error: Exception, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            raise error

    with socketserver.UnixStreamServer(str(tmp_path / "socket"), Handler) as server, socket.socket(AF_UNIX) as java:
        private.ignore_end_of_stream(server)
        java.connect(server.server_address)
        server.handle_request()
    assert ("Traceback" in capsys.readouterr().err) is told


@pytest.mark.needs("javac")
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_what_the_worker_for_state_prints_is_kept_from_standard_error(spark: SparkSession, size: int) -> None:
    java: Any = spark.sparkContext._jvm
    worker = "Streaming TransformWithStateInPandas Python worker"
    text = f"a\n\nStarting {worker}.\n\n{worker} says ä\n\n\nStreaming\n{worker}\nStarting to work\nthe end".encode()
    into = java.java.io.ByteArrayOutputStream()
    quiet = private.new_object(spark, jar(), classes.ERRORS, into)
    for at in range(0, len(text), size):
        quiet.write(text[at : at + size])
    assert into.toString("UTF-8") == "a\n\n\nStreaming\nStarting to work\nthe end"


def test_a_logger_logs_errors_only(spark: SparkSession) -> None:
    """Relies on Log4j 2 under Spark, and on its `Configurator`."""
    private.log_errors_only(spark, "moldau.tests.quiet")
    java: Any = spark._jvm
    assert java.org.apache.logging.log4j.LogManager.getLogger("moldau.tests.quiet").getLevel().toString() == "ERROR"


def test_a_file_system_is_that_of_checkpoints(spark: SparkSession, tmp_path: Path) -> None:
    """Relies on `_jsc.hadoopConfiguration()` and Hadoop's classes."""
    (tmp_path / "there").touch()
    files, path_of = private.file_system(spark, f"file://{tmp_path}")
    assert files.exists(path_of(f"{tmp_path}/there"))
    assert not files.exists(path_of(f"{tmp_path}/not there"))


def test_a_field_that_another_spark_lacks_is_none(spark: SparkSession) -> None:
    """Relies on Java's reflection; `daemons` relies on two fields, which the tests below read."""
    context: Any = spark.sparkContext
    environment = context._jsc.sc().env()
    assert private.private_field(spark, private.ENVIRONMENT, "pythonWorkers", environment) is not None
    assert private.private_field(spark, private.ENVIRONMENT, "noSuchField", environment) is None


def in_python(spark: SparkSession) -> int:
    return spark.range(4).mapInArrow(lambda batches: batches, "id long").count()


def daemons(spark: SparkSession) -> list[Any]:
    return [daemon for _, daemon in private.daemons(spark)]


def kill_daemons(spark: SparkSession) -> int:
    alive = daemons(spark)
    for daemon in alive:
        kill(daemon.pid())
        daemon.waitFor()
    return len(alive)


def test_daemons_that_were_killed_are_forgotten_and_others_are_not(spark: SparkSession) -> None:
    assert in_python(spark) == 4
    alive = len(daemons(spark))
    assert alive
    assert private.forget_lost_daemons(spark) == 0
    assert len(daemons(spark)) == alive
    assert kill_daemons(spark) == alive
    assert private.forget_lost_daemons(spark) == alive
    assert daemons(spark) == []


def test_a_query_that_is_started_again_meets_no_daemon_that_was_killed(spark: SparkSession) -> None:
    assert in_python(spark) == 4
    met: list[int] = []

    def definition(spark: SparkSession) -> Any:
        met.append(len(daemons(spark)))
        kill_daemons(spark)
        raise ConnectionError("Connection refused") if len(met) == 1 else ValueError("enough")

    with pytest.raises(QueryFailed, match="enough"):
        run({"again": definition}, spark, policy=Policy(first_pause_s=0.1))
    assert met[0] > 0
    assert met[1:] == [0]
    assert in_python(spark) == 4


def test_a_session_here_has_no_executors_and_has_not_stopped(spark: SparkSession) -> None:
    """Relies on `SparkContext.getExecutorMemoryStatus`, which counts the driver, and `isStopped`."""
    assert private.executors(spark) == 0
    assert not private.is_stopped(spark)


def test_spark_says_that_it_is_starting_a_query() -> None:
    """Relies on the texts of `StreamingQuery.status` before the first trigger."""
    (sql,) = (private.spark_home() / "jars").glob("spark-sql_2*.jar")
    with zipfile.ZipFile(sql) as made:
        code = b"".join(made.read(name) for name in made.namelist() if SAYS.search(name))
    for text in ("Initializing StreamExecution", "Initializing sources"):
        assert text.encode() in code and text.startswith(private.STARTING)
