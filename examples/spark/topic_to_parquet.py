"""A topic into Parquet files, exactly once, and only what is new at each run.

    python examples/spark/topic_to_parquet.py --topic orders --to ./orders

Run it every hour, or with --follow as a service. Spark's file sink and the checkpoint beside the files see to it that
each record is in the files once.
"""

from __future__ import annotations

import argparse

from moldau.spark import run, session


def definition(servers: str, topic: str, folder: str, follow: bool):
    """The query: what `moldau.spark.run` starts, watches and restarts."""

    def query(spark):
        records = (
            spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        rows = records.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "timestamp", "partition", "offset")
        writer = rows.writeStream.format("parquet").option("path", folder)
        return writer.trigger(processingTime="10 seconds") if follow else writer.trigger(availableNow=True)

    return query


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True, help="a folder")
    parser.add_argument("--follow", action="store_true", help="go on until it is stopped")
    given = parser.parse_args(arguments)
    spark = session("topic to Parquet")
    copy = definition(given.bootstrap_servers, given.topic, given.to, given.follow)
    run({f"{given.topic}-to-parquet": copy}, spark, state_dir=f"{given.to}/_checkpoints")


if __name__ == "__main__":
    main()
