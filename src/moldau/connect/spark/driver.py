"""The driver: it keeps a worker of Connect in each executor of a Spark cluster, a job of Spark with one task for each.

Who runs what is not Spark's matter. The workers are members of Connect's group, which shares out connectors and tasks,
moves those of a worker that is gone, and sees that none runs twice. Spark decides on which machines the workers are,
and starts one again elsewhere whose executor was lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.connect.spark.executor import Order, run, settings_there
from moldau.connect.spark.lines import Lines
from moldau.connect.worker import Worker
from moldau.http import Listen, ServeError
from moldau.settings import ServiceSettings, SettingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
NAME = "moldau-connect"
LOOK_S = 1.0
RETRY_S, MOST_RETRY_S = 1.0, 30.0  # before a worker that has ended is started again; twice as long each time
SETTLED_S = 60.0  # a worker that has run for so long was all right
MARGIN_S = 15.0  # for a worker to end, beyond what its tasks have
MASTER, CORES = "spark.master", "spark.executor.cores"


def spark_settings(given: Mapping[str, str], workers: int) -> dict[str, str]:
    """Return the settings of Spark: executors of one core, each with one worker, unless it was given other ones."""
    own = {name: text for name, text in given.items() if name.startswith("spark.") and name != MASTER}
    cores = own.get(CORES, "1")
    if not cores.isdecimal():
        raise SettingError(CORES, cores, "it is a number")
    made = {CORES: cores, "spark.task.cpus": cores}
    if workers:
        made |= {"spark.cores.max": str(workers * int(cores)), "spark.executor.instances": str(workers)}
    return made | own


@contextmanager
def on_cluster(
    settings: ServiceSettings, given: Mapping[str, str], at: Listen, on_failure: Callable[[], None], one: Worker
) -> Iterator[None]:
    """Keep workers on the cluster for the length of a `with`. Spark starts when there is a connector."""
    count = settings["connect.spark.workers"]
    host, _, port = one.settings.worker_id.rpartition(":")
    stop_s = one.settings.graceful_s + settings.seconds("shutdown.graceful.ms") + MARGIN_S
    made = Workers(
        partial(open_session, settings[MASTER], spark_settings(given, count)),
        lambda number, lines: Order(
            number, lines.address, lines.token, (host, int(port)), at.scheme, settings_there(given), stop_s
        ),
        count,
        lambda: bool(one.wanted()),
        on_failure,
        stop_s + MARGIN_S,
    )
    made.start()
    try:
        yield
    finally:
        made.close()


def open_session(master: str, settings: Mapping[str, str]) -> SparkSession:
    from moldau.spark import session

    made = session(NAME, master, **settings)
    made.sparkContext.setLogLevel("ERROR")
    return made


@dataclass(slots=True)
class Job:
    """A job of Spark, and when it may be started again after it has ended."""

    thread: threading.Thread
    began: float
    failures: int = 0
    due: float = 0.0

    def note_end(self, now: float) -> None:
        self.failures = 1 if now - self.began > SETTLED_S else self.failures + 1
        self.due = now + min(MOST_RETRY_S, RETRY_S * 2 ** (self.failures - 1))


class Workers:
    """The workers on a cluster: `count` of them, or as many as there are executors."""

    def __init__(
        self,
        make_session: Callable[[], SparkSession],
        order: Callable[[int, Lines], Order],
        count: int,
        is_needed: Callable[[], bool],
        on_failure: Callable[[], None],
        patience_s: float,
    ) -> None:
        self._make_session, self._order, self._count, self._is_needed = make_session, order, count, is_needed
        self._on_failure, self._patience_s = on_failure, patience_s
        self._closing = threading.Event()
        self._jobs: dict[int, Job] = {}
        self._spark: SparkSession | None = None
        self._lines: Lines | None = None
        self._thread = threading.Thread(target=self._live, name="workers on Spark", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Hang up, wait until the workers have left their group and ended, and stop Spark."""
        self._closing.set()
        deadline = time.monotonic() + self._patience_s
        self._thread.join(MARGIN_S)
        for number in self._lines.close() if self._lines is not None else ():
            self._jobs[number].thread.join(max(0.0, deadline - time.monotonic()))
        if self._spark is not None:
            self._spark.stop()

    def _live(self) -> None:
        while not self._is_needed():
            if self._closing.wait(LOOK_S):
                return
        if (failure := failure_of(self._keep_all)) is not None:
            log.error("Connect cannot run on Spark: %s", failure)
            self._on_failure()

    def _keep_all(self) -> None:
        from moldau.spark.session import private

        spark = self._spark = self._make_session()
        settings = spark.sparkContext.getConf()
        host = settings.get("spark.driver.host") or ""
        self._lines = Lines(host, settings.get("spark.driver.bindAddress") or host)
        log.info("workers run in executors of %s", spark.sparkContext.master)
        while not self._closing.wait(LOOK_S):
            if private.is_stopped(spark):
                raise ServeError("Spark has stopped; its log says why.")
            for number in range(self._count or max(1, private.executors(spark))):
                self._keep(spark, self._lines, number)

    def _keep(self, spark: Any, lines: Lines, number: int) -> None:
        now, job = time.monotonic(), self._jobs.get(number)
        if job is not None and (job.thread.is_alive() or now < job.due):
            return
        thread = threading.Thread(target=self._run, args=(spark, lines, number), name=f"worker {number}", daemon=True)
        self._jobs[number] = Job(thread, now, job.failures if job else 0)
        thread.start()

    def _run(self, spark: Any, lines: Lines, number: int) -> None:
        """Run a worker's job to its end, which it has only when it fails, or when the driver hangs up."""

        def work() -> None:
            spark.sparkContext.setJobDescription(f"worker {number} of Connect")
            one = spark.sparkContext.range(number, number + 1, numSlices=1)
            one.foreachPartition(partial(run, self._order(number, lines)))

        failure = failure_of(work)
        if failure is not None and not self._closing.is_set():
            log.warning("worker %s has ended on the cluster: %s", number, failure)
        lines.hang_up(number)
        self._jobs[number].note_end(time.monotonic())


def failure_of(work: Callable[[], None]) -> str | None:
    """Run something on Spark to its end; return what has gone wrong, there or in a task, as a sentence."""
    from moldau.spark.runner.failures import sentence_of, text_of

    try:
        work()
    except Exception as error:  # Spark passes on whatever its tasks raise
        return sentence_of(text_of(error))
    return None
