"""A back-fill: the records of a day once more into another topic, as a batch job that can be run again without harm.

    python examples/spark/backfill.py --topic orders --to orders-replayed --since 2026-05-01 --until 2026-05-02

The job has a name of its own (`application.id`). If it dies, run it again: what was decided is completed, what was not
is written, and a job that is done writes nothing.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from moldau.spark import session


def milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def backfill(spark, servers: str, topic: str, target: str, since: str, until: str) -> None:
    records = (
        spark.read.format("moldau")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingTimestamp", milliseconds(since))
        .option("endingTimestamp", milliseconds(until))
        .option("startingOffsetsByTimestampStrategy", "latest")  # partitions without such records
        .option("includeHeaders", "true")
        .load()
    )
    (
        records.select("key", "value", "headers", "timestamp")
        .write.format("moldau")
        .mode("append")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("application.id", f"backfill {topic} to {target} {since} {until}")
        .save()
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True, help="a topic")
    parser.add_argument("--since", required=True, help="a day or a time, in UTC")
    parser.add_argument("--until", required=True, help="the first time that is not wanted any more")
    given = parser.parse_args(arguments)
    backfill(session("back-fill"), given.bootstrap_servers, given.topic, given.to, given.since, given.until)


if __name__ == "__main__":
    main()
