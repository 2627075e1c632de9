"""A topic into a table of PostgreSQL, exactly once. It needs psycopg: pip install 'psycopg[binary]'

    python examples/spark/topic_to_postgres.py --topic orders --table orders --dsn "dbname=shop user=me"

A batch that is replayed after a crash has the same records again. Topic, partition and offset are the table's key, so
the database leaves out what it has: that is all that exactly once takes where a table has a key.
"""

from __future__ import annotations

import argparse

import psycopg
from psycopg import sql

from moldau.spark import run, session

MAKE = """CREATE TABLE IF NOT EXISTS {} (
    topic text, partition int, "offset" bigint, key text, value text, "timestamp" timestamptz,
    PRIMARY KEY (topic, partition, "offset"))"""
COLUMNS = ["topic", "partition", "offset", "key", "value", "timestamp"]


def write(dsn: str, table: str, batch) -> None:
    """The rows of a batch: copied into a table of their own first, which is the fastest way in."""
    target = sql.Identifier(table)
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL(MAKE).format(target))
        cursor.execute(sql.SQL("CREATE TEMP TABLE incoming (LIKE {}) ON COMMIT DROP").format(target))
        with cursor.copy("COPY incoming FROM STDIN") as copy:
            for row in batch.select(*COLUMNS).toLocalIterator():
                copy.write_row(tuple(row))
        cursor.execute(sql.SQL("INSERT INTO {} SELECT * FROM incoming ON CONFLICT DO NOTHING").format(target))


def definition(servers: str, topic: str, dsn: str, table: str, follow: bool):
    def query(spark):
        records = (
            spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 100_000)
            .load()
        )
        rows = records.selectExpr(
            "topic", "partition", "offset", "CAST(key AS STRING)", "CAST(value AS STRING)", "timestamp"
        )
        writer = rows.writeStream.foreachBatch(lambda batch, number: write(dsn, table, batch))
        return writer.trigger(processingTime="5 seconds") if follow else writer.trigger(availableNow=True)

    return query


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--dsn", required=True, help="as libpq takes it")
    parser.add_argument("--state-dir", default="./checkpoints")
    parser.add_argument("--follow", action="store_true", help="go on until it is stopped")
    given = parser.parse_args(arguments)
    copy = definition(given.bootstrap_servers, given.topic, given.dsn, given.table, given.follow)
    run({f"{given.topic}-to-postgres": copy}, session("topic to PostgreSQL"), state_dir=given.state_dir)


if __name__ == "__main__":
    main()
