"""`python -m tests.spark.cluster`: source and sink on a real cluster of Spark, a standalone master and two workers.

The workers get Moldau as a zip, as by `--py-files`. Part of `make conformance`: it takes a minute and much memory.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import moldau
from moldau.spark import session
from moldau.spark.session import java
from moldau.testing import broker
from tests.spark.conftest import Cluster

START_S = 120.0
CLASSES = "org.apache.spark.deploy"


def program() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-class")


@contextlib.contextmanager
def started(folder: Path, name: str, *command: str) -> Iterator[Path]:
    """A process of Spark whose output is a file."""
    log = folder / f"{name}.log"
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / name), "PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as out:
        process = subprocess.Popen([program(), *command], stdout=out, stderr=out, env=own, stdin=subprocess.DEVNULL)
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def said(log: Path, pattern: str) -> str:
    """What a process has written, waited for."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if match := re.search(pattern, log.read_text(errors="replace")):
            return match[0]
        time.sleep(0.2)
    raise TimeoutError(f"{log} has no {pattern}: {log.read_text(errors='replace')[-2000:]}")


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a master with two workers of one core."""
    java.prepare()
    place = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(started(folder, "master", f"{CLASSES}.master.Master", *place))
        address = said(log, r"spark://127\.0\.0\.1:\d+")
        for name in ("worker-1", "worker-2"):
            limits = ("--cores", "1", "--memory", "1g")
            worker = stack.enter_context(started(folder, name, f"{CLASSES}.worker.Worker", *place, *limits, address))
            said(worker, "Successfully registered")
        yield address


def rows_of(spark: Any, kafka: Cluster, topic: str, folder: Path) -> list[Any]:
    """What a stream reads, written by the workers to files that all of them reach."""
    stream = kafka.stream(spark, topic, minPartitions="4")
    writer = stream.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.queryName("cluster").trigger(availableNow=True).start()
    assert query.awaitTermination(180), "the query does not come to its end"
    return spark.read.parquet(str(folder / "out")).orderBy("partition", "offset").collect()


def copy(spark: Any, kafka: Cluster, topic: str, target: str) -> None:
    """A topic into another one, exactly once: tasks in workers, the commit on the driver."""
    stream = kafka.stream(spark, topic).select("key", "value")
    writer = stream.writeStream.format("moldau").option("kafka.bootstrap.servers", kafka.servers)
    query = writer.option("topic", target).queryName("copy").trigger(availableNow=True).start()
    assert query.awaitTermination(180), "the copy does not come to its end"


def zipped(folder: Path) -> str:
    """The package as the wheel has it."""
    return shutil.make_archive(str(folder / "moldau"), "zip", Path(moldau.__file__).parent.parent, "moldau")


def where(rows: Any) -> Iterator[str]:
    import moldau.spark

    yield moldau.spark.__file__


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="moldau-cluster-") as name, broker() as kafka:
        folder = Path(name)
        with cluster(folder) as address:
            conf = {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.sql.streaming.checkpointLocation": str(folder / "checkpoints"),
            }
            spark = session("cluster", address, **conf, **{"spark.executor.memory": "512m"})
            spark.sparkContext.addPyFile(zipped(folder))
            try:
                check(spark, Cluster(kafka.bootstrap_servers), folder)
            finally:
                spark.stop()
    print("source and sink work on a cluster of two workers")


def check(spark: Any, kafka: Cluster, folder: Path) -> None:
    topic = kafka.topic(2)
    for partition in range(2):
        kafka.put(topic, *(f"{partition}-{number}" for number in range(500)), partition=partition)
    rows = rows_of(spark, kafka, topic, folder)
    assert [bytes(row.value).decode() for row in rows] == [f"{p}-{n}" for p in range(2) for n in range(500)]
    target = kafka.topic(2)
    copy(spark, kafka, topic, target)
    copied = [bytes(row.value).decode() for row in kafka.read(spark, target).collect()]
    assert sorted(copied) == sorted(bytes(row.value).decode() for row in rows)
    found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect()
    assert all("moldau.zip" in one for one in found), found
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is one of them
    assert executors == 2, f"{executors} workers took part"


if __name__ == "__main__":
    sys.exit(main())
