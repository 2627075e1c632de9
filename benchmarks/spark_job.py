"""One contender of `benchmarks.spark`, in an interpreter of its own: Spark with Moldau's source, or with its own.

It knows nothing of Moldau unless it is told to, so that it runs where only PySpark is installed. Workloads come as JSON
lines on stdin, one answer each goes to stdout behind RESULT.
"""

import glob
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

BEGAN = time.monotonic()


def started(given: dict[str, Any]) -> Any:
    """Ours has the session that users get; theirs a plain one with its jars."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if given["format"] == "moldau":
        import moldau.spark

        return moldau.spark.session("bench", given["master"], **given["conf"])
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    for name, value in {**given["conf"], "spark.jars": given["jars"], "spark.master": given["master"]}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stream(spark: Any, given: dict[str, Any], work: dict[str, Any]) -> Any:
    options = {"kafka.bootstrap.servers": work["servers"], "subscribe": work["topic"], **work.get("options", {})}
    source = spark.readStream.format(given["format"]).options(**options, startingOffsets=work["starting"]).load()
    schema = work.get("avro")
    if schema is None:
        return source
    if given["format"] == "moldau":
        return source.select("value.*")
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import expr

    return source.select(from_avro(expr("substring(value, 6, length(value) - 5)"), schema).alias("value")).select(
        "value.*"
    )


def writing(spark: Any, given: dict[str, Any], work: dict[str, Any], folder: str) -> Any:
    """Into a topic, if the workload says so, or nowhere."""
    rows = stream(spark, given, work)
    if "into" not in work:
        return rows.writeStream.format("noop").option("checkpointLocation", folder)
    writer = rows.select("key", "value").writeStream.format(given["format"]).option("checkpointLocation", folder)
    return writer.option("kafka.bootstrap.servers", work["servers"]).option("topic", work["into"])


def everything(spark: Any, given: dict[str, Any], work: dict[str, Any]) -> float:
    """Rows a second of a topic read from start to end, by the time that Spark says its batches took."""
    with tempfile.TemporaryDirectory() as folder:
        query = writing(spark, given, work, folder).trigger(availableNow=True).start()
        query.awaitTermination(600)
        progress = [one for one in query.recentProgress if one["numInputRows"]]
    rows = sum(one["numInputRows"] for one in progress)
    assert rows == work["rows"], f"{rows} rows of {work['rows']}"
    return rows / sum(one["durationMs"]["triggerExecution"] for one in progress) * 1000


def small_batches(spark: Any, given: dict[str, Any], work: dict[str, Any]) -> float:
    """The median time of micro-batches while somebody writes a few records now and then."""
    with tempfile.TemporaryDirectory() as folder:
        query = writing(spark, given, work, folder).start()
        print("RUNNING", flush=True)
        time.sleep(work["seconds"])
        found = [one["durationMs"]["triggerExecution"] for one in query.recentProgress if one["numInputRows"]]
        query.stop()
    assert len(found) > 10, f"{len(found)} batches are too few"
    return statistics.median(found[len(found) // 3 :])


def first_batch(spark: Any, given: dict[str, Any], work: dict[str, Any]) -> float:
    """Seconds from the start of this program until the first batch is done."""
    with tempfile.TemporaryDirectory() as folder:
        query = writing(spark, given, work, folder).trigger(availableNow=True).start()
        assert query.awaitTermination(600)
    return time.monotonic() - BEGAN


def is_below(pid: int, other: int) -> bool:
    """Whether a process was started by another, or by one that it has started."""
    while pid > 1 and pid != other:
        with open(f"/proc/{pid}/stat") as line:
            pid = int(line.read().rpartition(")")[2].split()[1])
    return pid == other


def workers(spark: Any, given: dict[str, Any], work: dict[str, Any]) -> list[tuple[int, int]]:
    """Memory of the processes of Python that Java keeps for tasks: kB of their own, and with what they share."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/cmdline") as line, open(f"{folder}/smaps_rollup") as rows:
                # Java has the name of the module among its settings.
                if f"-m\0{work['module']}" in line.read() and is_below(int(os.path.basename(folder)), os.getpid()):
                    sizes = {row.split()[0]: int(row.split()[1]) for row in rows if row.rstrip().endswith("kB")}
                    found.append((sizes["Private_Clean:"] + sizes["Private_Dirty:"], sizes["Rss:"]))
        except (OSError, KeyError):
            continue  # it has ended meanwhile
    return sorted(found)


WORKLOADS = {
    "everything": everything,
    "small batches": small_batches,
    "first batch": first_batch,
    "workers": workers,
}


def main() -> None:
    given = json.loads(sys.argv[1])
    spark = started(given)
    spark.sparkContext.setLogLevel("OFF")
    print("RESULT", json.dumps(time.monotonic() - BEGAN), flush=True)
    for line in sys.stdin:
        work = json.loads(line)
        print("RESULT", json.dumps(WORKLOADS[work["kind"]](spark, given, work)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
