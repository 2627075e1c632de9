"""`moldau.spark.session(...)`: a SparkSession with settings that suit streams, and the data source "moldau" in it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from moldau.extras import require_spark
from moldau.spark.session import archive, classes, home, java, private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMING = "org.apache.spark.sql.execution.streaming"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs from Spark's default, and why."""

    name: str
    value: str
    reason: str


EVERYWHERE = (
    Setting("spark.sql.session.timeZone", "UTC", "times of records are points in time, whoever reads them where"),
    Setting(
        "spark.sql.streaming.stateStore.providerClass",
        f"{STREAMING}.state.RocksDBStateStoreProvider",
        "state outside of Java's heap; transformWithState has no other",
    ),
    Setting(
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "true",
        "a batch writes what it changed, not a snapshot",
    ),
    Setting(
        "spark.sql.adaptive.streaming.stateless.enabled",
        "false",
        "a replayed batch must have as many sink tasks as at first, or it cannot be told from a new one",
    ),
    Setting("spark.python.unix.domain.socket.enabled", "true", "halves the latency of a small batch against TCP"),
    Setting(
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled",
        "false",
        "some kinds of steps set it and others do not, and each would have a daemon of Python workers of its own",
    ),
    Setting("spark.python.authenticate.socketTimeout", "120s", "many queries that start at once fail with the 15 s"),
    Setting("spark.ui.enabled", "false", "it listens on all addresses; set it to true to have it"),
    Setting("spark.ui.showConsoleProgress", "false", "bars of stages write over what a program prints"),
)
LOCAL = (
    Setting("spark.python.daemon.module", "moldau.spark.daemon", "workers are forked with their modules loaded"),
    Setting("spark.driver.host", "127.0.0.1", "nobody else needs to reach it"),
    Setting("spark.driver.bindAddress", "127.0.0.1", "nobody else needs to reach it"),
    Setting(
        "spark.sql.streaming.checkpointFileManagerClass",
        f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
        "the default one starts the program readlink for each file",
    ),
)
_known: WeakSet[Any] = WeakSet()  # sessions in which the data source is registered
CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
LOGGING = Path(__file__).parent / "log4j2.properties"
OWN_LOGGING = "SPARK_CONF_DIR"  # a folder with settings of Spark, logging included
IN_A_JOB = "PYSPARK_GATEWAY_PORT"  # spark-submit has already started Java, and knows the master


def session(app_name: str, master: str | None = None, **conf: Any) -> SparkSession:
    """Return a session named `app_name` on `master`: local[*] if none is given here, in `conf` or by spark-submit.

    `conf` has settings of Spark, which override the tables here: `session("a", **{"spark.ui.port": "4041"})`.
    If it sets `spark.sql.streaming.checkpointLocation`, every node of a cluster must reach that path.
    """
    require_spark()
    java_home = java.prepare()
    from pyspark.sql import SparkSession

    from moldau.spark.datasource import TopicDataSource
    from moldau.spark.session.listener import listen
    from moldau.spark.session.shared import check_shared, giving_functions

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    chosen = settings(master or conf.pop("spark.master", None), java_home, IN_A_JOB in os.environ)
    for name, value in {**chosen, **conf, "spark.app.name": app_name}.items():
        builder = builder.config(name, value)
    with home.light() if is_local(chosen.get("spark.master")) else nullcontext():
        made = builder.getOrCreate()
    if made not in _known:
        with giving_functions(made):
            made.dataSource.register(TopicDataSource)
        if private.has_java(made):
            private.silence_accumulators(made)
            if (compiled := classes.class_path(java_home)) is not None:
                listen(made, compiled)
                private.filter_standard_error(made, compiled, classes.ERRORS)
        _known.add(made)
    if (checkpoints := conf.get(CHECKPOINTS)) is not None:
        check_shared(made, checkpoints)
    return made


def settings(master: str | None, java_home: Path, in_a_job: bool = False) -> dict[str, str]:
    """Return the settings for a master; None means the one of spark-submit, otherwise local[*]."""
    if master is None and not in_a_job:
        master = "local[*]"
    rows = [*EVERYWHERE, *(local(str(master), java_home) if is_local(master) else ())]
    return {row.name: row.value for row in rows} | ({"spark.master": master} if master else {})


def is_local(master: str | None) -> bool:
    return master is not None and master.startswith("local")


def local(master: str, java_home: Path) -> Iterator[Setting]:
    """Yield the settings where driver and workers are one process on one machine."""
    yield from LOCAL
    cores = str(cores_of(master))
    yield Setting("spark.sql.shuffle.partitions", cores, "each is a task and a state store; Spark has 200")
    compiled = classes.class_path(java_home)
    if compiled is not None:
        reason = "no process for each checkpoint file"
        yield Setting("spark.driver.extraClassPath", str(compiled), reason)
        yield Setting("spark.hadoop.fs.file.impl", classes.FILE_SYSTEM, reason)
    options = archive.java_options(java_home, home.jars(), compiled)
    if OWN_LOGGING not in os.environ:
        options += f" -Dlog4j2.configurationFile={LOGGING.as_uri()}"
    reason = "Java starts from an archive of Spark's classes, and keeps idle warnings to itself"
    yield Setting("spark.driver.extraJavaOptions", options, reason)


def cores_of(master: str) -> int:
    """Return how many tasks a local master runs at a time."""
    match = re.match(r"local\[(\d+|\*)", master)
    if match is None:
        return 1
    return os.cpu_count() or 1 if match[1] == "*" else int(match[1])
